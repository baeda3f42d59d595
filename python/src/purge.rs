//! `Store.purge`: drops hidden versions. `fieldstone._purge` displays the progress.

use std::cell::RefCell;
use std::time::Duration;

use fieldstone::{Error, PurgeOptions, PurgeProgress};
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;
use crate::store::Store;

/// Purges; calls `progress(fields, nbytes)` during the work. `how`: whether it drops anything, and whether it may from all
/// fields. `most`: bytes in all, and in a second. `grace` is in seconds.
#[pyfunction]
#[pyo3(name = "_purge")]
pub fn purge<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    how: (bool, bool),
    most: (Option<u64>, Option<u64>),
    grace: f64,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let ((doit, all), handle) = (how, store.get().handle()?);
    let (max_bytes, rate) = most;
    let requests = requests(request)?;
    let grace = Duration::try_from_secs_f64(grace)
        .map_err(|_| invalid(format!("grace={grace}"), "give seconds, 0 or more"))?;
    let outcome = py.waiting(|| {
        let raised = RefCell::new(None);
        let report = |done: PurgeProgress| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) => progress.call1(py, (done.keys, done.nbytes)).map(drop),
                    None => Ok(()),
                }
            });
            called.map_err(|exception| {
                raised.replace(Some(exception));
                Error::internal("interrupted")
            })
        };
        let progress = Some(&report as &fieldstone::OnPurge<'_>);
        let options = PurgeOptions { requests: &requests, all, doit, max_bytes, rate, grace, progress };
        handle.purge(&options).map_err(|error| (error, raised.take()))
    });
    match outcome {
        Ok(report) => reports::purged(py, report),
        Err((_, Some(exception))) => Err(exception),
        Err((error, None)) => Err(error).or_raise(),
    }
}
