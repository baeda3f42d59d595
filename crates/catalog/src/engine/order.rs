//! One order for everything that commits contain, over all writers. It makes the result independent of the
//! order in which logs were read.

use fieldstone_format::Id;
use fieldstone_journal::snapshot::Order;

/// A user's number; [`UNKNOWN`] if there is none.
pub(super) type User = i64;
/// The user of a log of which no commit is known.
pub(super) const UNKNOWN: User = -1;

/// The user of a record, and the stamp of its own commit: hand-overs say from these whose it is at another stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UserAt {
    pub user: User,
    pub stamp: u64,
}

/// The place of a call, a declaration or a deletion in the order of all. Everything with an equal place
/// belongs to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey {
    /// The stamp of the commit, or of the decision that made it visible.
    pub stamp: u64,
    /// The log of that commit or decision.
    pub decider: Id,
    /// The commit's own stamp.
    pub own: u64,
    /// The log.
    pub writer: Id,
    /// The commit.
    pub sequence: u64,
    /// The record that began the call.
    pub call: i64,
    /// The row, if each row is a call of its own, or the item of a declaration.
    pub row: i64,
}

/// The source of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntrySource {
    /// The log, as the engine numbers it.
    pub log: i64,
    /// The log.
    pub writer: Id,
    /// The commit.
    pub sequence: u64,
    /// Index of the record among the commit's side records.
    pub record: i64,
    /// Index of the record that began the call.
    pub call: i64,
    /// The commit's own stamp.
    pub own: u64,
    /// The user who owns the log.
    pub user: User,
    /// The transaction, as the engine numbers it; 0 for none.
    pub txn: i64,
    /// The order of the commit or decision that makes it visible.
    pub order: Order,
    /// The number of the log of `order`.
    pub decider: i64,
}

impl EntrySource {
    /// The user who wrote the record, and when.
    pub fn by(&self) -> UserAt {
        UserAt { user: self.user, stamp: self.own }
    }

    /// The place of item `row` of the record; all rows of a call have row 0.
    pub fn place(&self, call: i64, row: i64) -> OrderKey {
        OrderKey {
            stamp: self.order.0,
            decider: self.order.1,
            own: self.own,
            writer: self.writer,
            sequence: self.sequence,
            call,
            row,
        }
    }
}

/// The outcome of applying decisions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    /// The tables cannot follow the present decisions; clear them and apply all logs again.
    pub rebuild: bool,
    /// Transactions whose fields may have become visible or invisible: apply their entries again.
    pub fields: Vec<Id>,
    /// Transactions whose records the tables no longer keep, although their decisions changed: pass what was
    /// applied of each to [`restore`](super::restore), and take the decisions again.
    pub lacking: Vec<Id>,
}
