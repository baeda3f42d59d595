//! Locks, condition variables, channels and threads for everything that the threads of a process share: the journal,
//! fields, catalog and graph.
//!
//! In releases these are std's, without poison (`plain`). With the feature `schedules`, which the test kit enables,
//! they are wrappers that behave the same, except in [`schedule::run`]: there one thread runs at a time, and whenever
//! a thread takes a lock, waits, starts another thread or calls a simulated disk, a seed draws the thread that runs
//! next (T-5).
//!
//! Invariant: this module only decides which thread runs next. Atomic numbers are std's: accesses to them never
//! switch threads.

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

/// Lets another thread run, if a seed decides the order.
#[cfg(not(feature = "schedules"))]
#[inline]
pub(crate) fn pause() {}
