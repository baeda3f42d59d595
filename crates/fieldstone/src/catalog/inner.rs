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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use fieldstone_core::env::Env;
use fieldstone_core::schema::Schema;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeBatch, Record};
use fieldstone_journal::Journal;
use fieldstone_journal::fork::PerProcess;

use super::CatalogSettings;
use super::gather::{Gather, Gathered};
use super::known::Known;
use super::lend::Engines;
use crate::Store;

/// Attributes that are applied with the flush that brings them, rather than by the next read.
const MANY: u64 = 10_000;

/// The catalog itself; [`Catalog`](super::Catalog) is a handle on it.
#[derive(Debug)]
pub struct Inner {
    pub store: Arc<Store>,
    pub settings: CatalogSettings,
    pub schema: Schema,
    /// The world that the store lives in.
    pub env: Env,
    me: Weak<Inner>,
    process: PerProcess<State>,
}

/// What one process has.
#[derive(Debug)]
pub struct State {
    gather: Mutex<Gather>,
    known: Mutex<Known>,
    /// Held while something is declared, so that two threads do not declare the same.
    declaring: Mutex<()>,
    engines: Engines,
    /// Rows given to sessions since they were last flushed, and flushed and not applied.
    rows: Mutex<Rows>,
    /// How often each session had lost something when that was looked at last.
    seen: Mutex<HashMap<Option<Id>, u64>>,
    /// The thread that applies what was flushed.
    applying: Mutex<Option<JoinHandle<()>>>,
}

/// Attributes on their way into the engine.
#[derive(Debug, Default)]
struct Rows {
    sessions: HashMap<Option<Id>, u64>,
    unapplied: u64,
}

/// A panic of one caller must not lock all others out.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn new(store: &Store, me: &Weak<Inner>) -> State {
        store.join(me.clone());
        State {
            gather: Mutex::default(),
            known: Mutex::new(Known::new(store.journal().env().clock.clone())),
            declaring: Mutex::default(),
            engines: Engines::default(),
            rows: Mutex::default(),
            seen: Mutex::default(),
            applying: Mutex::default(),
        }
    }
}

impl Inner {
    pub fn new(store: Arc<Store>, settings: CatalogSettings) -> Arc<Inner> {
        let env = store.journal().env().clone();
        let identity = env.identity.clone();
        Arc::new_cyclic(|me| {
            let state = State::new(&store, me);
            let schema = store.schema();
            Inner { process: PerProcess::new(identity, state), store, settings, schema, env, me: me.clone() }
        })
    }

    fn state(&self) -> &State {
        self.process.get(|| State::new(&self.store, &self.me))
    }

    /// What is known of what was declared; nothing of what was lost since.
    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.forget_lost();
        lock(&self.state().known)
    }

    pub fn engines(&self) -> &Engines {
        &self.state().engines
    }

    /// Itself, for a thread of its own.
    pub fn shared(&self) -> Result<Arc<Inner>> {
        self.me.upgrade().ok_or_else(|| Error::internal("a catalog is used while it is dropped"))
    }

    /// Keeps others from declaring until it is dropped.
    pub fn declaring(&self) -> MutexGuard<'_, ()> {
        lock(&self.state().declaring)
    }

    /// Gives records to the next commit of a session, behind all that was given before.
    pub fn emit(&self, session: Option<Id>, records: Vec<Record>) -> Result<()> {
        let rows = records.iter().map(|record| match record {
            Record::Attributes(batch) => batch.rows as u64,
            _ => 0,
        });
        self.count_rows(session, rows.sum());
        self.hand_over(session);
        self.store.journal().take_side(records.iter().map(Record::encode).collect(), session)
    }

    /// Takes one attribute, which may become part of a larger record. The journal counts it meanwhile, and
    /// knows who is to hear of a failure.
    pub fn gather(&self, session: Option<Id>, single: AttributeBatch) -> Result<()> {
        let journal = self.store.journal();
        let losses = journal.keep(1, session);
        self.count_rows(session, 1);
        let mut gather = lock(&self.state().gather);
        if let Some(ended) = gather.add(session, losses, single) {
            give(journal, session, ended);
        }
        Ok(())
    }

    fn count_rows(&self, session: Option<Id>, rows: u64) {
        *lock(&self.state().rows).sessions.entry(session).or_default() += rows;
    }

    /// Forgets what is remembered of sessions that have lost something since this was asked last.
    fn forget_lost(&self) {
        let state = self.state();
        let losses = self.store.journal().all_losses();
        let mut seen = lock(&state.seen);
        for (session, losses) in losses {
            if seen.insert(session, losses) != Some(losses) {
                lock(&state.known).discarded(session);
                lock(&state.rows).sessions.remove(&session);
            }
        }
    }
}

/// Gives gathered attributes to the journal, unless it counted them as lost.
fn give(journal: &Journal, session: Option<Id>, gathered: Gathered) {
    let Gathered { losses, rows, batches } = gathered;
    let parts = batches.into_iter().flat_map(AttributeBatch::split);
    let records = parts.map(|part| Record::Attributes(part).encode()).collect();
    journal.take_kept(records, rows, losses, session);
}

/// Who keeps records for a store's flushes. No lock of the store's is held at a call.
pub trait Keeps: Send + Sync + std::fmt::Debug {
    /// Gives the journal what is kept for a session: it is about to be flushed, or looked at.
    fn hand_over(&self, session: Option<Id>);
    /// The session is discarded, with what was handed over for it.
    fn discarded(&self, session: Option<Id>);
    /// The session was flushed.
    fn flushed(&self, session: Option<Id>);
    /// The store is closed: it flushes no more.
    fn closed(&self);
}

impl Keeps for Inner {
    fn hand_over(&self, session: Option<Id>) {
        // Held until the journal has them: what comes later stands behind.
        let mut gather = lock(&self.state().gather);
        if let Some(gathered) = gather.take(session) {
            give(self.store.journal(), session, gathered);
        }
    }

    fn discarded(&self, session: Option<Id>) {
        drop(lock(&self.state().gather).take(session));
        self.known().discarded(session);
        lock(&self.state().rows).sessions.remove(&session);
    }

    fn flushed(&self, session: Option<Id>) {
        let all = !self.store.journal().has_pending(session);
        self.known().flushed(session, all);
        let unapplied = {
            let mut rows = lock(&self.state().rows);
            let flushed = rows.sessions.remove(&session).unwrap_or(0);
            rows.unapplied += flushed;
            rows.unapplied
        };
        if unapplied >= MANY {
            self.apply_beside();
        }
    }

    fn closed(&self) {
        if let Some(applying) = lock(&self.state().applying).take() {
            // A thread that panicked has applied nothing, which the next read does.
            drop(applying.join());
        }
        if lock(&self.state().rows).unapplied > 0 {
            self.apply_flushed();
        }
    }
}

impl Inner {
    /// Applies what was flushed on a thread of its own, unless one is at it.
    fn apply_beside(&self) {
        // a flush does not wait for the engine; what fails here the next read does.
        let Ok(inner) = self.shared() else { return };
        let mut applying = lock(&self.state().applying);
        if applying.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let work = move || inner.apply_flushed();
        // Where no thread can be started, whoever reads next applies it.
        *applying = std::thread::Builder::new().name("catalog-apply".into()).spawn(work).ok();
    }

    /// Applies what was flushed if the engine is free. Whoever reads next does it otherwise, or again, so that
    /// what goes wrong here is told to them.
    fn apply_flushed(&self) {
        let rows = lock(&self.state().rows).unapplied;
        if self.catch_up().is_ok_and(|applied| applied) {
            let mut left = lock(&self.state().rows);
            left.unapplied = left.unapplied.saturating_sub(rows);
        }
    }
}
