//! Trouble: handles that come and go, faults, deaths, stops, clocks and power.

use fieldstone_core::env::sim::{Fault, OpKind};

use crate::call::Call;
use crate::model::change::{Change, Key, What};
use crate::plan::{Step, Verb};
use crate::process::{Armed, PLACES, Purpose, run_of, text};
use crate::simulation::{Checked, Simulation};

const SECOND: u64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND as i64;
const YEAR: i64 = 365 * 24 * HOUR;

/// Calls of the disk that fail, and how.
const FAULTS: [(OpKind, Fault); 11] = [
    (OpKind::SyncData, Fault::Io),
    (OpKind::SyncData, Fault::IoPartial),
    (OpKind::Write, Fault::NoSpace),
    (OpKind::Write, Fault::Io),
    (OpKind::Write, Fault::Short),
    (OpKind::Create, Fault::NoSpace),
    (OpKind::SyncDir, Fault::Io),
    (OpKind::Link, Fault::Io),
    (OpKind::Read, Fault::Io),
    (OpKind::ListDir, Fault::Io),
    (OpKind::OpenRead, Fault::Io),
];

/// Attempts that processes name; most name none.
const ATTEMPTS: [&str; 6] = ["", "", "", "one", "two", "three"];

/// A new process takes the place of one, which dies if it has not closed.
pub fn open(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    let attempt = *random.pick(&ATTEMPTS);
    simulation.note(|| format!("{} opens the store, attempt '{attempt}'", step.who));
    simulation.open(step.who, attempt)
}

/// A process closes its store, which flushes.
pub fn close(simulation: &mut Simulation, step: &Step) -> Checked {
    let who = step.who;
    let process = &mut simulation.processes[who];
    if process.idle().is_none() {
        return Ok(());
    }
    let commit = process.pending.remove(&None);
    process.pending.clear();
    commit.iter().for_each(|commit| simulation.model.depart(*commit, None));
    let store = simulation.processes[who].store.take();
    let closed = store.map_or(Ok(()), |store| store.close());
    simulation.note(|| format!("{who} closes: {closed:?}"));
    match closed {
        Ok(()) => commit.iter().for_each(|commit| simulation.model.arrive(*commit)),
        Err(ref error) if simulation.processes[who].is_shaky || simulation.has_lost_log(error) => {
            simulation.is_troubled = true;
            commit.iter().for_each(|commit| simulation.model.doubt(*commit));
        }
        Err(error) => return Err(format!("{who} cannot close: {}", text(&error))),
    }
    Ok(())
}

/// Plans trouble for a process's next action.
pub fn arm(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    // Small numbers more often: the calls around the first writes are the rare ones.
    let most = *random.pick(&[6, 20, 60]);
    let nth = 1 + random.below(most);
    let armed = &mut simulation.processes[step.who].armed;
    match step.verb {
        Verb::Fault => {
            let (kind, fault) = *random.pick(&FAULTS);
            armed.fault = Some((kind, fault, 1 + random.below(3)));
        }
        Verb::Kill => armed.kill = Some(nth),
        _ => armed.stop = Some(nth),
    }
    Ok(())
}

/// The power fails; in two of three cases while a process syncs what it wrote.
pub fn power(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    if random.below(3) > 0 && simulation.processes[who].idle().is_some() {
        let user = simulation.processes[who].user;
        let run = run_of(user, &mut random).to_owned();
        let key = Key { run, variable: "o".into(), step: 0 };
        // Some sectors long: they reach the disk in any order.
        let change = Change::Field(key, What::Bytes(random.next_u64(), 1_500 + random.below(6_000) as usize));
        let commit = simulation.pending(who, None);
        simulation.model.add(commit, vec![change.clone()]);
        simulation.processes[who].armed =
            Armed { fault: Some((OpKind::SyncData, Fault::Kill, 1)), ..Armed::default() };
        simulation.note(|| format!("{who} writes {change:?} as {commit}, and dies in its sync"));
        let calls = vec![Call::Take(change, false), Call::Flush];
        simulation.launch(who, calls, Purpose::Flush(None, commit))?;
    }
    simulation.cut_power(step.seed)
}

/// A host's clock jumps: by an hour, by two days, to 2099, to 1969, or to the true time.
pub fn clock(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    let offset = *random.pick(&[-HOUR, HOUR, -48 * HOUR, 48 * HOUR, 75 * YEAR, -55 * YEAR, 0]);
    simulation.ahead = simulation.ahead.max(offset);
    simulation.world.set_clock_offset(PLACES[step.who].0, offset);
    Ok(())
}

/// A second to a day passes.
pub fn wait(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    simulation.world.advance(SECOND * random.pick(&[1, 2, 60, 3_700, 90_000]));
    Ok(())
}
