//! Attempts of a job: which of two is the newer one (J-32).
//!
//! An attempt began with its first commit, whichever of its logs holds it; so a straggler of an old attempt, which
//! makes a log late, is as old as the attempt. Names are the user's: attempts of the same name in logs of two users
//! are two.

use fieldstone_core::planted::{self, Planted};
use std::collections::HashMap;
use std::sync::Arc;

use super::{Order, SnapshotLog, TakeoverContent};

/// By log, when its attempt began; empty where nobody named one.
#[derive(Debug, Clone, Default)]
pub struct Attempts {
    by_log: Vec<Option<Order>>,
    /// Of living logs, by user and name.
    by_name: HashMap<(u32, String), Order>,
    is_ignored: bool,
}

impl Attempts {
    /// Of the logs of a snapshot, in their order, and of those that takeovers replace.
    pub fn of(logs: &[Arc<SnapshotLog>], taken: &TakeoverContent) -> Attempts {
        let is_ignored = planted::is(Planted::AttemptByStamp);
        if is_ignored || logs.iter().all(|log| log.record.attempt.is_none()) {
            return Attempts { is_ignored, ..Attempts::default() };
        }
        let named = |log: &'_ Arc<SnapshotLog>| {
            let attempt = log.record.attempt.clone()?;
            Some(((log.uid, attempt.name), (attempt.began, log.writer)))
        };
        let mut by_name: HashMap<(u32, String), Order> = HashMap::new();
        for ((user, name), began) in logs.iter().filter_map(named) {
            let known = by_name.get(&(user, name.clone())).copied().or_else(|| taken.attempt(user, &name));
            by_name.insert((user, name), known.map_or(began, |known| known.min(began)));
        }
        let by_log = logs.iter().map(|log| by_name.get(&named(log)?.0).copied()).collect();
        Attempts { by_log, by_name, is_ignored }
    }

    /// When the attempt of the log with this index began.
    #[inline]
    pub fn began(&self, log: usize) -> Option<Order> {
        self.by_log.get(log).copied().flatten()
    }

    /// When an attempt of a user began.
    pub fn of_user(&self, user: u32, name: &str, taken: &TakeoverContent) -> Option<Order> {
        let known = self.by_name.get(&(user, name.to_owned())).copied();
        known.or_else(|| taken.attempt(user, name)).filter(|_| !self.is_ignored)
    }
}
