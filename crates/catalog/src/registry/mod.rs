//! The declarations that a session sees: its process's own declarations at once, answers of the engine from a
//! cache for a while, otherwise the engine's present answer.
//!
//! | module | holds |
//! |---|---|
//! | `runs`, `variables` | lookup by name, and the errors for names that do not exist |
//! | `ownership` | the owner of a run, and the rights of others |
//! | `declaration_cache` | recent declarations and answers, so that an attribute needs no engine |
//! | `run_answers` | found runs, while nothing can have changed the answer |
//! | `shown` | names as errors show them |
//!
//! Invariants:
//! * declarations that a session lost to a failure are forgotten before the next question about the session;
//! * while it holds a lock, this module calls the store only to hand records over, which calls nothing else.

mod declaration_cache;
mod ownership;
mod run_answers;
mod runs;
mod shown;
mod variables;

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_format::catalog::AttributeBatch;
use fieldstone_journal::Session;
use fieldstone_journal::session::SessionKey;

use crate::engine::{Index, Tables};
use crate::query::TagInfo;
use crate::reader::consistent_read::ConsistentRead;
use crate::reader::{EngineReader, OpenStore, Visibility};
use declaration_cache::DeclarationCache;
pub use declaration_cache::Lookup;
use run_answers::RunAnswers;
pub use runs::{run_row, several_projects};
pub use shown::{run_text, variable_text};

/// The declarations that one process knows.
#[derive(Debug)]
pub struct Registry {
    pub store: Arc<OpenStore>,
    pub reader: Arc<EngineReader>,
    declarations: Mutex<DeclarationCache>,
    /// Held during a declaration, so that two threads do not declare the same.
    declaring: Mutex<()>,
    run_answers: RunAnswers,
    /// The number of losses of each session at the last check.
    losses_seen: Mutex<HashMap<SessionKey, u64>>,
}

impl Registry {
    pub fn new(store: Arc<OpenStore>) -> Registry {
        Registry {
            reader: Arc::new(EngineReader::new(store.clone())),
            declarations: Mutex::new(DeclarationCache::new(store.env.clock.clone())),
            store,
            declaring: Mutex::default(),
            run_answers: RunAnswers::default(),
            losses_seen: Mutex::default(),
        }
    }

    /// The known declarations, without those that were lost.
    pub fn declarations(&self) -> MutexGuard<'_, DeclarationCache> {
        self.forget_lost();
        self.declarations.lock()
    }

    /// Forgets the entries of sessions that have lost records since the last check.
    fn forget_lost(&self) {
        let losses = self.store.journal.unflushed().all_losses();
        let mut seen = self.losses_seen.lock();
        for (session, losses) in losses {
            if seen.insert(session, losses) != Some(losses) {
                self.declarations.lock().discarded(session);
                self.reader.pending.forget(session);
            }
        }
    }

    /// Keeps other threads from declaring until it is dropped.
    pub fn declaring(&self) -> MutexGuard<'_, ()> {
        self.declaring.lock()
    }

    /// The declarations against which a new one is checked: those that everybody sees and, if that is not
    /// enough, those of the session.
    pub fn visibility<'a>(&self, session: &'a Session) -> Visibility<'a> {
        let uncertain = self.declarations().deleted(session.key()) || session.transaction().is_some();
        if uncertain { Visibility::All(session) } else { Visibility::Synced }
    }

    /// Asks the engine in its present state, which needs no wait; if it does not know, asks again after it
    /// has followed the logs, with a single look at them.
    fn search<T>(
        &self,
        session: &Session,
        mut find: impl FnMut(&mut Index) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let visibility = self.visibility(session);
        self.search_from(self.reader.consistent_read(visibility)?, visibility, &mut find)
    }

    fn search_from<T>(
        &self,
        moment: ConsistentRead,
        visibility: Visibility<'_>,
        find: &mut dyn FnMut(&mut Index) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if matches!(visibility, Visibility::Synced)
            && let Some(found) = self.reader.look_from(moment.clone(), Visibility::AsIs, find)?
        {
            return Ok(Some(found));
        }
        self.reader.look_from(moment, visibility, find)
    }

    /// Every tag of a name.
    pub fn tags_of(&self, session: &Session, name: &str) -> Result<Vec<TagInfo>> {
        if let Some(tags) = self.declarations().tags(session.key(), name) {
            return Ok(tags);
        }
        let found = self.reader.look(self.visibility(session), &mut |tables| {
            let all = tables.tags()?.into_iter().filter(|row| row.decl.name == name);
            Ok(all.map(|row| TagInfo { decl: row.decl, version: row.version }).collect::<Vec<TagInfo>>())
        })?;
        let mut tags = found;
        let mut known = self.declarations();
        for tag in &tags {
            known.cache_tag(session.key(), tag.clone(), false);
        }
        known.note_asked(session.key(), name);
        for own in known.own_tags(session.key(), name) {
            if tags.iter().all(|tag| tag.decl != own.decl) {
                let version = free_version(&tags, own.decl.version);
                tags.push(TagInfo { version, ..own });
            }
        }
        Ok(tags)
    }

    /// Records the tag of a batch, which declares it.
    pub fn note_tag(&self, session: &Session, batch: &AttributeBatch) -> Result<()> {
        if self.declarations().has_tag(session.key(), &batch.tag) {
            return Ok(());
        }
        let known = self.tags_of(session, &batch.tag.name)?;
        if known.iter().any(|tag| tag.decl == batch.tag) {
            return Ok(());
        }
        let version = free_version(&known, batch.tag.version);
        self.declarations().cache_tag(session.key(), TagInfo { decl: batch.tag.clone(), version }, true);
        Ok(())
    }
}

/// The version that is shown for a tag that asks for `version` after these tags.
pub fn free_version(tags: &[TagInfo], version: i64) -> i64 {
    let mut free = version;
    while tags.iter().any(|tag| tag.version == free) {
        free = free.saturating_add(1);
    }
    free
}
