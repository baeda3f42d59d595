//! Locks on datasets.

use fieldstone_core::lock_kind::LockKind;
use fieldstone_journal::Session;

/// How a lock is set, or ended.
#[derive(Debug, Clone)]
pub struct Locking {
    /// The calls that it forbids.
    pub what: LockKind,
    /// Whether it is set; otherwise it ends.
    pub locks: bool,
    /// On whose behalf.
    pub session: Session,
}

/// A lock that is in force for a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetLock {
    /// The dataset, as the request that selects it: `run=a`.
    pub dataset: String,
    /// The calls that it forbids.
    pub what: LockKind,
    /// The name of the user who set it.
    pub by: String,
    /// When, nanoseconds since 1970, by the clock of that user's host.
    pub since: i64,
}
