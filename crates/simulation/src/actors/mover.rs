//! Movers: another store gets fields of a run, or names them. They act in a copy of the world after a power cut, so that the
//! model need not know of it: what the run shows there is what one of the stores must show in the end.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fieldstone::prelude::*;
use fieldstone::transfer::{TransferOptions, move_to};
use fieldstone::{
    ArchiveOptions, DType, ErrorKind, Mode, PurgeOptions, RemoveOptions, Request, Result, Session, Store,
    Value, reindex,
};
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::{OpKind, Random, SimWorld};

use crate::look::Look;
use crate::model::change::{CELLS, SHAPE};
use crate::plan::Step;
use crate::process::{PLACES, run_of, text};
use crate::simulation::{Checked, ROOT, Simulation, open, options};

/// The folder of the other store.
const OTHER: &str = "/other/s";
const SECOND: u64 = 1_000_000_000;

/// Length and checksum of each field of a run. A field that was written in part is whole in the other store.
type Content = BTreeMap<String, (usize, u64)>;

/// A copy of the world, in which everything is durable and no process lives.
struct Rehearsal {
    world: SimWorld,
    host: &'static str,
    run: &'static str,
    before: Content,
}

impl Rehearsal {
    /// One with a run of the process's user; `None` if it has no field.
    fn of(simulation: &Simulation, step: &Step, random: &mut Random) -> Checked<Option<Rehearsal>> {
        let world = simulation.world.power_cut(step.seed);
        world.set_tracing(false);
        let (host, user) = PLACES[step.who];
        let run = run_of(user, random);
        let mut rehearsal = Rehearsal { world, host, run, before: Content::new() };
        rehearsal.pass(simulation.staleness.unwrap_or_default());
        rehearsal.before = rehearsal.shown(ROOT)?;
        Ok((!rehearsal.before.is_empty()).then_some(rehearsal))
    }

    fn pass(&self, nanoseconds: u64) {
        self.world.advance(nanoseconds + 2 * SECOND);
    }

    fn request(&self) -> Checked<Request> {
        Request::parse(&format!("run={}", self.run)).map_err(|error| error.to_string())
    }

    /// The part of the run that a new reader finds in a store; nothing in one that is not there.
    fn shown(&self, folder: &str) -> Checked<Content> {
        let wrong = |error: fieldstone::Error| format!("{folder} cannot be read in a copy: {}", text(&error));
        let store = match open_at(&self.world.process(self.host), folder, Mode::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Content::new()),
            store => store.map_err(wrong)?,
        };
        let look = match Look::at(&store, &Session::default(), false, false) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Content::new()),
            look => look.map_err(wrong)?,
        };
        let of_run = format!("{{run={}}}", self.run);
        let own = look.fields.into_iter().filter(|(key, _)| key.starts_with(&of_run));
        Ok(own.map(|(key, shown)| (key, (shown.length, shown.sum))).collect())
    }
}

fn open_at(env: &Env, folder: &str, mode: Mode) -> Result<Store> {
    match folder {
        ROOT => open(env, mode, "", None),
        _ => fieldstone::open_in(env.clone(), folder, Path::new(folder), &options(mode, "", None)),
    }
}

/// Moves a run; mostly the process dies in one of its syncs, and the power fails after it. Each field is in one of the stores then.
pub fn move_away(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    simulation.settle();
    let Some(mut copy) = Rehearsal::of(simulation, step, &mut random)? else { return Ok(()) };
    let request = copy.request()?;
    let env = copy.world.process(copy.host);
    let dies = random.below(4) > 0;
    if dies {
        copy.world.kill_nth(&env, Some(OpKind::SyncData), 1 + random.below(5));
    }
    let moved = || -> Result<()> {
        let (from, to) = (open_at(&env, ROOT, Mode::Append)?, open_at(&env, OTHER, Mode::Append)?);
        let how = TransferOptions { strict: false, ..TransferOptions::default() };
        let report = move_to(&from, vec![request], &to, &how);
        from.close().and(to.close())?;
        report.map(drop)
    };
    let outcome = moved();
    simulation.note(|| format!("in a copy, {} moves run {}: {outcome:?}", copy.host, copy.run));
    let is_alive = env.identity.alive(env.identity.process());
    if let Err(error) = &outcome
        && is_alive
    {
        return Err(format!("a run cannot be moved: {}", text(error)));
    }
    if random.below(4) > 0 {
        copy.world = copy.world.power_cut(step.seed);
        copy.world.set_tracing(false);
    }
    copy.pass(simulation.staleness.unwrap_or_default());
    let (source, target) = (copy.shown(ROOT)?, copy.shown(OTHER)?);
    for (key, shown) in &copy.before {
        let (is_here, is_there) = (source.get(key) == Some(shown), target.get(key) == Some(shown));
        if outcome.is_ok() && (!is_there || source.contains_key(key)) {
            return Err(format!("{key} was moved: in the source {is_here}, in the target {is_there}"));
        }
        if !is_here && !is_there {
            return Err(format!("a move that ends early loses {key}"));
        }
    }
    Ok(())
}

/// Another store names a run; other values come, and a purge follows. The other store shows what it named.
pub fn point(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    simulation.settle();
    if !simulation.has_links {
        return Ok(());
    }
    let Some(copy) = Rehearsal::of(simulation, step, &mut random)? else { return Ok(()) };
    let request = copy.request()?;
    let wrong = |error: fieldstone::Error| format!("another store cannot name a run: {}", text(&error));
    let env = copy.world.process(copy.host);
    let (from, to) = (open_at(&env, ROOT, Mode::Append).map_err(wrong)?, open_at(&env, OTHER, Mode::Append));
    let to = to.map_err(wrong)?;
    match reindex(&from, &request, &to) {
        // Elements of an array in a file that nobody wrote keep it from being named.
        Err(error) if error.code() == fieldstone::Code::FieldIncomplete => return Ok(()),
        named => drop(named.map_err(wrong)?),
    }
    to.close().map_err(wrong)?;
    replace(&from, &copy, random.coin()).map_err(wrong)?;
    from.close().map_err(wrong)?;
    for _ in 0..2 {
        copy.pass(131 * SECOND);
        let purger = open_at(&copy.world.process(copy.host), ROOT, Mode::Append).map_err(wrong)?;
        let how = PurgeOptions { all: true, doit: true, grace: Duration::ZERO, ..PurgeOptions::default() };
        let purged = purger.purge(&how).map(|report| report.versions);
        purger.close().map_err(wrong)?;
        simulation.note(|| {
            format!("in a copy, another store names run {}, and a purge follows: {purged:?}", copy.run)
        });
        purged.map_err(wrong)?;
    }
    let after = copy.shown(OTHER)?;
    match after == copy.before {
        true => Ok(()),
        false => Err(format!("another store named {:?} and shows {after:?}", copy.before)),
    }
}

/// Replaces the fields of a run by others, or removes them, in two commits.
fn replace(store: &Store, copy: &Rehearsal, removes: bool) -> Result<()> {
    let archive = ArchiveOptions::default();
    if removes {
        let request = Request::parse(&format!("run={}", copy.run))?;
        store.remove(&request, &RemoveOptions::default())?;
    }
    for key in copy.before.keys().filter(|_| !removes) {
        let pairs: Vec<(&str, &str)> =
            key.trim_matches(['{', '}']).split("}{").filter_map(|pair| pair.split_once('=')).collect();
        let data = 7_i32.to_ne_bytes().repeat(CELLS);
        match pairs.contains(&("variable", "o")) {
            true => store.archive(&pairs, Value::Bytes(b"a later value"), &archive)?,
            false => {
                let value = Value::Array { data: &data, dtype: DType::I4, shape: &SHAPE };
                store.archive(&pairs, value, &archive)?;
            }
        }
    }
    store.flush(None)?;
    // Only what a later commit confirms hides anything for a purge.
    store.archive(&[("run", "y"), ("variable", "o"), ("step", "0")], Value::Bytes(b"later"), &archive)?;
    store.flush(None)
}
