//! Those who have records for the commits of a store, and take part in its flushes: the catalog, the graph.
//!
//! The facade, which composes a store, calls them around each flush. [`Buffered`] is what they keep for sessions until
//! then: batches that still grow, which the journal counts meanwhile, so that whoever put something in hears of a failure.

use std::collections::HashMap;

use fieldstone_core::sync::Mutex;
use fieldstone_format::log::SideRecord;

use crate::journal::Unflushed;
use crate::session::{Session, SessionKey};

/// Who has records for a store's flushes. No lock of the store's is held at a call.
pub trait FlushParticipant: Send + Sync + std::fmt::Debug {
    /// Gives the journal what is buffered for a session: it is about to be flushed.
    fn hand_over(&self, session: &Session);

    /// The session is discarded, with what was handed over for it.
    fn discarded(&self, session: &Session);

    /// The session was flushed.
    fn flushed(&self, session: &Session);

    /// The store is closed: it flushes no more.
    fn closed(&self);
}

/// Rows that grow for a session until they are handed over.
pub trait Growing: Default {
    /// Rows in it, as the journal counts them.
    fn rows(&self) -> u64;

    /// It as records.
    fn into_records(self) -> Vec<SideRecord>;
}

/// The rows of one session.
#[derive(Debug, Default)]
struct BufferedRows<T> {
    /// How often the session had lost something when it began to grow.
    losses: u64,
    growing: T,
}

/// Rows that a participant keeps for sessions.
///
/// Invariants:
/// * what is handed over stands in the session's batch behind all that was handed over before;
/// * what a failure took of the session since it was put in was counted as lost, and is forgotten.
#[derive(Debug)]
pub struct Buffered<T> {
    sessions: Mutex<HashMap<SessionKey, BufferedRows<T>>>,
}

impl<T> Default for Buffered<T> {
    fn default() -> Buffered<T> {
        Buffered { sessions: Mutex::default() }
    }
}

impl<T: Growing> Buffered<T> {
    /// Puts rows in for a session. `put` gives back what grows no further, which is handed over at once.
    pub fn put(
        &self,
        unflushed: Unflushed<'_>,
        session: &Session,
        rows: u64,
        put: impl FnOnce(&mut T) -> Option<T>,
    ) {
        let losses = unflushed.keep(rows, session);
        let mut sessions = self.sessions.lock();
        let own = sessions.entry(session.key()).or_default();
        if own.losses > losses {
            // Another thread's call has seen a later loss, which took these rows.
            return;
        }
        if own.losses < losses {
            *own = BufferedRows { losses, growing: T::default() };
        }
        if let Some(ended) = put(&mut own.growing) {
            give(unflushed, session, losses, ended);
        }
    }

    /// Gives the journal records, which count as `rows`, for a session, behind those that were put in.
    pub fn pass(&self, unflushed: Unflushed<'_>, session: &Session, rows: u64, records: Vec<SideRecord>) {
        let losses = unflushed.keep(rows, session);
        let mut sessions = self.sessions.lock();
        if let Some(BufferedRows { losses, growing }) = sessions.remove(&session.key()) {
            give(unflushed, session, losses, growing);
        }
        unflushed.add_kept(records, rows, losses, session);
    }

    /// Gives the journal what was put in for a session.
    pub fn hand_over(&self, unflushed: Unflushed<'_>, session: &Session) {
        // The lock is held until the journal has it: what comes later stands behind, and whoever flushes meanwhile waits.
        let mut sessions = self.sessions.lock();
        if let Some(BufferedRows { losses, growing }) = sessions.remove(&session.key()) {
            give(unflushed, session, losses, growing);
        }
    }

    /// Forgets what was put in for a session.
    pub fn discard(&self, session: &Session) {
        drop(self.sessions.lock().remove(&session.key()));
    }
}

/// Gives rows to the journal, unless it counted them as lost.
fn give<T: Growing>(unflushed: Unflushed<'_>, session: &Session, losses: u64, growing: T) {
    let rows = growing.rows();
    if rows > 0 {
        unflushed.add_kept(growing.into_records(), rows, losses, session);
    }
}
