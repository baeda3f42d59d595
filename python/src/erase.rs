//! `Store.erase`: what was recorded by mistake becomes unreadable.

use fieldstone::EraseOptions;
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;
use crate::store::Store;

/// Erases, or says what would go.
#[pyfunction]
#[pyo3(name = "_erase")]
pub fn erase<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    doit: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.get().handle()?;
    let requests = requests(request)?;
    let report = py.waiting(|| handle.erase(&requests, &EraseOptions { doit })).or_raise()?;
    reports::erased(py, report)
}
