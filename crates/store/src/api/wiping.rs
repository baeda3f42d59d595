//! Wipes: what is to be hidden for good, and what that is.

use std::fmt;

use fieldstone_journal::Session;

/// How a wipe is made.
#[derive(Debug, Clone, Default)]
pub struct Wiping {
    /// Only what was archived before this time, nanoseconds since 1970.
    pub older_than: Option<i64>,
    /// Whether it is made; otherwise it is only reported.
    pub doit: bool,
    /// Whether a request that names nothing means everything.
    pub all: bool,
    /// On whose behalf.
    pub session: Session,
}

/// The fields that a wipe hides, or would hide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WipeReport {
    /// Fields.
    pub fields: u64,
    /// Their raw bytes.
    pub nbytes: u64,
    /// Files in the store's folder that are not the store's, relative to it: a wipe leaves them.
    pub foreign: Vec<String>,
    /// Whether it was made.
    pub done: bool,
}

impl fmt::Display for WipeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.done { "wiped" } else { "to be wiped" };
        let plural = if self.fields == 1 { "" } else { "s" };
        write!(f, "{what}: {} field{plural}, {} bytes", self.fields, self.nbytes)?;
        self.foreign.iter().try_for_each(|file| write!(f, "; not the store's: {file}"))
    }
}
