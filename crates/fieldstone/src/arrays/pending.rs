//! What is written and not flushed: partitions that threads write while a run goes on, and arrays in the store's logs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;

use fieldstone_array::distributed::partition::history::HistoryWriter;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::HistoryDecl;
use fieldstone_store::api::Exist;

/// A file that a thread writes, and what the catalog is to say of it once it is whole.
#[derive(Debug)]
pub struct PendingHistory {
    pub writer: Arc<HistoryWriter>,
    pub thread: JoinHandle<Result<u64>>,
    pub decl: HistoryDecl,
}

/// What was written to the store's logs since the last flush.
#[derive(Debug, Default)]
pub struct LoggedWrites {
    /// The job's own transaction, where it has begun one.
    pub transaction: Option<Id>,
    /// Group, set and step.
    pub written: BTreeSet<(usize, usize, i64)>,
    /// On rank 0: what a write does where its step is there, once that was asked for.
    pub exist: Option<Option<Exist>>,
    /// What was lost of it.
    pub lost: Option<Error>,
}

impl LoggedWrites {
    /// Whether nothing was written, nor lost; the same on all ranks.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.lost.is_none()
    }
}
