//! One log as a reader sees it: its last commit and the runs that this commit names.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Stat;
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
    /// Bytes of the file when it was looked at; beyond the last commit there may be zeros or a torn tail.
    pub file_len: u64,
    /// When that change time was seen first, by the monotonic clock.
    pub changed: u64,
    /// When all behind the last commit was looked at last.
    pub searched: u64,
    /// Identity of the file.
    pub inode: u64,
}

/// A file that changed less than this long ago, nanoseconds, may change again without a new time.
const FRESH: u64 = 2_000_000_000;

impl LogView {
    /// Whether the file is certainly what it was when all of it was looked at. Its length alone says nothing:
    /// a writer may have zeros there, which it overwrites.
    pub fn is_same(&self, stat: &Stat, whole: bool) -> bool {
        let settled = stat.mtime == self.mtime && self.searched >= self.changed.saturating_add(FRESH);
        (stat.inode, stat.len, stat.uid) == (self.inode, self.file_len, self.uid)
            && (!whole || stat.len == self.ends.end() || settled)
    }

    /// The log with one commit more, of this process's own writer.
    pub fn followed_by(&self, record: &CommitRecord, ends: Ends, runs: Vec<Arc<Run>>) -> LogView {
        let mut decisions = self.decisions.clone();
        if let Some(decision) = &record.decision {
            decisions.push(Arc::new(Decided { decision: decision.clone(), stamp: record.stamp }));
        }
        LogView {
            record: record.clone(),
            ends,
            runs,
            decisions,
            // As far ahead of this process's clock as before.
            mtime: self.mtime.saturating_add(record.time.saturating_sub(self.record.time)),
            file_len: self.file_len.max(ends.end()),
            searched: 0,
            ..self.clone()
        }
    }

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
