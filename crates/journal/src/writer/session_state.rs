//! The content of one session of a handle: fields and records that wait for its next flush, the threads that archived
//! them, and the threads that have yet to learn of a loss.
//!
//! There is one session outside of transactions, which all threads share, and one for each transaction.
//! A flush takes the whole batch: it is *in flight* until the commit is durable, while a new one collects what
//! comes meanwhile. Invariants:
//! * what is in flight counts as unflushed until it is committed;
//! * what a failure drops is reported (J-11) by the call that failed, or else by the next flush of each thread that
//!   had put something in, once; before that nothing of the session is flushed by that thread;
//! * a flush that waits for batches fails where one of them was lost, whoever committed it and whoever filled it;
//! * attributes that others keep for the session have their owners noted until they are in a batch that notes them;
//! * a transaction that lost something behind the back of those who use it is never committed by this
//!   handle: it would be without a part of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::sync::thread::{self, ThreadId};
use fieldstone_core::{Error, Result};
use fieldstone_format::log::SideRecord;

use super::batch::Batch;
use super::loss::{Keys, Loss};
use crate::medium::DataWriter;

/// Content that waits for a flush, and the threads that archived it.
#[derive(Debug, Default)]
struct Waiting {
    batch: Arc<Batch>,
    threads: HashSet<ThreadId>,
}

/// A loss that a thread has not learned of yet.
#[derive(Debug)]
struct Untold {
    loss: Loss,
    /// Whether a close has reported it, to whoever closed.
    closed: bool,
}

/// The loss of a session by a failure.
#[derive(Debug)]
pub struct Lost {
    /// All of it.
    pub loss: Loss,
    /// The threads that put something in, and to which no call has reported it.
    threads: HashSet<ThreadId>,
    by_thread: HashMap<ThreadId, Keys>,
}

impl Lost {
    /// Whether threads are still to hear of it.
    pub fn is_untold(&self) -> bool {
        !self.threads.is_empty()
    }
}

/// A flush that waits until all batches up to one are durable.
#[derive(Debug)]
struct Waiter {
    target: u64,
    /// Losses of these batches since the wait began.
    lost: Option<Loss>,
}

/// Numbers of fills in this process; 0 is none.
static FILLS: AtomicU64 = AtomicU64::new(1);

fn next_fill() -> u64 {
    FILLS.fetch_add(1, Ordering::Relaxed)
}

/// A session.
#[derive(Debug)]
pub struct SessionState {
    /// Within a fill side records are only added, behind those that are there: what waits is flushed, lost or
    /// discarded at the end of one.
    pub fill: u64,
    /// Content that waits for the next flush.
    pub batch: Batch,
    /// Attributes that others keep for it, for now, and the threads whose they are; the one that came last.
    kept: u64,
    keepers: HashSet<ThreadId>,
    last_keeper: Option<ThreadId>,
    /// Threads that put something into the batch, and which of them did last.
    threads: HashSet<ThreadId>,
    last: Option<ThreadId>,
    /// The content of a commit under way.
    flight: Option<Waiting>,
    /// Outside transactions: for each of these threads, the losses that it has not learned of yet.
    untold: HashMap<ThreadId, Untold>,
    /// Flushes that wait, by their tickets.
    waiters: HashMap<u64, Waiter>,
    tickets: u64,
}

impl SessionState {
    /// A session whose first batch has this number.
    pub fn new(number: u64) -> SessionState {
        SessionState {
            fill: next_fill(),
            batch: Batch::new(number),
            kept: 0,
            keepers: HashSet::new(),
            last_keeper: None,
            threads: HashSet::new(),
            last: None,
            flight: None,
            untold: HashMap::new(),
            waiters: HashMap::new(),
            tickets: 0,
        }
    }

    /// The unflushed content, the older first.
    pub fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.flight.iter().map(|flight| &*flight.batch).chain(Some(&self.batch))
    }

    /// The number of the last batch that holds anything.
    pub fn waits_for(&self) -> Option<u64> {
        let own = Some(self.batch.number).filter(|_| !self.batch.is_empty());
        own.or(self.flight.as_ref().map(|flight| flight.batch.number))
    }

    /// Notes a flush that waits for all batches up to a number; returns its ticket.
    pub fn enter(&mut self, target: u64) -> u64 {
        self.tickets += 1;
        self.waiters.insert(self.tickets, Waiter { target, lost: None });
        self.tickets
    }

    /// The flush no longer waits. Returns the losses of the batches that it waited for.
    pub fn leave(&mut self, ticket: u64) -> Option<Loss> {
        self.waiters.remove(&ticket)?.lost
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

    /// Content in flight has become durable.
    pub fn landed(&mut self) {
        self.fill = next_fill();
        self.flight = None;
    }

    /// Puts what is in flight back, before what has been collected since. After an error both are as they were, in
    /// flight and collected, for [`lose`](Self::lose) to name.
    pub fn turn_back(&mut self, data: Option<&mut dyn DataWriter>) -> Result<()> {
        let Some(Waiting { batch, threads }) = self.flight.take() else { return Ok(()) };
        let mut batch = match Arc::try_unwrap(batch) {
            Ok(batch) => batch,
            Err(batch) => {
                self.flight = Some(Waiting { batch, threads });
                return Err(Error::internal("a batch is put back while a commit has it"));
            }
        };
        if let Err(e) = batch.append(&mut self.batch, data) {
            self.flight = Some(Waiting { batch: Arc::new(batch), threads });
            return Err(e);
        }
        self.batch = batch;
        self.threads.extend(threads);
        Ok(())
    }

    /// Notes that this thread puts something in.
    pub fn note(&mut self) {
        let me = thread::current().id();
        if self.last != Some(me) {
            self.threads.insert(me);
            self.last = Some(me);
        }
    }

    /// Counts attributes of this thread that others keep for it.
    pub fn keep(&mut self, attributes: u64) {
        let me = thread::current().id();
        if self.last_keeper != Some(me) {
            self.keepers.insert(me);
            self.last_keeper = Some(me);
        }
        self.kept += attributes;
    }

    /// This number of buffered attributes joins the batch. The buffer knows the owners of all of them together, and
    /// each owner gets an error after a failure.
    pub fn take_kept(&mut self, attributes: u64, records: Vec<SideRecord>) {
        self.threads.extend(self.keepers.iter().copied());
        self.kept = self.kept.saturating_sub(attributes);
        if self.kept == 0 {
            self.forget_kept();
        }
        self.batch.side.extend(records);
    }

    fn forget_kept(&mut self) {
        self.kept = 0;
        self.keepers.clear();
        self.last_keeper = None;
    }

    /// Whether anything waits for a flush, or for the end of one.
    pub fn holds_anything(&self) -> bool {
        self.kept > 0 || self.waits_for().is_some()
    }

    /// Whether there is nothing to remember of it.
    pub fn is_idle(&self) -> bool {
        let waiting = self.holds_anything() || !self.threads.is_empty() || !self.waiters.is_empty();
        !waiting && self.flight.is_none() && self.untold.is_empty()
    }

    /// Forgets the batch.
    fn empty(&mut self) {
        self.fill = next_fill();
        self.batch = Batch::new(self.batch.number);
        self.forget_kept();
        self.threads.clear();
        self.last = None;
    }

    /// The caller forgets its fields, and its losses. A commit under way goes on. Outside of transactions
    /// the batch is dropped for all threads: the others get an error for theirs.
    pub fn discard(&mut self, transacted: bool) {
        let me = thread::current().id();
        self.untold.remove(&me);
        if !transacted && self.threads.iter().chain(&self.keepers).any(|thread| *thread != me) {
            let flight = self.flight.take();
            let why = Error::conflict("another thread discarded the fields of this store");
            let lost = self.lose(true, true, None, &why);
            self.leave_word(lost);
            self.flight = flight;
        }
        self.empty();
    }

    /// Raises the losses that no call has reported to this thread.
    pub fn check(&mut self) -> Result<()> {
        match self.untold.remove(&thread::current().id()) {
            Some(untold) => Err(untold.loss.error()),
            None => Ok(()),
        }
    }

    /// Losses that threads have not learned of, for the caller that closes the handle; each is reported once. The
    /// threads still learn of them by a later flush.
    pub fn report_untold(&mut self) -> Option<Loss> {
        let mut all = None;
        for untold in self.untold.values_mut().filter(|untold| !untold.closed) {
            untold.closed = true;
            join(&mut all, untold.loss.clone());
        }
        all
    }

    /// Drops what is in flight for a failure, and the batch where that cannot be flushed any more or `all` is
    /// to go. `reported`: the call that failed is one of this
    /// session, and informs its thread; `taking`: the key of a value that was just being taken. Attributes that
    /// others keep for the session are lost as well. Returns what was lost, the keys of this thread first, for the caller to
    /// [leave word](Self::leave_word) of.
    pub fn lose(&mut self, all: bool, reported: bool, taking: Option<String>, why: &Error) -> Lost {
        let me = thread::current().id();
        self.fill = next_fill();
        let mut lost: Vec<Waiting> = self.flight.take().into_iter().collect();
        if all || self.batch.is_bound() {
            let number = self.batch.number;
            let batch = Arc::new(std::mem::replace(&mut self.batch, Batch::new(number)));
            lost.push(Waiting { batch, threads: std::mem::take(&mut self.threads) });
            self.last = None;
        }
        let mut threads = std::mem::take(&mut self.keepers);
        let mut by_thread = HashMap::<ThreadId, Keys>::new();
        let (mut others, mut records) = (Keys::default(), Vec::new());
        for waiting in &lost {
            threads.extend(waiting.threads.iter().copied());
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
        if reported {
            threads.remove(&me);
        }
        let loss = Loss::by(why).of(keys, &records).and_attributes(self.kept);
        self.forget_kept();
        if loss.is_empty() {
            return Lost { loss, threads: HashSet::new(), by_thread };
        }
        if let Some(first) = lost.iter().map(|waiting| waiting.batch.number).min() {
            let waiters = self.waiters.values_mut().filter(|waiter| waiter.target >= first);
            waiters.for_each(|waiter| join(&mut waiter.lost, loss.clone()));
        }
        Lost { loss, threads, by_thread }
    }

    /// Leaves word of a loss for its threads, for each of its own keys.
    pub fn leave_word(&mut self, lost: Lost) {
        let Lost { loss, threads, by_thread: mut keys } = lost;
        for id in threads {
            // Of one whose fields others replaced, or who has only records here, all is reported.
            let own = keys.remove(&id).map_or_else(|| loss.clone(), |keys| loss.with_keys(keys));
            let mut untold = self.untold.remove(&id).map(|known| known.loss);
            join(&mut untold, own);
            self.untold.extend(untold.map(|loss| (id, Untold { loss, closed: false })));
        }
    }
}

/// Adds a loss to those that are known.
pub fn join(known: &mut Option<Loss>, more: Loss) {
    match known {
        Some(known) => known.join(more),
        None => *known = Some(more),
    }
}
