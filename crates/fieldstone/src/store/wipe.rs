//! Calls about whole datasets: a wipe makes them vanish at once, whatever they hold; a lock forbids calls there until it ends; an
//! erasure makes hidden content unreadable.
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
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, Code, LockKind, OpenOptions, Request, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let key = [("run", "a"), ("variable", "t"), ("step", "0")];
//! store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! let request = Request::parse("run=a")?;
//! assert_eq!(store.lock(&request, LockKind::Archive)?, 1);
//! let refused = store.archive(&key, Value::Bytes(b"y"), &ArchiveOptions::default());
//! assert_eq!(refused.unwrap_err().code(), Code::DatasetLocked);
//! assert_eq!(store.locks()?[0].dataset, "run=a");
//! assert_eq!(store.unlock(&request, LockKind::Archive)?, 1);
//! store.archive(&key, Value::Bytes(b"y"), &ArchiveOptions::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::SystemTime;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::{DatasetLock, Erasing, ErasureReport, LockKind, Locking, WipeReport, Wiping};

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

    /// Forbids calls of one kind in the datasets that a request selects, durably and for everybody, until
    /// [`unlock`](Self::unlock). Returns how many datasets there are.
    ///
    /// `Archive` refuses archives, pieces of fields and removals, at the call; a handle that has not seen the lock yet
    /// refuses them at the flush. `List` refuses lists and axes, `Retrieve` reads of fields; a retrieve that is not strict
    /// passes the datasets. `Wipe` refuses wipes and purges.
    ///
    /// Errors: `Invalid` for a keyword below the first level of keys; `NotFound` where no dataset is selected; `Denied` for
    /// datasets of other users, unless you own the folder of logs or are root, for a handle that only reads, and in a store
    /// of format 1.
    pub fn lock(&self, request: &Request, what: LockKind) -> Result<u64> {
        self.backend().set_lock(request, &Locking { what, locks: true, session: Session::default() })
    }

    /// Ends locks of one kind on the datasets that a request selects. Returns how many were locked. Errors as those of
    /// [`lock`](Self::lock), but for `NotFound`.
    pub fn unlock(&self, request: &Request, what: LockKind) -> Result<u64> {
        self.backend().set_lock(request, &Locking { what, locks: false, session: Session::default() })
    }

    /// The locks in force, by dataset.
    pub fn locks(&self) -> Result<Vec<DatasetLock>> {
        self.backend().locks()
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
