//! From the errors of Fieldstone to the exceptions of `fieldstone.errors`.

use fieldstone::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

static CLASSES: [PyOnceLock<Py<PyType>>; ErrorKind::ALL.len()] =
    [const { PyOnceLock::new() }; ErrorKind::ALL.len()];

/// The exception for an error: the class of its kind, with message and hint.
pub fn exception(error: Error) -> PyErr {
    Python::attach(|py| {
        let place = ErrorKind::ALL.iter().position(|kind| *kind == error.kind()).unwrap_or(0);
        let class = CLASSES[place].import(py, "fieldstone.errors", error.kind().name());
        match class.and_then(|class| class.call1((error.message(), error.hint()))) {
            Ok(value) => PyErr::from_value(value),
            Err(failure) => failure,
        }
    })
}

/// `?` from Fieldstone's results to Python's.
pub trait Raise<T> {
    /// The value, or the error as an exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> Raise<T> for fieldstone::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}

/// `Invalid` with a hint, ready to be raised.
pub fn invalid(message: impl Into<String>, hint: &str) -> PyErr {
    exception(Error::invalid(message).with_hint(hint))
}
