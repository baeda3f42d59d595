//! The number of records of a container, as far as this rank knows.
//!
//! Writing records adds them. A rank that writes alone raises its own number; the ranks agree on the greatest number
//! in every collective call that moves data, and when the file is synced.
//!
//! Invariant: the number never decreases.

use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Step, Team};
use fieldstone_core::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use fieldstone_format::netcdf::Version;

/// The number of records, shared by all users of one open container.
#[derive(Debug)]
pub struct Records {
    count: AtomicU64,
    most: u64,
    /// Writers that write back the bytes around their elements exclude all others.
    writing: RwLock<()>,
    /// Held while adding records that must be filled, so that one thread at a time does it.
    growing: Mutex<()>,
}

impl Records {
    /// Starts with `count` records, in a file of `version`, which limits them.
    pub fn new(count: u64, version: Version) -> Records {
        // All ones mean that the number follows from the file's length.
        let most = if version == Version::Cdf5 { u64::MAX >> 1 } else { u64::from(u32::MAX) - 1 };
        Records { count: AtomicU64::new(count), most, writing: RwLock::default(), growing: Mutex::default() }
    }

    /// The current number.
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The limit of the format.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Raises the number to at least `count`.
    pub fn raise(&self, count: u64) {
        self.count.fetch_max(count, Ordering::AcqRel);
    }

    /// Collective: the greatest number that any rank knows; all ranks then know it.
    pub fn agree(&self, team: &Team, step: impl Into<Step>) -> Result<u64> {
        let step = step.into();
        let greatest = team.max(step, Ok(vec![self.get()]))?;
        self.raise(greatest.first().copied().unwrap_or(0));
        Ok(self.get())
    }

    /// Held while writing exactly the given bytes.
    pub(super) fn sharing(&self) -> RwLockReadGuard<'_, ()> {
        self.writing.read()
    }

    /// Held from reading the number of records until new records are filled, written and counted.
    pub(super) fn growing(&self) -> MutexGuard<'_, ()> {
        self.growing.lock()
    }

    /// Held while reading, changing and writing back a span.
    pub(super) fn excluding(&self) -> RwLockWriteGuard<'_, ()> {
        self.writing.write()
    }
}
