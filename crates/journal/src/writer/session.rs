//! What one session of a handle has: the fields and records that wait for its next flush, who put them
//! there, and who has not heard yet of what a failure took.
//!
//! There is one session outside of transactions, which all threads share, and one for each transaction.
//! A flush takes the whole batch: it is *in flight* until the commit is durable, while a new one collects what
//! comes meanwhile. Invariants:
//! * what is in flight counts as unflushed until it is committed;
//! * what a failure drops is reported (J-11) by the call that failed, or else by the next flush of each thread that
//!   had put something in, once; before that nothing of the session is flushed by that thread;
//! * a transaction that lost something behind the back of those who use it is never committed by this
//!   handle: it would be without a part of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;

use super::batch::Batch;
use super::loss::{Keys, Loss};
use crate::medium::DataWriter;

/// What waits for a flush, and the threads that put something in.
#[derive(Debug, Default)]
struct Waiting {
    batch: Arc<Batch>,
    threads: HashSet<ThreadId>,
}

/// Numbers of epochs in this process; 0 is none.
static EPOCHS: AtomicU64 = AtomicU64::new(1);

fn next_epoch() -> u64 {
    EPOCHS.fetch_add(1, Ordering::Relaxed)
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Within an epoch side records are only added, behind those that are there: what waits is flushed, lost or
    /// discarded at the end of one.
    pub epoch: u64,
    /// What waits for the next flush.
    pub batch: Batch,
    /// Attributes that others keep for it, for now.
    pub kept: u64,
    /// Threads that put something into the batch, and which of them did last.
    threads: HashSet<ThreadId>,
    last: Option<ThreadId>,
    /// What a commit under way holds.
    flight: Option<Waiting>,
    /// Outside of transactions: what each of these threads lost and has not heard of.
    untold: HashMap<ThreadId, Loss>,
    /// What a transaction lost behind the back of those who use it.
    robbed: Option<Loss>,
}

impl Session {
    /// A session whose first batch has this number.
    pub fn new(number: u64) -> Session {
        Session {
            epoch: next_epoch(),
            batch: Batch::new(number),
            kept: 0,
            threads: HashSet::new(),
            last: None,
            flight: None,
            untold: HashMap::new(),
            robbed: None,
        }
    }

    /// What is unflushed, the older first.
    pub fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.flight.iter().map(|flight| &*flight.batch).chain(Some(&self.batch))
    }

    /// The number of the last batch that holds anything.
    pub fn waits_for(&self) -> Option<u64> {
        let own = Some(self.batch.number).filter(|_| !self.batch.is_empty());
        own.or(self.flight.as_ref().map(|flight| flight.batch.number))
    }

    /// Whether all batches up to a number are durable, or lost.
    pub fn is_through(&self, number: u64) -> bool {
        self.batches().all(|batch| batch.is_empty() || batch.number > number)
    }

    /// Takes the batch for a commit; `number`: of the batch that is collected next.
    pub fn take_off(&mut self, number: u64) -> Arc<Batch> {
        let batch = Arc::new(std::mem::replace(&mut self.batch, Batch::new(number)));
        self.last = None;
        self.flight = Some(Waiting { batch: batch.clone(), threads: std::mem::take(&mut self.threads) });
        batch
    }

    /// What is in flight is durable.
    pub fn landed(&mut self) {
        self.epoch = next_epoch();
        self.flight = None;
    }

    /// Puts what is in flight back, before what has been collected since.
    pub fn turn_back(&mut self, data: Option<&mut dyn DataWriter>) -> Result<()> {
        let Some(flight) = self.flight.take() else { return Ok(()) };
        self.threads.extend(flight.threads);
        let batch = Arc::into_inner(flight.batch)
            .ok_or_else(|| Error::internal("a batch is put back while a commit has it"))?;
        let later = std::mem::replace(&mut self.batch, batch);
        self.batch.append(later, data)
    }

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
        let waiting = !self.batch.is_empty() || !self.threads.is_empty() || self.kept > 0;
        !waiting && self.flight.is_none() && self.untold.is_empty() && self.robbed.is_none()
    }

    /// Forgets the batch.
    fn empty(&mut self) {
        self.epoch = next_epoch();
        self.batch = Batch::new(self.batch.number);
        self.kept = 0;
        self.threads.clear();
        self.last = None;
    }

    /// The caller forgets what it archived, and what was lost of it. What is in flight goes on.
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

    /// Drops what is in flight for a failure, and the batch where that cannot be flushed any more or `all` is
    /// to go, and leaves word for those who put something in. `reported`: the call that failed is one of this
    /// session, and informs its thread; `taking`: the key of a value that was just being taken. Attributes that
    /// others keep for the session are lost as well. Returns what was lost, the keys of this thread first.
    pub fn lose(
        &mut self,
        id: Option<Id>,
        all: bool,
        reported: bool,
        taking: Option<String>,
        why: &Error,
    ) -> Loss {
        let me = thread::current().id();
        self.epoch = next_epoch();
        let mut lost: Vec<Waiting> = self.flight.take().into_iter().collect();
        if all || self.batch.is_bound() {
            let number = self.batch.number;
            let batch = Arc::new(std::mem::replace(&mut self.batch, Batch::new(number)));
            lost.push(Waiting { batch, threads: std::mem::take(&mut self.threads) });
            self.last = None;
        }
        let (mut threads, mut by_thread) = (HashSet::new(), HashMap::<ThreadId, Keys>::new());
        let (mut others, mut records) = (Keys::default(), Vec::new());
        for waiting in &lost {
            threads.extend(waiting.threads.iter().filter(|&&id| !reported || id != me).copied());
            for (thread, keys) in waiting.batch.keys_by_thread() {
                by_thread.entry(thread).or_default().join(keys);
            }
            others.join(waiting.batch.keys_of(|thread| thread != me));
            records.extend(waiting.batch.side.iter().cloned());
        }
        if let Some(key) = taking {
            by_thread.entry(me).or_default().add(|| key);
        }
        let mut keys = by_thread.get(&me).cloned().unwrap_or_default();
        keys.join(others);
        let loss = Loss::by(why).of(keys, &records).and_attributes(std::mem::take(&mut self.kept));
        if loss.is_empty() || threads.is_empty() {
            return loss;
        }
        if id.is_some() {
            join(&mut self.robbed, loss.clone());
            return loss;
        }
        for id in threads {
            // Of one whose fields others replaced, or who has only records here, all is reported.
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
