//! Reads of unflushed records, at a cost that depends only on the records since the last such read (Q-23).
//!
//! The shared engine holds everything that is visible to everybody. This handle's unflushed records, and the
//! prepared content of a transaction, are applied on top of that within a transaction of the engine that
//! never commits: the *overlay*. In the shared engine it is rolled back after each read, because others want
//! to write there, and the next read applies it again. A session that reads like this repeatedly gets a copy
//! of the engine in memory, whose overlay stays: the next read adds only the new records.
//!
//! ```text
//! a read of a session            its overlay
//! the first ones                 overlaid on the shared engine, and rolled back
//! laid as many rows as pages     a copy of the engine is made, and overlaid
//! the next ones                  new records are overlaid on the copy
//! ```
//!
//! | event | the overlay of the copy |
//! |---|---|
//! | more records, from any thread | extended by them |
//! | records flushed, lost or discarded | removed; applied again from the remaining ones |
//! | a commit, by anybody, or a decision | removed; the copy follows the logs; applied again |
//! | a flush, abort or end of the session | gone with the copy |
//! | no read of the session for [`IDLE`] | gone with the copy, by the next read of another |
//! | a fork | the child has none |
//!
//! Invariants:
//! * an extended overlay gives the same reads as one that is applied all at once;
//! * a copy is made only after repeated overlays have cost about as much, so the total is at most twice the
//!   least;
//! * copies hold at most [`COPY_MAX`] each, and [`COPIES`] sessions have one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;
use fieldstone_journal::follow::Followed;
use fieldstone_journal::instant::{Cursors, OwnRecords};
use fieldstone_journal::marks::Heads;
use fieldstone_journal::writer::PendingCursor;

use super::connection::{Connection, Patience, keeps};
use super::consistent_read::{ConsistentRead, own_commits};
use super::following::EngineFollower;
use crate::engine::{Index, PAGE};
use fieldstone_journal::Session;
use fieldstone_journal::session::SessionKey;

/// Maximum size in bytes of an engine that is copied.
const COPY_MAX: u64 = 256 << 20;
/// Maximum number of sessions that have a copy at one time.
const COPIES: usize = 4;
/// Nanoseconds after which an unused copy is dropped.
const IDLE: u64 = 60_000_000_000;
/// Number of sessions for which the cost of overlays is remembered.
const SESSIONS: usize = 64;

/// The overlays of one process.
#[derive(Debug, Default)]
pub struct Overlays {
    sessions: Mutex<Vec<(SessionKey, Arc<SessionOverlay>)>>,
    /// Records that were overlaid on an engine.
    laid: AtomicU64,
    /// For tests: the number of rows after which a copy is made, plus one; 0: when it pays.
    forced: AtomicU64,
}

/// The overlay of one session. A thread with the lock of the copy may wait for an engine; a thread with an
/// engine never waits for that lock.
#[derive(Debug, Default)]
struct SessionOverlay {
    /// Rows that were overlaid on the shared engine.
    relaid: AtomicU64,
    /// A copy is considered once this many rows were overlaid.
    pays_at: AtomicU64,
    /// The time of its last read, by the monotonic clock.
    read: AtomicU64,
    copy: Mutex<Option<EngineCopy>>,
}

/// An engine in memory for a single session.
#[derive(Debug)]
struct EngineCopy {
    connection: Connection,
    /// The overlay on it.
    laid: Option<LaidOver>,
}

/// The overlay on a copy.
#[derive(Debug)]
struct LaidOver {
    /// The heads of the logs up to which the copy has followed them.
    heads: Heads,
    pending: Cursors,
}

impl Overlays {
    fn session(&self, session: SessionKey) -> Arc<SessionOverlay> {
        let mut sessions = self.sessions.lock();
        if let Some((_, known)) = sessions.iter().find(|(id, _)| *id == session) {
            return known.clone();
        }
        if sessions.len() >= SESSIONS {
            sessions.remove(0);
        }
        let new = Arc::<SessionOverlay>::default();
        sessions.push((session, new.clone()));
        new
    }

    /// Drops copies that were not read for a while.
    pub fn drop_idle(&self, now: u64) {
        let idle = |own: &SessionOverlay| now.saturating_sub(own.read.load(Ordering::Relaxed)) >= IDLE;
        for (_, own) in self.sessions.lock().iter().filter(|(_, own)| idle(own)) {
            // A copy that is in use is not idle.
            if let Some(mut copy) = own.copy.try_lock() {
                drop(copy.take());
            }
        }
    }

    /// Whether one more session may have a copy; true for a session that has one already.
    fn has_room(&self, session: SessionKey) -> bool {
        let sessions = self.sessions.lock();
        let others = sessions.iter().filter(|(id, _)| *id != session);
        let has = |overlay: &SessionOverlay| overlay.copy.try_lock().is_none_or(|copy| copy.is_some());
        others.filter(|(_, overlay)| has(overlay)).count() < COPIES
    }

    /// Forgets the overlay of a session that was flushed or has ended.
    pub fn end(&self, session: SessionKey) {
        self.sessions.lock().retain(|(id, _)| *id != session);
    }

    /// Forgets all overlays.
    pub fn clear(&self) {
        self.sessions.lock().clear();
    }

    /// Counts records that were overlaid on an engine.
    pub fn note(&self, own: &OwnRecords) {
        let records: usize = own.parts.iter().map(|part| part.records.len()).sum();
        self.laid.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Makes copies once this many rows were overlaid on the shared engine, whether that pays or not.
    pub fn copy_at(&self, rows: u64) {
        self.forced.store(rows.saturating_add(1), Ordering::Relaxed);
    }

    fn forced(&self) -> Option<u64> {
        self.forced.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Records that were overlaid on an engine so far.
    pub fn laid(&self) -> u64 {
        self.laid.load(Ordering::Relaxed)
    }

    /// Counts rows that a session's read overlaid on the shared engine.
    pub fn note_relaid(&self, session: SessionKey, rows: u64) {
        self.session(session).relaid.fetch_add(rows, Ordering::Relaxed);
    }
}

impl LaidOver {
    /// Whether a later consistent read still contains all of the overlay.
    fn continues_to(&self, moment: &ConsistentRead) -> bool {
        let continues = |now: PendingCursor, then: PendingCursor| {
            // Another thread may have overlaid more since that read was taken.
            then.records == 0 || (now.fill == then.fill && now.records > 0)
        };
        let (now, then) = (moment.seen.pending, self.pending);
        self.heads == moment.seen.heads
            && continues(now.outside, then.outside)
            && continues(now.within, then.within)
    }
}

impl Overlays {
    /// Reads a consistent read from the session's copy of the engine. `None` if the session has no copy; `Some(None)` if
    /// the read is out of date.
    pub fn look_at<T>(
        &self,
        follower: &EngineFollower,
        moment: &ConsistentRead,
        session: &Session,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<Option<Option<T>>> {
        let own = self.session(session.key());
        let mut slot = own.copy.lock();
        own.read.store(follower.store.env.clock.monotonic(), Ordering::Relaxed);
        // Before the first attempt nothing is known about the size of the engine: ask as soon as one row was
        // overlaid.
        let pays_at = own.pays_at.load(Ordering::Relaxed).max(1);
        let pays_at = self.forced().unwrap_or(pays_at);
        if slot.is_none() && own.relaid.load(Ordering::Relaxed) >= pays_at {
            *slot = self.make_copy(follower, &own, moment, session)?;
        }
        let Some(copy) = &mut *slot else { return Ok(None) };
        let outcome = self.look_over(follower, copy, moment, session, read);
        if outcome.as_ref().err().is_some_and(|error| !keeps(error)) {
            *slot = None;
        }
        outcome.map(Some)
    }

    /// Makes a copy of the engine, once repeated overlays have cost as much. If that is not possible, the
    /// session keeps using the shared engine.
    fn make_copy(
        &self,
        follower: &EngineFollower,
        own: &SessionOverlay,
        moment: &ConsistentRead,
        session: &Session,
    ) -> Result<Option<EngineCopy>> {
        let location = follower.connections.location_for(&moment.seen.heads)?;
        let relaid = own.relaid.load(Ordering::Relaxed);
        // An engine that cannot be copied is not asked again.
        let mut pays_at = u64::MAX;
        let copied = follower.connections.with_engine(&location, &mut |connection| {
            let database = connection.index()?.database();
            let pages = database.pages()?.filter(|pages| pages.saturating_mul(PAGE as u64) <= COPY_MAX);
            pays_at = pages.map_or(u64::MAX, |pages| self.forced().unwrap_or(pages));
            let pays = relaid >= pays_at && self.has_room(session.key());
            if pays { database.copy() } else { Ok(None) }
        });
        own.pays_at.store(pays_at, Ordering::Relaxed);
        let Ok(Some(database)) = copied else { return Ok(None) };
        let connection = Connection::private(database, follower.store.journal.home().id)?;
        Ok(Some(EngineCopy { connection, laid: None }))
    }

    fn look_over<T>(
        &self,
        follower: &EngineFollower,
        copy: &mut EngineCopy,
        moment: &ConsistentRead,
        session: &Session,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<Option<T>> {
        let index = copy.connection.index()?;
        // The overlay is taken out, so that an error on the way leaves the copy without one.
        let laid = match copy.laid.take().filter(|laid| laid.continues_to(moment)) {
            Some(laid) => self.lay_more(follower, index, laid, moment, session)?,
            None => self.lay_from_scratch(follower, index, moment, session)?,
        };
        let Some(laid) = laid else { return Ok(None) };
        let answer = read(index)?;
        copy.laid = Some(laid);
        Ok(Some(answer))
    }

    /// Follows the logs and overlays all unflushed records; `None` if the read is out of date.
    fn lay_from_scratch(
        &self,
        follower: &EngineFollower,
        index: &mut Index,
        moment: &ConsistentRead,
        session: &Session,
    ) -> Result<Option<LaidOver>> {
        // The engine allows one transaction: the old overlay must go before the copy can follow the logs.
        index.end_read()?;
        if follower.follow(index, &moment.seen.feed, moment.newest, Patience::Full)? == Followed::Behind {
            return Ok(None);
        }
        let Some(own) = moment.unflushed(&follower.store.journal, session) else { return Ok(None) };
        let pending = own.end;
        self.note(&own);
        let commits = own_commits(own, follower.store.user(session));
        if !follower.overlay(index, &moment.seen.feed, session, &commits, Patience::Full)? {
            return Ok(None);
        }
        // The copy may have followed a newer feed than the read's, with other decisions.
        if !moment.newest && moment.seen.feed.is_behind(&index.watermarks()?) {
            return Ok(None);
        }
        Ok(Some(LaidOver { heads: moment.seen.heads.clone(), pending }))
    }

    /// Overlays the new records; `None` if some of the overlaid ones are flushed or dropped by now.
    fn lay_more(
        &self,
        follower: &EngineFollower,
        index: &mut Index,
        laid: LaidOver,
        moment: &ConsistentRead,
        session: &Session,
    ) -> Result<Option<LaidOver>> {
        let own = OwnRecords::between(
            follower.store.journal.unflushed(),
            laid.pending,
            moment.seen.pending,
            session,
        );
        let Some(own) = own else { return Ok(None) };
        let (pending, firsts) = (own.end, own.parts.iter().map(|part| part.before).collect::<Vec<_>>());
        self.note(&own);
        let more: Vec<_> = firsts.into_iter().zip(own_commits(own, follower.store.user(session))).collect();
        if !more.is_empty() {
            index.extend_overlay(&more)?;
        }
        Ok(Some(LaidOver { pending, ..laid }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fieldstone_format::Id;

    use super::*;
    use crate::engine::Sqlite;

    fn copy() -> EngineCopy {
        let connection = Connection::private(Box::new(Sqlite::memory().unwrap()), Id([1; 16])).unwrap();
        EngineCopy { connection, laid: None }
    }

    #[test]
    fn copies_are_few_and_go_when_nobody_reads_them() {
        let overlays = Overlays::default();
        let session = |n: u8| SessionKey::default().within(Id([n; 16]));
        for n in 0..COPIES as u8 {
            assert!(overlays.has_room(session(n)));
            let own = overlays.session(session(n));
            own.read.store(u64::from(n), Ordering::Relaxed);
            *own.copy.lock() = Some(copy());
        }
        assert!(
            !overlays.has_room(SessionKey::default()) && overlays.has_room(session(0)),
            "one that has a copy keeps it"
        );
        overlays.drop_idle(IDLE - 1);
        assert!(!overlays.has_room(SessionKey::default()));
        let read = overlays.session(session(0));
        let held = read.copy.lock();
        overlays.drop_idle(IDLE + 1);
        assert!(held.is_some(), "it is in use");
        drop(held);
        assert!(overlays.session(session(1)).copy.lock().is_none());
        assert!(overlays.session(session(2)).copy.lock().is_some());
        overlays.end(session(2));
        assert!(overlays.session(session(2)).copy.lock().is_none());
        overlays.clear();
        assert!(overlays.session(session(3)).copy.lock().is_none());
        (0..200).for_each(|n| drop(overlays.session(session(n))));
        assert_eq!(overlays.sessions.lock().len(), SESSIONS);
    }
}
