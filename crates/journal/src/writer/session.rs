//! What one session of a handle has: the fields and records that wait for its next flush, who put them
//! there, and who has not heard yet of what a failure took.
//!
//! There is one session outside of transactions, which all threads share, and one for each transaction.
//! Invariants:
//! * what a failure drops is told by the call that failed, or else by the next flush of each thread that
//!   had put something in, once; before that nothing of the session is flushed by that thread;
//! * a transaction that lost something behind the back of those who use it is never committed by this
//!   handle: it would be without a part of it.

use std::collections::{HashMap, HashSet};
use std::thread::{self, ThreadId};

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;

use super::batch::Batch;
use super::loss::Loss;

/// A session.
#[derive(Debug, Default)]
pub struct Session {
    /// What waits for the next flush.
    pub batch: Batch,
    /// Threads that put something into the batch, and which of them did last.
    threads: HashSet<ThreadId>,
    last: Option<ThreadId>,
    /// Outside of transactions: what each of these threads lost and has not heard of.
    untold: HashMap<ThreadId, Loss>,
    /// What a transaction lost behind the back of those who use it.
    robbed: Option<Loss>,
}

impl Session {
    /// Notes that this thread puts something in.
    pub fn note(&mut self) {
        let me = thread::current().id();
        if self.last != Some(me) {
            self.threads.insert(me);
            self.last = Some(me);
        }
    }

    /// Whether there is nothing to remember of it.
    pub fn is_idle(&self) -> bool {
        let waiting = !self.batch.is_empty() || !self.threads.is_empty();
        !waiting && self.untold.is_empty() && self.robbed.is_none()
    }

    /// The batch is durable, or was given up.
    pub fn empty(&mut self) {
        self.batch = Batch::default();
        self.threads.clear();
        self.last = None;
    }

    /// The caller forgets what it archived, and what was lost of it.
    pub fn discard(&mut self) {
        self.empty();
        self.untold.remove(&thread::current().id());
    }

    /// Raises what this thread has not heard of, and what a transaction lost.
    pub fn check(&mut self, id: Option<Id>) -> Result<()> {
        if let (Some(id), Some(loss)) = (id, &self.robbed) {
            return Err(loss
                .error()
                .context(format!("transaction {id} lost a part and cannot be committed"))
                .with_hint("abort it, and begin a new one"));
        }
        match self.untold.remove(&thread::current().id()) {
            Some(loss) => Err(loss.error()),
            None => Ok(()),
        }
    }

    /// A transaction loses what was flushed into it: the file that held it is gone.
    pub fn lose_prepared(&mut self, why: &Error) {
        join(&mut self.robbed, Loss::by(why).of_prepared());
    }

    /// Drops the batch for a failure, and leaves word for those who put something in. `told`: the call
    /// that failed is one of this session, and tells its thread; `taking`: the key of a value that was just
    /// being taken; `side`: records that were not in the batch yet. Returns what was lost, the keys of this
    /// thread first.
    pub fn lose(
        &mut self,
        id: Option<Id>,
        told: bool,
        taking: Option<String>,
        side: Vec<SideRecord>,
        why: &Error,
    ) -> Loss {
        let me = thread::current().id();
        let threads: Vec<ThreadId> = self.threads.iter().filter(|&&id| !told || id != me).copied().collect();
        let mut by_thread = self.batch.keys_by_thread();
        if let Some(key) = taking {
            by_thread.entry(me).or_default().add(|| key);
        }
        let mut all = by_thread.get(&me).cloned().unwrap_or_default();
        all.join(self.batch.keys_of(|thread| thread != me));
        self.batch.side.extend(side);
        let loss = Loss::by(why).of(all, &self.batch.side);
        self.empty();
        if loss.is_empty() || threads.is_empty() {
            return loss;
        }
        if id.is_some() {
            join(&mut self.robbed, loss.clone());
            return loss;
        }
        for id in threads {
            // Of one whose fields others replaced, or who has only records here, all is told.
            let own = by_thread.remove(&id).map_or_else(|| loss.clone(), |keys| loss.with_keys(keys));
            let mut untold = self.untold.remove(&id);
            join(&mut untold, own);
            self.untold.extend(untold.map(|loss| (id, loss)));
        }
        loss
    }
}

fn join(known: &mut Option<Loss>, more: Loss) {
    match known {
        Some(known) => known.join(more),
        None => *known = Some(more),
    }
}
