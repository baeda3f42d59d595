//! Locks and condition variables: those of std, except in a run of `schedule`; without poison, as those of `plain`.

use core::time::Duration;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError, TryLockError, TryLockResult};

use super::schedule::{Member, member, waker};

/// Wakes the threads that wait for a lock when it is released.
#[derive(Debug)]
struct Release(usize);

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(member) = waker() {
            member.wake(self.0);
        }
    }
}

/// Takes a lock: at once, or when its holders have released it.
fn take<G>(member: &Member, what: usize, attempt: impl Fn() -> TryLockResult<G>) -> G {
    member.pause();
    loop {
        match without_poison(attempt()) {
            Some(guard) => return guard,
            None => member.wait(what),
        }
    }
}

fn without_poison<G>(attempt: TryLockResult<G>) -> Option<G> {
    match attempt {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// As [`std::sync::Mutex`].
#[derive(Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// As [`std::sync::MutexGuard`]: releases the lock, then wakes the threads that wait.
#[derive(Debug)]
pub struct MutexGuard<'a, T: ?Sized> {
    inner: sync::MutexGuard<'a, T>,
    _release: Release,
    owner: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// Makes a free mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(sync::Mutex::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    fn address(&self) -> usize {
        std::ptr::from_ref(&self.0).cast::<u8>() as usize
    }

    fn whole<'a>(&'a self, inner: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { inner, _release: Release(self.address()), owner: self }
    }

    /// Locks the mutex.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.whole(match member() {
            Some(member) => take(&member, self.address(), || self.0.try_lock()),
            None => self.0.lock().unwrap_or_else(PoisonError::into_inner),
        })
    }

    /// Locks the mutex if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        super::pause();
        without_poison(self.0.try_lock()).map(|guard| self.whole(guard))
    }

    /// The value, through exclusive access.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// As [`std::sync::Condvar`].
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

/// As [`std::sync::WaitTimeoutResult`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait timed out.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Makes a condition variable without waiting threads.
    pub const fn new() -> Condvar {
        Condvar(sync::Condvar::new())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Releases the lock, and takes it again after a notification.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let owner = guard.owner;
        if let Some(member) = member() {
            drop(guard);
            member.wait(self.address());
            return owner.lock();
        }
        owner.whole(self.0.wait(guard.inner).unwrap_or_else(PoisonError::into_inner))
    }

    /// As `wait`, while a condition holds, but no longer than a duration; in a run, no longer than until all other
    /// threads wait.
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        longest: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let owner = guard.owner;
        let Some(member) = member() else {
            let waited = self.0.wait_timeout_while(guard.inner, longest, condition);
            let (guard, late) = waited.unwrap_or_else(PoisonError::into_inner);
            return (owner.whole(guard), WaitTimeoutResult(late.timed_out()));
        };
        while condition(&mut guard) {
            drop(guard);
            let woken = member.wait_some_time(self.address());
            guard = owner.lock();
            if !woken {
                let late = condition(&mut guard);
                return (guard, WaitTimeoutResult(late));
            }
        }
        (guard, WaitTimeoutResult(false))
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        match member() {
            Some(member) => member.wake(self.address()),
            None => self.0.notify_all(),
        }
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        match member() {
            Some(member) => member.wake_one(self.address()),
            None => self.0.notify_one(),
        }
    }
}

/// As [`std::sync::RwLock`].
#[derive(Debug, Default)]
pub struct RwLock<T>(sync::RwLock<T>);

/// As [`std::sync::RwLockReadGuard`].
#[derive(Debug)]
pub struct RwLockReadGuard<'a, T> {
    inner: sync::RwLockReadGuard<'a, T>,
    _release: Release,
}

/// As [`std::sync::RwLockWriteGuard`].
#[derive(Debug)]
pub struct RwLockWriteGuard<'a, T> {
    inner: sync::RwLockWriteGuard<'a, T>,
    _release: Release,
}

impl<T> RwLock<T> {
    /// Makes a free lock.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(sync::RwLock::new(value))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Takes the lock, shared with other readers.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        let inner = match member() {
            Some(member) => take(&member, self.address(), || self.0.try_read()),
            None => self.0.read().unwrap_or_else(PoisonError::into_inner),
        };
        RwLockReadGuard { inner, _release: Release(self.address()) }
    }

    /// Takes the lock exclusively.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        let inner = match member() {
            Some(member) => take(&member, self.address(), || self.0.try_write()),
            None => self.0.write().unwrap_or_else(PoisonError::into_inner),
        };
        RwLockWriteGuard { inner, _release: Release(self.address()) }
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
