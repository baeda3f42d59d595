//! Maintainers: they take ended logs over, drop what nothing shows any more, and end logs whose processes are gone, that are
//! silent, or that seem to belong to processes that are gone, because another machine has the name of their host.

use fieldstone::{Mode, Session};
use fieldstone_core::env::sim::Random;

use super::{trouble, writer};
use crate::call::{self, Call};
use crate::plan::Step;
use crate::process::{self, PLACES, Purpose, Stopped, text};
use crate::simulation::{Checked, ROOT, Simulation, open};
use fieldstone_journal::medium::posix::FileMedium;

const SECOND: u64 = 1_000_000_000;
/// More than a day.
const DAY: u64 = 90_000 * SECOND;

/// Takes ended logs over: a process that writes as well, with its troubles to come, or one of its own. At times another one removes
/// what that replaced, when it may, and the power fails.
pub fn compact(simulation: &mut Simulation, step: &Step) -> Checked {
    take_logs_over(simulation, step)?;
    // Plans without trouble stay so.
    if simulation.is_calm || !step.random(2).one_in(4) {
        return Ok(());
    }
    simulation.world.advance(3_800 * SECOND);
    by_another(simulation, step.who, "removes what was replaced", Call::Compact(130 * SECOND))?;
    simulation.cut_power(step.seed)
}

fn take_logs_over(simulation: &mut Simulation, step: &Step) -> Checked {
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
    if random.coin() && simulation.processes[who].idle().is_some() {
        simulation.compactions += 1;
        simulation.note(|| format!("{who} {what}, with a grace of {} s", grace / SECOND));
        return simulation.launch(who, vec![call(grace)], Purpose::Maintain);
    }
    by_another(simulation, who, what, call(grace))
}

/// Makes a call of maintenance in a process of its own, on the host of a process.
fn by_another(simulation: &mut Simulation, who: usize, what: &str, call: Call) -> Checked {
    let (host, _) = PLACES[who];
    let env = simulation.world.process(host);
    (simulation.compactions, simulation.opened) = (simulation.compactions + 1, simulation.opened + 1);
    let calls = [call];
    let outcome = open(&env, Mode::Append, "", None).and_then(|store| {
        let made = call::make(&store, &calls, &Session::default()).map_err(|(_, error)| error);
        store.close().and(made)
    });
    simulation.note(|| format!("a process of {host} {what}, {calls:?}: {outcome:?}"));
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
        take_logs_over(simulation, step)?;
        simulation.world.advance((130 + random.below(2) * 3_600) * SECOND);
        simulation.bury()?;
    }
    Ok(())
}

/// Maintenance stops at one of its calls. Meanwhile a process writes and closes, others take over what has ended, and remove what
/// that replaced when they may. Then it goes on: whatever it says, nothing is lost.
pub fn nap(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let (host, _) = PLACES[who];
    if !simulation.has_links {
        return Ok(());
    }
    let env = simulation.world.process(host);
    (simulation.compactions, simulation.opened) = (simulation.compactions + 1, simulation.opened + 1);
    let grace = 130 * SECOND;
    let purges = random.coin();
    simulation.purges += u64::from(purges);
    let calls = vec![if purges { Call::Purge(grace) } else { Call::Compact(grace) }];
    let store = open(&env, Mode::Append, "", None)
        .map_err(|error| format!("a maintainer on {host} cannot open the store: {}", text(&error)))?;
    let stop = simulation.world.stop_nth(&env, 1 + random.below(150));
    let thread = process::start(&store, calls, Session::default(), Some(stop.clone()))?;
    let sleeper = Stopped::new(thread, stop.clone(), Purpose::Maintain, false);
    let sleeps = stop.wait();
    let meanwhile = if sleeps { others_maintain(simulation, step, &mut random) } else { Ok(()) };
    let outcome = sleeper.resume()?;
    simulation.note(|| {
        format!("a maintainer of {host}, which purges: {purges}, sleeps: {sleeps}, ends: {outcome:?}")
    });
    meanwhile?;
    match outcome {
        Err((_, error)) if !sleeps => Err(format!("a maintainer on {host}: {}", text(&error))),
        _ => store.close().map_err(|error| format!("a maintainer on {host} cannot close: {}", text(&error))),
    }
}

/// A process writes and closes, and its log is taken over; a grace later the log goes.
fn others_maintain(simulation: &mut Simulation, step: &Step, random: &mut Random) -> Checked {
    let who = step.who;
    simulation.processes[who].armed = Default::default();
    if let Some((calls, purpose)) = writer::prepare(simulation, who, random) {
        simulation.launch_at_once(who, calls, purpose)?;
    }
    if simulation.processes[who].stopped.is_none() {
        trouble::close(simulation, step)?;
        simulation.open(who, "")?;
    }
    for _ in 0..2 {
        by_another(simulation, who, "takes logs over", Call::Compact(130 * SECOND))?;
        simulation.world.advance(140 * SECOND);
    }
    by_another(simulation, who, "takes logs over", Call::Compact(130 * SECOND))
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
