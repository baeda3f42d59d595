//! Wipes: whole datasets and indexes vanish at once, whatever they hold.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, ListOptions, OpenOptions, Request, Value, WipeOptions};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! for step in ["0", "6"] {
//!     let key = [("run", "a"), ("variable", "t"), ("step", step)];
//!     store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! }
//! store.flush(None)?;
//! let request = Request::parse("run=a")?;
//! let report = store.wipe(&request, &WipeOptions::default())?;
//! assert_eq!((report.fields, report.nbytes, report.done), (2, 2, false)); // nothing has changed yet
//! let version = store.version()?;
//! store.wipe(&request, &WipeOptions { doit: true, ..WipeOptions::default() })?;
//! assert_eq!(store.list(&request, &ListOptions::default())?.count(), 0);
//! # let _ = version;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::SystemTime;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::{WipeReport, Wiping};

use super::Store;

/// Options of [`Store::wipe`].
#[derive(Debug, Clone, Default)]
pub struct WipeOptions {
    /// Wipes only fields of which everything was archived before this time, by the clock of the writer and by the store's
    /// order of flushes.
    pub older_than: Option<SystemTime>,
    /// Does it; otherwise the report says what would go, and nothing changes.
    pub doit: bool,
    /// Lets a request that names no values mean the whole store.
    pub all: bool,
}

impl Store {
    /// Hides for good all fields that a request selects: whole datasets, or whole indexes of them. Lists, axes and
    /// statistics show them to nobody from then on; older versions of the store do. Runs, attributes and lineage stay, and
    /// so do fields that others flush meanwhile or later, fields that are not flushed yet, and those of a transaction that
    /// is not committed yet. The bytes keep their space until a purge.
    ///
    /// Errors: `Invalid` for a keyword below the second level of keys ([`remove`](crate::FieldAccess::remove) takes single
    /// fields), and for a request that names no values, unless `all` is set; `Denied` for datasets of other users, unless
    /// you own the folder of logs or are root, for a handle that only reads, and in a store of format 1.
    pub fn wipe(&self, request: &Request, options: &WipeOptions) -> Result<WipeReport> {
        let how = Wiping {
            older_than: options.older_than.map(nanoseconds),
            doit: options.doit,
            all: options.all,
            session: Session::default(),
        };
        self.backend().wipe(request, &how)
    }
}

/// Nanoseconds since 1970.
fn nanoseconds(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |n| -n),
    }
}
