//! Ctrl-C in native code: Python's handlers run on the waiting thread, and an exception from one ends the call.

use std::sync::{Arc, Mutex, PoisonError};

use fieldstone::Env;
use fieldstone::catalog::Interrupt;
use pyo3::prelude::*;

/// Nanoseconds between two runs of Python's handlers: a user does not notice the delay, and the cost is negligible.
const EVERY: u64 = 50_000_000;

/// The exception that a handler raised during a call.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Takes the exception; only the first call returns it.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// An interrupt check that a call runs on the caller's own thread, and the slot for the exception that stops it.
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
