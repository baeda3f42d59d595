//! The composed store: fields, the journal that holds them, and the catalogs that keep records for its commits.
//!
//! A [`Store`] has all calls of a field store, by [`FieldStore`]'s traits. Before a flush it asks the catalogs
//! that were made of it for what they keep, such as batches that still grow, so that fields and attributes
//! are one commit, and who writes fields alone loses no attribute (B-1). Below, nobody knows of that: the journal takes
//! records and counts what a session has lost, and the catalogs compare that number when they are used next.
//!
//! * here: opening, the catalogs, what becomes visible and how it ends;
//! * `fields`: fields in and out, as the field store has them;
//! * `port`: what its catalogs ask of it.
//!
//! Invariants:
//! * what a catalog took for a session before a flush of it was called is in the commit of that flush;
//! * no lock is held across a call of the journal or of a catalog;
//! * after a fork the child has no catalog until it uses one.
//!
//! ```
//! use fieldstone::{ArchiveOptions, OpenOptions, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! store.archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod fields;
mod port;

use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_journal::Journal;
use fieldstone_journal::fork::PerProcess;
use fieldstone_store::api::{
    Admin, CheckpointOptions, CheckpointReport, FieldStore, Stats, Status, Transactions, VerifyReport,
};
use fieldstone_store::local::LocalStore;

use fieldstone_catalog::live::FlushParticipant;

/// Those who take part in flushes of one process.
type Catalogs = PerProcess<Mutex<Vec<Weak<dyn FlushParticipant>>>>;

/// A store of fields, with whatever is joined to it. See the module.
#[derive(Debug)]
pub struct Store {
    fields: LocalStore,
    journal: Arc<Journal>,
    /// Who keeps records for flushes of this process.
    catalogs: Catalogs,
}

/// All calls of a store are also those of a field store, whatever it is composed of.
impl Deref for Store {
    type Target = dyn FieldStore;

    fn deref(&self) -> &(dyn FieldStore + 'static) {
        self
    }
}

impl Store {
    /// The store of these fields.
    pub fn of(fields: LocalStore) -> Arc<Store> {
        let journal = fields.journal().clone();
        let catalogs = PerProcess::new(journal.env().identity.clone(), Mutex::default());
        Arc::new(Store { fields, journal, catalogs })
    }

    /// Makes the store now, without a field; see [`init`](crate::init).
    pub(crate) fn create(&self) -> Result<()> {
        self.fields.create()
    }

    /// The journal.
    pub(crate) fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// The catalogs that still live.
    fn catalogs(&self) -> Vec<Arc<dyn FlushParticipant>> {
        let catalogs = self.catalogs.get(Mutex::default);
        let mut catalogs = catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        catalogs.retain(|catalog| catalog.strong_count() > 0);
        catalogs.iter().filter_map(Weak::upgrade).collect()
    }

    /// Puts what catalogs keep for a session into its next commit.
    fn gather(&self, session: Option<Id>) {
        self.catalogs().iter().for_each(|catalog| catalog.hand_over(session));
    }

    fn flushed(&self, session: Option<Id>) {
        self.catalogs().iter().for_each(|catalog| catalog.flushed(session));
    }

    fn forget(&self, session: Option<Id>) {
        self.catalogs().iter().for_each(|catalog| catalog.discarded(session));
    }
}

impl Transactions for Store {
    fn flush(&self, transaction: Option<Id>) -> Result<()> {
        self.journal.check_writable()?;
        self.gather(transaction);
        self.fields.flush(transaction)?;
        self.flushed(transaction);
        Ok(())
    }

    fn discard(&self, transaction: Option<Id>) -> Result<()> {
        self.forget(transaction);
        self.fields.discard(transaction)
    }

    fn check_lost(&self, transaction: Option<Id>) -> Result<()> {
        self.fields.check_lost(transaction)
    }

    fn unflushed(&self) -> u64 {
        self.fields.unflushed()
    }

    fn begin(&self) -> Result<Id> {
        self.fields.begin()
    }

    fn decide(&self, transaction: Id, commit: bool) -> Result<()> {
        if commit {
            self.flush(Some(transaction))?;
        } else {
            self.journal.check_writable()?;
            self.forget(Some(transaction));
        }
        self.fields.decide(transaction, commit)
    }

    fn abandon(&self, transaction: Id) -> Result<()> {
        self.journal.check_writable()?;
        self.forget(Some(transaction));
        self.fields.abandon(transaction)
    }

    fn decide_kinds(&self, transaction: Id, on: u32, off: u32) -> Result<()> {
        // What is asked for in contradiction is refused before anything is flushed.
        if on != 0 && on & off == 0 {
            self.flush(Some(transaction))?;
        }
        self.fields.decide_kinds(transaction, on, off)
    }
}

impl Admin for Store {
    fn stats(&self, request: &Request) -> Result<Stats> {
        self.fields.stats(request)
    }

    fn status(&self) -> Result<Status> {
        self.fields.status()
    }

    fn passed_over(&self) -> Result<Vec<String>> {
        self.fields.passed_over()
    }

    fn verify(&self, request: &Request) -> Result<VerifyReport> {
        self.fields.verify(request)
    }

    fn dump(&self, request: &Request) -> Result<Vec<String>> {
        self.fields.dump(request)
    }

    fn checkpoint(&self, folder: &Path, options: &CheckpointOptions) -> Result<CheckpointReport> {
        // It flushes by itself.
        self.gather(None);
        let report = self.fields.checkpoint(folder, options)?;
        self.flushed(None);
        Ok(report)
    }

    fn close(&self) -> Result<()> {
        self.gather(None);
        let closed = self.fields.close();
        if closed.is_ok() {
            self.flushed(None);
        }
        self.catalogs().iter().for_each(|catalog| catalog.closed());
        closed
    }
}
