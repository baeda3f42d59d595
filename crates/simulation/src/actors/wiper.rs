//! Wipers: a process hides all fields of a run of its user's, or of one variable of it, for good or until it shows them again.

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
    // Drawn last, so that the rest of a step is what it was before there were hides.
    if random.coin() {
        return hide(simulation, who, (run, variable, request), is_young || random.coin());
    }
    let content = Content::Wipe(run, variable, is_young);
    let commit = simulation.model.open(Commit { user, attempt, transaction: None, content });
    simulation
        .note(|| format!("{who} wipes {request} as {commit}, what is older than the world: {is_young}"));
    simulation.launch_at_once(who, vec![Call::Wipe(request, is_young)], Purpose::Flush(None, commit))
}

/// Hides what the process sees of a run, or of a variable of it; or shows again what was hidden of the run.
fn hide(
    simulation: &mut Simulation,
    who: usize,
    (run, variable, request): (String, Option<String>, String),
    shows: bool,
) -> Checked {
    let process = &simulation.processes[who];
    let (user, attempt) = (process.user, process.attempt);
    simulation.hides += 1;
    let request = if shows { format!("run={run}") } else { request };
    let content = if shows { Content::Show(run) } else { Content::Hide(run, variable) };
    let commit = simulation.model.open(Commit { user, attempt, transaction: None, content });
    simulation.note(|| format!("{who} hides {request} as {commit}, or shows it again: {shows}"));
    simulation.launch_at_once(who, vec![Call::Hide(request, !shows)], Purpose::Flush(None, commit))
}
