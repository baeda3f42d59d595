//! The module `fieldstone._native`: parses what Python hands over, calls the facade, converts what
//! comes back. No logic of its own; the package `fieldstone` in Python is a thin layer over it.

use pyo3::prelude::*;

/// The native half of the package `fieldstone`.
#[pymodule(name = "_native")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
