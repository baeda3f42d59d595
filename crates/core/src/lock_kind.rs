//! Kinds of locks on datasets.
//!
//! ```
//! use fieldstone_core::lock_kind::LockKind;
//!
//! assert_eq!(LockKind::parse("archive")?, LockKind::Archive);
//! assert_eq!(LockKind::Wipe.to_string(), "wipe");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use std::fmt;

use crate::{Code, Result};

/// The calls that a lock forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// Archives, pieces of fields, and removals.
    Archive,
    /// Lists and axes.
    List,
    /// Reads of fields.
    Retrieve,
    /// Wipes and purges.
    Wipe,
}

impl LockKind {
    /// All of them.
    pub const ALL: [LockKind; 4] = [LockKind::Archive, LockKind::List, LockKind::Retrieve, LockKind::Wipe];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Archive => "archive",
            LockKind::List => "list",
            LockKind::Retrieve => "retrieve",
            LockKind::Wipe => "wipe",
        }
    }

    /// The kind with a name. Invalid where there is none.
    pub fn parse(name: &str) -> Result<LockKind> {
        LockKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            Code::Option
                .error(format!("{name:?} is not a kind of lock"))
                .with_hint("use \"archive\", \"list\", \"retrieve\" or \"wipe\"")
        })
    }

    /// Its bit in the record of a lock.
    pub fn bit(self) -> u8 {
        match self {
            LockKind::Archive => 1,
            LockKind::List => 2,
            LockKind::Retrieve => 4,
            LockKind::Wipe => 8,
        }
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
