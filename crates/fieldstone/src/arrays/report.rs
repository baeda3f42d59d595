//! Counters and times of a rank of a job.

use std::collections::BTreeMap;

use fieldstone_array::distributed::plan::MoveReport;

/// Phases of a job's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Ranks declare groups, choose files and look places up.
    Plan,
    /// Ranks exchange elements and write them to the file.
    Write,
    /// Ranks make their writes durable.
    Sync,
    /// The store commits, then files show the commit.
    Commit,
    /// Ranks read elements from the file.
    Read,
}

impl Phase {
    /// Name of the phase.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Plan => "plan",
            Phase::Write => "write",
            Phase::Sync => "sync",
            Phase::Commit => "commit",
            Phase::Read => "read",
        }
    }
}

/// Report of this rank, since the job began.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobReport {
    /// Bytes of elements and indices that it sent to others.
    pub exchanged: u64,
    /// Bytes that it wrote to files.
    pub written: u64,
    /// Bytes that it read from files.
    pub read: u64,
    /// Files that were made or opened.
    pub opened: u64,
    /// Exchanges that were planned.
    pub plans: u64,
    /// Openings of the catalog's engine.
    pub connections: u64,
    /// Seconds by phase.
    pub seconds: BTreeMap<Phase, f64>,
}

impl JobReport {
    pub(super) fn note(&mut self, moved: &MoveReport) {
        self.exchanged += moved.exchanged;
        self.written += moved.written;
        self.read += moved.read;
        self.plans += u64::from(moved.planned);
    }
}
