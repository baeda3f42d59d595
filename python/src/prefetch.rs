//! `Store.prefetch`: reads fields ahead.

use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::store::Store;
use crate::transfer::what;

/// Reads the fields of a request, or those under hits.
#[pyfunction]
#[pyo3(name = "_prefetch")]
pub fn prefetch<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.get().handle()?;
    let what = what(request)?;
    reports::prefetched(py, py.waiting(|| handle.prefetch(what.clone())).or_raise()?)
}
