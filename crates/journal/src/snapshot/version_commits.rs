//! The commits that a version holds, resolved by the takeovers that there are now (R61).
//!
//! A version names the newest takeover of each owner by its number, and living logs by their sequences. A log keeps the
//! number of the takeover that took it over first; so the question has the same answer however often takeovers were
//! taken over since.

use std::collections::HashMap;

use fieldstone_core::sync::Mutex;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{CommitRow, commit_key, parse_commit_key};
use fieldstone_format::version::{OwnerName, TakeoverName, Version};

use super::Order;
use crate::takeover::Takeovers;

/// A version, and what it says of logs that takeovers replace.
#[derive(Debug)]
pub struct VersionCommits {
    version: Version,
    /// By user, the number of the newest takeover that the version names.
    numbers: HashMap<u32, u64>,
    /// Whether it has a decision that is forgotten, by the decision's place in the order.
    decided: Mutex<HashMap<Order, bool>>,
}

impl VersionCommits {
    /// The commits of a version; `counts` says which of the takeovers that it names are those of that number.
    pub fn new(version: Version, counts: impl Fn(&TakeoverName) -> bool) -> VersionCommits {
        let number = |name: &TakeoverName| match name.owner {
            OwnerName::User(user) => Some((user, name.number)),
            OwnerName::Subject(_) => None,
        };
        let named = version.takeovers().iter().filter(|name| counts(name));
        let numbers = named.filter_map(number).collect();
        VersionCommits { version, numbers, decided: Mutex::default() }
    }

    /// The version.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The newest takeover of a user that it names; 0 if there is none.
    pub fn number(&self, user: u32) -> u64 {
        self.numbers.get(&user).copied().unwrap_or(0)
    }

    /// Whether it has a commit of a user's log, given the number of the takeover that took the log over first, or 0.
    pub fn holds(&self, user: u32, (writer, sequence): (Id, u64), taken: u64) -> bool {
        (taken > 0 && taken <= self.number(user)) || sequence <= self.version.sequence(writer)
    }

    /// Whether it has the decision that gave a commit its place in the order, where that is forgotten (J-44).
    pub fn holds_decision(&self, takeovers: &Takeovers, order: Order) -> bool {
        if let Some(known) = self.decided.lock().get(&order) {
            return *known;
        }
        // Damage shows nothing that the version may lack.
        let held = self.look_for_decision(takeovers, order).unwrap_or(false);
        self.decided.lock().insert(order, held);
        held
    }

    fn look_for_decision(&self, takeovers: &Takeovers, (stamp, writer): Order) -> Result<bool> {
        let Some((takeover, log)) = takeovers.log(writer)? else {
            return Ok(self.version.sequence(writer) > 0);
        };
        if log.row.taken <= self.number(takeover.user) {
            return Ok(true);
        }
        // Stamps ascend: the version lacks the decision if the next commit that is kept is not beyond it.
        let sequence = self.version.sequence(writer).saturating_add(1);
        let Some(mut rows) = takeover.cursor(TakeoverTable::Commits) else { return Ok(false) };
        let named = |e: Error| takeover.named(e);
        if !rows.seek(&commit_key(writer, sequence, 0)).map_err(named)? {
            return Ok(true);
        }
        let (of, ..) = parse_commit_key(rows.key()).map_err(named)?;
        Ok(of != writer || CommitRow::decode(rows.value()).map_err(named)?.stamp > stamp)
    }
}
