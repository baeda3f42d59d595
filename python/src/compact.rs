//! `Store.compact`: takes over ended logs. `fieldstone._compact` displays the progress.

use std::cell::RefCell;
use std::time::Duration;

use fieldstone::{CompactOptions, CompactProgress, Error};
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;
use crate::store::Store;

/// Compacts; calls `progress(logs, entries)` during the work. `most`: bytes in all, and in a second. `grace` is in seconds.
#[pyfunction]
#[pyo3(name = "_compact")]
pub fn compact<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    most: (Option<u64>, Option<u64>),
    grace: f64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.get().handle()?;
    let (max_bytes, rate) = most;
    let requests = requests(request)?;
    let grace = Duration::try_from_secs_f64(grace)
        .map_err(|_| invalid(format!("grace={grace}"), "give seconds, 0 or more"))?;
    let outcome = py.waiting(|| {
        let raised = RefCell::new(None);
        let report = |done: CompactProgress| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) => progress.call1(py, (done.logs, done.entries)).map(drop),
                    None => Ok(()),
                }
            });
            called.map_err(|exception| {
                raised.replace(Some(exception));
                Error::internal("interrupted")
            })
        };
        let options = CompactOptions { requests: &requests, max_bytes, rate, grace, progress: Some(&report) };
        handle.compact(&options).map_err(|error| (error, raised.take()))
    });
    match outcome {
        Ok(report) => reports::compacted(py, report),
        Err((_, Some(exception))) => Err(exception),
        Err((error, None)) => Err(error).or_raise(),
    }
}
