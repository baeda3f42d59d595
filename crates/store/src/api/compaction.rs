//! Compaction: the logs that are to be taken over, and what came of it.

use std::fmt;

use fieldstone_core::request::Request;
use fieldstone_journal::Session;

pub use fieldstone_journal::compact::CompactProgress;

/// The ended logs to take over, and the limits.
#[derive(Debug, Clone)]
pub struct Compaction {
    /// Only logs with an entry that one of these selects; all logs where there are none, or
    /// where one is empty.
    pub requests: Vec<Request>,
    /// Most bytes of logs that are read.
    pub max_bytes: Option<u64>,
    /// Most bytes that are copied in a second.
    pub rate: Option<u64>,
    /// How long replaced files stay for those who read them, nanoseconds.
    pub grace: u64,
    /// On whose behalf.
    pub session: Session,
}

impl Default for Compaction {
    fn default() -> Compaction {
        Compaction {
            requests: Vec::new(),
            max_bytes: None,
            rate: None,
            grace: fieldstone_journal::compact::GRACE,
            session: Session::default(),
        }
    }
}

/// The result of a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Logs that a look goes through, before and after.
    pub logs: (u64, u64),
    /// Sources of entries that a lookup may search, before and after.
    pub segments: (u64, u64),
    /// Files of logs, data and boards, before and after.
    pub files: (u64, u64),
    /// Bytes that were rewritten.
    pub nbytes: u64,
    /// Replaced files that stay until the grace is over.
    pub waiting: u64,
    /// Logs that have ended and stay as they are.
    pub left: Vec<LeftLog>,
}

impl CompactReport {
    /// The logs that were left because of damage: somebody has to mend it, or to accept the loss.
    pub fn damaged(&self) -> impl Iterator<Item = &LeftLog> {
        self.left.iter().filter(|log| !log.accepted)
    }
}

/// A log that has ended and is not taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftLog {
    /// Its file, relative to the store's folder.
    pub file: String,
    /// The reason.
    pub why: String,
    /// Whether somebody accepted its loss: then it stays, and nobody has to act.
    pub accepted: bool,
}

impl fmt::Display for LeftLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

impl fmt::Display for CompactReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = [("logs", self.logs), ("segments", self.segments), ("files", self.files)];
        let pairs = pairs.map(|(what, (before, after))| format!("{what}: {before}, now {after}"));
        write!(f, "{}; bytes rewritten: {}", pairs.join("; "), self.nbytes)?;
        if self.waiting > 0 {
            write!(f, "; files that wait for the grace: {}", self.waiting)?;
        }
        self.left.iter().try_for_each(|log| write!(f, "; left: {log}"))
    }
}
