//! Transactions that the processes of one user share.

use fieldstone::prelude::*;

use crate::call::Call;
use crate::model::change::{Commit, Content};
use crate::plan::Step;
use crate::process::{Purpose, text};
use crate::simulation::{Checked, Simulation};

/// Begins a transaction in a slot whose last one is decided.
pub fn begin(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let slot = random.index(simulation.transactions.slots.len());
    let last = simulation.transactions.slots[slot];
    let is_over =
        |last| !simulation.model.ends(last).contains(&None) || simulation.may_be_forgotten(Some(last));
    let is_free = last.is_none_or(is_over);
    let Some(store) = simulation.processes[who].idle().filter(|_| is_free && simulation.is_alice(who)) else {
        return Ok(());
    };
    let id = store.begin().map_err(|error| format!("{who} cannot begin: {}", text(&error)))?;
    let number = simulation.transactions.ids.len() as u32;
    simulation.transactions.ids.push(id);
    simulation.transactions.slots[slot] = Some(number);
    simulation.note(|| format!("{who} begins transaction {number}"));
    Ok(())
}

/// Draws a decision: its calls and their purpose.
pub fn prepare(
    simulation: &mut Simulation,
    who: usize,
    transaction: u32,
    commits: bool,
) -> Option<(Vec<Call>, Purpose)> {
    let id = *simulation.transactions.ids.get(transaction as usize)?;
    let process = simulation.processes.get_mut(who)?;
    process.idle()?;
    let own = process.pending.remove(&Some(transaction)).filter(|_| commits);
    let (user, attempt) = (process.user, process.attempt);
    let content = Content::Decision(commits);
    let decision = simulation.model.open(Commit { user, attempt, transaction: Some(transaction), content });
    Some((vec![Call::Decide(id, commits)], Purpose::Decide(transaction, own, decision, commits)))
}

/// Decides a transaction, or one that was decided.
pub fn decide(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let slot = random.index(simulation.transactions.slots.len());
    let commits = !random.one_in(3);
    let Some(transaction) = simulation.transactions.slots[slot].filter(|_| simulation.is_alice(who)) else {
        return Ok(());
    };
    // Only a decision whose outcome is known beforehand, or that is the first.
    if simulation.model.ends(transaction).len() > 1 {
        return Ok(());
    }
    let Some((calls, purpose)) = prepare(simulation, who, transaction, commits) else { return Ok(()) };
    simulation.note(|| format!("{who} decides {purpose:?}"));
    simulation.launch(who, calls, purpose)
}
