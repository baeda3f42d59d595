//! `store.remove`.

use std::ffi::CString;

use fieldstone::prelude::*;
use fieldstone::{Field, RemoveOptions};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::Raise;
use crate::explain::reason;
use crate::fields::{PyField, PyFields};
use crate::log::Waiting as _;
use crate::request::requests;
use crate::store::{Store, session};

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

#[pymethods]
impl Store {
    /// Removes the fields that `request` names, or these very fields, of what is visible and of what was archived here and not
    /// flushed; returns how many. From the next flush on their keys have no field, until one is archived
    /// again. What they held stays readable in older versions (``open(url, at=version)``) and is listed
    /// with ``masked=True``; files taken with ``copy=False`` are not touched.
    ///
    /// Of fields that a retrieve gave, or a list of some of them, just those versions are removed: one that
    /// is not the newest any more when this becomes visible stays, and so does what only a wider request
    /// would have named.
    ///
    /// Warns where the request names a keyword or value that no field has, and so nothing is removed. Raises Invalid
    /// for a request that names everything, Denied where a dataset has another owner or
    /// the store is open for reading.
    #[pyo3(signature = (request, *, txn=None))]
    fn remove(&self, py: Python<'_>, request: &Bound<'_, PyAny>, txn: Option<&str>) -> PyResult<u64> {
        let (handle, session) = (self.handle()?, session(txn)?);
        if let Some(fields) = these(request)? {
            py.waiting(|| handle.remove_fields(&fields, &RemoveOptions { session })).or_raise()?;
            return Ok(fields.len() as u64);
        }
        let requests = requests(Some(request))?;
        let options = RemoveOptions { session };
        let removed = py.waiting(|| {
            requests.iter().try_fold(0, |sum, request| Ok(sum + handle.remove(request, &options)?))
        });
        let removed = removed.or_raise()?;
        if removed == 0
            && let Some(why) = requests.first().and_then(|request| reason(&handle, request))
        {
            let text = CString::new(format!("nothing is removed: {why}")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        }
        Ok(removed)
    }
}
