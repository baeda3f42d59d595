//! Owners: what they say of a whole run of theirs for a while. A lock refuses writes, an overlay shows its fields under another
//! name, a rule of retention wipes what is too old. At the end of each step nothing of it is in force, so that the model knows
//! of none.

use std::collections::BTreeMap;
use std::time::Duration;

use fieldstone::{
    Code, MaintainAction, MaintainOptions, Mode, Request, Result, RetainOptions, Session, Store,
};
use fieldstone_core::env::sim::Random;

use crate::call::Call;
use crate::look::Look;
use crate::model::change::{Change, Key, What};
use crate::model::fields::Shown;
use crate::plan::{PROCESSES, Step};
use crate::process::{PLACES, run_of, text};
use crate::simulation::{Checked, Simulation, open};

/// The run as which an overlay shows others.
const OTHER: &str = "z";
/// An age that nothing has, whatever the clocks say.
const CENTURIES: Duration = Duration::from_secs(200 * 365 * 86_400);

/// Whether a process can act now and has nothing to flush; no trouble strikes it then.
fn is_free(simulation: &mut Simulation, who: usize) -> bool {
    let process = &mut simulation.processes[who];
    let is_free = process.idle().is_some() && !process.pending.contains_key(&None) && !process.is_shaky;
    if is_free {
        process.armed = Default::default();
    }
    is_free
}

/// A run of a process's user that certainly has fields.
fn own_run(simulation: &Simulation, who: usize, random: &mut Random) -> Option<&'static str> {
    let run = run_of(simulation.processes[who].user, random);
    let is_its = |key: &String| key.starts_with(&format!("{{run={run}}}"));
    let is_there =
        simulation.model.is_certain() && simulation.model.state().shown_fields().keys().any(is_its);
    is_there.then_some(run)
}

/// Makes a call; `false` if the log of the process had ended before it, so that it did nothing.
fn make(simulation: &mut Simulation, who: usize, call: Call) -> Checked<bool> {
    match simulation.call(who, std::slice::from_ref(&call), None) {
        Ok(()) => Ok(true),
        Err((_, error)) if simulation.has_lost_log(&error) => {
            simulation.failures += 1;
            simulation.note(|| format!("the log of {who} has ended: {call:?} did nothing"));
            Ok(false)
        }
        Err((_, error)) => Err(format!("{who} cannot do {call:?}: {}", text(&error))),
    }
}

/// Makes a call, again in a new log if need be.
fn make_at_last(simulation: &mut Simulation, who: usize, call: Call) -> Checked {
    if make(simulation, who, call.clone())? || make(simulation, who, call.clone())? {
        return Ok(());
    }
    Err(format!("{who} loses its log twice at {call:?}"))
}

/// Locks a run; another process of the user, which need not know of the lock yet, cannot write into it; unlocks it.
pub fn lock(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    simulation.settle();
    if !is_free(simulation, who) {
        return Ok(());
    }
    let Some(run) = own_run(simulation, who, &mut random) else { return Ok(()) };
    let user = simulation.processes[who].user;
    let others: Vec<usize> =
        (0..PROCESSES).filter(|other| *other != who && PLACES[*other].1 == user).collect();
    let free: Vec<usize> = others.into_iter().filter(|other| is_free(simulation, *other)).collect();
    let other = if free.is_empty() { who } else { *random.pick(&free) };
    simulation.note(|| format!("{who} locks {run}, and {other} writes into it"));
    if !make(simulation, who, Call::Lock(format!("run={run}"), true))? {
        return Ok(());
    }
    simulation.settle();
    let key = Key { run: run.to_owned(), variable: "t".into(), step: 0 };
    let calls = [Call::Take(Change::Field(key, What::Whole(1)), false), Call::Flush];
    let outcome = simulation.call(other, &calls, None);
    if let Some(store) = simulation.processes[other].idle() {
        drop(store.discard(Session::default()));
    }
    match outcome {
        Err((_, error)) if error.code() == Code::DatasetLocked => {}
        Err((_, error)) if simulation.has_lost_log(&error) => simulation.failures += 1,
        Err((_, error)) => return Err(format!("{other} writes into a locked run: {}", text(&error))),
        Ok(()) => return Err(format!("{other} may write into run {run}, which {who} has locked")),
    }
    make_at_last(simulation, who, Call::Lock(format!("run={run}"), false))
}

/// Shows a run as another one, too, looks at both, and ends that.
pub fn overlay(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    simulation.settle();
    if !is_free(simulation, who) {
        return Ok(());
    }
    let Some(run) = own_run(simulation, who, &mut random) else { return Ok(()) };
    simulation.note(|| format!("{who} shows {run} as {OTHER}, and ends that"));
    if !make(simulation, who, Call::Overlay(format!("run={run}"), OTHER, true))? {
        return Ok(());
    }
    let look = match simulation.processes[who].idle() {
        Some(store) => Look::at(store, &Session::default(), false, false),
        None => return Ok(()),
    };
    let look = look.map_err(|error| format!("{who} cannot look at an overlay: {}", text(&error)))?;
    let of = |run: &str| -> BTreeMap<String, Shown> {
        let own = look.fields.iter().filter_map(|(key, shown)| {
            let rest = key.strip_prefix(&format!("{{run={run}}}"))?;
            Some((rest.to_owned(), *shown))
        });
        own.collect()
    };
    if of(run).is_empty() || of(run) != of(OTHER) {
        return Err(format!("run {run} appears as {:?}, and has {:?}", of(OTHER), of(run)));
    }
    make_at_last(simulation, who, Call::Overlay(format!("run={run}"), OTHER, false))
}

/// Makes a rule for which everything is too young, maintains the store, and ends the rule.
pub fn retain(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    let (host, user) = PLACES[step.who];
    let run = run_of(user, &mut random);
    simulation.settle();
    (simulation.purges, simulation.compactions) = (simulation.purges + 1, simulation.compactions + 1);
    (simulation.maintenances, simulation.opened) = (simulation.maintenances + 1, simulation.opened + 1);
    let env = simulation.world.process(host);
    let outcome = open(&env, Mode::Append, "", None).and_then(|store| {
        let wiped = ruled(&store, run);
        store.close().and(wiped)
    });
    simulation
        .note(|| format!("a process of {host} retains run {run}, and maintains the store: {outcome:?}"));
    match outcome {
        Ok(0) => Ok(()),
        Ok(fields) => Err(format!("{fields} fields of run {run} are wiped as older than two centuries")),
        Err(_) if !simulation.has_links => Ok(()),
        Err(error) => Err(format!("a rule of retention on {host}: {}", text(&error))),
    }
}

/// Maintains the store under a rule; the number of fields that it wiped.
fn ruled(store: &Store, run: &str) -> Result<u64> {
    let request = Request::parse(&format!("run={run}"))?;
    let rule = RetainOptions { older_than: Some(CENTURIES), ..RetainOptions::default() };
    store.retain(&request, &rule)?;
    let report = store.maintain(&MaintainOptions::default());
    store.retain(&request, &RetainOptions { drop: true, ..RetainOptions::default() })?;
    let wipes = report?.steps.into_iter().filter(|step| step.action == MaintainAction::Wipe && step.done);
    Ok(wipes.map(|step| step.fields).sum())
}
