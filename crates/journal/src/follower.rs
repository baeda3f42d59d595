//! Followers of the logs: indexes over side records and fields, such as the catalog's tables.
//!
//! A [`Follower`] keeps, with its rows, how far it has applied every log: its marks. [`follow`] brings it up to a feed
//! and decides when the follower applies a commit; the follower decides how.
//!
//! ```text
//! attend(feed)                        what is followed from here on
//! begin(wait)                         one transaction of the follower
//!   sound                             else it is empty now, and so are its marks
//!   decide(states)                    transactions that changed: their entries again, or everything again
//!   entries of the logs that takeovers replace since the marks, beyond their marks
//!   for each log beyond its mark
//!     entries of a living log, commit … ascending, mark(log)
//!   take(takeovers)                   marks of the logs that they replace end
//!   ask(fields)                       what stands where entries alone do not show
//!   sound
//! end                                 rows and marks together; or abort: nothing of it
//! leave
//! ```
//!
//! Contract of every follower (J-24; checked by [`conformance::follower`](crate::conformance::follower)):
//! * what it says depends on which commits were applied and on what is decided, not on the order of logs,
//!   on how often a commit came, or on where transactions of the follower began and ended;
//! * marks move in the transaction that holds the rows up to them;
//! * a commit at or below its log's mark changes nothing;
//! * the number of a takeover moves with the marks that end with it, once all that it holds is applied;
//! * what is overlaid on it is gone with [`abort`](Follower::abort).
//!
//! [`follow`]: crate::follow::follow

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::key::FieldKey;
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_format::store_record::Selection;
use fieldstone_format::version::TakeoverName;

use crate::feed::{Commit, EntryChange, Feed, TransactionState};
pub use crate::marks::Marks;

/// How long a follower may wait for other processes that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until the other is done, or for as long as the follower waits; then it is an error.
    Yes,
}

/// The content that a follower needs again after decisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Again {
    /// Entries of these transactions, and those that these selections select: their fields may have become visible or
    /// invisible.
    Entries(Vec<Id>, Vec<Selection>),
    /// Everything: what was applied cannot be brought to what is decided now.
    Everything,
}

/// A field that stands at the moment that is followed.
#[derive(Debug, Clone)]
pub struct HeldField {
    /// Its key.
    pub key: FieldKey,
    /// Element type and shape of an array; `None` for opaque bytes.
    pub array: Option<(DType, Vec<u64>)>,
}

/// The calls that a follower makes to the field store: a port, so that neither needs to know the other.
///
/// An answer is of the very snapshot that is followed. A newer one would show commits that the follower has
/// not applied, an older one would not know of commits that it has.
pub trait FieldLookup {
    /// Gives the fields that a request selects, in the order of their keys, until `field` says that it has enough,
    /// including those that a transaction has prepared. Damage ends it, as it ends the reading of entries.
    fn fields(
        &self,
        request: &Request,
        transaction: Option<Id>,
        field: &mut dyn FnMut(&HeldField) -> Result<bool>,
    ) -> Result<()>;
}

/// An index over the logs. See the module.
pub trait Follower {
    /// Whether it is to be given fields and removals, too; side records it is always given.
    fn wants_entries(&self) -> bool {
        true
    }

    /// Whether processes of several hosts apply to it. It must know how far it has logs whose marks ended, so that applying
    /// them again, as a host does where a takeover shows late, changes nothing.
    fn is_shared_by_hosts(&mut self) -> bool {
        false
    }

    /// How far each log is applied. None where all must be applied again.
    fn marks(&mut self) -> Result<Marks>;

    /// How far each log was applied at some time, also where all must be applied again.
    fn applied(&mut self) -> Result<Marks> {
        self.marks()
    }

    /// Says what is followed, or overlaid on it, from now on.
    fn attend(&mut self, feed: &Feed);

    /// Forgets what is known of one feed alone.
    fn leave(&mut self);

    /// Begins a transaction; `false` where another process has the follower and `wait` is No.
    fn begin(&mut self, wait: Wait) -> Result<bool>;

    /// Whether what is applied holds. `false`: something turned out to be otherwise than it was when commits
    /// were applied; the follower is empty now.
    fn sound(&mut self) -> Result<bool> {
        Ok(true)
    }

    /// Takes the states of all transactions, in each transaction of the follower before anything else.
    fn decide(&mut self, states: &[TransactionState]) -> Result<Again>;

    /// Takes entries, in any order and as often as they come; says how many there were.
    fn entries(&mut self, entries: &mut dyn Iterator<Item = Result<EntryChange>>) -> Result<u64>;

    /// Takes a commit. Those of one log come in their order.
    fn commit(&mut self, commit: &Commit) -> Result<()>;

    /// Notes that a log is applied up to a commit, its entries and its side records.
    fn mark(&mut self, log: Id, sequence: u64) -> Result<()>;

    /// Notes that all of these takeovers and of earlier ones is applied: these logs, which they replace, need no marks any
    /// more.
    fn take(&mut self, newest: &[TakeoverName], logs: &[Id]) -> Result<()>;

    /// Asks the field store for what entries alone do not show; with `transaction`, within an overlay of it.
    fn ask(&mut self, fields: &dyn FieldLookup, transaction: Option<Id>) -> Result<()>;

    /// A number that each transaction which applies something increases by one: who finds another one after
    /// a pause knows that somebody else was there.
    fn revision(&mut self) -> Result<u64>;

    /// Ends the transaction; all of it is there then, or after an error nothing.
    fn end(&mut self) -> Result<()>;

    /// Gives up what was begun, an overlay too: nothing of it stays.
    fn abort(&mut self) -> Result<()>;

    /// Empties the follower, within a transaction.
    fn clear(&mut self) -> Result<()>;

    /// Begins to show what a transaction has prepared and what `own` commits hold that are not made yet, over
    /// what is applied. `false` where there is nothing of it, and nothing was begun.
    fn overlay(&mut self, transaction: Option<Id>, own: &[Commit]) -> Result<bool>;

    /// All that it says, as lines that are equal for equal content.
    fn dump(&mut self) -> Result<String>;
}
