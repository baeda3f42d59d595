//! The stores that are open in this process, so that a normal exit can flush what nobody flushed.
//!
//! A store that is dropped with unflushed fields is kept until then. The lock is held only while the
//! interpreter's lock is, too, and never across a call: so a fork cannot leave it locked in a child.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fieldstone::FieldStore;
use fieldstone::Session;
use pyo3::prelude::*;

use crate::errors::exception;

static STORES: Mutex<Stores> = Mutex::new(Stores { open: Vec::new(), left: Vec::new() });

struct Stores {
    open: Vec<Weak<dyn FieldStore>>,
    /// Dropped by Python with what is not flushed; a catalog gives its share when its store is flushed.
    left: Vec<fieldstone::Store>,
}

fn stores() -> MutexGuard<'static, Stores> {
    STORES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers a store until it is gone.
pub fn add(store: &fieldstone::Store) {
    let mut stores = stores();
    stores.open.retain(|other| other.strong_count() > 0);
    stores.open.push(Arc::downgrade(&store.fields()));
}

/// Keeps a store that was dropped unflushed until the end.
pub fn keep(store: fieldstone::Store) {
    stores().left.push(store);
}

/// Flushes and closes every store that is still open, or discards what is unflushed where the program
/// ends by an error. What fails does not keep the others from it; the first failure is raised.
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
        // The same store may stand in both lists, and its writer closes only once.
        drop((all, left));
        failed
    });
    failed.into_iter().next().map_or(Ok(()), |error| Err(exception(error)))
}
