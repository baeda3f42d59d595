//! `fieldstone.backup` and `fieldstone.promote`.

use std::cell::RefCell;
use std::path::PathBuf;

use fieldstone::{BackupOptions, BackupProgress, Error};
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::store::Store;

/// Copies what is new to a backup; calls `progress(files, nbytes)` during the work. `how`: whether it goes on, whether it drops what
/// purges dropped, and whether it reads back what was copied.
#[pyfunction]
#[pyo3(name = "_backup")]
pub fn backup<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    to: PathBuf,
    how: (bool, bool, bool),
    rate: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let ((follow, purge, verify), handle) = (how, store.get().handle()?);
    let outcome = py.waiting(|| {
        let raised = RefCell::new(None);
        let report = |done: BackupProgress| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) => progress.call1(py, (done.files, done.nbytes)).map(drop),
                    None => Ok(()),
                }
            });
            called.map_err(|exception| {
                raised.replace(Some(exception));
                Error::internal("interrupted")
            })
        };
        let progress = Some(&report as &fieldstone::OnBackup<'_>);
        let options = BackupOptions { follow, purge, verify, rate, progress };
        fieldstone::backup(&handle, &to, &options).map_err(|error| (error, raised.take()))
    });
    match outcome {
        Ok(report) => reports::backed_up(py, report),
        Err((_, Some(exception))) => Err(exception),
        Err((error, None)) => Err(error).or_raise(),
    }
}

/// Makes a backup a store of its own; returns its id.
#[pyfunction]
#[pyo3(name = "_promote")]
pub fn promote(py: Python<'_>, folder: PathBuf) -> PyResult<String> {
    py.waiting(|| fieldstone::promote(&folder)).or_raise()
}
