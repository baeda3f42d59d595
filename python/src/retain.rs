//! `Store.retain` and `Store.rules`: rules of retention. `fieldstone._retention` understands ages.

use std::time::Duration;

use fieldstone::RetainOptions;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::request::single_request;
use crate::store::Store;

/// Makes or ends a rule; `older_than` is in seconds. `place` is the query and
/// the target of a move. `how`: whether the rule ends, and whether all may be meant.
#[pyfunction]
#[pyo3(name = "_retain")]
pub fn retain<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    older_than: Option<f64>,
    versions: Option<u64>,
    place: (Option<String>, Option<String>),
    how: (bool, bool),
) -> PyResult<Bound<'py, PyAny>> {
    let ((query, to), (drop, all), handle) = (place, how, store.get().handle()?);
    let request = single_request(request)?;
    let older_than = older_than.map(|age| {
        Duration::try_from_secs_f64(age)
            .map_err(|_| invalid(format!("older_than={age}"), "give 0 seconds or more"))
    });
    let older_than = older_than.transpose()?;
    let options = RetainOptions { query, to, older_than, versions, drop, all };
    let rule = py.waiting(|| handle.retain(&request, &options)).or_raise()?;
    reports::rule(py, rule)
}

/// The rules that are in force.
#[pyfunction]
#[pyo3(name = "_rules")]
pub fn rules<'py>(py: Python<'py>, store: &Bound<'py, Store>) -> PyResult<Bound<'py, PyTuple>> {
    let handle = store.get().handle()?;
    let rules = py.waiting(|| handle.rules()).or_raise()?;
    let rules = rules.into_iter().map(|rule| reports::rule(py, rule)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, rules)
}
