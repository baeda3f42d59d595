//! Transactions: writes that become visible together, from any number of handles and processes. The end of a block
//! decides (B-11).

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use fieldstone_core::request::Request;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_store::api::{
    ArchiveOptions, FieldAccess, ListOptions, Listing, Pairs, ReadOptions, RemoveOptions, RetrieveOptions,
    Transactions, Value,
};
use fieldstone_store::{Field, Fields};

use crate::Session;
use crate::Store;
use crate::run::{NewRun, Run};

const OPEN: u8 = 0;
const COMMITTED: u8 = 1;
const ABORTED: u8 = 2;
/// Left undecided.
const DETACHED: u8 = 3;

/// A transaction: data archived through it become visible together, or not at all. [`Store::transaction`] makes it, or
/// [`Store::join_transaction`] in another handle or process.
///
/// Dropping it without a commit aborts it; a joined one forgets its unflushed data, and the opener decides. A forked
/// child's copy does nothing when it is dropped. Its own reads see the data that any process flushed into it.
///
/// A failed flush of this store, even of another transaction, may lose data that were archived here and not flushed.
/// Then [`flush`](Self::flush) and [`commit`](Self::commit) fail from then on: it can only be aborted.
///
/// ```
/// use fieldstone::prelude::*;
/// use fieldstone::{ArchiveOptions, ListOptions, OpenOptions, Request, Value};
///
/// let store = fieldstone::open("memory:", &OpenOptions::default())?;
/// let count = || Ok::<_, fieldstone::Error>(store.list(&Request::new(), &ListOptions::default())?.count());
/// let transaction = store.transaction()?;
/// transaction.archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"x"), &ArchiveOptions::default())?;
/// transaction.flush()?;
/// assert_eq!(count()?, 0);
/// transaction.commit()?;
/// assert_eq!(count()?, 1);
/// # Ok::<(), fieldstone::Error>(())
/// ```
pub struct Transaction {
    store: Store,
    id: Id,
    joined: bool,
    /// Whether another process may know the id: then an empty abort is also recorded for it.
    given: AtomicBool,
    decided: AtomicU8,
    /// The process that made it; a forked child has a copy.
    process: u32,
}

impl Transaction {
    pub(crate) fn new(store: Store, id: Id, joined: bool) -> Transaction {
        let process = store.backend().env().identity.process();
        let (given, decided) = (AtomicBool::new(joined), AtomicU8::new(OPEN));
        Transaction { store, id, joined, given, decided, process }
    }

    /// The id by which other processes join; the caller may pass it on.
    pub fn id(&self) -> Id {
        self.note_given();
        self.id
    }

    /// The id for a message; this does not count as passing it on.
    pub fn text(&self) -> String {
        self.id.to_string()
    }

    /// Records that another process, such as a forked child, may know the id from here on.
    pub fn note_given(&self) {
        self.given.store(true, Ordering::Relaxed);
    }

    /// Whether it was begun elsewhere.
    pub fn is_joined(&self) -> bool {
        self.joined
    }

    /// "open", "joined", "committed" or "aborted".
    pub fn state(&self) -> &'static str {
        match self.decided.load(Ordering::Relaxed) {
            COMMITTED => "committed",
            ABORTED => "aborted",
            DETACHED => "detached",
            _ if self.joined => "joined",
            _ => "open",
        }
    }

    /// The id for writes in it; Invalid if this handle decided it.
    pub fn writing(&self) -> Result<Id> {
        match self.decided.load(Ordering::Relaxed) {
            OPEN => Ok(self.id),
            _ => Err(Error::invalid(format!("transaction {} is {}", self.id, self.state()))
                .with_hint("begin a new one with store.transaction()")),
        }
    }

    /// The id for reads in it: after the decision nothing is hidden any more.
    pub fn reading(&self) -> Option<Id> {
        (self.decided.load(Ordering::Relaxed) == OPEN).then_some(self.id)
    }

    /// Archives a value in it.
    pub fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
        let options = ArchiveOptions { session: Session::from(self.writing()?), ..options.clone() };
        self.store.archive(key, value, &options)
    }

    /// Removes the fields that a request selects, including flushed ones of the transaction; returns their number.
    pub fn remove(&self, request: &Request) -> Result<u64> {
        self.store.remove(request, &RemoveOptions { session: Session::from(self.writing()?) })
    }

    /// Makes this process's archived data durable; they stay invisible until the commit.
    pub fn flush(&self) -> Result<()> {
        self.store.flush(Some(self.writing()?))
    }

    /// Forgets this process's archived data that were not flushed.
    pub fn discard(&self) -> Result<()> {
        self.store.discard(Some(self.id))
    }

    /// One field.
    pub fn get(&self, key: &Pairs<'_>) -> Result<Field> {
        self.store.get(key, &ReadOptions { session: Session::from(self.reading()) })
    }

    /// The fields that a request names.
    pub fn retrieve(&self, request: &Request, strict: bool) -> Result<Fields> {
        self.store.retrieve(request, &RetrieveOptions { strict, session: Session::from(self.reading()) })
    }

    /// The fields that a request selects.
    pub fn list(&self, request: &Request) -> Result<Listing> {
        self.store
            .list(request, &ListOptions { session: Session::from(self.reading()), ..ListOptions::default() })
    }

    /// Declares a run in it; the run's writes also belong to it.
    pub fn create_run(&self, name: &str) -> Result<NewRun> {
        self.note_given();
        Ok(self.store.create_run(name).within(&Session::from(self.writing()?)))
    }

    /// A run: its writes belong to the transaction, its reads see it.
    pub fn run(&self, name: &str) -> Result<Run> {
        self.note_given();
        Run::find(&self.store, None, name, &Session::from(self.writing()?))
    }

    /// Flushes, and makes its flushed data of these kinds visible to all; see
    /// [`CatalogWriter::activate`](crate::catalog::CatalogWriter::activate). It stays open.
    pub fn activate(&self, kinds: &[&str]) -> Result<()> {
        self.store.catalog().activate(self.id, named(kinds)?, &Session::default())
    }

    /// Makes these kinds invisible again, even after the commit; readers that name the id still see them.
    pub fn deactivate(&self, kinds: &[&str]) -> Result<()> {
        self.store.catalog().deactivate(self.id, named(kinds)?, &Session::default())
    }

    /// Flushes, and makes all of its flushed data visible, from every process. Conflict if it was aborted; committing
    /// again does nothing.
    pub fn commit(&self) -> Result<()> {
        self.decide(COMMITTED)
    }

    /// Forgets all data archived into it, by every process. Conflict if it was committed; aborting again does nothing.
    pub fn abort(&self) -> Result<()> {
        self.decide(ABORTED)
    }

    fn decide(&self, decision: u8) -> Result<()> {
        let given = self.given.load(Ordering::Relaxed) || self.is_copied();
        if decision == COMMITTED || given {
            self.store.decide(self.id, decision == COMMITTED)?;
        } else {
            self.store.abandon(self.id, &Session::default())?;
        }
        self.decided.store(decision, Ordering::Relaxed);
        Ok(())
    }

    /// Whether this is a forked child's.
    fn is_copied(&self) -> bool {
        self.store.backend().env().identity.process() != self.process
    }

    /// Leaves it undecided: dropping it then does nothing. Processes with the id can join, and decide.
    pub fn detach(&self) -> Id {
        let _ = self.decided.compare_exchange(OPEN, DETACHED, Ordering::Relaxed, Ordering::Relaxed);
        self.id()
    }

    /// Leaves it: an opener decides, if it is still open; a joined one makes its archived data durable, or forgets
    /// them.
    pub fn leave(&self, good: bool) -> Result<()> {
        match (self.reading().is_some(), self.joined, good) {
            (false, ..) => Ok(()),
            (true, false, _) => self.decide(if good { COMMITTED } else { ABORTED }),
            (true, true, true) => self.flush(),
            (true, true, false) => self.discard(),
        }
    }
}

/// Refuses an empty list of kinds.
fn named<'a>(kinds: &'a [&'a str]) -> Result<&'a [&'a str]> {
    match kinds {
        [] => Err(Error::invalid("the list of kinds is empty")
            .with_hint("name fields, run, step, variable, tag, …, or commit everything")),
        kinds => Ok(kinds),
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_copied() {
            // An error cannot be reported here; uncommitted data stay invisible in any case.
            let _ = self.leave(false);
        }
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Transaction({}, {})", self.id, self.state())
    }
}
