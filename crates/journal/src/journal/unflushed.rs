//! Values and records that sessions gave and that wait for their flushes, as callers see and add to them.
//!
//! Each call takes the writer's lock once, for a moment, and no other lock; nothing here does I/O or waits for a commit.
//! The values that are large enough for a file are taken by [`Committer::take`](super::Committer::take).

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;
use fieldstone_format::log::SideRecord;

use super::access::Access;
use crate::session::{Session, SessionKey};
use crate::writer::{PendingArray, PendingCursor, PendingSide, Writer};

/// The content of one process and handle that waits for flushes.
#[derive(Debug, Clone, Copy)]
pub struct Unflushed<'a> {
    pub(super) access: &'a Access,
    pub(super) writer: &'a Mutex<Writer>,
}

impl Unflushed<'_> {
    /// Values that wait, of all sessions.
    pub fn count(&self) -> u64 {
        self.writer.lock().sessions.unflushed()
    }

    /// Whether anything waits, of any session.
    pub(super) fn is_any(&self) -> bool {
        self.writer.lock().sessions.hold_anything()
    }

    /// Whether anything that a session gave waits for a flush, or for the end of one.
    pub fn holds(&self, session: &Session) -> bool {
        self.writer.lock().sessions.waits_for(session.key()).is_some()
    }

    /// Encoded keys that the session's next commit holds values for.
    pub fn keys(&self, session: &Session) -> Vec<Vec<u8>> {
        self.writer.lock().sessions.keys(session.key())
    }

    /// The same keys, each with element type and shape where its value is an array.
    pub fn arrays(&self, session: &Session) -> Vec<PendingArray> {
        self.writer.lock().sessions.arrays(session.key())
    }

    /// Side records that a session gave, in their order.
    pub fn records(&self, session: &Session) -> Vec<SideRecord> {
        self.behind(session, PendingCursor::default()).records
    }

    /// The same, but for those that a cursor has read, where these are still not flushed: what is read again and
    /// again costs what is new.
    pub fn behind(&self, session: &Session, cursor: PendingCursor) -> PendingSide {
        self.writer.lock().sessions.side_behind(session.key(), cursor)
    }

    /// A cursor behind all of them.
    pub fn cursor(&self, session: &Session) -> PendingCursor {
        self.writer.lock().sessions.side_cursor(session.key())
    }

    /// Carries catalog and graph changes with the session's next commit.
    pub fn add(&self, records: Vec<SideRecord>, session: &Session) -> Result<()> {
        self.access.check_writable()?;
        self.access.check_user(session)?;
        self.writer.lock().sessions.take_side(session.key(), records);
        Ok(())
    }

    /// Counts attributes of this thread that the caller keeps for a session, to hand them over by
    /// [`add_kept`](Self::add_kept) before the session is flushed: the thread learns of a failure as if they were here.
    /// Returns how often the session has lost something so far.
    pub fn keep(&self, attributes: u64, session: &Session) -> u64 {
        self.writer.lock().sessions.keep(session.key(), attributes)
    }

    /// Takes the side records of that many attributes, which were kept when the session had lost something that often.
    /// `false` where it has lost more since: then they were counted as lost, and are forgotten.
    pub fn add_kept(
        &self,
        records: Vec<SideRecord>,
        attributes: u64,
        losses: u64,
        session: &Session,
    ) -> bool {
        self.writer.lock().sessions.take_kept(session.key(), losses, attributes, records)
    }

    /// Forgets what a session gave and did not flush.
    pub fn discard(&self, session: &Session) {
        self.writer.lock().sessions.discard(session.key());
    }

    /// How often a session has lost to a failure what it had given: a number that only grows. What was
    /// remembered of the session before is not so any more.
    pub fn losses(&self, session: &Session) -> u64 {
        self.writer.lock().sessions.losses().of(session.key())
    }

    /// The same of all sessions that have lost something.
    pub fn all_losses(&self) -> HashMap<SessionKey, u64> {
        self.writer.lock().sessions.losses().all()
    }

    /// Raises what a flush would raise of earlier failures that took what this thread gave, and nothing
    /// else; it counts as reported then.
    pub fn check_lost(&self, session: &Session) -> Result<()> {
        self.writer.lock().sessions.check(session.key())
    }
}
