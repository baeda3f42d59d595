//! What a catalog has in common for all its calls, and what each process has of it.
//!
//! Invariants:
//! * after a fork the child has an engine, a memory and a buffer of its own and never touches its
//!   parent's;
//! * the order of records in a session is the order of the calls, but for single attributes at different
//!   places, which are gathered;
//! * what a session lost to a failure is forgotten before anything is asked of the session again;
//! * of the store nothing is called with a lock held but what takes records, which calls nobody.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use fieldstone_core::sync::{Mutex, MutexGuard};

use fieldstone_core::env::{Clock, Env};
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{AttributeBatch, Record};
use fieldstone_journal::Journal;
use fieldstone_journal::fork::PerProcess;

use super::CatalogSettings;
use super::connection::Connections;
use super::overlay::Overlays;
use super::port::FieldPort;
use super::run_answers::RunAnswers;
use crate::write::attribute_buffer::AttributeBatches;
use crate::write::declaration_cache::DeclarationCache;
use fieldstone_journal::Session;
use fieldstone_journal::beside::Beside;
use fieldstone_journal::participant::{Buffered, FlushParticipant};
use fieldstone_journal::session::SessionKey;

/// Attributes that are applied with the flush that brings them, rather than by the next read.
const MANY: u64 = 10_000;
/// Begins the message of what went wrong on the thread that applies.
const APPLYING: &str = "while an earlier flush was applied to the catalog's engine";

/// The catalog itself; [`Catalog`](super::Catalog) is a handle on it.
#[derive(Debug)]
pub struct Inner {
    pub fields: Arc<dyn FieldPort>,
    pub journal: Arc<Journal>,
    pub settings: CatalogSettings,
    /// The world that the store lives in.
    pub env: Env,
    me: Weak<Inner>,
    process: PerProcess<ProcessState>,
}

/// What one process has.
#[derive(Debug)]
pub struct ProcessState {
    attribute_buffer: Buffered<AttributeBatches>,
    declarations: Mutex<DeclarationCache>,
    /// Held while something is declared, so that two threads do not declare the same.
    declaring: Mutex<()>,
    connections: Connections,
    overlays: Overlays,
    run_answers: RunAnswers,
    /// Attributes given to sessions since they were last flushed, and flushed and not applied.
    rows: Mutex<AttributeCounts>,
    /// How often each session had lost something when that was looked at last.
    losses_seen: Mutex<HashMap<SessionKey, u64>>,
    /// The thread that applies what was flushed.
    applying: Beside,
    /// What went wrong there, and no read has returned.
    apply_error: Mutex<Option<Error>>,
}

/// Attributes on their way into the engine.
#[derive(Debug, Default)]
struct AttributeCounts {
    sessions: HashMap<SessionKey, u64>,
    unapplied: u64,
}

impl ProcessState {
    fn new(fields: &Arc<dyn FieldPort>, clock: &Arc<dyn Clock>, me: &Weak<Inner>) -> ProcessState {
        fields.join(me.clone());
        ProcessState {
            attribute_buffer: Buffered::default(),
            declarations: Mutex::new(DeclarationCache::new(clock.clone())),
            declaring: Mutex::default(),
            connections: Connections::default(),
            overlays: Overlays::default(),
            run_answers: RunAnswers::default(),
            rows: Mutex::default(),
            losses_seen: Mutex::default(),
            applying: Beside::default(),
            apply_error: Mutex::default(),
        }
    }
}

impl Inner {
    pub fn new(fields: Arc<dyn FieldPort>, journal: Arc<Journal>, settings: CatalogSettings) -> Arc<Inner> {
        let env = journal.env().clone();
        let identity = env.identity.clone();
        Arc::new_cyclic(|me| {
            let process = PerProcess::new(identity, ProcessState::new(&fields, &env.clock, me));
            Inner { process, fields, journal, settings, env, me: me.clone() }
        })
    }

    fn state(&self) -> &ProcessState {
        self.process.get(|| ProcessState::new(&self.fields, &self.env.clock, &self.me))
    }

    /// What is known of what was declared; nothing of what was lost since.
    pub fn declarations(&self) -> MutexGuard<'_, DeclarationCache> {
        self.forget_lost();
        self.state().declarations.lock()
    }

    pub fn connections(&self) -> &Connections {
        &self.state().connections
    }

    pub fn overlays(&self) -> &Overlays {
        &self.state().overlays
    }

    pub fn run_answers(&self) -> &RunAnswers {
        &self.state().run_answers
    }

    /// Itself, for a thread of its own.
    pub fn shared(&self) -> Result<Arc<Inner>> {
        self.me.upgrade().ok_or_else(|| Error::internal("a catalog is used while it is dropped"))
    }

    /// Keeps others from declaring until it is dropped.
    pub fn declaring(&self) -> MutexGuard<'_, ()> {
        self.state().declaring.lock()
    }

    /// Gives records to the next commit of a session, behind all that was given before.
    pub fn emit(&self, session: &Session, records: Vec<Record>) -> Result<()> {
        let rows = records.iter().map(|record| match record {
            Record::Attributes(batch) => batch.rows as u64,
            _ => 0,
        });
        self.count_rows(session, rows.sum());
        self.hand_over(session);
        self.journal.take_side(records.iter().map(Record::encode).collect(), session)
    }

    /// Takes one attribute, which may become part of a larger record. The journal counts it meanwhile, and
    /// knows who is to hear of a failure.
    pub fn buffer_attribute(&self, session: &Session, single: AttributeBatch) -> Result<()> {
        self.count_rows(session, 1);
        self.state().attribute_buffer.put(&self.journal, session, 1, |batches| batches.add(single));
        Ok(())
    }

    fn count_rows(&self, session: &Session, rows: u64) {
        *self.state().rows.lock().sessions.entry(session.key()).or_default() += rows;
    }

    /// Forgets what is remembered of sessions that have lost something since this was asked last.
    fn forget_lost(&self) {
        let state = self.state();
        let losses = self.journal.all_losses();
        let mut seen = state.losses_seen.lock();
        for (session, losses) in losses {
            if seen.insert(session, losses) != Some(losses) {
                state.declarations.lock().discarded(session);
                state.rows.lock().sessions.remove(&session);
            }
        }
    }
}

impl FlushParticipant for Inner {
    fn hand_over(&self, session: &Session) {
        self.state().attribute_buffer.hand_over(&self.journal, session);
    }

    fn discarded(&self, session: &Session) {
        self.state().attribute_buffer.discard(session);
        let session = session.key();
        self.declarations().discarded(session);
        self.state().rows.lock().sessions.remove(&session);
        self.overlays().end(session);
    }

    fn flushed(&self, session: &Session) {
        let all = !self.journal.has_pending(session);
        let session = session.key();
        self.declarations().flushed(session, all);
        self.overlays().end(session);
        let unapplied = {
            let mut rows = self.state().rows.lock();
            let flushed = rows.sessions.remove(&session).unwrap_or(0);
            rows.unapplied += flushed;
            rows.unapplied
        };
        if unapplied >= MANY {
            self.apply_beside();
        }
    }

    fn closed(&self) {
        self.overlays().clear();
        self.join_applying();
        if self.state().rows.lock().unapplied > 0 {
            self.apply_flushed();
        }
    }
}

impl Inner {
    /// Applies what was flushed on a thread of its own, unless one is at it.
    fn apply_beside(&self) {
        // a flush does not wait for the engine; what fails here the next read does.
        let Ok(inner) = self.shared() else { return };
        // Where no thread can be started, whoever reads next applies it.
        let _ = self.state().applying.start("catalog-apply", move || inner.apply_flushed());
    }

    /// Applies what was flushed if the engine is free; else whoever reads next does. What goes wrong is kept for
    /// the next read: nobody else is there to hear of it.
    fn apply_flushed(&self) {
        let rows = self.state().rows.lock().unapplied;
        match self.catch_up() {
            Ok(true) => {
                let mut left = self.state().rows.lock();
                left.unapplied = left.unapplied.saturating_sub(rows);
            }
            Ok(false) => {}
            Err(error) => *self.state().apply_error.lock() = Some(error.context(APPLYING)),
        }
    }

    /// Waits until nothing is applied beside the caller.
    pub fn join_applying(&self) {
        self.state().applying.join();
    }

    /// Returns what went wrong beside the caller since the last read, once: the next read follows the logs again.
    pub fn raise_apply_error(&self) -> Result<()> {
        self.state().apply_error.lock().take().map_or(Ok(()), Err)
    }

    /// What went wrong before does not matter any more.
    pub fn forget_apply_error(&self) {
        drop(self.state().apply_error.lock().take());
    }
}
