//! The schema in force, and how it grows; and what else is set for the whole store.
//!
//! A store has the schema that its marker holds, and what side records in logs of the store's owner have added
//! since, in the order of their stamps. What does not go with what stands before it is passed over, by everybody
//! alike: of two writers who add at once what cannot be both, the older stamp holds, and the other one learns of it.
//!
//! Invariants:
//! * a handle knows all that the last snapshot it looked at holds; it never goes back to less;
//! * the commit that extends the schema is durable before the handle makes a key by it;
//! * no I/O happens under the lock, and a process that is forked while a thread holds it has one of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::env::Identity;
use fieldstone_core::schema::Schema;
use fieldstone_core::sync::RwLock;
use fieldstone_core::{Code, Result};
use fieldstone_format::schema_extension;
use fieldstone_format::setting::{self, Setting};

use super::{Journal, SCHEMA_MAX};
use crate::fork::PerProcess;
use crate::session::Session;
use crate::snapshot::{SchemaExtension, Snapshot};

/// The schema of a handle.
#[derive(Debug)]
pub struct SchemaState {
    base: Schema,
    grown: PerProcess<RwLock<Grown>>,
}

/// The schema with what was added to it.
#[derive(Debug, Clone)]
struct Grown {
    schema: Schema,
    /// What was added, or passed over; `None` before the first look.
    known: Option<Arc<[Arc<SchemaExtension>]>>,
    /// What is set for the store.
    settings: Arc<BTreeMap<String, String>>,
}

impl Grown {
    fn unknown(base: &Schema) -> RwLock<Grown> {
        RwLock::new(Grown { schema: base.clone(), known: None, settings: Arc::default() })
    }
}

impl SchemaState {
    /// A schema that nothing is known to be added to.
    pub fn new(identity: Arc<dyn Identity>, base: Schema) -> SchemaState {
        let grown = PerProcess::new(identity, Grown::unknown(&base));
        SchemaState { base, grown }
    }

    fn grown(&self) -> &RwLock<Grown> {
        self.grown.get(|| Grown::unknown(&self.base))
    }

    /// The schema that the store was made with.
    pub fn base(&self) -> &Schema {
        &self.base
    }

    /// The schema as it is known now.
    pub fn now(&self) -> Schema {
        self.read(|grown| grown.schema.clone())
    }

    fn read<T>(&self, what: impl FnOnce(&Grown) -> T) -> T {
        what(&self.grown().read())
    }

    fn is_followed(&self) -> bool {
        self.read(|grown| grown.known.is_some())
    }

    /// Takes what a snapshot holds.
    pub fn follow(&self, snapshot: &Snapshot) {
        let found = &snapshot.extensions;
        let is_news = |grown: &Grown| match &grown.known {
            _ if !Arc::ptr_eq(&grown.settings, &snapshot.settings) => true,
            // Another thread may have seen a later snapshot: what is added is never taken back.
            Some(known) => !Arc::ptr_eq(known, found) && found.len() >= known.len() && **known != **found,
            None => true,
        };
        if !self.read(is_news) {
            return;
        }
        let schema = folded(&self.base, found);
        let mut grown = self.grown().write();
        if is_news(&grown) {
            let settings = snapshot.settings.clone();
            *grown = match &grown.known {
                Some(known) if found.len() < known.len() => Grown { settings, ..grown.clone() },
                _ => Grown { schema, known: Some(found.clone()), settings },
            };
        }
    }
}

/// A schema with all that can be added to it, in this order.
fn folded(base: &Schema, added: &[Arc<SchemaExtension>]) -> Schema {
    added.iter().fold(base.clone(), |schema, extension| match grown(&schema, &extension.text) {
        Ok(grown) => grown,
        Err(error) => {
            tracing::warn!(writer = %extension.writer, %error, "an extension of the schema does not hold");
            schema
        }
    })
}

fn grown(schema: &Schema, text: &str) -> Result<Schema> {
    let grown = schema.extend(text)?;
    if grown.text().len() > SCHEMA_MAX {
        return Err(Code::TooLarge
            .error(format!("the extended schema is longer than {SCHEMA_MAX} bytes"))
            .with_hint("keep it to rules and types"));
    }
    Ok(grown)
}

impl Journal {
    /// The first call of a process looks. A failed look is an error of the call that reads or writes there.
    fn follow_first(&self) {
        match &self.pinned {
            _ if self.schema.is_followed() => {}
            Some(pinned) => self.schema.follow(pinned),
            None => drop(self.snapshot()),
        }
    }

    /// The schema in force, as far as this handle has looked; the first call looks.
    pub fn schema(&self) -> Schema {
        self.follow_first();
        self.schema.now()
    }

    /// What a schema makes of something. Where it refuses, another process may have added what is lacking: it is
    /// asked again if a look finds it grown.
    pub fn by_schema<T>(&self, make: impl Fn(&Schema) -> Result<T>) -> Result<T> {
        let schema = self.schema();
        make(&schema).or_else(|refused| {
            if self.pinned.is_some() {
                return Err(refused);
            }
            self.snapshot()?;
            match self.schema.now() {
                now if now == schema => Err(refused),
                now => make(&now),
            }
        })
    }

    /// How something is set for the whole store, as far as this handle has looked.
    pub fn setting(&self, name: &str) -> Option<String> {
        drop(self.schema());
        self.schema.read(|grown| grown.settings.get(name).cloned())
    }

    /// Sets something for the whole store, durably. Denied for others than the store's owner.
    pub fn set(&self, setting: &Setting, session: &Session) -> Result<()> {
        self.check_writable()?;
        let (horizon, snapshot) = self.horizon()?;
        self.check_store_owner(&snapshot, "set", session)?;
        let records = vec![setting::encode(setting)];
        self.commit_deciding(schema_extension::mark(), records, horizon, session)?;
        self.snapshot().map(drop)
    }

    /// Denied for others than the owner of the folder of logs.
    pub(super) fn check_store_owner(&self, snapshot: &Snapshot, what: &str, session: &Session) -> Result<()> {
        let user = session.user(&*self.env.identity);
        let Some(owner) = snapshot.folder_owner.filter(|owner| *owner != user) else { return Ok(()) };
        let name = self.env.identity.user_name(owner);
        Err(Code::StoreOwned
            .error(format!("the store at {} is {name}'s to {what}", self.options.url))
            .with_hint(format!("ask {name}, the owner of its folder logs")))
    }

    /// Adds rules, behind those that are there, and optional keywords to the schema, durably. Invalid where they
    /// would make no key or change a meaning, Denied for others than the store's owner, Conflict where another
    /// writer has meanwhile added something that they do not go with.
    pub fn extend_schema(&self, text: &str, session: &Session) -> Result<Schema> {
        self.check_writable()?;
        let (horizon, snapshot) = self.horizon()?;
        self.check_store_owner(&snapshot, "extend", session)?;
        grown(&self.schema.now(), text)?;
        let records = vec![schema_extension::encode(text)];
        let flushed = self.commit_deciding(schema_extension::mark(), records, horizon, session)?;
        let snapshot = self.snapshot()?;
        let now = self.schema.now();
        // Others may have been faster, by their stamps; what they said is then the same, or it came first.
        let own = (flushed.record.stamp, flushed.writer);
        let older = |e: &&Arc<SchemaExtension>| (e.stamp, e.writer) < own;
        let before: Vec<_> = snapshot.extensions.iter().filter(older).cloned().collect();
        match grown(&folded(self.schema.base(), &before), text) {
            Err(_) if before.iter().any(|e| e.text == text) => Ok(now),
            Err(refused) => Err(Code::SchemaRaced
                .error(format!("another writer extended the schema at the same time: {}", refused.message()))
                .with_hint("look at the schema, and add what it still lacks")),
            Ok(_) => Ok(now),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::fork::tests::Numbered;

    #[test]
    fn a_process_that_is_forked_while_a_thread_follows_has_a_schema_of_its_own() {
        let machine = Arc::new(Numbered(AtomicU32::new(1)));
        let base = Schema::builtin("simulation").unwrap();
        let state = SchemaState::new(machine.clone(), base.clone());
        let following = state.grown().write();
        machine.0.store(2, Ordering::SeqCst);
        assert!(state.now() == base && !state.is_followed());
        machine.0.store(1, Ordering::SeqCst);
        drop(following);
        assert!(state.now() == base);
    }
}
