//! What a store says of itself: verify, stats, status. All fields are public and most have a default:
//! whatever store answers makes them itself.

use std::collections::BTreeSet;

use fieldstone_format::Id;
use fieldstone_format::attempt::Origin;

#[cfg(doc)]
use super::Admin;

/// Something `verify` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The field, where the damage belongs to one.
    pub key: Option<String>,
    /// File, relative to the store's folder.
    pub file: String,
    /// What is wrong.
    pub why: String,
}

/// What [`Admin::verify`] looked at and found.
#[derive(Debug, Clone, Default)]
pub struct VerifyReport {
    /// Fields (versions and pieces) whose blocks were read.
    pub fields: u64,
    /// Bytes of blocks that were read and compared.
    pub bytes: u64,
    /// Files looked at.
    pub files: u64,
    /// What is damaged.
    pub damaged: Vec<Damage>,
    /// What is worth knowing but no damage: torn tails, orphaned bytes.
    pub notes: Vec<String>,
    /// Files beside the logs that fields stand in, relative to the store's folder.
    pub array_files: BTreeSet<String>,
}

impl VerifyReport {
    /// Whether nothing is damaged.
    pub fn ok(&self) -> bool {
        self.damaged.is_empty()
    }
}

/// Counts of a store or of what a request selects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Datasets.
    pub datasets: u64,
    /// Indexes (second level).
    pub indexes: u64,
    /// Visible fields.
    pub fields: u64,
    /// Raw bytes of the visible fields.
    pub bytes: u64,
    /// Stored bytes of their blocks (compressed).
    pub stored_bytes: u64,
    /// Versions and pieces that newer ones hide.
    pub masked: u64,
    /// Writers.
    pub writers: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes of all files of the store.
    pub file_bytes: u64,
    /// Files of the store.
    pub files: u64,
}

/// One writer as `status` shows it.
#[derive(Debug, Clone)]
pub struct WriterStatus {
    /// Its id, which names its log.
    pub writer: Id,
    /// Host it ran on.
    pub host: String,
    /// Process id there.
    pub process: u32,
    /// User.
    pub user: String,
    /// `open`, `closed`, or `gone` (the process ended without closing).
    pub state: &'static str,
    /// Commits.
    pub commits: u64,
    /// Segments.
    pub segments: u64,
    /// When it last flushed, nanoseconds since 1970, by its clock.
    pub last_flush: i64,
    /// How far its clock is ahead of the file system's, nanoseconds, where it is off by a minute or more.
    pub clock_off: Option<i64>,
    /// Bytes behind its last commit: being written, or torn.
    pub tail: u64,
    /// The attempt it is of, the scheduler's job and its rank there, as far as it named them.
    pub origin: Origin,
}

/// An open transaction as `status` shows it.
#[derive(Debug, Clone)]
pub struct TransactionStatus {
    /// Its id.
    pub id: Id,
    /// Who flushed into it: user, host, process.
    pub owners: Vec<String>,
    /// Fields prepared.
    pub fields: u64,
    /// Kinds of content that are visible already, as bits.
    pub kinds: u32,
    /// When it was first flushed into, nanoseconds since 1970.
    pub since: i64,
}

/// What [`Admin::status`] shows.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Where the store is.
    pub url: String,
    /// Its id; `None` before the first commit.
    pub id: Option<Id>,
    /// Name of its schema, or `custom`.
    pub schema: String,
    /// Format version.
    pub format: u32,
    /// Its current version.
    pub version: String,
    /// Writers, by id.
    pub writers: Vec<WriterStatus>,
    /// Undecided transactions.
    pub transactions: Vec<TransactionStatus>,
    /// Owner of each dataset, where users differ; else the one owner.
    pub owners: Vec<String>,
    /// What is wrong with logs or boards.
    pub problems: Vec<String>,
    /// Free bytes of the file system.
    pub free_bytes: u64,
    /// Fields archived by this handle and not yet flushed.
    pub unflushed: u64,
}
