//! Wipers: a process hides all fields of a run of its user's, or of one variable of it.

use crate::call::Call;
use crate::model::change::{Commit, Content};
use crate::plan::Step;
use crate::process::{Purpose, run_of};
use crate::simulation::{Checked, Simulation};

/// Wipes what the process sees: so only at a moment at which that is certain. Content of open transactions
/// stays, and later flushes do. At times nothing is old enough.
pub fn wipe(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    simulation.settle();
    let process = &simulation.processes[who];
    let can = process.idle().is_some() && !process.pending.contains_key(&None) && !process.is_shaky;
    if !can || !simulation.model.is_certain() {
        return Ok(());
    }
    let (user, attempt) = (process.user, process.attempt);
    let run = run_of(user, &mut random).to_owned();
    let variable = random.one_in(3).then(|| (*random.pick(&["t", "u", "o"])).to_owned());
    let is_young = random.one_in(4);
    let request = match &variable {
        Some(variable) => format!("run={run},variable={variable}"),
        None => format!("run={run}"),
    };
    let content = Content::Wipe(run, variable, is_young);
    let commit = simulation.model.open(Commit { user, attempt, transaction: None, content });
    simulation
        .note(|| format!("{who} wipes {request} as {commit}, what is older than the world: {is_young}"));
    simulation.launch_at_once(who, vec![Call::Wipe(request, is_young)], Purpose::Flush(None, commit))
}
