//! Those who have records for the commits of a store, and take part in its flushes: the catalog, the graph.
//!
//! The facade, which composes a store, calls them around each flush.

use crate::session::Session;

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
