//! The execution that a call belongs to. Python keeps it in a context variable, which each thread and task has its
//! own value of. While executions are open, each call that may wait reads the variable first ([`sync`]).

use fieldstone::execution::{Execution, Membership};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The value of the context variable: membership in an execution.
#[pyclass(frozen, name = "_Membership", module = "fieldstone")]
pub struct PyMembership(Membership);

impl PyMembership {
    /// Membership in `execution`.
    pub fn of(execution: &Execution) -> PyMembership {
        PyMembership(execution.membership())
    }
}

/// Assigns this thread's calls to the execution in Python's context, if it matters.
pub fn sync(py: Python<'_>) {
    if Membership::matters()
        && let Err(error) = switch(py)
    {
        // A broken context is not the caller's fault and must not cost the caller a result.
        error.write_unraisable(py, None);
    }
}

/// Like [`sync`], but unconditionally.
pub fn switch(py: Python<'_>) -> PyResult<()> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT.import(py, "fieldstone._execution", "_current")?;
    let current = current.call_method0("get")?;
    let own = current.cast::<PyMembership>().ok();
    Membership::switch(own.as_ref().map(|own| &own.get().0));
    Ok(())
}
