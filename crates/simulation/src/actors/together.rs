//! Several processes that act at once: threads take turns as the seed of the run draws.

use crate::actors::transaction;
use crate::plan::{PROCESSES, Step};
use crate::process::{self, Purpose};
use crate::simulation::{Checked, Simulation};

/// Two or three processes write at once; now and then one of them decides a transaction.
pub fn write(simulation: &mut Simulation, step: &Step) -> Checked {
    let mut random = step.random(0);
    let number = 2 + random.index(2);
    let mut actions = Vec::new();
    for turn in 0..number {
        let who = (step.who + turn) % PROCESSES;
        let mut own = step.random(1 + turn as u64);
        let decides = own.one_in(5);
        let slot = own.index(simulation.transactions.slots.len());
        let aimed = simulation.transactions.slots[slot].filter(|_| decides && simulation.is_alice(who));
        let open = aimed.filter(|aimed| simulation.model.ends(*aimed) == [None].into());
        let drawn = match open {
            Some(open) => transaction::prepare(simulation, who, open, true),
            None => super::prepare(simulation, who, &mut own),
        };
        actions.extend(drawn.map(|(calls, purpose)| (who, calls, purpose)));
    }
    // All begin before any of them is judged.
    for (who, calls, purpose) in &actions {
        simulation.note(|| format!("{who} does {calls:?} as {purpose:?} beside others"));
        simulation.depart(*purpose);
    }
    let mut threads = Vec::new();
    for (who, calls, purpose) in actions {
        let session = simulation.transactions.session(purpose.transaction());
        if let Some(store) = simulation.processes[who].idle() {
            threads.push((who, purpose, process::start(store, calls, session, None)?));
        }
    }
    let mut ended = Vec::new();
    for (who, purpose, thread) in threads {
        ended.push((who, purpose, process::join(thread)?));
    }
    // Decisions are judged first: they say which flushes came too late.
    ended.sort_by_key(|(_, purpose, _)| matches!(purpose, Purpose::Flush(..)));
    ended.into_iter().try_for_each(|(who, purpose, outcome)| simulation.arrive(who, purpose, outcome, false))
}
