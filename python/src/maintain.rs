//! `Store.maintain`: rules of retention are applied, and what pays is done. `fieldstone._compact` displays the progress.

use std::cell::RefCell;
use std::time::Duration;

use fieldstone::{Error, MaintainOptions, MaintainProgress};
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::store::Store;

/// Maintains; calls `progress(action, request, done, nbytes)` during the work. `most`: bytes in all, and in a second. `grace` is in seconds.
#[pyfunction]
#[pyo3(name = "_maintain")]
pub fn maintain<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    most: (Option<u64>, Option<u64>),
    grace: f64,
    dry_run: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.get().handle()?;
    let (max_bytes, rate) = most;
    let grace = Duration::try_from_secs_f64(grace)
        .map_err(|_| invalid(format!("grace={grace}"), "give seconds, 0 or more"))?;
    let outcome = py.waiting(|| {
        let raised = RefCell::new(None);
        let report = |now: MaintainProgress| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) => {
                        let args = (now.action.as_str(), &now.request, now.done, now.nbytes);
                        progress.call1(py, args).map(drop)
                    }
                    None => Ok(()),
                }
            });
            called.map_err(|exception| {
                raised.replace(Some(exception));
                Error::internal("interrupted")
            })
        };
        let progress = Some(&report as &fieldstone::OnMaintain<'_>);
        let options = MaintainOptions { grace, max_bytes, rate, dry_run, progress };
        handle.maintain(&options).map_err(|error| (error, raised.take()))
    });
    match outcome {
        Ok(report) => reports::maintained(py, report),
        Err((_, Some(exception))) => Err(exception),
        Err((error, None)) => Err(error).or_raise(),
    }
}
