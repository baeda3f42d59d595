//! The stores open in this process, so that a normal exit can flush pending writes.
//!
//! A store dropped with unflushed fields is kept until exit. The lock here is held only together with the
//! interpreter's lock and never across a call, so a fork cannot leave it locked in a child.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fieldstone::FieldStore;
use fieldstone::Session;
use pyo3::prelude::*;

use crate::errors::exception;

static STORES: Mutex<Stores> = Mutex::new(Stores { open: Vec::new(), left: Vec::new() });

struct Stores {
    open: Vec<Weak<dyn FieldStore>>,
    /// Stores that Python dropped with unflushed writes; flushing a store also flushes its catalog.
    left: Vec<fieldstone::Store>,
}

fn stores() -> MutexGuard<'static, Stores> {
    STORES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a store until it is dropped.
pub fn add(store: &fieldstone::Store) {
    let mut stores = stores();
    stores.open.retain(|other| other.strong_count() > 0);
    stores.open.push(Arc::downgrade(&store.fields()));
}

/// Keeps a store that was dropped unflushed until exit.
pub fn keep(store: fieldstone::Store) {
    stores().left.push(store);
}

/// Flushes and closes every open store, or discards unflushed writes if the program ends with an error. A failure
/// does not stop the others; the first one is raised.
#[pyfunction]
#[pyo3(name = "_finish", signature = (*, discard))]
pub fn finish(py: Python<'_>, discard: bool) -> PyResult<()> {
    let (open, left) = {
        let mut stores = stores();
        (std::mem::take(&mut stores.open), std::mem::take(&mut stores.left))
    };
    let open = open.iter().filter_map(Weak::upgrade);
    let all: Vec<Arc<dyn FieldStore>> = open.chain(left.iter().map(fieldstone::Store::fields)).collect();
    let failed = py.detach(|| {
        let ends = all.iter().map(|store| {
            if discard {
                store.discard(&Session::default())?;
            }
            store.close(&Session::default()).map_err(|e| e.context(format!("at exit, {}", store.url())))
        });
        let failed: Vec<_> = ends.filter_map(|end| end.err()).collect();
        // A store may be in both lists, and its writer closes only once.
        drop((all, left));
        failed
    });
    failed.into_iter().next().map_or(Ok(()), |error| Err(exception(error)))
}
