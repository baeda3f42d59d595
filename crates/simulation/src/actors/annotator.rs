//! Annotators: attributes on runs, steps and variables, and their deletion.

use fieldstone_core::env::sim::Random;

use crate::call::Call;
use crate::model::change::{AttributePlace, Change};
use crate::plan::Step;
use crate::process::{Purpose, run_of};
use crate::simulation::{Checked, Simulation};

/// The tag of a process: so no two of them correct the same attribute at once.
fn tag(who: usize) -> String {
    format!("q{who}")
}

/// An attribute on any run. In a transaction its step is new: of corrections by several writers in one transaction the
/// order is theirs alone.
pub fn attribute(
    simulation: &mut Simulation,
    who: usize,
    transaction: Option<u32>,
    random: &mut Random,
) -> Change {
    let run = (*random.pick(&["a", "b", "c"])).to_owned();
    let step = random.coin().then(|| random.below(3) as i64);
    let variable = step.filter(|_| random.coin()).map(|_| "t".to_owned());
    let step = if transaction.is_some() { Some(simulation.next_stamp() as i64 % (1 << 40)) } else { step };
    Change::Attribute(AttributePlace { run, tag: tag(who), step, variable }, random.below(64) as i64)
}

/// Deletes the attributes that a process wrote in a run, if it is certain which are there.
pub fn erase(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let process = &simulation.processes[who];
    if process.idle().is_none() || process.pending.contains_key(&None) || !simulation.model.is_certain() {
        return Ok(());
    }
    let user = process.user;
    let run = run_of(user, &mut random).to_owned();
    let there = simulation.model.state().attributes_of(&run, &tag(who), user);
    if there.is_empty() {
        return Ok(());
    }
    let commit = simulation.pending(who, None);
    simulation.model.add(commit, vec![Change::Erase(there)]);
    let calls = vec![Call::Erase(run, tag(who)), Call::Flush];
    simulation.note(|| format!("{who} erases {calls:?} as {commit}"));
    simulation.launch_at_once(who, calls, Purpose::Flush(None, commit))
}
