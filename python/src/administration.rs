//! Administration by a store's owner: accepting losses, raising its format.

use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::store::Store;

#[pymethods]
impl Store {
    /// Accepts what a log or data log lost, named as messages name it (``"logs/….log"``, ``"data/…-1.data"``): of a log
    /// that is missing or shorter than it was, all commits that cannot be read; of a data log that is missing, all fields
    /// with bytes in it; else the fields of the file that are damaged. It is on record, with who accepted it, when and
    /// `why`, and final: what is given up never counts again, also where the file comes back. Reads, ``verify`` and
    /// ``status`` go on without it; the latter two list it as ``.accepted``. Returns an AcceptanceReport.
    ///
    /// Raises Invalid where nothing of the file is lost, Denied for others than its owner, the store's, and root, and in a
    /// store of format 1, Conflict where the log's writer lives and may go on.
    #[pyo3(signature = (name, why=None))]
    fn accept<'py>(&self, py: Python<'py>, name: &str, why: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let report = py.waiting(|| handle.accept(name, why.unwrap_or_default())).or_raise()?;
        reports::acceptance(py, report)
    }

    /// Raises the store to the newest version of the format that this release writes, durably, and returns that version.
    /// Older releases read on what they know, and write nothing from then on. Raises Denied for others than the store's
    /// owner.
    fn upgrade(&self, py: Python<'_>) -> PyResult<u32> {
        let handle = self.handle()?;
        py.waiting(|| handle.upgrade()).or_raise().map(|(_, version)| version)
    }
}
