//! Expands a request into its keys, one by one, without looking into the store.

use std::sync::{Mutex, PoisonError};

use fieldstone::prelude::*;
use fieldstone::{Keys, Schema};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::errors::Raise;
use crate::keys::{Interner, Key};

/// The result of ``store.expand``: the keys that a request names, in its order. It stores no keys: it makes each on
/// request, and every loop starts from the first.
#[pyclass(frozen, name = "Expansion", module = "fieldstone")]
pub struct Expansion {
    keys: Vec<Keys>,
    schema: Schema,
    count: u64,
}

impl Expansion {
    /// The keys that requests name.
    pub fn of(
        py: Python<'_>,
        handle: &fieldstone::Store,
        requests: &[fieldstone::Request],
    ) -> PyResult<Expansion> {
        let expand = || {
            let keys = requests.iter().map(|request| handle.select(request)?.expand());
            let keys = keys.collect::<fieldstone::Result<Vec<_>>>()?;
            let count = keys.iter().fold(0, |n: u64, keys| n.saturating_add(keys.count_keys()));
            Ok(Expansion { keys, schema: handle.schema(), count })
        };
        py.detach(expand).or_raise()
    }
}

#[pymethods]
impl Expansion {
    fn __len__(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    fn __iter__(&self) -> ExpansionIterator {
        let interner = Interner::new(Some(self.schema.clone()));
        ExpansionIterator { state: Mutex::new((self.keys.clone(), 0, interner)) }
    }

    fn __repr__(&self) -> String {
        format!("<Expansion of {} keys>", self.count)
    }
}

/// A loop over an expansion.
#[pyclass(frozen, module = "fieldstone")]
pub struct ExpansionIterator {
    /// Keys of each request, the index of the current request, and the names that keys share.
    state: Mutex<(Vec<Keys>, usize, Interner)>,
}

#[pymethods]
impl ExpansionIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Key>> {
        let mut guard = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let (keys, turn, interner) = &mut *guard;
        while let Some(current) = keys.get_mut(*turn) {
            if let Some(key) = current.next() {
                return interner.key(py, key, 3).map(Some);
            }
            *turn += 1;
        }
        Ok(None)
    }
}
