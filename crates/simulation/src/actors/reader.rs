//! Readers: after each step one of them looks, and the model must explain what it sees.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fieldstone::prelude::*;
use fieldstone::{Code, Field, ListOptions, Mode, Request, Result, RetrieveOptions, Session, Store};
use fieldstone_core::env::sim::Random;

use super::administrator;
use crate::look::Look;
use crate::model::fields::Shown;
use crate::plan::{PROCESSES, Step};
use crate::process::text;
use crate::simulation::{Checked, KeptVersion, READERS, ROOT, Simulation, open, temporary};

/// When worlds begin.
const BEGIN: i64 = 1_704_067_200_000_000_000;

/// A reader's handle: a new one, or the host's, refreshed or not.
fn handle(simulation: &mut Simulation, host: usize, is_new: bool) -> Checked<Store> {
    if let Some(store) = simulation.readers[host].as_ref().filter(|_| !is_new) {
        return Ok(store.clone());
    }
    let env = simulation.world.process(READERS[host]);
    let opened = open(&env, Mode::Read, "", None);
    let store =
        opened.map_err(|error| format!("{} cannot open the store: {}", READERS[host], text(&error)))?;
    simulation.readers[host] = Some(store.clone());
    Ok(store)
}

/// One look after a step; after trouble a new handle looks at everything.
pub fn check(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(9);
    let host = random.index(READERS.len());
    let is_new = simulation.is_troubled || random.one_in(4);
    let (catalog, graph) =
        (simulation.is_troubled || random.one_in(3), simulation.is_troubled || random.coin());
    simulation.settle();
    let store = handle(simulation, host, is_new)?;
    let who = format!("a {} reader on {}", if is_new { "new" } else { "former" }, READERS[host]);
    if random.coin() {
        store.refresh().map_err(|error| format!("{who} cannot refresh: {}", text(&error)))?;
    }
    let look = Look::at(&store, &Session::default(), catalog, graph);
    let look = look.map_err(|error| format!("{who} cannot look: {}", text(&error)))?;
    let is_purged = simulation.purges > 0;
    simulation
        .model
        .explain(None, |state| look.is_of(state, is_purged))
        .map_err(|why| format!("{who} sees wrong {why}"))?;
    let Some(transaction) = *random.pick(&simulation.transactions.slots) else { return Ok(()) };
    let look = Look::at(&store, &simulation.transactions.session(Some(transaction)), catalog, graph);
    let look = look.map_err(|error| format!("{who} cannot look into {transaction}: {}", text(&error)))?;
    simulation
        .model
        .explain(Some(transaction), |state| look.is_of(state, is_purged))
        .map_err(|why| format!("{who} sees in transaction {transaction} wrong {why}"))
}

/// A reader keeps the version that it sees, and its fields.
pub fn remember(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    simulation.settle();
    let store = handle(simulation, random.index(READERS.len()), random.coin())?;
    store.refresh().map_err(|error| format!("a reader cannot refresh: {}", text(&error)))?;
    let version = store.version().map_err(|error| format!("the store gives no version: {}", text(&error)))?;
    let look = Look::at(&store, &Session::default(), random.coin(), random.coin());
    let look = look.map_err(|error| format!("a reader cannot look: {}", text(&error)))?;
    let is_purged = simulation.purges > 0;
    simulation
        .model
        .explain(None, |state| look.is_of(state, is_purged))
        .map_err(|why| format!("a reader sees wrong {why}"))?;
    let held =
        hold(&store, &mut random).map_err(|error| format!("a reader cannot hold: {}", text(&error)))?;
    simulation.held.extend(held);
    let is_unsure = simulation.model.shows_unacknowledged();
    let hides = simulation.hides;
    let (erased, lacks_attributes) = (BTreeSet::new(), false);
    simulation.kept.push(KeptVersion { version, look, is_unsure, erased, lacks_attributes, hides });
    // Drawn last, so that the rest of a step is what it was before there were backups.
    if random.one_in(3) { administrator::back_up(simulation) } else { Ok(()) }
}

/// A field that a reader holds, with its content now.
fn hold(store: &Store, random: &mut Random) -> Result<Option<(Field, Shown)>> {
    let options = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
    let fields = store.retrieve(&Request::new(), &options)?;
    if fields.is_empty() {
        return Ok(None);
    }
    let field = fields.get(random.index(fields.len()))?;
    let shown = Shown::of(&field.read()?, field.is_complete()?);
    Ok(Some((field, shown)))
}

/// Fields that readers hold do not change.
fn check_held(simulation: &Simulation) -> Checked {
    for (field, shown) in &simulation.held {
        let read = field.read().and_then(|bytes| Ok(Shown::of(&bytes, field.is_complete()?)));
        match read {
            Ok(now) if now == *shown => {}
            Ok(now) => return Err(format!("a field that a reader holds changes: {shown:?}, now {now:?}")),
            Err(error) if error.code() == Code::VersionPurged && simulation.purges > 0 => {}
            Err(error) => return Err(format!("a field that a reader holds is lost: {}", text(&error))),
        }
    }
    Ok(())
}

/// A list of the fields that became visible since a version names all that differ.
fn check_since(simulation: &mut Simulation, kept: &KeptVersion) -> Checked {
    // Fields that are shown again became visible before the version.
    if !simulation.model.is_certain() || simulation.hides > kept.hides {
        return Ok(());
    }
    let store = handle(simulation, 0, false)?;
    let listed = store.refresh().and_then(|()| {
        let (list, _) = store.list_since(&Request::new(), &kept.version, &ListOptions::default())?;
        list.map(|entry| Ok(entry?.key.to_string())).collect::<Result<BTreeSet<String>>>()
    });
    let listed = listed.map_err(|error| format!("since {}: {}", kept.version, text(&error)))?;
    let now = simulation.model.state().shown_fields();
    let differs = now.iter().filter(|(key, shown)| kept.look.fields.get(*key) != Some(*shown));
    let missed: Vec<&String> = differs.map(|(key, _)| key).filter(|key| !listed.contains(*key)).collect();
    match missed.is_empty() {
        true => Ok(()),
        false => Err(format!("a list since {} lacks {missed:?}", kept.version)),
    }
}

/// A reader opens a version that was kept, and sees what was seen then.
pub fn look_back(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    simulation.settle();
    check_held(simulation)?;
    if simulation.kept.is_empty() {
        return Ok(());
    }
    let kept = simulation.kept[random.index(simulation.kept.len())].clone();
    let env = simulation.world.process(READERS[random.index(READERS.len())]);
    let look = open(&env, Mode::Read, "", Some(kept.version.clone())).and_then(|store| {
        let (catalog, graph) = (kept.look.catalog.is_some(), kept.look.graph.is_some());
        Look::at(&store, &Session::default(), catalog, graph)
    });
    let look = look.map_err(|error| format!("version {}: {}", kept.version, text(&error)))?;
    if !look.is_left_of(&kept.look, kept.lacks_attributes) {
        let (version, before) = (&kept.version, &kept.look);
        return Err(format!("version {version} is not what it was: {look:?}, {before:?}"));
    }
    let is_there = |key: &&String| look.fields.get(*key) == kept.look.fields.get(*key);
    if let Some(key) = kept.erased.iter().find(is_there) {
        return Err(format!("version {} shows {key}, which was erased", kept.version));
    }
    check_since(simulation, &kept)
}

/// Nothing is damaged: fields, catalog and graph agree with the logs.
pub fn verify(simulation: &mut Simulation, everything: bool) -> Checked {
    simulation.settle();
    let store = handle(simulation, 0, true)?;
    let wrong = |error: fieldstone::Error| format!("verify: {}", text(&error));
    let report = store.verify(&Request::new()).map_err(wrong)?;
    if !report.ok() {
        return Err(format!("verify finds damage: {:?}", report.damaged));
    }
    if everything {
        let catalog = store.catalog().verify().map_err(wrong)?;
        let graph = store.graph().verify().map_err(wrong)?;
        if !catalog.ok() || !graph.ok() {
            return Err(format!("verify finds differences: {catalog:?}, {graph:?}"));
        }
    }
    Ok(())
}

/// The store holds no more files than its handles made, and no more bytes than a bound for what was written.
pub fn check_space(simulation: &Simulation) -> Checked {
    let files: Vec<PathBuf> =
        simulation.world.files().into_iter().filter(|path| path.starts_with(ROOT)).collect();
    let names = || files.iter().map(|path| path.to_string_lossy());
    let of = |part: &str| names().filter(|name| name.contains(part)).count() as u64;
    let logs = names().filter(|name| name.contains("/logs/") && name.ends_with(".log")).count() as u64;
    let Simulation { deaths, failures, left_by_cut, opened, maintenances, compactions, .. } = *simulation;
    let (temporary, data) = (temporary(&files), of("/data/"));
    // A handle begins another log after each failure, after a day, and where somebody ends the one it has.
    let days = (simulation.world.now() - BEGIN) as u64 / 86_400_000_000_000;
    let most = opened + failures + PROCESSES as u64 * (days + 2 * maintenances);
    if temporary > deaths + failures + left_by_cut || logs > most || data > most + compactions {
        return Err(format!(
            "{temporary} temporary files, {logs} logs and {data} data logs of {opened} handles, of which {deaths} \
             died, with {failures} failures and {left_by_cut} left by a power cut: {files:?}"
        ));
    }
    // A reserve stays as long as there is room.
    let counted = files.iter().filter(|path| !path.to_string_lossy().contains("/reserve-"));
    let bytes: usize = counted.filter_map(|path| simulation.world.read(path).ok()).map(|b| b.len()).sum();
    let (payload, commits) = simulation.model.written();
    // Zeros double a log at most; merged segments repeat entries.
    // A takeover holds copies of its inputs, which stay for a grace.
    let copies = 1 + compactions as usize;
    let most = 3 * copies * payload + (commits + opened as usize) * (16 << 10) * copies;
    match bytes > most {
        true => Err(format!("{bytes} bytes of {commits} commits with {payload} bytes")),
        false => Ok(()),
    }
}

/// A copy of the world in which a log lost its end: if the log's slot knew of the lost commit, a new reader reports it.
fn check_short_log(simulation: &Simulation, step: &Step) -> Checked {
    let mut random = step.random(8);
    let copy = simulation.world.fork_image();
    // Nobody needs a log any more that a takeover has replaced.
    let status = open(&copy.process(READERS[0]), Mode::Read, "", None).and_then(|store| store.status());
    let writers = status.map_err(|error| format!("a reader gets no status: {}", text(&error)))?.writers;
    let living: BTreeSet<String> = writers.iter().map(|writer| format!("{}.log", writer.writer)).collect();
    let is_living = |path: &PathBuf| {
        path.starts_with(ROOT)
            && path.file_name().is_some_and(|name| living.contains(&*name.to_string_lossy()))
    };
    let logs: Vec<PathBuf> = copy.files().into_iter().filter(is_living).collect();
    if logs.is_empty() {
        return Ok(());
    }
    let log = random.pick(&logs);
    let bytes = copy.read(log).map_err(|error| error.to_string())?;
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0) as u64;
    copy.truncate(log, end.saturating_sub(random.below(100))).map_err(|error| error.to_string())?;
    copy.advance(simulation.staleness.unwrap_or_default() + 200 * 1_000_000_000);
    let report = open(&copy.process(READERS[0]), Mode::Read, "", None)
        .and_then(|store| Ok((store.verify(&Request::new())?, store.status()?)));
    match report {
        Ok((report, status)) if report.ok() && status.problems.is_empty() => {
            Err(format!("{} lost its end, and nobody says so", log.display()))
        }
        _ => Ok(()),
    }
}

/// At the end: a new handle sees everything, each kept version is there, and nothing is damaged.
pub fn finish(simulation: &mut Simulation, step: &Step) -> Checked {
    for who in 0..simulation.processes.len() {
        simulation.die(who)?;
    }
    // One that was stopped died within a call.
    simulation.is_calm &= !simulation.is_troubled;
    simulation.is_troubled = true;
    check(simulation, step)?;
    for kept in std::mem::take(&mut simulation.kept).into_iter().take(3) {
        simulation.kept = vec![kept];
        look_back(simulation, step)?;
    }
    verify(simulation, step.seed.is_multiple_of(4))?;
    administrator::check(simulation)?;
    check_space(simulation)?;
    // Only then has each log a slot for its last commit.
    if simulation.is_calm { check_short_log(simulation, step) } else { Ok(()) }
}
