//! How a journal is opened.

use std::sync::Arc;

use fieldstone_core::env::Disk;
use fieldstone_core::schema::Schema;
use fieldstone_format::attempt::Origin;

use crate::writer::LogLimits;

/// How a [`Journal`](super::Journal) is opened.
#[derive(Debug, Clone, Default)]
pub struct JournalOptions {
    /// The URL as the user gave it, for messages.
    pub url: String,
    /// Whether writing is allowed.
    pub writable: bool,
    /// Whether an absent store is NotFound.
    pub must_exist: bool,
    /// Whether an existing store is a Conflict.
    pub must_be_new: bool,
    /// Schema; the store's own where absent, `simulation` for a new store.
    pub schema: Option<Schema>,
    /// Version to read.
    pub at: Option<String>,
    /// The file system of files outside the store, where it is not the store's own.
    pub outside: Option<Arc<dyn Disk>>,
    /// Whether the store's file system is this machine's.
    pub native: bool,
    /// The job that the handle writes for.
    pub origin: Origin,
    /// The version of the format of a store that is new; the newest where absent.
    pub format: Option<u32>,
    /// When a log is long enough.
    pub limits: LogLimits,
    /// Whether the store is a backup, as opening it finds.
    pub is_backup: bool,
    /// Whether a close now and then takes over ended logs (R32).
    pub closing_merges: bool,
}
