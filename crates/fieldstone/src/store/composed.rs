//! Fields, the journal that holds them, and the participants that keep records for its commits.
//!
//! Before a flush it collects the participants' records, such as batches that still grow, so that fields and attributes
//! are one commit, and a writer that only writes fields loses no attribute (B-1). The layers below do not know
//! participants: the journal takes records and counts a session's losses, and participants compare that number at their
//! next use.
//!
//! Invariants:
//! * records that a catalog took for a session before a flush was called are in the commit of that flush;
//! * no lock is held across a call of the journal or of a catalog;
//! * after a fork the child has no catalog until it uses one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_core::sync::Mutex;
use fieldstone_format::Id;
use fieldstone_journal::Journal;
use fieldstone_journal::fork::PerProcess;
use fieldstone_store::api::{
    Admin, CheckpointOptions, CheckpointReport, FieldAccess, Pairs, Stats, StatsBy, StatsRow, Status,
    Transactions, VerifyReport,
};
use fieldstone_store::local::LocalStore;

use fieldstone_journal::Session;
use fieldstone_journal::participant::FlushParticipant;

use super::grids::KnownGrids;
use super::mesh_points::KnownPoints;
use crate::execution::current::current;
use crate::execution::{reachable, record_late_reads};
use crate::own_files::OwnFiles;

/// Participants in flushes of one process.
pub type Participants = PerProcess<Mutex<Vec<Weak<dyn FlushParticipant>>>>;

/// Whether a field was archived without the date that names its run; its user is notified once.
#[derive(Debug, Default)]
pub(super) struct Undated {
    is_known: AtomicBool,
    keyword: Mutex<Option<Arc<str>>>,
}

impl Undated {
    /// Checks a key, unless one without a date was seen before.
    pub(super) fn look(&self, schema: &Schema, key: &Pairs<'_>) {
        if self.is_known.load(Ordering::Relaxed) {
            return;
        }
        if let Some(keyword) = schema.undated(key)
            && !self.is_known.swap(true, Ordering::Relaxed)
        {
            *self.keyword.lock() = Some(keyword);
        }
    }

    pub(super) fn take(&self) -> Option<Arc<str>> {
        self.keyword.lock().take()
    }
}

/// A store of fields, with its participants. See the module.
#[derive(Debug)]
pub struct Composed {
    /// For a catalog of its own.
    pub(super) me: Weak<Composed>,
    pub(super) fields: LocalStore,
    pub(super) journal: Arc<Journal>,
    /// Whether every change outside transactions is durable before its call returns.
    pub(super) durable: bool,
    /// The URL by which other processes open it, if they can.
    pub(super) reachable: Option<Arc<str>>,
    /// Participants in flushes of this process.
    pub(super) participants: Participants,
    /// Used keywords that resemble mistyped ones of the schema; see [`fields`](super::fields).
    pub(super) used_keywords: PerProcess<Mutex<HashSet<Arc<str>>>>,
    /// A keyword of dates that a field lacked, until it is taken.
    pub(super) undated: Undated,
    /// Points of the meshes that queries used.
    pub(super) mesh_points: KnownPoints,
    /// Points of the grids that queries used.
    pub(super) grids: KnownGrids,
}

impl Composed {
    /// A store of these fields, without a catalog yet. `durable`: every change outside transactions is durable before
    /// its call returns; concurrent changes of several threads share a commit.
    pub fn new(fields: LocalStore, durable: bool) -> Arc<Composed> {
        let journal = fields.journal().clone();
        let participants = PerProcess::new(journal.env().identity.clone(), Mutex::default());
        let used_keywords = PerProcess::new(journal.env().identity.clone(), Mutex::default());
        let reachable = reachable(fields.url()).map(Arc::from);
        let (mesh_points, grids) = (KnownPoints::default(), KnownGrids::default());
        Arc::new_cyclic(|me| Composed {
            me: me.clone(),
            fields,
            journal,
            durable,
            reachable,
            participants,
            used_keywords,
            undated: Undated::default(),
            mesh_points,
            grids,
        })
    }

    /// Flushes a change that was just taken, if `durable` is set.
    pub(super) fn note_change(&self, session: &Session) -> Result<()> {
        match session.transaction().is_none() && self.durable {
            true => self.flush(session),
            false => Ok(()),
        }
    }

    /// A caller's session, on behalf of its thread's execution.
    pub(super) fn session<'a>(&self, session: &'a Session) -> Cow<'a, Session> {
        match current() {
            Some(execution) if session.author().is_none() => Cow::Owned(session.by(execution)),
            _ => Cow::Borrowed(session),
        }
    }

    /// Closes the store without recording this process's reads.
    pub(super) fn end(&self, session: &Session) -> Result<()> {
        let session = &*self.session(session);
        self.gather(session);
        let closed = self.fields.close(session);
        if closed.is_ok() {
            self.flushed(session);
        }
        self.participants().iter().for_each(|one| one.closed());
        closed
    }

    /// The participants that still exist.
    fn participants(&self) -> Vec<Arc<dyn FlushParticipant>> {
        let participants = self.participants.get(Mutex::default);
        let mut participants = participants.lock();
        participants.retain(|one| one.strong_count() > 0);
        participants.iter().filter_map(Weak::upgrade).collect()
    }

    /// Moves participants' records for a session into its next commit.
    fn gather(&self, session: &Session) {
        self.participants().iter().for_each(|one| one.hand_over(session));
    }

    fn flushed(&self, session: &Session) {
        self.participants().iter().for_each(|one| one.flushed(session));
    }

    fn forget(&self, session: &Session) {
        self.participants().iter().for_each(|one| one.discarded(session));
    }
}

impl Transactions for Composed {
    fn flush(&self, session: &Session) -> Result<()> {
        self.journal.access().check_writable()?;
        let session = &*self.session(session);
        self.gather(session);
        self.fields.flush(session)?;
        self.flushed(session);
        Ok(())
    }

    fn discard(&self, session: &Session) -> Result<()> {
        self.forget(session);
        self.fields.discard(session)
    }

    fn check_lost(&self, session: &Session) -> Result<()> {
        self.fields.check_lost(session)
    }

    fn unflushed(&self) -> u64 {
        self.fields.unflushed()
    }

    fn will_write(&self) {
        self.journal.will_write();
    }

    fn begin(&self) -> Result<Id> {
        self.will_write();
        self.fields.begin()
    }

    fn decide(&self, transaction: Id, commit: bool, session: &Session) -> Result<()> {
        let session = &*self.session(session);
        if commit {
            self.flush(&session.within(transaction))?;
        } else {
            self.journal.access().check_writable()?;
            self.forget(&session.within(transaction));
        }
        self.fields.decide(transaction, commit, session)
    }

    fn abandon(&self, transaction: Id, session: &Session) -> Result<()> {
        self.journal.access().check_writable()?;
        self.forget(&session.within(transaction));
        self.fields.abandon(transaction, session)
    }

    fn set_active_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()> {
        let session = &*self.session(session);
        // Contradictory requests fail before anything is flushed.
        if on != 0 && on & off == 0 {
            self.flush(&session.within(transaction))?;
        }
        self.fields.set_active_kinds(transaction, on, off, session)
    }
}

impl Admin for Composed {
    fn stats(&self, request: &Request) -> Result<Stats> {
        self.journal.check_there()?;
        let mut stats = self.fields.stats(request)?;
        if let Some(root) = self.fields.folder() {
            let own = OwnFiles::of(&*self.journal.env().disk, &root).files;
            stats.files += own.len() as u64;
            stats.file_bytes += own.iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
        Ok(stats)
    }

    fn stats_by(&self, request: &Request, by: &StatsBy) -> Result<Vec<StatsRow>> {
        self.fields.stats_by(request, by)
    }

    fn status(&self) -> Result<Status> {
        self.fields.status()
    }

    fn skipped(&self) -> Result<Vec<String>> {
        self.fields.skipped()
    }

    fn verify(&self, request: &Request) -> Result<VerifyReport> {
        self.journal.check_there()?;
        self.fields.verify(request)
    }

    fn dump(&self, request: &Request) -> Result<Vec<String>> {
        self.journal.check_there()?;
        self.fields.dump(request)
    }

    fn checkpoint(
        &self,
        folder: &Path,
        options: &CheckpointOptions,
        session: &Session,
    ) -> Result<CheckpointReport> {
        // This call flushes by itself.
        let session = &*self.session(session);
        self.gather(session);
        let report = self.fields.checkpoint(folder, options, session)?;
        self.flushed(session);
        Ok(report)
    }

    fn close(&self, session: &Session) -> Result<()> {
        let closed = self.end(session);
        // A reader must not fail because its reads cannot be recorded.
        if let Err(error) = record_late_reads() {
            tracing::warn!(%error, "cannot record a read");
        }
        closed
    }
}
