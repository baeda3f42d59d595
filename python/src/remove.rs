//! `store.remove`.

use fieldstone::RemoveOptions;
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::request::requests;
use crate::store::{Store, transaction};

#[pymethods]
impl Store {
    /// Removes the fields that `request` names, of what is visible and of what was archived here and not
    /// flushed; returns how many. From the next flush on their keys have no field, until one is archived
    /// again. What they held stays readable in older versions (``open(url, at=version)``) and is listed
    /// with ``masked=True``; files taken with ``copy=False`` are not touched.
    ///
    /// Raises Invalid for a request that names everything, Denied where a dataset has another owner or
    /// the store is open for reading.
    #[pyo3(signature = (request, *, txn=None))]
    fn remove(&self, py: Python<'_>, request: &Bound<'_, PyAny>, txn: Option<&str>) -> PyResult<u64> {
        let (handle, transaction) = (self.handle()?, transaction(txn)?);
        let requests = requests(Some(request))?;
        let options = RemoveOptions { transaction };
        let removed = py.detach(|| {
            requests.iter().try_fold(0, |sum, request| Ok(sum + handle.remove(request, &options)?))
        });
        removed.or_raise()
    }
}
