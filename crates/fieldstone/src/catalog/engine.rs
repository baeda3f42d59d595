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

use std::collections::HashMap;

use fieldstone_catalog::engine::{Index, is_busy};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
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
#[derive(Debug, Default)]
struct Own {
    user: u32,
    all: Vec<SideRecord>,
    transaction: Vec<SideRecord>,
}

impl Own {
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

/// Whether the marks of an engine reach all heads of the logs.
pub fn covers(marks: &HashMap<Id, u64>, heads: &[(Id, u64)]) -> bool {
    heads.iter().all(|(writer, head)| marks.get(writer).is_some_and(|mark| mark >= head))
}

impl Inner {
    /// Lets `read` look at the catalog; it is called again where the engine broke under it.
    pub fn look<T>(&self, view: View, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
        let (feed, own) = self.moment(view)?;
        let place = self.place_for(&feed.heads())?;
        self.with_engine(&place, &mut |engine| self.look_at(engine, view, &feed, &own, read))
    }

    /// As [`look`](Inner::look) at what all may see, but on the shared engine alone, which others may read
    /// and write meanwhile. An error of which `is_busy` says so: it is not free.
    pub fn look_shared<T>(&self, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
        let (feed, own) = self.moment(View::Synced)?;
        let place = self.place_for(&feed.heads())?;
        self.with(&place, Patience::Full, &mut |engine| self.look_at(engine, View::Synced, &feed, &own, read))
    }

    fn look_at<T>(
        &self,
        engine: &mut Engine,
        view: View,
        feed: &Feed,
        own: &Own,
        read: &mut dyn FnMut(&mut Index) -> Result<T>,
    ) -> Result<T> {
        let patience = engine.patience;
        let heads = feed.heads();
        let index = engine.index()?;
        if view == View::AsIs {
            return reading(index, read);
        }
        for _ in 0..ROUNDS {
            self.follow(index, feed, patience)?;
            let laid_over = match view {
                View::All(session) => {
                    super::owners::set(self, index, feed, true);
                    self.insist(index, patience, &mut |index| index.overlay(session, &own.commits()))?
                }
                _ => false,
            };
            if let View::All(Some(transaction)) = view
                && let Err(error) = super::follow::lay_fields(self, index, feed, transaction)
            {
                index.abort()?;
                return Err(error);
            }
            if !laid_over {
                index.begin_read()?;
            }
            // Somebody may have begun to make the engine anew since we followed.
            let marks = index.watermarks();
            if marks.as_ref().is_ok_and(|marks| !covers(marks, &heads)) {
                index.end_read()?;
                continue;
            }
            let outcome = marks.and_then(|_| read(index));
            let ended = index.end_read();
            return outcome.and_then(|value| ended.map(|()| value));
        }
        Err(Error::unavailable("the catalog's engine is made anew again and again").with_hint("try again"))
    }

    /// What the logs hold and what this handle has not flushed, of one moment.
    fn moment(&self, view: View) -> Result<(Feed, Own)> {
        let mut feed = self.store.feed()?;
        let View::All(session) = view else { return Ok((feed, Own::default())) };
        for _ in 0..ROUNDS {
            let user = self.user();
            let mut own = Own { user, all: self.store.pending_side(None)?, transaction: Vec::new() };
            if session.is_some() {
                own.transaction = self.store.pending_side(session)?;
            }
            if own.all.is_empty() && own.transaction.is_empty() {
                return Ok((feed, own));
            }
            // What another thread flushes now must not be seen twice.
            let later = self.store.feed()?;
            if later.heads() == feed.heads() {
                return Ok((feed, own));
            }
            feed = later;
        }
        Ok((feed, Own::default()))
    }

    /// Brings an engine up to a feed; `false` where another process has it and no patience is left for it.
    pub fn follow(&self, index: &mut Index, feed: &Feed, patience: Patience) -> Result<bool> {
        super::follow::follow(self, index, feed, patience)
    }

    /// Applies what is in the logs if nobody else does so at this moment; waits for nobody.
    pub fn catch_up(&self) -> Result<bool> {
        let feed = self.store.feed()?;
        let heads = feed.heads();
        let place = self.place_for(&heads)?;
        let work = &mut |engine: &mut Engine| self.follow(engine.index()?, &feed, Patience::None);
        match self.with(&place, Patience::None, work) {
            Err(e) if is_busy(&e) => Ok(false),
            outcome => outcome,
        }
    }
}

/// One read of one state.
fn reading<T>(index: &mut Index, read: &mut dyn FnMut(&mut Index) -> Result<T>) -> Result<T> {
    index.begin_read()?;
    let outcome = read(index);
    let ended = index.end_read();
    outcome.and_then(|value| ended.map(|()| value))
}
