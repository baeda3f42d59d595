//! Reading the engine: brought up to the store's logs before each read, whichever engine it is (`connection`).
//!
//! ```text
//! AsIs      what stands in the engine, without a look at the logs: enough to know that something is there
//! Synced    all that is visible to everybody
//! All(id)   that, what this handle has not flushed, and what a transaction holds
//! ```
//!
//! Invariants:
//! * a read of `Synced` or `All` begins only after the engine holds every commit that the store's logs
//!   held when the read was asked for, and reads one state to its end;
//! * what is not visible to everybody is applied within a transaction of the engine that is rolled back;
//! * nothing is made on disk before the store has a commit.

use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;
use fieldstone_journal::feed::{Commit, Feed};
use fieldstone_journal::follow::{Followed, covers, is_ahead};

use super::connection::{Connection, Patience};
use super::inner::Inner;
use super::port::FlushParticipant;
use crate::engine::{Index, is_busy};

/// How often a read follows logs that move on, or an engine that is made again under it.
const ROUNDS: usize = 64;

/// What a read sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// What stands in the engine.
    AsIs,
    /// All that is visible to everybody.
    Synced,
    /// That, and what this handle and the transaction hold.
    All(Option<Id>),
}

/// Number that stands for the commit in which what is outside of transactions will be flushed.
pub const OWN: u64 = 1;
/// The same for a transaction.
pub const OWN_TRANSACTION: u64 = 2;

/// What this handle has not flushed.
#[derive(Debug, Clone, Default)]
struct Unflushed {
    user: u32,
    all: Vec<SideRecord>,
    transaction: Vec<SideRecord>,
}

impl Unflushed {
    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.transaction.is_empty()
    }

    /// Whether these are the very records of another look, and perhaps more: none of those was flushed.
    fn begins_with(&self, other: &Unflushed) -> bool {
        let begins = |more: &[SideRecord], few: &[SideRecord]| {
            let same = |(a, b): (&SideRecord, &SideRecord)| Arc::ptr_eq(&a.bytes, &b.bytes);
            more.len() >= few.len() && more.iter().zip(few).all(same)
        };
        begins(&self.all, &other.all) && begins(&self.transaction, &other.transaction)
    }

    /// As commits of the log that nobody has.
    fn commits(&self) -> Vec<Commit> {
        let sides = [(OWN, &self.all), (OWN_TRANSACTION, &self.transaction)];
        let commit = |(sequence, side): (u64, &Vec<SideRecord>)| Commit {
            writer: Id::NONE,
            owner: self.user,
            sequence,
            stamp: u64::MAX,
            time: 0,
            transaction: None,
            side: side.clone(),
        };
        sides.into_iter().filter(|(_, side)| !side.is_empty()).map(commit).collect()
    }
}

/// What a read sees.
#[derive(Clone)]
pub struct ConsistentView {
    feed: Feed,
    /// The logs, each with its last commit.
    pub heads: Vec<(Id, u64)>,
    own: Unflushed,
    /// Whether nobody can give a newer feed.
    newest: bool,
}

impl ConsistentView {
    fn of(feed: Feed, own: Unflushed) -> ConsistentView {
        ConsistentView { heads: feed.heads(), feed, own, newest: false }
    }

    /// Whether this handle has something that is not flushed.
    pub fn has_own(&self) -> bool {
        !self.own.is_empty()
    }
}

impl Inner {
    /// Lets `read` look at the catalog; it is called again where the engine broke under it.
    pub fn look<T>(&self, view: Visibility, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
        self.look_from(self.consistent_view(view)?, view, read)
    }

    /// As [`look`](Inner::look) at a moment that was taken before.
    pub fn look_from<T>(
        &self,
        moment: ConsistentView,
        view: Visibility,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        self.with_consistent_view(moment, view, &mut |moment| {
            let place = self.location_for(&moment.heads)?;
            self.with_engine(&place, &mut |engine| self.look_at(engine, view, moment, read))
        })
    }

    /// As [`look`](Inner::look) at what all may see, but on the shared engine alone, which others may read
    /// and write meanwhile. An error of which `is_busy` says so: it is not free.
    pub fn look_shared<T>(
        &self,
        moment: ConsistentView,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        self.with_consistent_view(moment, Visibility::Synced, &mut |moment| {
            let place = self.location_for(&moment.heads)?;
            let work = &mut |engine: &mut Connection| self.look_at(engine, Visibility::Synced, moment, read);
            self.with(&place, Patience::Full, work)
        })
    }

    /// Does something with what the logs hold at a moment; of a later one where it gives nothing, because the
    /// engine has applied more than that.
    fn with_consistent_view<T>(
        &self,
        mut moment: ConsistentView,
        view: Visibility,
        work: &mut dyn FnMut(&ConsistentView) -> Result<Option<T>>,
    ) -> Result<T> {
        for _ in 0..ROUNDS {
            if let Some(value) = work(&moment)? {
                return Ok(value);
            }
            let (_, newest) = self.newer(&moment.feed)?;
            moment = ConsistentView { newest, ..self.consistent_view(view)? };
        }
        Err(remade())
    }

    fn look_at<T>(
        &self,
        engine: &mut Connection,
        view: Visibility,
        moment: &ConsistentView,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<Option<T>> {
        let patience = engine.patience;
        let ConsistentView { feed, heads, own, newest } = moment;
        let index = engine.index()?;
        if view == Visibility::AsIs {
            return reading(index, read).map(Some);
        }
        for _ in 0..ROUNDS {
            if self.follow(index, feed, *newest, patience)? == Followed::Behind {
                return Ok(None);
            }
            let laid_over = match view {
                Visibility::All(session) => self.lay_over(index, feed, session, &own.commits(), patience)?,
                _ => false,
            };
            if !laid_over {
                index.begin_read()?;
            }
            // Somebody may have begun to make the engine anew since we followed.
            let marks = index.watermarks();
            if marks.as_ref().is_ok_and(|marks| !covers(marks, heads)) {
                index.end_read()?;
                continue;
            }
            // Or applied what this handle had not flushed when the moment was taken: it is not shown twice.
            if laid_over && !newest && marks.as_ref().is_ok_and(|marks| is_ahead(marks, heads)) {
                index.end_read()?;
                return Ok(None);
            }
            let outcome = marks.and_then(|_| read(index));
            let ended = index.end_read();
            return outcome.and_then(|value| ended.map(|()| Some(value)));
        }
        Err(remade())
    }

    /// What the logs hold and what this handle has not flushed, of one moment. The logs are looked at once.
    pub fn consistent_view(&self, view: Visibility) -> Result<ConsistentView> {
        let Visibility::All(session) = view else {
            return Ok(ConsistentView::of(self.journal.feed()?, Unflushed::default()));
        };
        for _ in 0..ROUNDS {
            let own = self.own(session)?;
            let feed = self.journal.feed()?;
            // What another thread has flushed meanwhile must not be seen twice.
            if own.is_empty() || self.own(session)?.begins_with(&own) {
                return Ok(ConsistentView::of(feed, own));
            }
        }
        Ok(ConsistentView::of(self.journal.feed()?, Unflushed::default()))
    }

    /// Side records that were given to a session and are not flushed, with those that are gathered.
    fn pending_side(&self, session: Option<Id>) -> Result<Vec<SideRecord>> {
        self.hand_over(session);
        self.journal.pending_side(session)
    }

    /// What this handle has not flushed, outside of transactions and of one.
    fn own(&self, session: Option<Id>) -> Result<Unflushed> {
        let transaction = match session {
            Some(_) => self.pending_side(session)?,
            None => Vec::new(),
        };
        Ok(Unflushed { user: self.user(), all: self.pending_side(None)?, transaction })
    }

    /// Applies what is in the logs if nobody else does so at this moment; waits for nobody.
    pub fn catch_up(&self) -> Result<bool> {
        let (mut feed, mut newest) = (self.journal.feed()?, false);
        for _ in 0..ROUNDS {
            let place = self.location_for(&feed.heads())?;
            let work =
                &mut |engine: &mut Connection| self.follow(engine.index()?, &feed, newest, Patience::None);
            match self.with(&place, Patience::None, work) {
                Err(e) if is_busy(&e) => return Ok(false),
                Ok(Followed::Behind) => (feed, newest) = self.newer(&feed)?,
                outcome => return outcome.map(|followed| followed == Followed::Done),
            }
        }
        Ok(false)
    }
}

fn remade() -> Error {
    Error::unavailable("the catalog's engine is made anew again and again").with_hint("try again")
}

/// One read of one state.
fn reading<T>(index: &mut Index, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
    index.begin_read()?;
    let outcome = read(index);
    let ended = index.end_read();
    outcome.and_then(|value| ended.map(|()| value))
}
