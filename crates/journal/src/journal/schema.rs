//! The schema in force: what is made by it, and how its owner adds to it (J-31).
//!
//! Invariants:
//! * the commit that extends the schema is durable before the handle makes a key by it;
//! * of two writers who add at once what cannot be both, the older stamp holds, and the other one learns of it.

use std::sync::Arc;

use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, Result};
use fieldstone_format::schema_extension;

use super::commit::Committer;
use super::schema_state::{folded, grown};
use crate::session::Session;
use crate::snapshot::SchemaExtension;

/// The schema in force, as one process knows it.
#[derive(Debug, Clone, Copy)]
pub struct SchemaInForce<'a> {
    pub(super) committer: Committer<'a>,
}

impl SchemaInForce<'_> {
    /// The schema, as far as this handle has looked; the first call looks.
    pub fn now(&self) -> Schema {
        let looks = self.committer.looks();
        looks.follow_first();
        looks.schema.now()
    }

    /// Makes something by the schema. If the schema refuses, another process may have added the missing part: this
    /// looks again, and asks a schema that has grown once more.
    pub fn make<T>(&self, make: impl Fn(&Schema) -> Result<T>) -> Result<T> {
        let (schema, looks) = (self.now(), self.committer.looks());
        make(&schema).or_else(|refused| {
            if looks.pinned.is_some() {
                return Err(refused);
            }
            looks.snapshot()?;
            match looks.schema.now() {
                now if now == schema => Err(refused),
                now => make(&now),
            }
        })
    }

    /// Adds rules, behind those that are there, and optional keywords to the schema, durably. Invalid where they
    /// would make no key or change a meaning, Denied for others than the store's owner, Conflict where another
    /// writer has meanwhile added something that they do not go with.
    pub fn extend(&self, text: &str, session: &Session) -> Result<Schema> {
        let looks = self.committer.looks();
        looks.access.check_writable()?;
        let (horizon, snapshot) = looks.horizon()?;
        looks.access.check_store_owner(&snapshot, "extend", session)?;
        grown(&looks.schema.now(), text)?;
        let records = vec![schema_extension::encode(text)];
        let flushed = self.committer.decide(schema_extension::flag(), records, horizon, session)?;
        let snapshot = looks.snapshot()?;
        let now = looks.schema.now();
        // Others may have been faster, by their stamps; their extension is then the same, or it came first.
        let own = (flushed.record.stamp, flushed.writer);
        let older = |e: &&Arc<SchemaExtension>| (e.stamp, e.writer) < own;
        let before: Vec<_> = snapshot.extensions.iter().filter(older).cloned().collect();
        match grown(&folded(looks.schema.base(), &before), text) {
            Err(_) if before.iter().any(|e| e.text == text) => Ok(now),
            Err(refused) => Err(Code::SchemaRaced
                .error(format!("another writer extended the schema at the same time: {}", refused.message()))
                .with_hint("look at the schema, and add what it still lacks")),
            Ok(_) => Ok(now),
        }
    }
}
