//! Automatic flushing, which `open(…, autoflush=seconds)` starts for a long-lived writer.
//!
//! A thread flushes while the store is open. It keeps its first error, and the next call on the store raises it, so
//! that no loss is silent. A forked child inherits no threads and starts its own.

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
    /// Dropping this ends the thread.
    _stop: Sender<()>,
}

/// Flushes a store at a fixed interval.
pub struct Autoflush {
    every: Duration,
    running: Mutex<Option<Running>>,
}

impl Autoflush {
    /// Flushes every `seconds`, which must be positive.
    pub fn new(seconds: f64) -> Result<Autoflush> {
        let every = Duration::try_from_secs_f64(seconds).ok().filter(|every| !every.is_zero());
        let every = every.ok_or_else(|| {
            Code::Option
                .error(format!("autoflush={seconds}"))
                .with_hint("give seconds; 0 makes each change durable before its call returns")
        })?;
        Ok(Autoflush { every, running: Mutex::new(None) })
    }

    /// Starts the thread if this process has none, and returns the error of a flush since the last check.
    pub fn check(&self, store: &fieldstone::Store) -> Result<()> {
        // Held briefly and together with the interpreter's lock, so that a fork never finds it locked.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*running {
            Some(own) if own.process == process => {
                let failed = own.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
                let Some(error) = failed else { return Ok(()) };
                // A loss that the store reports for this thread is more precise, and is then marked as reported.
                let own = store.check_lost(&Session::default()).err();
                Err(own.unwrap_or(error).context("flushing automatically"))
            }
            _ => {
                // The parent's thread does not exist in this process, so the channel to it is leaked, not closed.
                std::mem::forget(running.take());
                *running = Some(start(process, self.every, Arc::downgrade(&store.fields()))?);
                Ok(())
            }
        }
    }

    /// Ends the thread, if it runs in this process.
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
            // The thread must not keep the store open, so it ends when the program has dropped the store.
            let Some(store) = store.upgrade() else { return };
            if let Err(error) = store.flush(&Session::default()) {
                kept.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    std::thread::Builder::new()
        .name("fieldstone-autoflush".to_owned())
        .spawn(work)
        .map_err(|e| Code::ProcessLimit.error(format!("the flush thread cannot be started: {e}")))?;
    Ok(Running { process, failed, _stop: stop })
}
