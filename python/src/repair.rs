//! `Store.repair`: what a backup, or the store itself, has whole.

use std::path::PathBuf;

use fieldstone::RepairOptions;
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;
use crate::store::Store;

/// Mends, or says what would be mended.
#[pyfunction]
#[pyo3(name = "_repair")]
pub fn repair<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    source: Option<PathBuf>,
    doit: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.get().handle()?;
    let requests = requests(request)?;
    let mend = || {
        let options = RepairOptions { source: source.as_deref(), doit };
        fieldstone::repair(&handle, &requests, &options)
    };
    let report = py.waiting(mend).or_raise()?;
    reports::repaired(py, report)
}
