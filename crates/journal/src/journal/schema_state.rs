//! The schema of a handle as it has grown, and what else is set for the whole store.
//!
//! A store's schema is the one in its marker, extended by side records in logs of the store's owner, in the order of
//! their stamps. All readers skip an extension that contradicts an earlier one. Of two writers who add incompatible
//! extensions at once, the older stamp wins, and the other writer learns of it.
//!
//! Invariants:
//! * a handle knows all that the last snapshot it looked at holds; it never goes back to less;
//! * no I/O happens under the lock, and a process that is forked while a thread holds it has one of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::env::Identity;
use fieldstone_core::schema::Schema;
use fieldstone_core::sync::RwLock;
use fieldstone_core::{Code, Result};

use crate::fork::PerProcess;
use crate::snapshot::{SchemaExtension, Snapshot};

/// Longest schema: every log's header repeats it.
pub const SCHEMA_MAX: usize = 1 << 20;

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
    /// The extensions that were added, or skipped; `None` before the first look.
    known: Option<Arc<[Arc<SchemaExtension>]>>,
    /// Settings of the store.
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

    /// How something is set for the whole store, as it is known now.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.read(|grown| grown.settings.get(name).cloned())
    }

    fn read<T>(&self, what: impl FnOnce(&Grown) -> T) -> T {
        what(&self.grown().read())
    }

    /// Whether a snapshot was followed.
    pub fn is_followed(&self) -> bool {
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
pub fn folded(base: &Schema, added: &[Arc<SchemaExtension>]) -> Schema {
    added.iter().fold(base.clone(), |schema, extension| match grown(&schema, &extension.text) {
        Ok(grown) => grown,
        Err(error) => {
            tracing::warn!(writer = %extension.writer, %error, "an extension of the schema does not hold");
            schema
        }
    })
}

/// A schema with a text added to it; refused where the text does not go with it.
pub fn grown(schema: &Schema, text: &str) -> Result<Schema> {
    let grown = schema.extend(text)?;
    if grown.text().len() > SCHEMA_MAX {
        return Err(Code::TooLarge
            .error(format!("the extended schema is longer than {SCHEMA_MAX} bytes"))
            .with_hint("keep it to rules and types"));
    }
    Ok(grown)
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
