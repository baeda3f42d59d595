//! Calls by which content goes for good: a wipe makes whole datasets vanish at once, whatever they hold; an erasure makes hidden
//! content unreadable.
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
use fieldstone_store::api::{Erasing, ErasureReport, WipeReport, Wiping};

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

/// Options of [`Store::erase`].
#[derive(Debug, Clone, Copy, Default)]
pub struct EraseOptions {
    /// Does it; otherwise the report says what would go.
    pub doit: bool,
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

    /// Makes unreadable, in every file of the store, what requests select and nothing shows any more: removed, wiped and
    /// replaced fields, deleted and replaced attributes. Their bytes go from logs, data logs, indexes and the catalog's engine
    /// at once, also where most of a file stays. Visible content stays: remove or delete it first, and flush that.
    ///
    /// The report names what may still hold it (`left`): logs that other processes write, transactions that can be switched off,
    /// logs and caches of other users. Call it again once these are gone. Older versions of the store no longer have what was
    /// erased. Copies and backups outside of the store stay as they are. This process's own log ends with the call.
    ///
    /// Errors: `Invalid` for requests that name nothing or do not list values, and for a store in memory; `Denied` for another
    /// user's dataset, if the handle only reads, and in a store of format 1; `Unavailable` if other processes take over the
    /// same logs all the time.
    ///
    /// ```
    /// # use fieldstone::prelude::*;
    /// # use fieldstone::{ArchiveOptions, EraseOptions, OpenOptions, RemoveOptions, Request, Value};
    /// # let folder = tempfile::tempdir()?;
    /// # let store = fieldstone::open(&folder.path().join("s").display().to_string(), &OpenOptions::default())?;
    /// let key = [("run", "a"), ("variable", "t"), ("step", "0")];
    /// store.archive(&key, Value::Bytes(b"not for this store"), &ArchiveOptions::default())?;
    /// store.flush(None)?;
    /// let request = Request::parse("run=a,variable=t,step=0")?;
    /// store.remove(&request, &RemoveOptions::default())?;
    /// store.flush(None)?;
    /// let report = store.erase(&[request], &EraseOptions { doit: true })?;
    /// assert_eq!((report.fields, report.left.len()), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn erase(&self, requests: &[Request], options: &EraseOptions) -> Result<ErasureReport> {
        let what = Erasing {
            requests: requests.to_vec(),
            doit: options.doit,
            engine: self.settings.engine.clone(),
            session: Session::default(),
        };
        self.backend().clone().erase(&what)
    }
}

/// Nanoseconds since 1970.
fn nanoseconds(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |n| -n),
    }
}
