//! Ctrl-C while native code works: Python's handlers run on the thread that waits, and what they raise ends the call.

use std::sync::{Arc, Mutex, PoisonError};

use fieldstone::Env;
use fieldstone::catalog::Interrupt;
use pyo3::prelude::*;

/// How often Python's handlers are asked, nanoseconds: what a user takes for at once, and no cost.
const EVERY: u64 = 50_000_000;

/// What a handler raised while a call was under way.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// The exception, once.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A question whether to stop, for a call that asks it on the caller's own thread, and what was raised when it said so.
pub fn stop() -> (Interrupt, Raised) {
    let raised = Raised::default();
    let clock = Env::real().clock;
    let (kept, asked) = (raised.clone(), Mutex::new(clock.monotonic()));
    let stop = Interrupt::new(move || {
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        if clock.monotonic() < asked.saturating_add(EVERY) {
            return false;
        }
        let outcome = Python::attach(|py| py.check_signals());
        *asked = clock.monotonic();
        let Err(error) = outcome else { return false };
        kept.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        true
    });
    (stop, raised)
}
