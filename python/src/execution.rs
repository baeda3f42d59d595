//! Executions for Python: the class `_Execution`, which `fieldstone.execution` wraps.

use std::sync::{Mutex, PoisonError};

use fieldstone::execution::{Execution, ExecutionOptions, Outcome};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::catalog::values;
use crate::context::{self, PyMembership};
use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::store::Store;

/// An execution of this process.
#[pyclass(frozen, name = "_Execution", module = "fieldstone")]
pub struct PyExecution {
    execution: Mutex<Execution>,
    membership: Py<PyMembership>,
    pair: (String, String),
    job: (String, String),
    link: String,
}

/// Type and id.
fn pair(vertex: &fieldstone::graph::VertexName) -> (String, String) {
    (vertex.kind.to_string(), vertex.id.to_string())
}

#[pymethods]
impl PyExecution {
    /// Begins an execution inside the current execution of the context.
    #[staticmethod]
    #[allow(clippy::too_many_arguments, reason = "the description of an execution")]
    fn begin(
        py: Python<'_>,
        store: &Bound<'_, Store>,
        name: Option<String>,
        reads: Vec<String>,
        writes: Vec<String>,
        params: Option<Bound<'_, PyDict>>,
        env: Vec<String>,
        executable: Option<std::path::PathBuf>,
    ) -> PyResult<PyExecution> {
        let params = params.map_or_else(|| Ok(Vec::new()), |params| values::with_none(&params, "params"))?;
        let options =
            ExecutionOptions { name, reads, writes, params, env, executable, ..ExecutionOptions::default() };
        let handle = store.get().handle()?;
        context::switch(py)?;
        let execution = py.waiting(|| Execution::begin(&handle, options)).or_raise()?;
        Ok(PyExecution {
            membership: Py::new(py, PyMembership::of(&execution))?,
            pair: pair(execution.vertex()),
            job: pair(execution.job()),
            link: execution.link().encode(),
            execution: Mutex::new(execution),
        })
    }

    /// The type and id of its vertex in the graph.
    #[getter]
    fn pair(&self) -> (String, String) {
        self.pair.clone()
    }

    /// The type and id of its job, which may be the execution itself.
    #[getter]
    fn job(&self) -> (String, String) {
        self.job.clone()
    }

    /// The value of the context variable while it is open.
    #[getter]
    fn membership(&self, py: Python<'_>) -> Py<PyMembership> {
        self.membership.clone_ref(py)
    }

    /// The value of FIELDSTONE_EXECUTION for its children.
    #[getter]
    fn link(&self) -> &str {
        &self.link
    }

    /// Ends it; returns notes on anything that could not be recorded.
    fn end(
        &self,
        py: Python<'_>,
        code: Option<i64>,
        signal: Option<i64>,
        error: Option<String>,
    ) -> PyResult<Vec<String>> {
        let outcome = Outcome { exit: code, signal, error };
        let ended = py.waiting(|| {
            let mut execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner);
            let before = execution.notes().to_vec();
            execution.end(&outcome).map(|notes| if notes.is_empty() { before } else { notes })
        });
        ended.or_raise()
    }
}

/// Writes reads of this process that no store has recorded yet to the job's store.
#[pyfunction]
#[pyo3(name = "_record_late_reads")]
pub fn record_late_reads(py: Python<'_>) -> PyResult<()> {
    py.detach(fieldstone::execution::record_late_reads).or_raise()
}
