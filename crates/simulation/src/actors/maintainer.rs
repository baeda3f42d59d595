//! Maintainers: they take ended logs over, drop what nothing shows any more, and end logs whose processes are gone, that are silent, or that seem to belong to processes that are
//! gone, because another machine has the name of their host.

use fieldstone::{Mode, Session};

use super::{trouble, writer};
use crate::call::{self, Call};
use crate::plan::Step;
use crate::process::{PLACES, Purpose, text};
use crate::simulation::{Checked, ROOT, Simulation, open};
use fieldstone_journal::medium::posix::FileMedium;

const SECOND: u64 = 1_000_000_000;
/// More than a day.
const DAY: u64 = 90_000 * SECOND;

/// Takes ended logs over: a process that writes as well, with its troubles to come, or one of its own.
pub fn compact(simulation: &mut Simulation, step: &Step) -> Checked {
    take_over(simulation, step, "takes logs over", Call::Compact)
}

/// Drops what nothing shows any more, in the same way.
pub fn purge(simulation: &mut Simulation, step: &Step) -> Checked {
    simulation.purges += 1;
    if step.random(1).coin() {
        // Versions that were hidden just now are then old enough.
        simulation.world.advance(131 * SECOND);
    }
    take_over(simulation, step, "purges", Call::Purge)
}

fn take_over(simulation: &mut Simulation, step: &Step, what: &str, call: fn(u64) -> Call) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let grace = SECOND * random.pick(&[130, 3_600]);
    simulation.compactions += 1;
    let calls = vec![call(grace)];
    if random.coin() && simulation.processes[who].idle().is_some() {
        simulation.note(|| format!("{who} {what}, with a grace of {} s", grace / SECOND));
        return simulation.launch(who, calls, Purpose::Maintain);
    }
    let (host, _) = PLACES[who];
    let env = simulation.world.process(host);
    simulation.opened += 1;
    let outcome = open(&env, Mode::Append, "", None).and_then(|store| {
        let made = call::make(&store, &calls, &Session::default()).map_err(|(_, error)| error);
        store.close().and(made)
    });
    simulation
        .note(|| format!("a process of {host} {what}, with a grace of {} s: {outcome:?}", grace / SECOND));
    match outcome {
        Err(error) if simulation.has_links => Err(format!("maintenance on {host}: {}", text(&error))),
        _ => Ok(()),
    }
}

/// A day passes; then, some times, a process writes and closes, and maintenance takes over what has ended. The first takeover
/// seals transactions, the next one forgets them.
pub fn forget(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    // A day of silence ends the logs of those that sleep.
    simulation.maintenances += 1;
    simulation.world.advance(DAY);
    for _ in 0..2 + random.below(2) {
        // The process flushes the rest as it closes.
        if let Some((calls, purpose)) = writer::prepare(simulation, who, &mut random) {
            simulation.launch_at_once(who, calls, purpose)?;
        }
        if simulation.processes[who].stopped.is_none() {
            trouble::close(simulation, step)?;
            simulation.open(who, "")?;
        }
        compact(simulation, step)?;
        simulation.world.advance((130 + random.below(2) * 3_600) * SECOND);
        simulation.bury()?;
    }
    Ok(())
}

/// Ends logs, mostly twice, with a grace between; at times a day passes before.
pub fn maintain(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let (host, _) = PLACES[who];
    let grace = SECOND * random.pick(&[1, 60, 3_700]);
    simulation.maintenances += 1;
    if random.one_in(4) {
        simulation.world.advance(DAY);
    }
    // A process that writes as well, with its troubles to come.
    if random.one_in(3) && simulation.processes[who].idle().is_some() {
        let env = simulation.processes[who].env.clone();
        simulation.note(|| format!("{who} ends logs after {} s", grace / SECOND));
        return simulation.launch(who, vec![Call::EndLogs(env, ROOT, grace)], Purpose::Maintain);
    }
    let seems_gone = random.coin();
    let env = if seems_gone { simulation.world.namesake(host) } else { simulation.world.process(host) };
    let rounds = 1 + random.below(2);
    for round in 0..rounds {
        if round > 0 {
            simulation.world.advance(grace + 121 * SECOND);
        }
        let ended = FileMedium::new(env.clone(), ROOT.as_ref()).and_then(|medium| medium.end_logs(grace));
        let ended = ended.map_err(|error| format!("maintenance on {host}: {}", text(&error)))?;
        simulation.note(|| format!("on {host}, after {} s, it ends {ended:?}", grace / SECOND));
    }
    Ok(())
}
