//! `Store.lock`, `unlock` and `locks`; `hide`, `unhide` and `hidden`; `overlay` and `overlays`; `hand_over` and
//! `hand_overs`; `reindex` and `pointers`.

use fieldstone::{DatasetAccess as _, LockKind};
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

/// Hides fields, or shows them again; returns how many that concerns.
#[pyfunction]
#[pyo3(name = "_set_hidden")]
pub fn set_hidden(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    request: Option<&Bound<'_, PyAny>>,
    hides: bool,
) -> PyResult<u64> {
    let handle = store.get().handle()?;
    let request = single_request(request)?;
    py.waiting(|| if hides { handle.hide(&request) } else { handle.unhide(&request) }).or_raise()
}

/// The hides in force.
#[pyfunction]
#[pyo3(name = "_hidden")]
pub fn hidden<'py>(py: Python<'py>, store: &Bound<'py, Store>) -> PyResult<Bound<'py, PyList>> {
    let handle = store.get().handle()?;
    let hidden = py.waiting(|| handle.hidden()).or_raise()?;
    PyList::new(py, hidden.into_iter().map(|one| reports::hidden(py, one)).collect::<PyResult<Vec<_>>>()?)
}

/// Lets fields appear under other values, or ends that; returns how many that concerns.
#[pyfunction]
#[pyo3(name = "_set_overlay")]
pub fn set_overlay(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    request: Option<&Bound<'_, PyAny>>,
    values: Option<&Bound<'_, PyAny>>,
    shows: bool,
) -> PyResult<u64> {
    let handle = store.get().handle()?;
    let (request, values) = (single_request(request)?, single_request(values)?.single_pairs().or_raise()?);
    py.waiting(|| {
        let values: Vec<(&str, &str)> =
            values.iter().map(|(keyword, value)| (&**keyword, &**value)).collect();
        if shows { handle.overlay(&request, &values) } else { handle.end_overlay(&request, &values) }
    })
    .or_raise()
}

/// The overlays in force.
#[pyfunction]
#[pyo3(name = "_overlays")]
pub fn overlays<'py>(py: Python<'py>, store: &Bound<'py, Store>) -> PyResult<Bound<'py, PyList>> {
    let handle = store.get().handle()?;
    let overlays = py.waiting(|| handle.overlays()).or_raise()?;
    PyList::new(py, overlays.into_iter().map(|one| reports::overlaid(py, one)).collect::<PyResult<Vec<_>>>()?)
}

/// Makes what belongs to a user another's.
#[pyfunction]
#[pyo3(name = "_hand_over")]
pub fn hand_over<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    from_user: &str,
    to_user: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.get().handle()?;
    let report = py.waiting(|| handle.hand_over(from_user, to_user)).or_raise()?;
    reports::handed_over(py, report)
}

/// All hand-overs.
#[pyfunction]
#[pyo3(name = "_hand_overs")]
pub fn hand_overs<'py>(py: Python<'py>, store: &Bound<'py, Store>) -> PyResult<Bound<'py, PyList>> {
    let handle = store.get().handle()?;
    let all = py.waiting(|| handle.hand_overs()).or_raise()?;
    PyList::new(py, all.into_iter().map(|one| reports::hand_over(py, one)).collect::<PyResult<Vec<_>>>()?)
}

/// Lets another store name fields, or ends that.
#[pyfunction]
#[pyo3(name = "_reindex")]
pub fn reindex<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    to: &Bound<'py, Store>,
    end: bool,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (from, to) = (store.get().handle()?, to.get().handle()?);
    let request = single_request(request)?;
    if end {
        py.waiting(|| fieldstone::end_reindex(&from, &request, &to)).or_raise()?;
        return Ok(None);
    }
    let report = py.waiting(|| fieldstone::reindex(&from, &request, &to)).or_raise()?;
    reports::reindexed(py, report).map(Some)
}

/// The stores that name fields of this one.
#[pyfunction]
#[pyo3(name = "_pointers")]
pub fn pointers<'py>(py: Python<'py>, store: &Bound<'py, Store>) -> PyResult<Bound<'py, PyList>> {
    let handle = store.get().handle()?;
    let pointers = py.waiting(|| fieldstone::pointers(&handle)).or_raise()?;
    PyList::new(py, pointers.into_iter().map(|one| reports::pointed(py, one)).collect::<PyResult<Vec<_>>>()?)
}
