//! Compaction: ended logs become a few takeovers, so that a store costs what its living writers cost.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, CompactOptions, OpenOptions, Value};
//!
//! let folder = tempfile::tempdir()?;
//! let url = folder.path().join("s").display().to_string();
//! for step in ["0", "1", "2"] {
//!     let store = fieldstone::open(&url, &OpenOptions::default())?;
//!     let key = [("run", "a"), ("variable", "t"), ("step", step)];
//!     store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//!     store.close()?;
//! }
//! let store = fieldstone::open(&url, &OpenOptions::default())?;
//! let report = store.compact(&CompactOptions::default())?;
//! assert_eq!((report.logs, report.segments), ((3, 0), (3, 1)));
//! assert_eq!(report.waiting, 3); // files that go an hour later
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::time::Duration;

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::{CompactProgress, CompactReport, Compaction};

use super::Store;

/// Called with the progress of a compaction; an error ends it, and the takeovers made so far stay.
pub type OnCompact<'a> = dyn Fn(CompactProgress) -> Result<()> + 'a;

/// Options of [`Store::compact`].
#[derive(Clone)]
pub struct CompactOptions<'a> {
    /// Takes over only logs with an entry that one of these requests selects; without any, or with an empty one, all
    /// ended logs.
    pub requests: &'a [Request],
    /// The number of bytes of logs to read at most; the next call goes on from there.
    pub max_bytes: Option<u64>,
    /// The number of bytes to copy in a second at most, so that others who write meanwhile wait less; as fast as it goes
    /// by default.
    pub rate: Option<u64>,
    /// The time that replaced files stay for readers that still use them: an hour by default. Zero only if no other
    /// process has the store open.
    pub grace: Duration,
    /// Receives progress reports.
    pub progress: Option<&'a OnCompact<'a>>,
}

impl Default for CompactOptions<'_> {
    fn default() -> Self {
        let grace = Duration::from_nanos(Compaction::default().grace);
        CompactOptions { requests: &[], max_bytes: None, rate: None, grace, progress: None }
    }
}

impl fmt::Debug for CompactOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactOptions")
            .field("requests", &self.requests)
            .field("max_bytes", &self.max_bytes)
            .field("rate", &self.rate)
            .field("grace", &self.grace)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl Store {
    /// Takes over this user's ended logs: one file, a takeover, stands in for any number of logs whose writers have
    /// closed them, and answers everything as they did, also at older versions. Removes the files that earlier
    /// takeovers replaced, once their grace is over. Other processes may read and write meanwhile. A log with damage
    /// stays as it is, and the report names it.
    ///
    /// Errors: `Denied` if the handle only reads, and in a store of format 1; `Invalid` for a store in memory;
    /// `Unavailable` if other processes compact the same logs all the time. Takeovers made before an error stay.
    pub fn compact(&self, options: &CompactOptions<'_>) -> Result<CompactReport> {
        super::maintain::check_rate(options.rate)?;
        let what = Compaction {
            requests: options.requests.to_vec(),
            max_bytes: options.max_bytes,
            rate: options.rate,
            grace: u64::try_from(options.grace.as_nanos()).unwrap_or(u64::MAX),
            session: Session::default(),
        };
        let mut each = |progress| options.progress.map_or(Ok(()), |report| report(progress));
        self.backend().compact(&what, &mut each)
    }
}
