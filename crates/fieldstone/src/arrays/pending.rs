//! Partitions that threads write while a run goes on.

use std::sync::Arc;
use std::thread::JoinHandle;

use fieldstone_array::distributed::partition::history::HistoryWriter;
use fieldstone_core::Result;
use fieldstone_format::catalog::HistoryDecl;

/// A file that a thread writes, and what the catalog is to say of it once it is whole.
#[derive(Debug)]
pub struct PendingHistory {
    pub writer: Arc<HistoryWriter>,
    pub thread: JoinHandle<Result<u64>>,
    pub decl: HistoryDecl,
}
