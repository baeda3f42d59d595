//! The options of each call, with defaults, so that a wrapper forwards a call whole and a new option
//! breaks nobody.
//!
//! ```
//! use fieldstone_store::api::{ListOptions, RetrieveOptions};
//! let all_versions = ListOptions { masked: true, ..ListOptions::default() };
//! assert_eq!(all_versions.depth, 3);
//! assert!(RetrieveOptions::default().strict);
//! ```

use fieldstone_core::compression::Compression;
use fieldstone_format::origin::EntryOrigin;
use fieldstone_format::setting::IfExists;
use fieldstone_journal::Session;

#[cfg(doc)]
use super::FieldAccess;

/// Options of [`FieldAccess::archive`] and [`FieldAccess::create_field`].
#[derive(Debug, Clone, Default)]
pub struct ArchiveOptions {
    /// For whom it is taken, and the transaction it belongs to.
    pub session: Session,
    /// zstd level for the blocks; `None` takes the store's setting.
    pub compression: Option<Compression>,
    /// Extents of the chunks of an array; chosen by size where absent.
    pub chunks: Option<Vec<u64>>,
    /// Whether values of equal bytes that this handle flushed share their place in the store. Each stays a
    /// field of its own.
    pub share: bool,
    /// The behaviour if the key has a field; `None` takes the handle's setting, and then the store's. A piece exists
    /// if every element of its box does.
    pub if_exists: Option<IfExists>,
    /// Whether keywords are taken as they are, also where one looks like a slip: keys that another store has.
    pub verbatim: bool,
    /// Elements, one behind the other in the array's type and byte order, that stand for nothing: the least and greatest
    /// values in the index leave them out and count them as missing.
    pub missing: Vec<u8>,
    /// Checks alone, by [`FieldAccess::archive_many`]: keys, owners, locks, and what `if_exists` says; values do not matter.
    pub dry_run: bool,
    /// The commit of another store that the value was moved from: the value keeps its time, its place in the order and its
    /// attempt. Denied in a store whose format has no place for it.
    pub origin: Option<EntryOrigin>,
}

/// Options of [`FieldAccess::remove`] and [`FieldAccess::remove_fields`].
#[derive(Debug, Clone, Default)]
pub struct RemoveOptions {
    /// For whom it is taken, and the transaction it belongs to.
    pub session: Session,
}

/// Options of reading calls.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The session that reads, which also sees content prepared under its transaction.
    pub session: Session,
}

/// Options of [`FieldAccess::list`].
#[derive(Debug, Clone)]
pub struct ListOptions {
    /// 1: datasets, 2: indexes, 3: fields.
    pub depth: u8,
    /// List versions that newer ones hide, too.
    pub masked: bool,
    /// The session that reads, which also sees content prepared under its transaction.
    pub session: Session,
}

impl Default for ListOptions {
    fn default() -> Self {
        ListOptions { depth: 3, masked: false, session: Session::default() }
    }
}

/// Options of [`FieldAccess::retrieve`].
#[derive(Debug, Clone)]
pub struct RetrieveOptions {
    /// Whether a listed value or combination without a field is an error.
    pub strict: bool,
    /// The session that reads, which also sees content prepared under its transaction.
    pub session: Session,
}

impl Default for RetrieveOptions {
    fn default() -> Self {
        RetrieveOptions { strict: true, session: Session::default() }
    }
}
