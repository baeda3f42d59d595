//! Purges: versions that nothing shows any more go, and the disk gets their room back.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, PurgeOptions, Value};
//! use std::time::Duration;
//!
//! let folder = tempfile::tempdir()?;
//! let url = folder.path().join("s").display().to_string();
//! let key = [("run", "a"), ("variable", "t"), ("step", "0")];
//! for value in [b"first", b"other"] {
//!     let store = fieldstone::open(&url, &OpenOptions::default())?;
//!     store.archive(&key, Value::Bytes(value), &ArchiveOptions::default())?;
//!     store.close()?;
//! }
//! let store = fieldstone::open(&url, &OpenOptions::default())?;
//! let all = PurgeOptions { all: true, grace: Duration::ZERO, ..PurgeOptions::default() };
//! assert_eq!(store.purge(&all)?.versions, 1); // would go
//! assert_eq!(store.purge(&PurgeOptions { doit: true, ..all })?.versions, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::time::Duration;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::{PurgeProgress, PurgeReport, Purging};

use super::Store;

/// Called with the progress of a purge; an error ends it, and what was dropped so far is gone.
pub type OnPurge<'a> = dyn Fn(PurgeProgress) -> Result<()> + 'a;

/// Options of [`Store::purge`].
#[derive(Clone)]
pub struct PurgeOptions<'a> {
    /// Purges only fields that one of these requests selects, by keywords of datasets and indexes.
    pub requests: &'a [Request],
    /// Allows a purge of all fields, if there is no request, or an empty one.
    pub all: bool,
    /// Drops them; else the report says what would go.
    pub doit: bool,
    /// The number of bytes to copy at most; the next call goes on from there.
    pub max_bytes: Option<u64>,
    /// The number of bytes to copy in a second at most, so that others who write meanwhile wait less; as fast as it goes
    /// by default.
    pub rate: Option<u64>,
    /// The time that a version stays after another one hid it, and that files stay for readers that still use them: an
    /// hour by default. Zero only if no other process has the store open.
    pub grace: Duration,
    /// Receives progress reports.
    pub progress: Option<&'a OnPurge<'a>>,
}

impl Default for PurgeOptions<'_> {
    fn default() -> Self {
        let grace = Duration::from_nanos(Purging::default().grace);
        PurgeOptions {
            requests: &[],
            all: false,
            doit: false,
            max_bytes: None,
            rate: None,
            grace,
            progress: None,
        }
    }
}

impl fmt::Debug for PurgeOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PurgeOptions")
            .field("requests", &self.requests)
            .field("all", &self.all)
            .field("doit", &self.doit)
            .field("max_bytes", &self.max_bytes)
            .field("rate", &self.rate)
            .field("grace", &self.grace)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl Store {
    /// Drops versions of this user's fields that newer ones hide, removed and wiped fields, and what aborted transactions left, and
    /// gives their room back to the disk; with `doit: false` it only says what would go. Nothing that anybody sees
    /// changes. Older versions of the store no longer have what was dropped: a key that is absent there is then
    /// `NotFound`, with the code `version-purged`.
    ///
    /// A version goes a grace after it was hidden, once its writer's log has ended, and only if nothing older stays under
    /// its key. Array files of ended jobs that nothing names go, too, meshes that no group or variable names any more, with
    /// their kept partitions, and data of processes that ended before their first flush. Open transactions, holds, and logs that lost commits keep what they may concern. Other processes may
    /// read and write meanwhile.
    ///
    /// Errors: `Invalid` without a request unless `all` is set, for a keyword of single fields, and for a store in
    /// memory; `Denied` for another user's dataset, if the handle only reads, and in a store of format 1;
    /// `Unavailable` if other processes take over the same logs all the time.
    pub fn purge(&self, options: &PurgeOptions<'_>) -> Result<PurgeReport> {
        super::maintain::check_rate(options.rate)?;
        let what = Purging {
            requests: options.requests.to_vec(),
            all: options.all,
            doit: options.doit,
            max_bytes: options.max_bytes,
            rate: options.rate,
            grace: u64::try_from(options.grace.as_nanos()).unwrap_or(u64::MAX),
            engine: self.settings.engine.clone(),
            session: Session::default(),
        };
        let mut each = |progress| options.progress.map_or(Ok(()), |report| report(progress));
        self.backend().purge(&what, &mut each)
    }
}
