//! Flushes and transactions: they decide when content becomes visible, and which content becomes visible together.
//!
//! A *session* is what a handle archived under one transaction, or outside of any (`None`). Each session
//! is flushed, discarded and lost by itself.

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_journal::Session;

#[cfg(doc)]
use super::FieldAccess;

/// Flushes and transactions: they decide when content becomes visible, and which content becomes visible together.
///
/// All but [`unflushed`](Self::unflushed), [`discard`](Self::discard) and [`check_lost`](Self::check_lost)
/// fail with `Denied` on a handle that only reads.
pub trait Transactions {
    /// Makes what a session archived durable and visible; under a transaction: durable and prepared, which
    /// only those see who name it.
    ///
    /// All of the session's becomes visible in one moment, or none of it. Of two flushes the one that began
    /// after the other returned is newer, whatever the clocks say. Nothing is written where nothing was
    /// archived.
    ///
    /// If it fails, archived and unflushed content is lost, and the error names it; the store goes on. `Unavailable`
    /// also if a written file, or the store, has been removed or replaced: on every call, as long as the store is
    /// gone, because a flush does not create it again. `Conflict` if the transaction has ended: such content never
    /// becomes visible.
    ///
    /// A failure may take more than the caller's own: what other threads archived, and what waits for other
    /// flushes of this handle and stood in the same files. Each thread that archived some of it gets the same
    /// kind of error, with its own keys, from its next flush or close, once; that call then flushes nothing. A
    /// transaction that lost a part so refuses every flush and commit from then on (decided by this handle, it
    /// can only be aborted).
    fn flush(&self, session: &Session) -> Result<()>;

    /// Forgets what a session archived and did not flush.
    fn discard(&self, session: &Session) -> Result<()>;

    /// Raises what a flush would raise of earlier failures that took what this thread archived, and nothing
    /// else; it counts as reported then.
    fn check_lost(&self, session: &Session) -> Result<()>;

    /// Fields archived by this handle, in all sessions, and not yet flushed.
    fn unflushed(&self) -> u64;

    /// Declares that a writing call is under way: its reads are not errors if there is no store yet.
    fn will_write(&self) {}

    /// Opens a transaction that this handle will decide. A process joins it by naming its id.
    ///
    /// Nothing is written: an id that nobody uses leaves no trace.
    fn begin(&self) -> Result<Id>;

    /// Decides a transaction: visible for all, or never.
    ///
    /// A commit flushes the transaction's session of this handle first; an abort discards it. Then one record
    /// decides for everything that was prepared under the id, by any process of this user: all of it becomes
    /// visible in one moment, as new as the decision, so that it hides what others flushed meanwhile. The
    /// record is written also where nothing was flushed, so that who joins later learns it.
    ///
    /// To decide again in the same way changes nothing; the other way is `Conflict`. `Conflict` also where a
    /// joined process flushed while this decided: the transaction is committed without that flush, and the
    /// error names the writer. `Denied` where only other users flushed into it and this handle did not open
    /// it: each user decides for his own.
    fn decide(&self, transaction: Id, commit: bool, session: &Session) -> Result<()>;

    /// Aborts a transaction of which nobody but this handle has the id: where nothing was flushed into it,
    /// nothing is written. Else as [`decide`](Self::decide).
    fn abandon(&self, transaction: Id, session: &Session) -> Result<()>;

    /// Makes kinds of content of a transaction visible (`on`) or invisible again (`off`), given as bits
    /// (see [`fieldstone_format::log::kinds`]).
    ///
    /// `on` flushes first. It covers content prepared by now; the transaction stays open for more until it is
    /// decided, and a committed one stays committed. All 32 bits are the same as a commit. `Conflict` for an aborted
    /// transaction, `Invalid` for a bit in both.
    fn set_active_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()>;
}
