//! Attempts of a job: which of two is the newer one (J-32).
//!
//! An attempt began with its first commit, whichever of its logs holds it; so a straggler of an old attempt, which
//! makes a log late, is as old as the attempt. Names are the user's: attempts of the same name in logs of two users
//! are two.

use fieldstone_core::planted::{self, Planted};
use std::collections::HashMap;
use std::sync::Arc;

use super::{Order, SnapshotLog};

/// By log, when its attempt began; empty where nobody named one.
#[derive(Debug, Clone, Default)]
pub struct Attempts(Vec<Option<Order>>);

impl Attempts {
    /// Of the logs of a snapshot, in their order.
    pub fn of(logs: &[Arc<SnapshotLog>]) -> Attempts {
        let is_ignored = planted::is(Planted::AttemptByStamp);
        if is_ignored || logs.iter().all(|log| log.record.attempt.is_none()) {
            return Attempts::default();
        }
        let named = |log: &'_ Arc<SnapshotLog>| {
            let attempt = log.record.attempt.clone()?;
            Some(((log.uid, attempt.name), (attempt.began, log.writer)))
        };
        let mut first: HashMap<(u32, String), Order> = HashMap::new();
        for (name, began) in logs.iter().filter_map(named) {
            first.entry(name).and_modify(|known| *known = (*known).min(began)).or_insert(began);
        }
        Attempts(logs.iter().map(|log| first.get(&named(log)?.0).copied()).collect())
    }

    /// When the attempt of the log with this index began.
    #[inline]
    pub fn began(&self, log: usize) -> Option<Order> {
        self.0.get(log).copied().flatten()
    }
}
