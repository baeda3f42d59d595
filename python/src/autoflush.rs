//! Flushing by itself: what `open(…, autoflush=seconds)` starts for a long-lived writer.
//!
//! A thread flushes while the store is open. What goes wrong there is kept, and raised by the next call on
//! the store: nothing is lost in silence. A forked child, which has no threads, starts its own.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fieldstone::Session;
use fieldstone::prelude::*;
use fieldstone::{Code, Error, FieldStore, Result};

/// The thread of one process.
struct Running {
    process: u32,
    failed: Arc<Mutex<Option<Error>>>,
    /// The thread ends when this is dropped.
    _stop: Sender<()>,
}

/// Flushes a store every so often.
pub struct Autoflush {
    every: Duration,
    running: Mutex<Option<Running>>,
}

impl Autoflush {
    /// Every `seconds`, of which there must be some.
    pub fn new(seconds: f64) -> Result<Autoflush> {
        let every = Duration::try_from_secs_f64(seconds).ok().filter(|every| !every.is_zero());
        let every = every.ok_or_else(|| {
            Code::Option
                .error(format!("autoflush={seconds}"))
                .with_hint("give seconds; 0 makes each change durable before its call returns")
        })?;
        Ok(Autoflush { every, running: Mutex::new(None) })
    }

    /// Starts where it does not run in this process, and tells what failed since it was asked last.
    pub fn check(&self, store: &fieldstone::Store) -> Result<()> {
        // Held for a moment and with the interpreter's lock, so that a fork does not find it locked.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*running {
            Some(own) if own.process == process => {
                let failed = own.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
                let Some(error) = failed else { return Ok(()) };
                // What this thread lost itself says more, and counts as told then.
                let own = store.check_lost(&Session::default()).err();
                Err(own.unwrap_or(error).context("flushing by itself"))
            }
            _ => {
                // The thread of a parent is not in this process; what it waits on is left as it is.
                std::mem::forget(running.take());
                *running = Some(start(process, self.every, Arc::downgrade(&store.fields()))?);
                Ok(())
            }
        }
    }

    /// Ends it, where it runs in this process.
    pub fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(other) = running.filter(|running| running.process != std::process::id()) {
            std::mem::forget(other);
        }
    }
}

fn start(process: u32, every: Duration, store: Weak<dyn FieldStore>) -> Result<Running> {
    let (stop, stopped) = channel();
    let failed = Arc::new(Mutex::new(None));
    let kept = failed.clone();
    let work = move || {
        while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            let Some(store) = store.upgrade() else { return };
            if let Err(error) = store.flush(&Session::default()) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    std::thread::Builder::new()
        .name("fieldstone-autoflush".to_owned())
        .spawn(work)
        .map_err(|e| Code::ProcessLimit.error(format!("the thread that flushes cannot be started: {e}")))?;
    Ok(Running { process, failed, _stop: stop })
}
