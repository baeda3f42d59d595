//! Reads sequences from Python: lists, tuples, other sequences, iterables.
//!
//! A class may report a wrong length. So nothing here calls `__len__` or `__length_hint__` or reserves room in
//! advance: items are taken one by one until they end, and Ctrl-C works throughout.

use fieldstone::catalog::value::{DEPTH, too_deep};
use pyo3::Borrowed;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyType};

use crate::errors::{Raise, invalid};
use crate::request::type_name;

/// Items between two checks for signals.
const UNHEARD: usize = 1024;

/// Collects the results of `take` for each item.
pub fn each<'py, T>(
    object: &Bound<'py, PyAny>,
    mut take: impl FnMut(Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    let mut all = Vec::new();
    for item in object.try_iter()? {
        all.push(take(item?)?);
        if all.len() % UNHEARD == 0 {
            object.py().check_signals()?;
        }
    }
    Ok(all)
}

/// The items of an iterable as a list, for the Python half of the package.
#[pyfunction]
#[pyo3(name = "_items")]
pub fn items<'py>(given: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    each(given, Ok)
}

/// Whether an object is a mapping. A class may answer with its own code, whose exceptions pass through.
pub fn is_mapping(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static MAPPING: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if object.is_instance_of::<PyDict>() {
        return Ok(true);
    }
    if object.is_instance_of::<PyString>() || object.is_exact_instance_of::<PyList>() {
        return Ok(false);
    }
    object.is_instance(MAPPING.import(object.py(), "collections.abc", "Mapping")?)
}

/// Collects the results of `take` for each key and value of a mapping.
pub fn pairs<'py, T>(
    mapping: &Bound<'py, PyAny>,
    mut take: impl FnMut(Bound<'py, PyAny>, Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    // Copies a dict: reading a value may run the program's code, which may change the dict.
    let items = match mapping.cast::<PyDict>() {
        Ok(dict) => dict.items().into_any(),
        Err(_) => mapping.call_method0(pyo3::intern!(mapping.py(), "items"))?,
    };
    each(&items, |pair| {
        let (key, value) = pair.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
        take(key, value)
    })
}

/// The most elements that lists and dicts may hold in total. Many lists may contain the same list, so a few objects
/// can represent more elements than memory holds.
const ELEMENTS: usize = 1_000_000;

/// The number of elements of nested lists that may still be read.
#[derive(Debug)]
pub struct Room {
    elements: usize,
}

impl Room {
    pub fn new() -> Room {
        Room { elements: ELEMENTS }
    }

    /// Counts one more element, at depth `depth`. Limits the depth to that of values, so that recursion fits the
    /// stack even if a list contains itself.
    pub fn take(&mut self, depth: usize, what: &str) -> PyResult<()> {
        if depth > DEPTH {
            return Err::<(), _>(too_deep(what)).or_raise();
        }
        self.elements = self.elements.checked_sub(1).ok_or_else(|| {
            invalid(
                format!("{what} has more than {ELEMENTS} elements"),
                "give fewer; large arrays are fields",
            )
        })?;
        Ok(())
    }
}

/// An argument with several items: a sequence, but not text.
#[derive(Debug, Clone)]
pub struct Several<T>(pub Vec<T>);

impl<T> Several<T> {
    pub fn all(self) -> Vec<T> {
        self.0
    }
}

impl<'a, 'py, T: FromPyObjectOwned<'py>> FromPyObject<'a, 'py> for Several<T> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Several<T>> {
        let object = object.to_owned();
        let sequence = object.hasattr(pyo3::intern!(object.py(), "__getitem__"))?;
        if !sequence || object.is_instance_of::<PyString>() || object.is_instance_of::<PyDict>() {
            return Err(PyTypeError::new_err(format!("{} is not a sequence", type_name(&object))));
        }
        each(&object, |item| item.extract::<T>().map_err(Into::into)).map(Several)
    }
}
