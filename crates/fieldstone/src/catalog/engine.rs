//! Reading the engine: brought up to the store's logs before each read, whichever engine it is (`lend`).
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

use fieldstone_catalog::engine::{Index, is_busy};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_journal::follow::{Followed, covers, is_ahead};
use fieldstone_store::api::{Commit, Feed, SideRecord};

use super::inner::Inner;
use super::lend::{Engine, Patience};

/// How often a read follows logs that move on, or an engine that is made again under it.
const ROUNDS: usize = 64;

/// What a read sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
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
struct Own {
    user: u32,
    all: Vec<SideRecord>,
    transaction: Vec<SideRecord>,
}

impl Own {
    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.transaction.is_empty()
    }

    /// Whether these are the very records of another look, and perhaps more: none of those was flushed.
    fn begins_with(&self, other: &Own) -> bool {
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
pub struct Moment {
    feed: Feed,
    /// The logs, each with its last commit.
    pub heads: Vec<(Id, u64)>,
    own: Own,
    /// Whether nobody can give a newer feed.
    newest: bool,
}

impl Moment {
    fn of(feed: Feed, own: Own) -> Moment {
        Moment { heads: feed.heads(), feed, own, newest: false }
    }

    /// Whether this handle has something that is not flushed.
    pub fn has_own(&self) -> bool {
        !self.own.is_empty()
    }
}

impl Inner {
    /// Lets `read` look at the catalog; it is called again where the engine broke under it.
    pub fn look<T>(&self, view: View, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
        self.look_from(self.moment(view)?, view, read)
    }

    /// As [`look`](Inner::look) at a moment that was taken before.
    pub fn look_from<T>(
        &self,
        moment: Moment,
        view: View,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        self.at_a_moment(moment, view, &mut |moment| {
            let place = self.place_for(&moment.heads)?;
            self.with_engine(&place, &mut |engine| self.look_at(engine, view, moment, read))
        })
    }

    /// As [`look`](Inner::look) at what all may see, but on the shared engine alone, which others may read
    /// and write meanwhile. An error of which `is_busy` says so: it is not free.
    pub fn look_shared<T>(&self, moment: Moment, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
        self.at_a_moment(moment, View::Synced, &mut |moment| {
            let place = self.place_for(&moment.heads)?;
            let work = &mut |engine: &mut Engine| self.look_at(engine, View::Synced, moment, read);
            self.with(&place, Patience::Full, work)
        })
    }

    /// Does something with what the logs hold at a moment; of a later one where it gives nothing, because the
    /// engine has applied more than that.
    fn at_a_moment<T>(
        &self,
        mut moment: Moment,
        view: View,
        work: &mut dyn FnMut(&Moment) -> Result<Option<T>>,
    ) -> Result<T> {
        for _ in 0..ROUNDS {
            if let Some(value) = work(&moment)? {
                return Ok(value);
            }
            let (_, newest) = self.newer(&moment.feed)?;
            moment = Moment { newest, ..self.moment(view)? };
        }
        Err(remade())
    }

    fn look_at<T>(
        &self,
        engine: &mut Engine,
        view: View,
        moment: &Moment,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<Option<T>> {
        let patience = engine.patience;
        let Moment { feed, heads, own, newest } = moment;
        let index = engine.index()?;
        if view == View::AsIs {
            return reading(index, read).map(Some);
        }
        for _ in 0..ROUNDS {
            if self.follow(index, feed, *newest, patience)? == Followed::Behind {
                return Ok(None);
            }
            let laid_over = match view {
                View::All(session) => self.lay_over(index, feed, session, &own.commits(), patience)?,
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
    pub fn moment(&self, view: View) -> Result<Moment> {
        let View::All(session) = view else { return Ok(Moment::of(self.store.feed()?, Own::default())) };
        for _ in 0..ROUNDS {
            let own = self.own(session)?;
            let feed = self.store.feed()?;
            // What another thread has flushed meanwhile must not be seen twice.
            if own.is_empty() || self.own(session)?.begins_with(&own) {
                return Ok(Moment::of(feed, own));
            }
        }
        Ok(Moment::of(self.store.feed()?, Own::default()))
    }

    /// What this handle has not flushed, outside of transactions and of one.
    fn own(&self, session: Option<Id>) -> Result<Own> {
        let transaction = match session {
            Some(_) => self.store.pending_side(session)?,
            None => Vec::new(),
        };
        Ok(Own { user: self.user(), all: self.store.pending_side(None)?, transaction })
    }

    /// Applies what is in the logs if nobody else does so at this moment; waits for nobody.
    pub fn catch_up(&self) -> Result<bool> {
        let (mut feed, mut newest) = (self.store.feed()?, false);
        for _ in 0..ROUNDS {
            let place = self.place_for(&feed.heads())?;
            let work = &mut |engine: &mut Engine| self.follow(engine.index()?, &feed, newest, Patience::None);
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
    Code::EngineBusy.error("the catalog's engine is made anew again and again").with_hint("try again")
}

/// One read of one state.
fn reading<T>(index: &mut Index, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
    index.begin_read()?;
    let outcome = read(index);
    let ended = index.end_read();
    outcome.and_then(|value| ended.map(|()| value))
}
