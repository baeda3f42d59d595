//! The class `_Store`, the native half of `fieldstone.Store`: each method converts its arguments, releases the
//! interpreter's lock, calls the facade and converts the result.
//!
//! | module | holds |
//! |---|---|
//! | `handle` | the handle while the store is open, and its end |
//! | `write`, `read` | writing fields, reading fields |
//! | `admin` | reports of a store, and the changes reserved to its owner |
//!
//! Calls that only one Python method needs are functions of their modules and take the store. Python builds its
//! interface to all of these and to the catalog once, in `fieldstone._store` (B-14). So a store made here becomes an
//! object of that class before any caller holds it.

mod admin;
mod handle;
mod read;
mod write;

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use fieldstone::prelude::*;
use fieldstone::{Id, Session};
use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};

pub use self::read::found;
use crate::autoflush::Autoflush;
use crate::catalog::PyCatalog;
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::opening::Opening;

use self::handle::Handle;

/// The native methods of a store.
#[pyclass(frozen, subclass, weakref, name = "_Store", module = "fieldstone._native")]
pub struct Store {
    pub(crate) handle: Handle,
    /// The communicator whose ranks opened it together.
    comm: Option<Py<PyAny>>,
}

/// An open store, before its Python object exists.
#[pyclass(frozen, name = "_Opened", module = "fieldstone._native")]
pub struct Opened(Mutex<Option<Store>>);

/// Warns of logs that are missing from every answer; Python shows each text once.
fn warn_of_skipped(py: Python<'_>, handle: &fieldstone::Store) -> PyResult<()> {
    for note in py.waiting(|| handle.skipped()).or_raise()? {
        let text = CString::new(note).map_err(|_| invalid("a file's name holds a zero byte", ""))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}

/// Opens a store.
pub fn open(py: Python<'_>, opening: Opening, comm: Option<Py<PyAny>>) -> PyResult<Py<Store>> {
    let store = opening.connect(py)?;
    warn_of_skipped(py, &store)?;
    let autoflush =
        opening.autoflush.filter(|every| *every != 0.0 && opening.writes()).map(Autoflush::new).transpose();
    let handle = Handle::new(store, Arc::new(opening), autoflush.or_raise()?);
    into_object(py, Store { handle, comm })
}

/// Opens the store of some fields again, pinned to their version; a store in memory opens in its current state.
pub fn again(
    py: Python<'_>,
    opening: &Arc<Opening>,
    store: &fieldstone::Store,
    version: String,
) -> PyResult<Py<Store>> {
    match opening.at(version) {
        Some(pinned) => open(py, pinned, None),
        None => {
            let handle = Handle::new(store.clone(), opening.clone(), None);
            into_object(py, Store { handle, comm: None })
        }
    }
}

/// Makes the object that users hold, of the Python class over this one (B-14).
fn into_object(py: Python<'_>, store: Store) -> PyResult<Py<Store>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "fieldstone._store", "Store")?;
    let object = class.call1((Opened(Mutex::new(Some(store))),))?;
    Ok(object.cast_into::<Store>()?.unbind())
}

/// The communicator whose ranks opened a store together.
#[pyfunction]
#[pyo3(name = "_comm_of")]
pub fn comm_of(py: Python<'_>, store: &Bound<'_, Store>) -> Option<Py<PyAny>> {
    store.get().comm.as_ref().map(|comm| comm.clone_ref(py))
}

/// The handle's session, in the transaction named by a call.
pub fn session(txn: Option<&str>) -> PyResult<Session> {
    let parse = |text: &str| {
        Id::parse(text).ok_or_else(|| {
            invalid(format!("txn={text:?} is not a valid transaction id"), "give tx.id of a transaction")
        })
    };
    Ok(txn.map(parse).transpose()?.into())
}

impl Store {
    /// The store of the facade; Invalid if this one is closed.
    pub fn handle(&self) -> PyResult<fieldstone::Store> {
        self.handle.get()
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (*args))]
    fn take(args: &Bound<'_, PyTuple>) -> PyResult<Store> {
        let given = args.extract::<(Bound<'_, Opened>,)>().ok();
        let opened =
            given.and_then(|(way,)| way.get().0.lock().unwrap_or_else(PoisonError::into_inner).take());
        opened.ok_or_else(|| {
            PyTypeError::new_err("cannot create 'fieldstone.Store' instances: use fieldstone.open")
        })
    }

    /// The URL, as the caller wrote it.
    #[getter]
    fn url(&self) -> &str {
        &self.handle.opening().url
    }

    /// The mode it was opened with: "a", "r" or "x".
    #[getter]
    fn mode(&self) -> &str {
        &self.handle.opening().mode
    }

    /// The text of the current schema.
    #[getter]
    fn schema(&self) -> PyResult<String> {
        Ok(self.handle()?.schema().text().to_owned())
    }

    /// Whether the store is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// A text that names the currently visible content; ``open(url, at=version)`` reads it again later.
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<String> {
        let handle = self.handle()?;
        py.waiting(|| handle.version()).or_raise()
    }

    /// Fields that this process archived here and has not flushed.
    #[getter]
    fn unflushed(&self, py: Python<'_>) -> PyResult<u64> {
        let handle = self.handle()?;
        Ok(py.detach(|| handle.unflushed()))
    }

    /// Makes everything that this process archived here durable, indexed and visible, all or nothing. With `txn`:
    /// makes everything archived into that transaction durable; it stays invisible.
    ///
    /// Raises Unavailable on failure, with the lost keys; also if the log or the store has been removed or replaced
    /// in the meantime. Another thread that lost fields in this failure gets the same error once, from its next flush
    /// or close; that call flushes nothing. A transaction that lost a part in this way refuses to commit.
    #[pyo3(signature = (*, txn=None))]
    fn flush(&self, py: Python<'_>, txn: Option<&str>) -> PyResult<()> {
        let (handle, txn) = (self.handle()?, session(txn)?);
        py.waiting(|| handle.flush(txn)).or_raise()
    }

    /// Discards everything that this process archived here and has not flushed.
    #[pyo3(signature = (*, txn=None))]
    fn discard(&self, py: Python<'_>, txn: Option<&str>) -> PyResult<()> {
        let (handle, txn) = (self.handle()?, session(txn)?);
        py.waiting(|| handle.discard(txn)).or_raise()
    }

    /// Looks for newer commits now. Every read does so itself.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.handle()?;
        py.waiting(|| handle.refresh()).or_raise()?;
        warn_of_skipped(py, &handle)
    }

    /// The store in its current state, for later reads: pinned to its version; a store in memory is itself.
    fn _pinned(&self, py: Python<'_>) -> PyResult<Py<Store>> {
        let handle = self.handle()?;
        let version = py.waiting(|| handle.version()).or_raise()?;
        again(py, self.handle.opening(), &handle, version)
    }

    /// Flushes and closes. Closing again does nothing; every other call then raises Invalid. Retrieved fields stay
    /// readable.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.end(py, false)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.handle.end(py, !kind.is_none())?;
        Ok(false)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let closed = if self.closed() { " closed" } else { "" };
        let opening = self.handle.opening();
        let at = opening.at.as_ref().map_or("", |_| " at an older version");
        let held = self.handle.held(py).unwrap_or_default();
        format!("<fieldstone.Store '{}' mode='{}'{at}{closed}{held}>", opening.url, opening.mode)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let opening = self.handle.opening();
        let (url, schema, compression, catalog) = opening.state()?;
        // A store that mode "x" made exists now.
        let mode = if opening.mode == "x" { "a" } else { &opening.mode };
        let (attempt, if_exists) = (&opening.attempt, &opening.if_exists);
        let row = (url, mode, schema, &opening.at, compression, catalog, attempt, if_exists);
        let restore = py.import("fieldstone._fields")?.getattr("restore_store")?;
        Ok((restore, row.into_pyobject(py)?))
    }

    /// The catalog.
    fn _catalog(slf: &Bound<'_, Self>) -> PyResult<PyCatalog> {
        PyCatalog::of(slf)
    }
}

/// Warns, once per open store, of a field that lacks the date that names its run.
pub fn warn_undated(py: Python<'_>, store: &fieldstone::Store) -> PyResult<()> {
    let Some(message) = store.undated() else { return Ok(()) };
    py.import("warnings")?.call_method1("warn", (message,))?;
    Ok(())
}
