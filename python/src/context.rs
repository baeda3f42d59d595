//! To which execution a call belongs: Python knows it by a context variable, of which threads and tasks have each their
//! own. Where several executions are open, each call that may wait asks for it first ([`sync`]).

use fieldstone::execution::{Execution, Membership};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// That something belongs to an execution: what the context variable holds.
#[pyclass(frozen, name = "_Membership", module = "fieldstone")]
pub struct PyMembership(Membership);

impl PyMembership {
    /// Of an execution.
    pub fn of(execution: &Execution) -> PyMembership {
        PyMembership(execution.membership())
    }
}

/// Has this thread's calls belong to the execution that Python's context names, where that matters.
pub fn sync(py: Python<'_>) {
    if Membership::matters()
        && let Err(error) = switch(py)
    {
        // A broken context is not the caller's fault, and takes no result from him.
        error.write_unraisable(py, None);
    }
}

/// The same, whether it matters or not.
pub fn switch(py: Python<'_>) -> PyResult<()> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT.import(py, "fieldstone._execution", "_current")?;
    let current = current.call_method0("get")?;
    let own = current.cast::<PyMembership>().ok();
    Membership::switch(own.as_ref().map(|own| &own.get().0));
    Ok(())
}
