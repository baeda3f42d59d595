//! Purges: what may go, and what came of it.

use std::fmt;

use fieldstone_core::request::Request;
use fieldstone_journal::Session;

pub use fieldstone_journal::journal::PurgeProgress;

use super::LeftLog;

/// The fields that a purge may drop something of, and the limits.
#[derive(Debug, Clone)]
pub struct Purging {
    /// Only fields that one of these selects, by keywords of datasets and indexes.
    pub requests: Vec<Request>,
    /// Whether it may drop from all fields, if there is no request, or an empty one.
    pub all: bool,
    /// Whether anything goes; else the report says what would.
    pub doit: bool,
    /// Most bytes that are copied.
    pub max_bytes: Option<u64>,
    /// Most bytes that are copied in a second.
    pub rate: Option<u64>,
    /// How long a version stays after it was hidden, and a file after nothing names it any more, nanoseconds.
    pub grace: u64,
    /// The URL of the catalog's engine, if it is not the usual one.
    pub engine: Option<String>,
    /// On whose behalf.
    pub session: Session,
}

impl Default for Purging {
    fn default() -> Purging {
        Purging {
            requests: Vec::new(),
            all: false,
            doit: false,
            max_bytes: None,
            rate: None,
            grace: fieldstone_journal::compact::GRACE,
            engine: None,
            session: Session::default(),
        }
    }
}

/// The result of a purge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Fields of which hidden versions go.
    pub fields: u64,
    /// Hidden versions, pieces and removals that go.
    pub versions: u64,
    /// Bytes that are given back, at once or when the grace is over.
    pub nbytes: u64,
    /// Files that go, because they are replaced or nothing names them any more.
    pub condemned: u64,
    /// Files that stay until the grace is over, those of earlier calls among them.
    pub waiting: u64,
    /// Files of logs, data and boards, before and after.
    pub files: (u64, u64),
    /// The reason why nothing goes, if there is one for the whole store.
    pub kept: Option<String>,
    /// Logs that have to stay as they are.
    pub left: Vec<LeftLog>,
    /// Whether another call could give back more, as this one was not to copy more bytes.
    pub more: bool,
}

impl fmt::Display for PurgeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PurgeReport { fields, versions, nbytes, condemned, .. } = self;
        write!(f, "hidden versions: {versions}, of {fields} fields; bytes: {nbytes}; files: {condemned}")?;
        if self.waiting > 0 {
            write!(f, "; files that wait for the grace: {}", self.waiting)?;
        }
        if self.more {
            write!(f, "; more is left for another call")?;
        }
        if let Some(why) = &self.kept {
            write!(f, "; nothing goes: {why}")?;
        }
        self.left.iter().try_for_each(|log| write!(f, "; left: {log}"))
    }
}
