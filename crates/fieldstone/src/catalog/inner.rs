//! What a catalog has in common for all its calls, and what each process has of it.
//!
//! Invariants:
//! * after a fork the child has an engine, a memory and a buffer of its own and never touches its
//!   parent's;
//! * the order of records in a session is the order of the calls, but for single attributes at different
//!   places, which are gathered;
//! * no lock is held over a call of the store, which may call back, with the writer locked where it tells
//!   of a loss.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fieldstone_core::env::Env;
use fieldstone_core::schema::Schema;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeBatch, Record};
use fieldstone_journal::fork::PerProcess;
use fieldstone_store::api::{FieldStore, SideRecord, SideSource};

use super::CatalogSettings;
use super::gather::Gather;
use super::known::Known;
use super::lend::Engines;

/// Attributes that are applied with the flush that brings them, rather than by the next read.
const MANY: u64 = 10_000;

/// The catalog itself; [`Catalog`](super::Catalog) is a handle on it.
#[derive(Debug)]
pub struct Inner {
    pub store: Arc<dyn FieldStore>,
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
    fn new(store: &Arc<dyn FieldStore>, me: &Weak<Inner>) -> State {
        let source: Weak<dyn SideSource> = me.clone();
        store.attach(source);
        State {
            gather: Mutex::default(),
            known: Mutex::new(Known::new(store.home().env.clock)),
            declaring: Mutex::default(),
            engines: Engines::default(),
            rows: Mutex::default(),
        }
    }
}

impl Inner {
    pub fn new(store: Arc<dyn FieldStore>, settings: CatalogSettings) -> Arc<Inner> {
        let env = store.home().env;
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

    pub fn known(&self) -> MutexGuard<'_, Known> {
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
        *lock(&self.state().rows).sessions.entry(session).or_default() += rows.sum::<u64>();
        let mut side = self.gathered(session);
        side.extend(records.iter().map(Record::encode));
        self.store.archive_side(side, session)
    }

    /// Takes one attribute, which may become part of a larger record.
    pub fn gather(&self, session: Option<Id>, single: AttributeBatch) -> Result<()> {
        *lock(&self.state().rows).sessions.entry(session).or_default() += 1;
        let ended = lock(&self.state().gather).add(session, single);
        // Without records too: the store knows then who is to hear of a failure.
        self.store.archive_side(encode(ended), session)
    }

    fn gathered(&self, session: Option<Id>) -> Vec<SideRecord> {
        let batches = lock(&self.state().gather).take(session);
        encode(batches)
    }
}

fn encode(batches: Vec<AttributeBatch>) -> Vec<SideRecord> {
    let parts = batches.into_iter().flat_map(AttributeBatch::split);
    parts.map(|part| Record::Attributes(part).encode()).collect()
}

impl SideSource for Inner {
    fn drain(&self, session: Option<Id>) -> Result<Vec<SideRecord>> {
        Ok(self.gathered(session))
    }

    fn discarded(&self, session: Option<Id>) {
        drop(self.lost(session));
    }

    fn lost(&self, session: Option<Id>) -> Vec<SideRecord> {
        let gathered = self.gathered(session);
        self.known().discarded(session);
        lock(&self.state().rows).sessions.remove(&session);
        gathered
    }

    fn flushed(&self, session: Option<Id>) {
        self.known().flushed(session);
        let unapplied = {
            let mut rows = lock(&self.state().rows);
            let flushed = rows.sessions.remove(&session).unwrap_or(0);
            rows.unapplied += flushed;
            rows.unapplied
        };
        if unapplied >= MANY {
            self.apply_flushed();
        }
    }

    fn closed(&self) {
        if lock(&self.state().rows).unapplied > 0 {
            self.apply_flushed();
        }
    }
}

impl Inner {
    /// Applies what was flushed if the engine is free. Whoever reads next does it otherwise, so that what
    /// goes wrong here is told to them.
    fn apply_flushed(&self) {
        if self.catch_up().is_ok_and(|applied| applied) {
            lock(&self.state().rows).unapplied = 0;
        }
    }
}
