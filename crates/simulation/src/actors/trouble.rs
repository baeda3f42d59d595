//! Trouble: handles that come and go, faults, deaths, stops, clocks and power.

use fieldstone_core::env::sim::{Fault, OpKind};

use crate::plan::{Step, Verb};
use crate::process::{PLACES, text};
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
        Err(_) if simulation.processes[who].is_shaky => {
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

/// The power fails.
pub fn power(simulation: &mut Simulation, step: &Step) -> Checked {
    simulation.cut_power(step.seed)
}

/// A host's clock jumps: by an hour, to 2099, to 1969, or to the true time.
pub fn clock(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    let offset = *random.pick(&[-HOUR, HOUR, 75 * YEAR, -55 * YEAR, 0]);
    simulation.world.set_clock_offset(PLACES[step.who].0, offset);
    Ok(())
}

/// A second to a day passes.
pub fn wait(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    simulation.world.advance(SECOND * random.pick(&[1, 2, 60, 3_700, 90_000]));
    Ok(())
}
