//! How far the logs go, and how far somebody has applied them: a sequence for each living log, and for each owner the
//! newest takeover, which stands for all logs that it and earlier ones replace. Neither grows with the writers there ever
//! were.
//!
//! ```
//! use fieldstone_format::Id;
//! use fieldstone_format::version::{OwnerName, TakeoverName};
//! use fieldstone_journal::marks::{Heads, Marks};
//!
//! let log = Id([1; 16]);
//! let mut marks = Marks::default();
//! marks.logs.insert(log, 3);
//! assert!(marks.covers(&Heads { logs: vec![(log, 3)], taken: Vec::new() }));
//! // A takeover replaces the log: its number says from now on that the log is applied.
//! let takeover = TakeoverName { owner: OwnerName::User(1000), number: 1, digest: 7 };
//! let heads = Heads { logs: Vec::new(), taken: vec![takeover] };
//! assert!(!marks.covers(&heads));
//! marks.take(&heads.taken, &[log]);
//! assert!(marks.covers(&heads) && marks.logs.is_empty());
//! ```

use std::collections::HashMap;

use fieldstone_format::Id;
use fieldstone_format::version::{OwnerName, TakeoverName};

/// How far the logs go at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heads {
    /// Each log that no takeover replaces, with its last commit, in the order of their ids. At an older version all logs,
    /// as takeovers may have commits that the version lacks.
    pub logs: Vec<(Id, u64)>,
    /// The newest takeover of each owner, by owner; none at an older version.
    pub taken: Vec<TakeoverName>,
}

impl Heads {
    /// Whether there is no commit.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.taken.is_empty()
    }
}

/// How far the logs are applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// The last applied commit of each log that no takeover replaces, as far as takeovers are applied.
    pub logs: HashMap<Id, u64>,
    /// The takeover of each owner up to which all is applied, by owner.
    pub taken: Vec<TakeoverName>,
}

impl Marks {
    /// Whether nothing is applied.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty() && self.taken.is_empty()
    }

    /// The last applied commit of a log that has a mark; else 0.
    pub fn of(&self, log: Id) -> u64 {
        self.logs.get(&log).copied().unwrap_or(0)
    }

    /// The number of the takeover up to which the logs of an owner are applied; 0 for none.
    pub fn number(&self, owner: OwnerName) -> u64 {
        let found = self.taken.binary_search_by_key(&owner, |name| name.owner);
        found.map_or(0, |i| self.taken[i].number)
    }

    /// Whether they reach the heads.
    pub fn covers(&self, heads: &Heads) -> bool {
        // A takeover with the same number and another digest is of another store.
        let is_taken =
            |newest: &TakeoverName| self.number(newest.owner) > newest.number || self.taken.contains(newest);
        heads.logs.iter().all(|(log, head)| self.of(*log) >= *head) && heads.taken.iter().all(is_taken)
    }

    /// Everything up to these takeovers is applied: logs that they took since the last ones need no mark of their own any
    /// more.
    pub fn take(&mut self, newest: &[TakeoverName], logs: &[Id]) {
        for name in newest {
            match self.taken.binary_search_by_key(&name.owner, |name| name.owner) {
                Ok(i) => self.taken[i] = *name,
                Err(i) => self.taken.insert(i, *name),
            }
        }
        for log in logs {
            self.logs.remove(log);
        }
    }
}
