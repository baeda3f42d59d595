//! Unflushed work: partitions that threads write while a run goes on, and arrays in the store's logs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;

use fieldstone_array::distributed::partition::history::HistoryWriter;
use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::Team;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::HistoryDecl;
use fieldstone_store::api::IfExists;

/// A file that a thread writes, and its declaration for the catalog once it is complete.
#[derive(Debug)]
pub struct PendingHistory {
    pub writer: Arc<HistoryWriter>,
    pub thread: JoinHandle<Result<u64>>,
    pub decl: HistoryDecl,
}

/// Partitions that threads are writing, until the next flush.
#[derive(Debug, Default)]
pub struct PendingHistories(Mutex<Vec<PendingHistory>>);

impl PendingHistories {
    pub fn push(&self, history: PendingHistory) {
        self.0.lock().push(history);
    }

    /// Whether a thread writes to this path, relative to the store's folder.
    pub fn has(&self, path: &str) -> bool {
        self.0.lock().iter().any(|pending| pending.decl.path == path)
    }

    /// Collective: waits for the files that threads write, and gives them their names. Returns their declarations for
    /// the catalog; a failed file is dropped: a partition can be made again.
    pub fn finish(&self, team: &Team, disk: &dyn Disk) -> Vec<HistoryDecl> {
        let pending = std::mem::take(&mut *self.0.lock());
        let mut whole = Vec::new();
        for PendingHistory { writer, thread, decl } in pending {
            let written =
                thread.join().unwrap_or_else(|_| Err(Error::internal("the writer of a history panicked")));
            match writer.finish(team, disk, written) {
                Ok(()) => whole.push(decl),
                Err(error) => tracing::warn!(path = decl.path, %error, "cannot keep a partition"),
            }
        }
        whole
    }
}

/// Writes to the store's logs since the last flush.
#[derive(Debug, Default)]
pub struct LoggedWrites {
    /// The job's own transaction, if it has begun one.
    pub transaction: Option<Id>,
    /// Group, set and step.
    pub written: BTreeSet<(usize, usize, i64)>,
    /// On rank 0: how a write treats an existing step, once it was looked up.
    pub if_exists: Option<Option<IfExists>>,
    /// The error that lost some of the writes.
    pub lost: Option<Error>,
}

impl LoggedWrites {
    /// Whether there are neither writes nor a loss; the same on all ranks.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.lost.is_none()
    }
}
