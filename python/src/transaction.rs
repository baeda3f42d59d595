//! Transactions, as Python's class `Transaction` calls them.

use fieldstone::Transaction;
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::sequence::Several;
use crate::store::{Store, session};

/// A transaction of an open store. Only calls decide it, because Python may drop objects at any time.
#[pyclass(frozen, name = "_Transaction", module = "fieldstone")]
pub struct PyTransaction {
    transaction: Transaction,
    store: Py<Store>,
}

impl PyTransaction {
    /// Returns the transaction; Invalid if the store is closed.
    fn open(&self) -> PyResult<&Transaction> {
        self.store.get().handle()?;
        Ok(&self.transaction)
    }
}

impl Drop for PyTransaction {
    fn drop(&mut self) {
        let _ = self.transaction.detach();
    }
}

#[pymethods]
impl PyTransaction {
    /// The id; the caller may pass it to other processes.
    #[getter]
    fn id(&self) -> String {
        self.transaction.id().to_string()
    }

    /// The id, for display.
    #[getter]
    fn text(&self) -> String {
        self.transaction.text()
    }

    /// Whether another process began it.
    #[getter]
    fn joined(&self) -> bool {
        self.transaction.is_joined()
    }

    /// "open", "joined", "committed" or "aborted".
    #[getter]
    fn state(&self) -> &'static str {
        self.transaction.state()
    }

    /// The id for writes; Invalid if the transaction is decided.
    fn writing(&self) -> PyResult<String> {
        Ok(self.transaction.writing().or_raise()?.to_string())
    }

    /// The id for reads; None if the transaction is decided.
    fn reading(&self) -> Option<String> {
        self.transaction.reading().map(|id| id.to_string())
    }

    /// Records that another process may now know the id.
    fn note_given(&self) {
        self.transaction.note_given();
    }

    fn activate(&self, py: Python<'_>, kinds: Several<String>, on: bool) -> PyResult<()> {
        let transaction = self.open()?;
        let kinds: Vec<&str> = kinds.0.iter().map(String::as_str).collect();
        let decided = py.waiting(|| match on {
            true => transaction.activate(&kinds),
            false => transaction.deactivate(&kinds),
        });
        decided.or_raise()
    }

    fn decide(&self, py: Python<'_>, commit: bool) -> PyResult<()> {
        let transaction = self.open()?;
        py.waiting(|| if commit { transaction.commit() } else { transaction.abort() }).or_raise()
    }

    /// Another process decided the transaction: later reads show what everyone sees.
    fn detach(&self) {
        let _ = self.transaction.detach();
    }

    /// Leaves a `with` block, which succeeded or failed.
    fn leave(&self, py: Python<'_>, good: bool) -> PyResult<()> {
        if self.transaction.reading().is_none() {
            return Ok(());
        }
        let transaction = self.open()?;
        py.waiting(|| transaction.leave(good)).or_raise()
    }
}

/// A new transaction, or the one with this id.
#[pyfunction]
#[pyo3(name = "_transaction")]
pub fn transaction(store: &Bound<'_, Store>, id: Option<&str>) -> PyResult<PyTransaction> {
    let handle = store.get().handle()?;
    let transaction = match session(id)?.transaction() {
        Some(joined) => handle.join_transaction(joined),
        None => store.py().waiting(|| handle.transaction()).or_raise()?,
    };
    Ok(PyTransaction { transaction, store: store.clone().unbind() })
}

/// Decides a transaction by its id, whichever process began it: for tools that know only the id.
#[pyfunction]
#[pyo3(name = "_decide")]
pub fn decide(py: Python<'_>, store: &Bound<'_, Store>, id: &str, commit: bool) -> PyResult<()> {
    let handle = store.get().handle()?;
    let Some(id) = session(Some(id))?.transaction() else { return Ok(()) };
    py.waiting(|| handle.decide(id, commit)).or_raise()
}
