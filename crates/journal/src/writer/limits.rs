//! How long one log may become (R33): logs end often, because only ended ones are taken over.
//!
//! ```
//! use fieldstone_journal::writer::LogLimits;
//!
//! let limits = LogLimits { commits: 10, ..LogLimits::default() };
//! assert!(limits.are_reached(10, 0, 0) && !limits.are_reached(9, 0, 0));
//! assert!(!limits.are_exceeded(19, 0, 0) && limits.are_exceeded(20, 0, 0));
//! ```

/// The limits behind which a writer begins a new log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// Commits.
    pub commits: u64,
    /// Bytes of frames.
    pub bytes: u64,
    /// Nanoseconds since the first commit.
    pub age: u64,
}

impl Default for LogLimits {
    fn default() -> Self {
        LogLimits { commits: 10_000, bytes: 1 << 30, age: 86_400_000_000_000 }
    }
}

impl LogLimits {
    /// Whether a log should be the last one no longer: once nothing that waits names bytes of it.
    pub fn are_reached(&self, commits: u64, bytes: u64, age: u64) -> bool {
        commits >= self.commits || bytes >= self.bytes || age >= self.age
    }

    /// Whether it must be left, also where what waits has to be copied for that.
    pub fn are_exceeded(&self, commits: u64, bytes: u64, age: u64) -> bool {
        self.are_reached(commits / 2, bytes / 2, age / 2)
    }
}
