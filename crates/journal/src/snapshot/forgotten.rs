//! Transactions that takeovers have forgotten (takeovers.md, 7.4): nothing speaks of them any more but the floor, below which
//! they began, and the places in the order that their visible commits have.

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::TransactionRow;
use fieldstone_format::transaction_id::begun;

use super::{Snapshot, SnapshotLog, TakeoverContent};
use crate::medium::clock_stamp;
use crate::takeover::Takeover;

/// How far a floor stays behind, nanoseconds: as long as stamps follow the clocks.
const DAY: u64 = 24 * 3_600_000_000_000;

/// The floor that a takeover announces: a later one may have it.
fn announced(takeover: &Takeover) -> u64 {
    let (newest, clock) = (takeover.header.newest, clock_stamp(takeover.header.created));
    newest.min(clock).saturating_sub(DAY)
}

/// Whether a floor may lie above the beginning of a transaction at a time, nanoseconds since 1970.
pub fn may_be_below_a_floor(transaction: Id, now: i64) -> bool {
    begun(transaction).saturating_add(DAY) <= clock_stamp(now)
}

impl TakeoverContent {
    /// The stamp before which a user's transactions began that are forgotten.
    pub fn floor(&self, user: u32) -> u64 {
        let own = self.takeovers().all().iter().filter(|takeover| takeover.user == user);
        own.map(|takeover| takeover.header.floor).max().unwrap_or(0)
    }

    /// The greatest floor that takeovers of a user announce which were made before a time, nanoseconds since 1970.
    pub fn announced_floor(&self, user: u32, before: i64) -> u64 {
        let own = self.takeovers().all().iter().filter(|takeover| takeover.user == user);
        let older = own.filter(|takeover| takeover.header.created <= before);
        older.map(|takeover| announced(takeover)).max().unwrap_or(0)
    }

    /// Whether takeovers of a user speak of a transaction, and the number of the one that sealed it, or 0.
    pub fn sealed(&self, transaction: Id, user: u32) -> Result<Option<u64>> {
        let mut sealed = None;
        for takeover in self.takeovers().all().iter().filter(|takeover| takeover.user == user) {
            if let Some(value) = takeover.value(TakeoverTable::Transactions, &transaction.0)? {
                let row = TransactionRow::decode(transaction, &value).map_err(|e| takeover.named(e))?;
                sealed = sealed.max(Some(row.sealed));
            }
        }
        Ok(sealed)
    }

    /// Whether a transaction is forgotten, or was never known, in a user's logs: what comes for it now is late. `false`
    /// if a row cannot be read.
    pub fn is_forgotten(&self, transaction: Id, user: u32) -> bool {
        begun(transaction) < self.floor(user) && matches!(self.sealed(transaction, user), Ok(None))
    }
}

impl Snapshot {
    /// Whether anything speaks of a transaction to whoever makes the next takeover of a user.
    pub fn lists(&self, transaction: Id, user: u32) -> bool {
        let listed = |log: &SnapshotLog| {
            log.record.open.contains(&transaction)
                || log.record.prepared.iter().any(|prepared| prepared.transaction == transaction)
        };
        self.transaction_state(transaction, user).is_some()
            || self.logs.iter().any(|log| listed(log))
            || !matches!(self.taken.sealed(transaction, user), Ok(None))
    }

    /// Whether a transaction that nothing lists may be forgotten soon: it began before a floor that a takeover announces.
    pub fn is_below_announced_floor(&self, transaction: Id, user: u32) -> bool {
        begun(transaction) < self.taken.announced_floor(user, i64::MAX)
    }

    /// Whether nothing speaks of a transaction, and takeovers may have forgotten it.
    pub fn forgets(&self, transaction: Id) -> bool {
        let floors = self.taken.takeovers().all().iter().map(|takeover| takeover.header.floor);
        floors.max().is_some_and(|floor| begun(transaction) < floor)
            && !self.transaction_states().any(|(id, ..)| id == transaction)
            && self.prepared_by_all(transaction).next().is_none()
    }
}
