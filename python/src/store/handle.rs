//! The handle of a store as long as it is open: any thread of Python takes it from here, and closing empties it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fieldstone::ReadOptions;
use fieldstone::prelude::*;
use pyo3::prelude::*;

use crate::autoflush::Autoflush;
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::opening::Opening;
use crate::registry;

/// The handle of a store, until it is closed.
pub struct Handle {
    open: Mutex<Option<fieldstone::Store>>,
    autoflush: Option<Autoflush>,
    opening: Arc<Opening>,
}

impl Handle {
    pub fn new(store: fieldstone::Store, opening: Arc<Opening>, autoflush: Option<Autoflush>) -> Handle {
        Handle { open: Mutex::new(Some(store)), autoflush, opening }
    }

    /// How the store was opened.
    pub fn opening(&self) -> &Arc<Opening> {
        &self.opening
    }

    fn lock(&self) -> MutexGuard<'_, Option<fieldstone::Store>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store; Invalid where it is closed.
    pub fn get(&self) -> PyResult<fieldstone::Store> {
        Python::attach(crate::context::sync);
        let store = self.lock().clone();
        let store = store
            .ok_or_else(|| invalid(format!("the store {} is closed", self.opening.url), "open it again"))?;
        if let Some(autoflush) = &self.autoflush {
            autoflush.check(&store).or_raise()?;
        }
        Ok(store)
    }

    pub fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    /// A store that is new, holds nothing and was opened without a schema gets the one that fits.
    pub fn give_schema(
        &self,
        py: Python<'_>,
        fitting: impl FnOnce() -> fieldstone::Result<String> + Send,
    ) -> PyResult<()> {
        let handle = self.get()?;
        if self.opening.schema.is_some() || self.opening.at.is_some() || handle.unflushed() > 0 {
            return Ok(());
        }
        let fitting = py.waiting(|| -> fieldstone::Result<_> {
            if handle.status()?.id.is_some() {
                return Ok(None);
            }
            let fitting = fitting()?;
            let (known, schema) = (Some(fitting.as_str()), handle.schema());
            Ok((schema.name() != known && schema.text() != fitting).then_some(fitting))
        });
        if let Some(fitting) = fitting.or_raise()? {
            let opened = self.opening.with_schema(&fitting).connect(py)?;
            *self.lock() = Some(opened);
        }
        Ok(())
    }

    /// How many values its first keywords have, in a few words; nothing where nobody can say.
    pub fn held(&self, py: Python<'_>) -> Option<String> {
        let store = self.get().ok()?;
        let axes = py.waiting(|| store.axes(&fieldstone::Request::new(), &ReadOptions::default()));
        let count = |(keyword, values): &(Arc<str>, Vec<fieldstone::KeyValue>)| {
            format!("{} of {keyword}", values.len())
        };
        let counts: Vec<String> = axes.ok()?.iter().take(3).map(count).collect();
        (!counts.is_empty()).then(|| format!(", values: {}", counts.join(", ")))
    }

    /// Flushes, or discards, and closes.
    pub fn end(&self, py: Python<'_>, discard: bool) -> PyResult<()> {
        let Some(store) = self.lock().take() else { return Ok(()) };
        if let Some(autoflush) = &self.autoflush {
            autoflush.stop();
        }
        let ended = py.waiting(|| {
            if discard {
                store.discard(None)?;
            }
            store.close()
        });
        if ended.is_err() {
            // What could not be flushed stays with the caller, who may mend the medium and try again.
            *self.lock() = Some(store);
        }
        ended.or_raise()
    }
}

/// A store that is dropped without being closed keeps what it did not flush until the program ends.
impl Drop for Handle {
    fn drop(&mut self) {
        let store = self.open.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(store) = store.filter(|store| store.unflushed() > 0 || store.uses_catalog()) {
            registry::keep(store);
        }
    }
}
