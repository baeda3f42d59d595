//! Holds: while one stands, nothing of the store goes, so that it can be copied file by file.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, Value, hold, holds};
//! use std::time::Duration;
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! store.archive(&[("run", "a"), ("variable", "t"), ("step", "0")], Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! let held = hold(&store, Duration::from_secs(7200), "a copy to tape")?;
//! assert_eq!(holds(&store)?[0].why, "a copy to tape");
//! held.release()?;
//! assert!(holds(&store)?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::Duration;

use fieldstone_core::Result;
use fieldstone_journal::Session;
use fieldstone_store::api::{HoldInfo, Holding};

use super::Store;

/// A hold on a store. It stands until it expires, or is [released](Self::release): not until it is dropped.
#[derive(Debug, Clone)]
pub struct Hold {
    store: Store,
    info: HoldInfo,
}

impl Hold {
    /// Its name, its reason, its end.
    pub fn info(&self) -> &HoldInfo {
        &self.info
    }

    /// Ends it before it expires. `NotFound` if it has expired.
    pub fn release(&self) -> Result<()> {
        release(&self.store, &self.info.name)
    }

    /// Lets it stand for a time from now on.
    pub fn extend(&mut self, lasts: Duration) -> Result<()> {
        let (name, why) = (self.info.name.clone(), self.info.why.clone());
        self.info = set_hold(&self.store, name, lasts, why)?;
        Ok(())
    }
}

/// Keeps a purge from dropping anything, and maintenance from removing files that it replaced, until the hold expires or is
/// released: for a user who copies the store file by file, and for long jobs that read an older version. Reports of purges name
/// the hold.
///
/// Errors: `Invalid` for a time of nothing, and for more than a year; `Denied` for a handle that only reads, and in a store of
/// format 1.
pub fn hold(store: &Store, lasts: Duration, why: &str) -> Result<Hold> {
    let info = set_hold(store, String::new(), lasts, why.to_owned())?;
    Ok(Hold { store: store.clone(), info })
}

fn set_hold(store: &Store, name: String, lasts: Duration, why: String) -> Result<HoldInfo> {
    let lasts = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
    store.backend().hold(&Holding { name, lasts, why, session: Session::default() })
}

/// Ends a hold, by its name. `NotFound` if none of this name stands; `Denied` if somebody else set it, unless you own the folder of
/// logs or are root.
pub fn release(store: &Store, name: &str) -> Result<()> {
    store.backend().release(name, &Session::default())
}

/// The holds that stand, by their ends.
pub fn holds(store: &Store) -> Result<Vec<HoldInfo>> {
    store.backend().holds()
}
