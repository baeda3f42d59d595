//! Erasures: what is to become unreadable, and what came of it.

use std::fmt;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_format::log::SideRecord;
use fieldstone_journal::Session;

pub use fieldstone_journal::compact::{ErasedSide, SideCommit};

use super::LeftLog;

/// The content that an erasure takes: one of the requests selects it, and nothing shows it any more.
#[derive(Debug, Clone, Default)]
pub struct Erasing {
    /// Requests that list values.
    pub requests: Vec<Request>,
    /// Whether anything goes; else the report says what would.
    pub doit: bool,
    /// The URL of the catalog's engine, if it is not the usual one.
    pub engine: Option<String>,
    /// On whose behalf.
    pub session: Session,
}

/// Decides what goes of the side records of a commit.
pub type EraseSide<'a> = dyn FnMut(&SideCommit, &[SideRecord]) -> Result<Option<ErasedSide>> + 'a;

/// The result of an erasure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasureReport {
    /// Fields of which hidden versions go.
    pub fields: u64,
    /// Hidden versions, pieces and removals that go.
    pub versions: u64,
    /// Values of attributes that go.
    pub attributes: u64,
    /// Fields and attributes that are selected and stay, because they are visible.
    pub visible: u64,
    /// Bytes that are given back.
    pub nbytes: u64,
    /// Files that are replaced or removed.
    pub files: u64,
    /// Files and other places that may still hold it, each with the reason.
    pub left: Vec<LeftLog>,
    /// Whether it was done.
    pub done: bool,
}

impl fmt::Display for ErasureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErasureReport { fields, versions, attributes, files, .. } = self;
        write!(
            f,
            "hidden versions: {versions}, of {fields} fields; attributes: {attributes}; files: {files}"
        )?;
        self.left.iter().try_for_each(|left| write!(f, "; left: {left}"))
    }
}
