//! Flushed records, applied beside the caller: a flush waits for no engine.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_journal::follow::Followed;

use super::connection::{Connection, Patience};
use super::engine_reader::{EngineReader, ROUNDS};
use crate::engine::is_busy;

/// Begins the message of what went wrong on the thread that applies.
const APPLYING: &str = "while an earlier flush was applied to the catalog's engine";

impl EngineReader {
    /// Applies what was flushed on a thread of its own, unless one is at it.
    pub fn apply_beside(self: &Arc<EngineReader>) {
        let reader = self.clone();
        // Where no thread can be started, whoever reads next applies it.
        let _ = self.applying.start("catalog-apply", move || reader.apply_flushed());
    }

    /// Applies the flushed records if the engine is free; else the next reader does. An error is kept for
    /// the next read: nobody else is there to hear of it.
    pub fn apply_flushed(&self) {
        let rows = self.pending.unapplied();
        match self.catch_up() {
            Ok(true) => self.pending.applied(rows),
            Ok(false) => {}
            Err(error) => *self.apply_error.lock() = Some(error.context(APPLYING)),
        }
    }

    /// Applies what is in the logs if nobody else does so at this moment; waits for nobody.
    pub fn catch_up(&self) -> Result<bool> {
        let (mut feed, mut newest) = (self.store.journal.looks().feed()?, false);
        for _ in 0..ROUNDS {
            let place = self.connections.location_for(&feed.heads())?;
            let work = &mut |engine: &mut Connection| {
                self.follower.follow(engine.index()?, &feed, newest, Patience::None)
            };
            match self.connections.with(&place, Patience::None, work) {
                Err(e) if is_busy(&e) => return Ok(false),
                Ok(Followed::Behind) => (feed, newest) = self.store.newer(&feed)?,
                outcome => return outcome.map(|followed| followed == Followed::Done),
            }
        }
        Ok(false)
    }

    /// Waits until nothing is applied beside the caller.
    pub fn join_applying(&self) {
        self.applying.join();
    }

    /// Returns what went wrong beside the caller since the last read, once: the next read follows the logs again.
    pub fn raise_apply_error(&self) -> Result<()> {
        self.apply_error.lock().take().map_or(Ok(()), Err)
    }

    /// Forgets an earlier error.
    pub fn forget_apply_error(&self) {
        drop(self.apply_error.lock().take());
    }
}
