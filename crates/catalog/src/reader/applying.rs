//! Applies flushed records in the background: a flush waits for no engine.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_journal::follow::Followed;

use super::connection::{Connection, Patience};
use super::engine_reader::{EngineReader, ROUNDS};
use crate::engine::is_busy;

/// Begins the message of an error on the applying thread.
const APPLYING: &str = "while an earlier flush was applied to the catalog's engine";

impl EngineReader {
    /// Applies flushed records on a thread of its own, unless one is already running.
    pub fn apply_beside(self: &Arc<EngineReader>) {
        let reader = self.clone();
        // If no thread can be started, the next reader applies the records.
        let _ = self.applying.start("catalog-apply", move || reader.apply_flushed());
    }

    /// Applies the flushed records if the engine is free; otherwise the next reader does. An error is kept
    /// for the next read, because this thread has no caller.
    pub fn apply_flushed(&self) {
        let rows = self.pending.unapplied();
        match self.catch_up() {
            Ok(true) => self.pending.applied(rows),
            Ok(false) => {}
            Err(error) => *self.apply_error.lock() = Some(error.context(APPLYING)),
        }
    }

    /// Applies the content of the logs unless another process is doing so at this moment; never waits.
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

    /// Waits until nothing is applied in the background.
    pub fn join_applying(&self) {
        self.applying.join();
    }

    /// Returns the error of the background thread since the last read, once: the next read follows the logs
    /// again.
    pub fn raise_apply_error(&self) -> Result<()> {
        self.apply_error.lock().take().map_or(Ok(()), Err)
    }

    /// Forgets an earlier error.
    pub fn forget_apply_error(&self) {
        drop(self.apply_error.lock().take());
    }
}
