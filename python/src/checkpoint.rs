//! `store.checkpoint`, and how often to call it.

use std::path::PathBuf;

use fieldstone::prelude::*;
use fieldstone::{CheckpointOptions, checkpoint};
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::store::Store;
use fieldstone::Session;

/// Seconds of work between two checkpoints; see `fieldstone.checkpoint_interval`.
#[pyfunction]
#[pyo3(name = "_checkpoint_interval")]
pub fn checkpoint_interval(cost: f64, mtbf: f64, restart: f64) -> PyResult<f64> {
    checkpoint::interval(cost, mtbf, restart).or_raise()
}

/// Time of a run as a multiple of its work; see `fieldstone.checkpoint_overhead`.
#[pyfunction]
#[pyo3(name = "_checkpoint_overhead")]
pub fn checkpoint_overhead(interval: f64, cost: f64, mtbf: f64, restart: f64) -> PyResult<f64> {
    checkpoint::overhead(interval, cost, mtbf, restart).or_raise()
}

#[pymethods]
impl Store {
    /// Flushes, and writes all that is visible then to the folder `path` as an ordinary store: durable when
    /// this returns, while other threads go on writing. Only for a store opened as ``memory:``.
    ///
    /// With ``incremental`` an earlier checkpoint of this store in the folder is gone on with, and only new
    /// bytes are written; without it, the folder must be new or empty. At any moment, also after a kill, a
    /// full disk or a power cut, the folder is a whole store: as of this checkpoint, the one before, or a
    /// flush between. What a transaction that is still open has flushed is not visible there.
    ///
    /// Returns a ``CheckpointReport``: version, bytes and files that were new, seconds. Raises Invalid for
    /// a store in a folder, Conflict where the folder holds another store or was written to since.
    #[pyo3(signature = (path, *, incremental=true))]
    fn checkpoint<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        incremental: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let report = py
            .waiting(|| handle.checkpoint(&path, &CheckpointOptions { incremental }, &Session::default()))
            .or_raise()?;
        reports::checkpoint(py, &report)
    }
}
