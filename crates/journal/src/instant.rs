//! A session's sight at one instant: the content of the logs, and what the session has not flushed itself. Followers that show
//! a session its own, such as the catalog's engine and the graph, lay these records over what they have applied.
//!
//! Two parts wait for flushes: what the session put outside of transactions, and what it put into its transaction.
//!
//! Invariants:
//! * the logs and what waits are of one instant: no record is missing because a thread flushed it meanwhile, and none is
//!   there twice;
//! * records that an instant has seen are read later only where all of them still wait;
//! * the logs are looked at once, where nobody flushes meanwhile.
//!
//! ```
//! use fieldstone_core::env::sim::SimWorld;
//! use fieldstone_format::log::SideRecord;
//! use fieldstone_journal::instant::{Cursors, ReadOwn, Instant, OwnRecords};
//! use fieldstone_journal::journal::JournalOptions;
//! use fieldstone_journal::{Journal, Session};
//!
//! let options = JournalOptions { url: "memory:".into(), writable: true, ..Default::default() };
//! let journal = Journal::open(SimWorld::memory(), "/store".as_ref(), options)?;
//! let session = Session::default();
//! journal.unflushed().add(vec![SideRecord { kind: 1, bytes: (*b"a note").into() }], &session)?;
//! let instant = Instant::now(&journal, &session, ReadOwn::Later)?.expect("nobody else flushes");
//! let own = OwnRecords::between(journal.unflushed(), Cursors::default(), instant.pending, &session).expect("they wait");
//! assert_eq!(own.parts[0].records.len(), 1);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::Result;
use fieldstone_format::log::SideRecord;

use crate::Journal;
use crate::feed::Feed;
use crate::journal::Unflushed;
use crate::marks::Heads;
use crate::session::Session;
use crate::writer::{PendingCursor, PendingSide};

/// How far somebody has read what waits for flushes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursors {
    /// Outside of transactions.
    pub outside: PendingCursor,
    /// In the session's transaction; at its beginning where the session has none.
    pub within: PendingCursor,
}

impl Cursors {
    /// Cursors behind all that waits for flushes of a session.
    pub fn now(unflushed: Unflushed<'_>, session: &Session) -> Cursors {
        let within = session.transaction().map(|_| unflushed.cursor(session));
        Cursors { outside: unflushed.cursor(&session.within(None)), within: within.unwrap_or_default() }
    }

    /// Records that were read.
    pub fn records(&self) -> usize {
        self.outside.records + self.within.records
    }

    /// Whether all records that `earlier` has read are still the first of those that wait.
    pub fn continues(&self, earlier: Cursors) -> bool {
        self.outside.continues(earlier.outside) && self.within.continues(earlier.within)
    }
}

/// Records of one part.
#[derive(Debug, Clone)]
pub struct OwnPart {
    /// Whether they are of the session's transaction.
    pub within: bool,
    /// How many of the part stood before them.
    pub before: usize,
    /// The records, in their order.
    pub records: Vec<SideRecord>,
}

/// The session's own records between two cursors, not flushed.
#[derive(Debug, Clone)]
pub struct OwnRecords {
    /// The parts that have any, what is outside of transactions first.
    pub parts: Vec<OwnPart>,
    /// The cursors behind them.
    pub end: Cursors,
}

impl OwnRecords {
    /// The session's own records behind some cursors, up to others: later ones stand behind those that may have been
    /// flushed meanwhile. `None` where some of it does not wait any more.
    pub fn between(
        unflushed: Unflushed<'_>,
        from: Cursors,
        to: Cursors,
        session: &Session,
    ) -> Option<OwnRecords> {
        let mut own = OwnRecords { parts: Vec::new(), end: from };
        let outside = (false, &session.within(None), to.outside, &mut own.end.outside);
        let within = (true, session, to.within, &mut own.end.within);
        for (within, session, to, cursor) in [outside, within] {
            if to.records <= cursor.records {
                continue;
            }
            let PendingSide { end, continues, mut records } = unflushed.behind(session, *cursor);
            if !continues || !end.continues(to) {
                return None;
            }
            records.truncate(to.records - cursor.records);
            own.parts.push(OwnPart { within, before: cursor.records, records });
            *cursor = to;
        }
        Some(own)
    }
}

/// When whoever asks for an instant gets the session's own records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOwn {
    /// By a later call, while they still wait.
    Later,
    /// With the instant: after a later call came too late, because others flush faster than the caller follows.
    AtOnce,
}

/// A session's sight at one instant.
#[derive(Debug, Clone)]
pub struct Instant {
    /// The content of the logs.
    pub feed: Feed,
    /// How far they go.
    pub heads: Heads,
    /// How far what the session has not flushed goes.
    pub pending: Cursors,
    /// The records themselves, where it was to hold them.
    pub held: Option<OwnRecords>,
}

impl Instant {
    /// The content of a feed, and nothing else.
    pub fn of(feed: Feed) -> Instant {
        Instant { heads: feed.heads(), feed, pending: Cursors::default(), held: None }
    }

    /// A session's sight now; `None` where others flushed some of it meanwhile. The caller has handed over what it keeps
    /// for the session.
    pub fn now(journal: &Journal, session: &Session, held: ReadOwn) -> Result<Option<Instant>> {
        let pending = Cursors::now(journal.unflushed(), session);
        let records = match held {
            ReadOwn::Later => None,
            ReadOwn::AtOnce => {
                match OwnRecords::between(journal.unflushed(), Cursors::default(), pending, session) {
                    None => return Ok(None),
                    records => records,
                }
            }
        };
        let feed = journal.looks().feed()?;
        // Records that another thread has flushed meanwhile must not be missed, nor seen twice.
        let still = Cursors::now(journal.unflushed(), session).continues(pending);
        Ok(still.then(|| Instant { pending, held: records, ..Instant::of(feed) }))
    }
}
