//! `Store.lock`, `unlock` and `locks`.

use fieldstone::LockKind;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::request::single_request;
use crate::store::Store;

/// Sets a lock on datasets, or ends it; returns how many there are.
#[pyfunction]
#[pyo3(name = "_set_lock")]
pub fn set_lock(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    request: Option<&Bound<'_, PyAny>>,
    what: &str,
    locks: bool,
) -> PyResult<u64> {
    let handle = store.get().handle()?;
    let (request, what) = (single_request(request)?, LockKind::parse(what).or_raise()?);
    py.waiting(|| if locks { handle.lock(&request, what) } else { handle.unlock(&request, what) }).or_raise()
}

/// The locks in force.
#[pyfunction]
#[pyo3(name = "_locks")]
pub fn locks<'py>(py: Python<'py>, store: &Bound<'py, Store>) -> PyResult<Bound<'py, PyList>> {
    let handle = store.get().handle()?;
    let locks = py.waiting(|| handle.locks()).or_raise()?;
    PyList::new(py, locks.into_iter().map(|lock| reports::lock(py, lock)).collect::<PyResult<Vec<_>>>()?)
}
