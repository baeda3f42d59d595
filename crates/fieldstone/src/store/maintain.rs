//! Maintenance: rules of retention are applied, and what pays is done.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, MaintainOptions, OpenOptions, Value};
//!
//! let folder = tempfile::tempdir()?;
//! let store = fieldstone::open(&folder.path().join("s").display().to_string(), &OpenOptions::default())?;
//! let key = [("run", "a"), ("variable", "t"), ("step", "0")];
//! store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! let report = store.maintain(&MaintainOptions::default())?;
//! assert!(report.steps.iter().all(|step| !step.done)); // nothing pays yet
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::time::Duration;

use fieldstone_core::Result;
use fieldstone_journal::Session;
use fieldstone_store::api::{MaintainProgress, Maintaining};

/// Called with the progress of maintenance; an error ends it, and the steps made so far stay.
pub type OnMaintain<'a> = dyn Fn(MaintainProgress) -> Result<()> + 'a;

/// Options of [`Store::maintain`](super::Store::maintain).
#[derive(Clone)]
pub struct MaintainOptions<'a> {
    /// The time that a version stays after another one hid it, and that files stay for readers that still use them: an
    /// hour by default. Zero only if no other process has the store open.
    pub grace: Duration,
    /// The number of bytes to write again at most; the next call goes on from there.
    pub max_bytes: Option<u64>,
    /// Only says what it would do.
    pub dry_run: bool,
    /// Receives progress reports.
    pub progress: Option<&'a OnMaintain<'a>>,
}

impl Default for MaintainOptions<'_> {
    fn default() -> Self {
        let grace = Duration::from_nanos(Maintaining::default().grace);
        MaintainOptions { grace, max_bytes: None, dry_run: false, progress: None }
    }
}

impl fmt::Debug for MaintainOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaintainOptions")
            .field("grace", &self.grace)
            .field("max_bytes", &self.max_bytes)
            .field("dry_run", &self.dry_run)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

impl MaintainOptions<'_> {
    pub(super) fn to_call(&self) -> Maintaining {
        Maintaining {
            grace: u64::try_from(self.grace.as_nanos()).unwrap_or(u64::MAX),
            max_bytes: self.max_bytes,
            dry_run: self.dry_run,
            session: Session::default(),
        }
    }
}
