//! What the catalog of an open store asks of the store, and what the store reports to it.
//!
//! Side records, claims and feeds it has from the journal. Of fields and meshes it needs what stands here and no more,
//! so that it knows no field store: the facade, which composes both, implements [`FieldPort`].
//!
//! Invariant: neither side calls the other with a lock held that the other may want.

use std::sync::Weak;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_journal::Session;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::participant::FlushParticipant;
use fieldstone_journal::view::Holds;

use crate::engine::PointSource;

/// What a catalog asks of the store that its fields are in.
pub trait FieldPort: PointSource {
    /// Fields that stand at the very moment of a feed.
    fn standing(&self, feed: &Feed) -> Box<dyn Holds>;

    /// How many fields a request selects, with those that a transaction has prepared.
    fn count(&self, request: &Request, session: &Session) -> Result<u64>;

    /// Removes the fields that a request selects, with the session's next flush; how many.
    fn remove(&self, request: &Request, session: &Session) -> Result<u64>;

    /// Flushes a transaction where kinds are switched on, and makes what it holds of them visible or hides it.
    fn decide_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()>;

    /// Hears of a change that was taken and not flushed; flushes where every change is to be durable at once.
    fn changed(&self, session: &Session) -> Result<()>;

    /// Lets a catalog take part in every flush of this process, for as long as it lives.
    fn join(&self, catalog: Weak<dyn FlushParticipant>);
}
