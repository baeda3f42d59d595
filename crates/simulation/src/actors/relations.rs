//! Relations of executions and files, and their deletion.

use fieldstone::ErrorKind;
use fieldstone_core::env::sim::Random;

use crate::call::Call;
use crate::look::{FILES, JOBS};
use crate::model::change::{Change, Link};
use crate::plan::Step;
use crate::process::{Purpose, text};
use crate::simulation::{Checked, Simulation};

fn link(random: &mut Random) -> Link {
    let kind = *random.pick(&["read", "write"]);
    (kind.to_owned(), (*random.pick(&JOBS)).to_owned(), (*random.pick(&FILES)).to_owned())
}

/// A relation to put.
pub fn relation(simulation: &mut Simulation, random: &mut Random) -> Change {
    Change::Relation(link(random), simulation.next_stamp(), false)
}

/// Deletes a relation, if it is certain whose it is; of another user or absent, it must be refused.
pub fn unrelate(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let process = &simulation.processes[who];
    if process.idle().is_none() || process.pending.contains_key(&None) || !simulation.model.is_certain() {
        return Ok(());
    }
    let (user, is_shaky) = (process.user, process.is_shaky);
    let state = simulation.model.state();
    let drawn = link(&mut random);
    // Mostly one that is there, rather one that two users put.
    let mut there: Vec<&Link> = state.relations.keys().filter(|link| state.holds(link).is_some()).collect();
    there.sort_by_key(|link| state.putters(link) > 1 && state.holds(link) == Some(user));
    let link = match random.below(4) {
        0 => drawn,
        1 => there.get(random.index(there.len())).map_or(drawn, |link| (*link).clone()),
        _ => there.last().map_or(drawn, |link| (*link).clone()),
    };
    let change = Change::Relation(link.clone(), simulation.next_stamp(), true);
    let refusal = match state.holds(&link) {
        None => Some(ErrorKind::NotFound),
        Some(owner) if owner != user => Some(ErrorKind::Denied),
        Some(_) => None,
    };
    let mut calls = vec![Call::Take(change.clone(), false)];
    let Some(kind) = refusal else {
        let commit = simulation.pending(who, None);
        simulation.model.add(commit, vec![change]);
        calls.push(Call::Flush);
        simulation.note(|| format!("{who} deletes {calls:?} as {commit}"));
        return simulation.launch_at_once(who, calls, Purpose::Flush(None, commit));
    };
    simulation.note(|| format!("{who} may not delete {link:?}"));
    match simulation.call(who, &calls, None) {
        Err((_, error)) if error.kind() == kind || is_shaky => Ok(()),
        Err((_, error)) => Err(format!("{who}: not {kind:?}, but {}", text(&error))),
        Ok(()) => Err(format!("{who} deletes a relation, which should be {kind:?}: {link:?}")),
    }
}
