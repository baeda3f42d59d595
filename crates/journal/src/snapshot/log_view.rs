//! One log as a reader sees it: its last commit and the runs that this commit names.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::log::{CommitRecord, Ends, LogHeader};

use super::Decided;
use super::chain::Chain;
use crate::run::Run;

/// A log up to one of its commits.
#[derive(Debug, Clone)]
pub struct LogView {
    /// Its writer.
    pub writer: Id,
    /// The user who owns the file; what counts for promise 10.
    pub uid: u32,
    /// What the log says of its writer.
    pub header: Arc<LogHeader>,
    /// Bytes of the header.
    pub header_len: u64,
    /// What is wrong with the header; it is then one that says nothing.
    pub header_damage: Option<String>,
    /// The last commit.
    pub record: CommitRecord,
    /// Where its frame lies.
    pub ends: Ends,
    /// The runs it names, oldest first.
    pub runs: Vec<Arc<Run>>,
    /// Decisions in this log up to the last commit, oldest first.
    pub decisions: Chain<Arc<Decided>>,
    /// What hides earlier decisions.
    pub decisions_damage: Option<String>,
    /// Change time of the file when it was looked at, nanoseconds since 1970, by the file system.
    pub mtime: i64,
    /// Bytes of the file when it was looked at; beyond the last commit there may be a torn tail.
    pub file_len: u64,
    /// Identity of the file.
    pub inode: u64,
}

impl LogView {
    /// Checks that a record belongs behind `before`: sequences and stamps only grow.
    pub fn check_follows(before: &CommitRecord, record: &CommitRecord) -> Result<()> {
        if record.sequence > before.sequence && record.stamp > before.stamp {
            return Ok(());
        }
        Err(fieldstone_core::Error::corrupt(format!(
            "commit {} does not follow commit {}",
            record.sequence, before.sequence
        )))
    }
}
