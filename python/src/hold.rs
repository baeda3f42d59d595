//! `Store.hold`, `Store.holds` and `Hold.release`. `fieldstone._hold` understands times.

use std::time::Duration;

use fieldstone::{Holding, Session};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::store::Store;

/// Sets a hold for some seconds; with a name, in place of the one that has it.
#[pyfunction]
#[pyo3(name = "_hold")]
pub fn hold<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    name: String,
    lasts: f64,
    why: String,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.get().handle()?;
    let lasts = Duration::try_from_secs_f64(lasts)
        .map_err(|_| invalid(format!("lasts={lasts}"), "give seconds, more than 0"))?;
    let lasts = u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX);
    let how = Holding { name, lasts, why, session: Session::default() };
    let hold = py.waiting(|| handle.backend().hold(&how)).or_raise()?;
    reports::hold(py, hold)
}

/// Ends a hold.
#[pyfunction]
#[pyo3(name = "_release")]
pub fn release(py: Python<'_>, store: &Bound<'_, Store>, name: &str) -> PyResult<()> {
    let handle = store.get().handle()?;
    py.waiting(|| fieldstone::release(&handle, name)).or_raise()
}

/// The holds in force.
#[pyfunction]
#[pyo3(name = "_holds")]
pub fn holds<'py>(py: Python<'py>, store: &Bound<'py, Store>) -> PyResult<Bound<'py, PyTuple>> {
    let handle = store.get().handle()?;
    let holds = py.waiting(|| fieldstone::holds(&handle)).or_raise()?;
    let holds = holds.into_iter().map(|hold| reports::hold(py, hold)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, holds)
}
