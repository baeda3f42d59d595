//! The interface between the catalog of an open store and that store.
//!
//! The journal provides side records, claims and feeds. This file lists everything that the catalog needs of
//! fields and meshes, so that it does not depend on a field store: the facade, which composes both,
//! implements [`FieldPort`].
//!
//! Invariant: neither side calls the other while it holds a lock that the other may want.

use std::sync::Weak;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_journal::Session;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::follower::FieldLookup;
use fieldstone_journal::participant::FlushParticipant;

use crate::engine::PointSource;

/// The calls of a catalog to the store of its fields.
pub trait FieldPort: PointSource {
    /// The fields that exist at exactly the moment of a feed.
    fn standing(&self, feed: &Feed) -> Box<dyn FieldLookup>;

    /// The number of fields that a request selects, including those that a transaction has prepared.
    fn count(&self, request: &Request, session: &Session) -> Result<u64>;

    /// Removes the fields that a request selects, with the session's next flush; returns their number.
    fn remove(&self, request: &Request, session: &Session) -> Result<u64>;

    /// Shows or hides kinds of a transaction's content; flushes the transaction first if kinds are switched
    /// on.
    fn set_active_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()>;

    /// Reports a change that is not flushed; the store flushes it if every change must be durable at once.
    fn changed(&self, session: &Session) -> Result<()>;

    /// Makes a catalog take part in every flush of this process, as long as the catalog lives.
    fn join(&self, catalog: Weak<dyn FlushParticipant>);
}
