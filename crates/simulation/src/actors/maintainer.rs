//! Maintainers: they end logs whose processes are gone, that are silent, or that seem to belong to processes that are
//! gone, because another machine has the name of their host.

use crate::call::Call;
use crate::plan::Step;
use crate::process::{PLACES, Purpose, text};
use crate::simulation::{Checked, ROOT, Simulation};
use fieldstone_journal::medium::posix::FileMedium;

const SECOND: u64 = 1_000_000_000;
/// More than a day.
const DAY: u64 = 90_000 * SECOND;

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
