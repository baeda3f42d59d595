//! What Python hands over as several: lists, tuples, other sequences, iterables.
//!
//! Any class may say of itself how long it is, and be wrong. So nothing here asks for `__len__` or
//! `__length_hint__`, or makes room ahead: items are taken one by one, as long as they come, and Ctrl-C is
//! heard meanwhile.

use fieldstone::catalog::value::{DEPTH, too_deep};
use pyo3::Borrowed;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyType};

use crate::errors::{Raise, invalid};
use crate::request::type_name;

/// Items between two looks for signals.
const UNHEARD: usize = 1024;

/// What `take` makes of each item.
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

/// Whether an object is a mapping. Classes may answer by code of their own; what that raises is not lost.
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

/// What `take` makes of each key and value of a mapping.
pub fn pairs<'py, T>(
    mapping: &Bound<'py, PyAny>,
    mut take: impl FnMut(Bound<'py, PyAny>, Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Vec<T>> {
    // A dict is copied: reading a value may run a program's code, which may change the dict.
    let items = match mapping.cast::<PyDict>() {
        Ok(dict) => dict.items().into_any(),
        Err(_) => mapping.call_method0(pyo3::intern!(mapping.py(), "items"))?,
    };
    each(&items, |pair| {
        let (key, value) = pair.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>()?;
        take(key, value)
    })
}

/// Elements that lists and dicts hold in all, at most. One list may stand in many others, so that a few objects can
/// stand for more than memory holds.
const ELEMENTS: usize = 1_000_000;

/// What may still be read of lists within lists.
#[derive(Debug)]
pub struct Room {
    elements: usize,
}

impl Room {
    pub fn new() -> Room {
        Room { elements: ELEMENTS }
    }

    /// One more element, which stands `depth` deep: no deeper than values are, so that reading by recursion fits
    /// the stack, also where a list holds itself.
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

/// An argument of several: a sequence, though no text.
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
            return Err(PyTypeError::new_err(format!("{} is no sequence", type_name(&object))));
        }
        each(&object, |item| item.extract::<T>().map_err(Into::into)).map(Several)
    }
}
