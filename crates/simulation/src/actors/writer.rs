//! Writers: they archive fields, annotate and relate, and flush.

use fieldstone::ErrorKind;
use fieldstone_core::env::sim::Random;

use super::{annotator, heir, relations};
use crate::call::Call;
use crate::model::change::{Change, Key, SHAPE, What};
use crate::plan::Step;
use crate::process::{ALICE, Purpose, run_of, text};
use crate::simulation::{Checked, Simulation};

/// Values of arrays, so that each write differs.
fn value(random: &mut Random) -> i32 {
    1 + random.below(1 << 20) as i32
}

fn field(user: u32, random: &mut Random) -> Change {
    let run = run_of(user, random).to_owned();
    let variable = (*random.pick(&["t", "t", "u", "o"])).to_owned();
    let key = Key { run, variable, step: random.below(2) as i64 };
    let start = [random.below(SHAPE[0]), random.below(SHAPE[1])];
    let count = [1 + random.below(SHAPE[0] - start[0]), 1 + random.below(SHAPE[1] - start[1])];
    let what = match (key.is_opaque(), random.below(8)) {
        // Beyond a megabyte it goes through a data log.
        (true, 0) if random.one_in(6) => What::Bytes(random.next_u64(), (1 << 20) + 100),
        (true, _) => What::Bytes(random.next_u64(), random.below(2_000) as usize),
        (false, 0..=1) => What::Whole(value(random)),
        (false, 2) => What::Create(value(random)),
        (false, _) => What::Piece(start, count, value(random)),
    };
    Change::Field(key, what)
}

/// The changes of one write, and whether each field is compressed.
fn changes(
    simulation: &mut Simulation,
    who: usize,
    transaction: Option<u32>,
    random: &mut Random,
) -> Vec<Call> {
    let user = simulation.processes[who].user;
    let mut calls = Vec::new();
    for _ in 0..1 + random.below(3) {
        let change = match random.below(10) {
            0..=5 => field(user, random),
            6..=7 => annotator::attribute(simulation, who, transaction, random),
            _ => relations::relation(simulation, random),
        };
        calls.push(Call::Take(change, random.one_in(3)));
    }
    calls
}

/// The transaction at which a step aims, if it is one and the process may join it.
pub fn transaction(simulation: &Simulation, who: usize, random: &mut Random) -> Option<u32> {
    let slot = random.below(5) as usize;
    let aimed = simulation.transactions.slots.get(slot).copied().flatten();
    aimed.filter(|_| simulation.is_alice(who))
}

/// Draws a write with its flush: its calls and their purpose. `None` if the process cannot write.
pub fn prepare(simulation: &mut Simulation, who: usize, random: &mut Random) -> Option<(Vec<Call>, Purpose)> {
    simulation.processes[who].idle()?;
    let transaction = transaction(simulation, who, random);
    let mut calls = changes(simulation, who, transaction, random);
    let commit = take(simulation, who, transaction, &calls);
    calls.push(Call::Flush);
    Some((calls, Purpose::Flush(transaction, commit)))
}

fn take(simulation: &mut Simulation, who: usize, transaction: Option<u32>, calls: &[Call]) -> u32 {
    let commit = simulation.pending(who, transaction);
    let taken = calls.iter().filter_map(|call| match call {
        Call::Take(change, _) => Some(change.clone()),
        _ => None,
    });
    simulation.model.add(commit, taken.collect());
    commit
}

/// Writes; one write in five waits for a later flush.
pub fn write(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let Some((mut calls, purpose)) = prepare(simulation, who, &mut random) else { return Ok(()) };
    simulation.note(|| format!("{who} writes {calls:?} as {purpose:?}"));
    let armed = &simulation.processes[who].armed;
    let is_armed = armed.kill.is_some() || armed.stop.is_some() || armed.fault.is_some();
    if is_armed || !random.one_in(5) {
        return simulation.launch(who, calls, purpose);
    }
    calls.pop();
    let transaction = purpose.transaction();
    let Err((_, error)) = simulation.call(who, &calls, transaction) else { return Ok(()) };
    // It may hear here of a loss, or of the end of the transaction.
    simulation.processes[who].pending.remove(&transaction);
    simulation.is_troubled = true;
    let ends = transaction.map(|transaction| simulation.model.ends(transaction)).unwrap_or_default();
    if let Some(store) = simulation.processes[who].idle() {
        drop(store.discard(simulation.transactions.session(transaction)));
    }
    let has_ended = ends.iter().any(Option::is_some) || simulation.may_be_forgotten(transaction);
    match simulation.processes[who].is_shaky || has_ended {
        true => Ok(()),
        false => Err(format!("{who} cannot archive: {}", text(&error))),
    }
}

/// Removes a field that is certainly there.
pub fn remove(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let waits = simulation.processes[who].pending.contains_key(&None);
    if simulation.processes[who].idle().is_none() || waits || !simulation.model.is_certain() {
        return Ok(());
    }
    let user = simulation.processes[who].user;
    let Change::Field(key, _) = field(user, &mut random) else { return Ok(()) };
    if !simulation.model.state().shown_fields().contains_key(&key.text()) {
        return Ok(());
    }
    let mut calls = vec![Call::Take(Change::Field(key, What::Remove), false)];
    let commit = take(simulation, who, None, &calls);
    simulation.note(|| format!("{who} removes {calls:?} as {commit}"));
    calls.push(Call::Flush);
    simulation.launch_at_once(who, calls, Purpose::Flush(None, commit))
}

/// Forgets what a session archived.
pub fn discard(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let transaction = transaction(simulation, who, &mut random);
    let Some(store) = simulation.processes[who].idle() else { return Ok(()) };
    store
        .discard(simulation.transactions.session(transaction))
        .map_err(|error| format!("{who} cannot discard: {}", text(&error)))?;
    simulation.processes[who].pending.remove(&transaction);
    Ok(())
}

/// Writes to a dataset that belongs to nobody at first: the first flush makes the owner, and others are refused.
pub fn claim(simulation: &mut Simulation, step: &Step) -> Checked {
    let (who, mut random) = (step.who, step.random(0));
    let process = &mut simulation.processes[who];
    let can = process.idle().is_some() && !process.pending.contains_key(&None) && !process.is_shaky;
    if !can || !simulation.model.is_certain() {
        return Ok(());
    }
    process.armed = Default::default();
    let user = process.user;
    let run = format!("n{}", random.below(3));
    let owner = simulation.model.state().owners.get(&run).copied();
    let key = Key { run: run.clone(), variable: "t".into(), step: 0 };
    let calls = vec![Call::Take(Change::Field(key, What::Whole(value(&mut random))), false)];
    if owner.is_some_and(|owner| owner != user) {
        return refused(simulation, who, &calls);
    }
    let commit = take(simulation, who, None, &calls);
    simulation.note(|| format!("{who} claims {run} as {commit}"));
    simulation.launch(who, [calls, vec![Call::Flush]].concat(), Purpose::Flush(None, commit))
}

/// Writes to another user's dataset, or declares a step in his run; or to an own one while it is handed over.
pub fn trespass(simulation: &mut Simulation, step: &Step) -> Checked {
    if step.random(3).one_in(3) {
        return heir::hand_over(simulation);
    }
    let (who, mut random) = (step.who, step.random(0));
    let process = &simulation.processes[who];
    if process.idle().is_none() || process.is_shaky {
        return Ok(());
    }
    let run = if process.user == ALICE { "b" } else { "a" }.to_owned();
    let change = match random.coin() {
        true => Change::Step(run, 70),
        false => Change::Field(Key { run, variable: "t".into(), step: 0 }, What::Whole(1)),
    };
    refused(simulation, who, &[Call::Take(change, false)])
}

/// Makes calls that must be refused.
fn refused(simulation: &mut Simulation, who: usize, calls: &[Call]) -> Checked {
    simulation.note(|| format!("{who} may not do {calls:?}"));
    match simulation.call(who, calls, None) {
        Err((_, error)) if error.kind() == ErrorKind::Denied => Ok(()),
        Err((_, error)) => Err(format!("{who}: not Denied, but {}", text(&error))),
        Ok(()) => Err(format!("{who} may do what another user owns: {calls:?}")),
    }
}
