//! Who came before whom. Everything that a commit says has a place in one order of all writers, so that
//! what holds in the end does not depend on the order in which logs were read.

use std::sync::Arc;

use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;

use super::Order;
use super::owners::User;

/// The place of a call, a declaration or a deletion in the order of all. What is equal in it belongs to
/// one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// Of the commit, or of the decision that made it visible.
    pub stamp: u64,
    /// Who made that.
    pub decider: Id,
    /// The commit's own stamp.
    pub own: u64,
    /// The log.
    pub writer: Id,
    /// The commit.
    pub sequence: u64,
    /// The record that began the call.
    pub call: i64,
    /// The row, where each is a call of its own, or the item of a declaration.
    pub row: i64,
}

/// Where a record comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
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
    /// What makes it visible.
    pub order: Order,
    /// The number of the log of `order`.
    pub decider: i64,
}

impl Source {
    /// The place of item `row` of the record; all rows of a call have row 0.
    pub fn place(&self, call: i64, row: i64) -> Place {
        Place {
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

/// A commit to apply.
#[derive(Debug, Clone, Copy)]
pub struct CommitRef<'a> {
    /// The log.
    pub writer: Id,
    /// The user who owns the log.
    pub user: u32,
    /// Its number in the log.
    pub sequence: u64,
    /// Its stamp.
    pub stamp: u64,
    /// The transaction it is prepared under.
    pub transaction: Option<Id>,
    /// What it carries.
    pub side: &'a [SideRecord],
}

/// For content of some kinds (bits) of a commit (writer, sequence): since when it is visible, if it is.
pub type Visible = Arc<dyn Fn(u32, Id, u64) -> Option<Order> + Send + Sync>;

/// What is decided about a transaction now.
#[derive(Clone)]
pub struct Decision {
    /// The transaction.
    pub transaction: Id,
    /// Whether it is not aborted.
    pub committed: bool,
    /// Whether it has ended.
    pub closed: bool,
    /// The kinds that are visible, as bits.
    pub kinds: u32,
    /// The place of the decision in force.
    pub order: Order,
    /// What is visible. With no bits: whether a commit is covered.
    pub visible: Visible,
    /// Whether what a commit (writer, sequence) holds may become visible later, or be seen by those who name
    /// the transaction.
    pub open: Arc<dyn Fn(Id, u64) -> bool + Send + Sync>,
    /// Bytes that differ between any two states of decisions on the transaction.
    pub print: Vec<u8>,
}

impl std::fmt::Debug for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Decision { transaction, committed, closed, kinds, order, .. } = self;
        write!(f, "Decision({transaction} {committed} {closed} {kinds:#x} {order:?})")
    }
}

impl Decision {
    /// The decision on a transaction that logs of one user alone have joined.
    pub fn of_one_user(
        transaction: Id,
        (committed, closed, kinds): (bool, bool, u32),
        order: Order,
        visible: Visible,
    ) -> Decision {
        let covered = visible.clone();
        let open = move |writer, sequence| committed && (!closed || covered(0, writer, sequence).is_some());
        let mut print = order.0.to_le_bytes().to_vec();
        print.extend(order.1.0);
        print.extend(kinds.to_le_bytes());
        print.extend([u8::from(committed), u8::from(closed)]);
        Decision { transaction, committed, closed, kinds, order, visible, open: Arc::new(open), print }
    }

    /// Whether all of it is visible, for good unless a later decision switches something off.
    pub(super) fn whole(&self) -> bool {
        self.committed && self.closed && self.kinds == u32::MAX
    }

    /// Whether what a commit holds may become visible later, or be seen by those who name the transaction.
    pub(super) fn open_for(&self, writer: Id, sequence: u64) -> bool {
        (self.open)(writer, sequence)
    }
}

/// What applying decisions came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    /// The tables cannot be brought to what is decided now; clear them and apply all logs again.
    pub rebuild: bool,
    /// Transactions whose fields may have become visible or invisible: apply their entries again.
    pub fields: Vec<Id>,
}
