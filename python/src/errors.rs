//! Maps Fieldstone's errors to the exceptions of `fieldstone.errors`.

use fieldstone::{Code, Error, ErrorKind};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};

static CLASSES: [PyOnceLock<Py<PyType>>; ErrorKind::ALL.len()] =
    [const { PyOnceLock::new() }; ErrorKind::ALL.len()];

/// The code that an exception carries as text, or the code of its kind.
pub fn code_of(text: Option<&str>, kind: &str) -> Code {
    let general = || ErrorKind::ALL.into_iter().find(|known| known.name() == kind).map(Code::from);
    text.and_then(Code::of_text).or_else(general).unwrap_or(Code::Invalid)
}

/// The exception for an error: the class of its kind, with message, hint and code.
pub fn exception(error: Error) -> PyErr {
    Python::attach(|py| {
        let place = ErrorKind::ALL.iter().position(|kind| *kind == error.kind()).unwrap_or(0);
        let class = CLASSES[place].import(py, "fieldstone.errors", error.kind().name());
        match class.and_then(|class| class.call1((error.message(), error.hint(), error.code().as_str()))) {
            Ok(value) => PyErr::from_value(value),
            Err(failure) => failure,
        }
    })
}

/// `or_raise` instead of `?`, from Fieldstone's results to Python's.
pub trait Raise<T> {
    /// The value, or the error as an exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> Raise<T> for fieldstone::Result<T> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(exception)
    }
}

/// Handles errors while an argument is read.
pub trait Refuse<T> {
    /// The value; or `wrong` for an error that the argument caused. Other exceptions, such as Ctrl-C and the
    /// interpreter's exit, pass through.
    fn or_refuse(self, py: Python<'_>, wrong: impl FnOnce() -> PyErr) -> PyResult<T>;

    /// The value, or `None` if the argument is something else.
    fn if_it_is(self, py: Python<'_>) -> PyResult<Option<T>>;
}

impl<T> Refuse<T> for PyResult<T> {
    fn or_refuse(self, py: Python<'_>, wrong: impl FnOnce() -> PyErr) -> PyResult<T> {
        self.if_it_is(py)?.ok_or_else(wrong)
    }

    fn if_it_is(self, py: Python<'_>) -> PyResult<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Python text as UTF-8; Invalid if it has lone surrogates, as file names that are not UTF-8 do.
pub fn utf8<'a>(text: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    text.to_str().or_refuse(text.py(), || {
        let shown = text.repr().map_or_else(|_| "a text".to_owned(), |shown| shown.to_string());
        invalid(format!("{shown} is text that UTF-8 cannot encode"), "give text without lone surrogates")
    })
}

/// `Invalid` with a hint, ready to raise.
pub fn invalid(message: impl Into<String>, hint: &str) -> PyErr {
    exception(Error::invalid(message).with_hint(hint))
}
