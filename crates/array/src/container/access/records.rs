//! How many records a container has, as far as this rank knows.
//!
//! Records are added by writing them. A rank that writes alone raises its own number; the ranks agree on the
//! greatest one in every collective call that moves data and when the file is synced.
//!
//! Invariant: the number never falls.

use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Step, Team};
use fieldstone_core::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use fieldstone_format::netcdf::Version;

/// The number of records, shared by all that use one open container.
#[derive(Debug)]
pub struct Records {
    count: AtomicU64,
    most: u64,
    /// Writers that write what they read around their elements exclude all others.
    writing: RwLock<()>,
    /// Held while records that are to be filled are added: by one thread at a time.
    growing: Mutex<()>,
}

impl Records {
    /// `count` records in a file of `version`, which limits them.
    pub fn new(count: u64, version: Version) -> Records {
        // All ones mean that the number follows from the file's length.
        let most = if version == Version::Cdf5 { u64::MAX >> 1 } else { u64::from(u32::MAX) - 1 };
        Records { count: AtomicU64::new(count), most, writing: RwLock::default(), growing: Mutex::default() }
    }

    /// How many there are.
    pub fn get(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// How many the format allows.
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Says that there are at least `count`.
    pub fn raise(&self, count: u64) {
        self.count.fetch_max(count, Ordering::AcqRel);
    }

    /// Collective: the greatest number that any rank knows, which then is everybody's.
    pub fn agree(&self, team: &Team, step: impl Into<Step>) -> Result<u64> {
        let step = step.into();
        let greatest = team.max(step, Ok(vec![self.get()]))?;
        self.raise(greatest.first().copied().unwrap_or(0));
        Ok(self.get())
    }

    /// Held while writing exactly what was given.
    pub(super) fn sharing(&self) -> RwLockReadGuard<'_, ()> {
        self.writing.read()
    }

    /// Held from looking at the number of records until those that are filled and written are counted.
    pub(super) fn growing(&self) -> MutexGuard<'_, ()> {
        self.growing.lock()
    }

    /// Held while reading, changing and writing back a span.
    pub(super) fn excluding(&self) -> RwLockWriteGuard<'_, ()> {
        self.writing.write()
    }
}
