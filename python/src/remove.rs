//! How a store removes fields that a request names, or that a retrieve gave.

use std::ffi::CString;

use fieldstone::prelude::*;
use fieldstone::{Field, RemoveOptions, Session};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::Raise;
use crate::explain::reason;
use crate::fields::{PyField, PyFields};
use crate::log::Waiting as _;
use crate::request::requests;

/// The fields that were given in place of a request.
fn these(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Field>>> {
    if let Ok(fields) = given.cast::<PyFields>() {
        return fields.get().fields().map(Some);
    }
    let Ok(list) = given.cast::<PyList>() else { return Ok(None) };
    let field = |item: Bound<'_, PyAny>| Some(item.cast::<PyField>().ok()?.get().field().clone());
    let fields: Option<Vec<Field>> = list.iter().map(field).collect();
    Ok(fields.filter(|fields| !fields.is_empty()))
}

/// Removes fields, as `Store.remove` says; how many.
pub fn remove(
    py: Python<'_>,
    handle: &fieldstone::Store,
    request: &Bound<'_, PyAny>,
    session: Session,
) -> PyResult<u64> {
    if let Some(fields) = these(request)? {
        py.waiting(|| handle.remove_fields(&fields, &RemoveOptions { session })).or_raise()?;
        return Ok(fields.len() as u64);
    }
    let requests = requests(Some(request))?;
    let options = RemoveOptions { session };
    let removed = py
        .waiting(|| requests.iter().try_fold(0, |sum, request| Ok(sum + handle.remove(request, &options)?)));
    let removed = removed.or_raise()?;
    if removed == 0
        && let Some(why) = requests.first().and_then(|request| reason(handle, request))
    {
        let text = CString::new(format!("nothing is removed: {why}")).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(removed)
}
