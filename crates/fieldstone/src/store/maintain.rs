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

use fieldstone_core::{Error, Result};
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
    /// The number of bytes to copy in a second at most, so that others who write meanwhile wait less; as fast as it goes
    /// by default.
    pub rate: Option<u64>,
    /// Only says what it would do.
    pub dry_run: bool,
    /// Receives progress reports.
    pub progress: Option<&'a OnMaintain<'a>>,
}

impl Default for MaintainOptions<'_> {
    fn default() -> Self {
        let grace = Duration::from_nanos(Maintaining::default().grace);
        MaintainOptions { grace, max_bytes: None, rate: None, dry_run: false, progress: None }
    }
}

impl fmt::Debug for MaintainOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaintainOptions")
            .field("grace", &self.grace)
            .field("max_bytes", &self.max_bytes)
            .field("rate", &self.rate)
            .field("dry_run", &self.dry_run)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// The least rate at which maintenance works: a part of a file is a few MiB, and nothing interrupts the wait behind it.
const LEAST_RATE: u64 = 1 << 20;

/// Invalid for a rate at which a part would take minutes.
pub(crate) fn check_rate(rate: Option<u64>) -> Result<()> {
    match rate {
        Some(rate) if rate < LEAST_RATE => {
            Err(Error::invalid(format!("a rate of {rate} bytes a second is less than {LEAST_RATE}"))
                .with_hint("give at least 1 MiB a second, or no rate to work as fast as it goes"))
        }
        _ => Ok(()),
    }
}

impl MaintainOptions<'_> {
    pub(super) fn to_call(&self) -> Maintaining {
        Maintaining {
            grace: u64::try_from(self.grace.as_nanos()).unwrap_or(u64::MAX),
            max_bytes: self.max_bytes,
            rate: self.rate,
            dry_run: self.dry_run,
            session: Session::default(),
        }
    }
}
