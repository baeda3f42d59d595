//! Threads: those of std; a thread that a thread of a run starts belongs to the run as well.

use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

pub use std::thread::{ThreadId, available_parallelism, current, panicking};

use super::schedule::{Member, member};

/// Lets other threads run.
pub fn yield_now() {
    match member() {
        Some(member) => member.pause(),
        None => std::thread::yield_now(),
    }
}

/// Sleeps; in a run it lets other threads run.
pub fn sleep(time: Duration) {
    match member() {
        Some(member) => member.pause(),
        None => std::thread::sleep(time),
    }
}

/// As [`std::thread::Builder`].
#[derive(Debug)]
pub struct Builder(std::thread::Builder);

/// As [`std::thread::JoinHandle`].
#[derive(Debug)]
pub struct JoinHandle<T> {
    inner: std::thread::JoinHandle<T>,
    member: Option<Member>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// Makes the builder of a thread without a name.
    pub fn new() -> Builder {
        Builder(std::thread::Builder::new())
    }

    /// Sets the name.
    pub fn name(self, name: String) -> Builder {
        Builder(self.0.name(name))
    }

    /// Starts the thread.
    pub fn spawn<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let Some(starter) = member() else {
            return Ok(JoinHandle { inner: self.0.spawn(work)?, member: None });
        };
        let member = starter.another();
        let inner = self.0.spawn({
            let member = member.clone();
            || member.work(work)
        });
        member.started(inner.as_ref().ok().map(|inner| inner.thread().clone()));
        let handle = JoinHandle { inner: inner?, member: Some(member) };
        starter.pause();
        Ok(handle)
    }
}

impl<T> JoinHandle<T> {
    /// Waits for the thread to end.
    pub fn join(self) -> std::thread::Result<T> {
        wait_for(self.member.as_ref());
        self.inner.join()
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        match &self.member {
            Some(member) => member.has_ended(),
            None => self.inner.is_finished(),
        }
    }
}

/// Waits for the end of a thread in this thread's run.
fn wait_for(other: Option<&Member>) {
    if let (Some(own), Some(other)) = (member(), other) {
        own.join(other);
    }
}

/// As [`std::thread::Scope`], but passed by value.
#[derive(Debug, Clone)]
pub struct Scope<'scope, 'env: 'scope> {
    inner: &'scope std::thread::Scope<'scope, 'env>,
    started: Arc<Mutex<Vec<Member>>>,
}

/// As [`std::thread::ScopedJoinHandle`].
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T> {
    inner: std::thread::ScopedJoinHandle<'scope, T>,
    member: Option<Member>,
}

/// As [`std::thread::scope`].
pub fn scope<'env, T>(body: impl for<'scope> FnOnce(Scope<'scope, 'env>) -> T) -> T {
    std::thread::scope(|inner| {
        let started = Arc::new(Mutex::new(Vec::<Member>::new()));
        let scope = Scope { inner, started: started.clone() };
        let outcome = catch_unwind(AssertUnwindSafe(|| body(scope)));
        let started = std::mem::take(&mut *started.lock().unwrap_or_else(PoisonError::into_inner));
        match outcome {
            Ok(outcome) => {
                started.iter().for_each(|other| wait_for(Some(other)));
                outcome
            }
            Err(panic) => {
                // They would wait for their turn, and this thread for them.
                started.iter().for_each(|other| other.break_off("a thread panicked"));
                resume_unwind(panic)
            }
        }
    })
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread.
    pub fn spawn<T: Send + 'scope>(
        &self,
        work: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        let Some(starter) = member() else {
            return ScopedJoinHandle { inner: self.inner.spawn(work), member: None };
        };
        let member = starter.another();
        self.started.lock().unwrap_or_else(PoisonError::into_inner).push(member.clone());
        let inner = self.inner.spawn({
            let member = member.clone();
            || member.work(work)
        });
        member.started(Some(inner.thread().clone()));
        starter.pause();
        ScopedJoinHandle { inner, member: Some(member) }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the thread to end.
    pub fn join(self) -> std::thread::Result<T> {
        wait_for(self.member.as_ref());
        self.inner.join()
    }
}
