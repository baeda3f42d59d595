//! Locks, condition variables, channels and threads of all that threads of a process share: the journal, fields, catalog
//! and graph.
//!
//! In what ships they are those of std, without poison (`plain`). With the feature `schedules`, which the test kit switches on,
//! they are wrappers that do the same, except within [`schedule::run`]: there one thread runs at a time, and wherever a
//! thread takes a lock, waits, starts another one or calls a simulated disk, a seed draws who goes on (T-5).
//!
//! Invariant: nothing here decides anything but who goes on. Atomic numbers are std's: they are no place where
//! another thread is let on.

#[cfg(feature = "schedules")]
mod locks;
#[cfg(feature = "schedules")]
pub mod mpsc;
pub mod plain;
#[cfg(feature = "schedules")]
pub mod schedule;
#[cfg(feature = "schedules")]
pub mod thread;

#[cfg(feature = "schedules")]
pub use locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(feature = "schedules")]
pub(crate) use schedule::pause;

#[cfg(not(feature = "schedules"))]
pub use plain::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(feature = "schedules"))]
pub use std::sync::mpsc;
#[cfg(not(feature = "schedules"))]
pub use std::thread;

/// Lets another thread on, where a seed says who goes on.
#[cfg(not(feature = "schedules"))]
#[inline]
pub(crate) fn pause() {}
