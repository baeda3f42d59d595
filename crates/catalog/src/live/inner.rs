//! The state that all calls of a catalog share, and the part of it that each process has.
//!
//! Invariants:
//! * after a fork, the child has its own engine, caches and buffer and never touches those of its parent;
//! * records of a session keep the order of the calls, except for single attributes at different places,
//!   which are gathered.

use std::sync::{Arc, Weak};

use fieldstone_journal::fork::PerProcess;
use fieldstone_journal::participant::FlushParticipant;
use fieldstone_journal::{Journal, Session};

use super::CatalogSettings;
use crate::reader::{EngineReader, FieldPort, OpenStore};
use crate::registry::Registry;

/// From this many attributes on, a flush applies them itself instead of leaving them to the next read.
const MANY: u64 = 10_000;

/// The catalog itself; [`Catalog`](super::Catalog) is a handle to it.
#[derive(Debug)]
pub struct Inner {
    pub store: Arc<OpenStore>,
    me: Weak<Inner>,
    process: PerProcess<Registry>,
}

/// The state of one process, which takes part in the process's flushes.
fn of_process(store: &Arc<OpenStore>, me: &Weak<Inner>) -> Registry {
    store.fields.join(me.clone());
    Registry::new(store.clone())
}

impl Inner {
    pub fn new(fields: Arc<dyn FieldPort>, journal: Arc<Journal>, settings: CatalogSettings) -> Arc<Inner> {
        let env = journal.env().clone();
        let identity = env.identity.clone();
        let store = Arc::new(OpenStore { fields, journal, env, engine: settings.engine });
        Arc::new_cyclic(|me| {
            let process = PerProcess::new(identity, of_process(&store, me));
            Inner { store, me: me.clone(), process }
        })
    }

    /// The declarations that this process knows.
    pub fn registry(&self) -> &Registry {
        self.process.get(|| of_process(&self.store, &self.me))
    }

    /// The engines of this process.
    pub fn reader(&self) -> &Arc<EngineReader> {
        &self.registry().reader
    }
}

impl FlushParticipant for Inner {
    fn hand_over(&self, session: &Session) {
        self.reader().pending.hand_over(session);
    }

    fn discarded(&self, session: &Session) {
        let registry = self.registry();
        registry.reader.pending.discard(session);
        registry.declarations().discarded(session.key());
        registry.reader.overlays.end(session.key());
    }

    fn flushed(&self, session: &Session) {
        let (registry, reader) = (self.registry(), self.reader());
        let all = !self.store.journal.unflushed().holds(session);
        let session = session.key();
        registry.declarations().flushed(session, all);
        reader.overlays.end(session);
        if reader.pending.flushed(session) >= MANY {
            reader.apply_beside();
        }
    }

    fn closed(&self) {
        let reader = self.reader();
        reader.overlays.clear();
        reader.join_applying();
        if reader.pending.unapplied() > 0 {
            reader.apply_flushed();
        }
    }
}
