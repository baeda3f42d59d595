//! The handle of an open store: every Python thread takes it from here, and closing empties it.

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

    /// The store; Invalid if it is closed.
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

    /// Gives a schema that fits the fields to a new, empty store that was opened without one.
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

    /// A short text on the number of values of its first keywords; `None` if that cannot be determined.
    pub fn held(&self, py: Python<'_>) -> Option<String> {
        let store = self.get().ok()?;
        let axes = py.waiting(|| store.axes(&fieldstone::Request::new(), &ReadOptions::default()));
        let count = |(keyword, values): &(Arc<str>, Vec<fieldstone::KeyValue>)| {
            format!("{} of {keyword}", values.len())
        };
        let counts: Vec<String> = axes.ok()?.iter().take(3).map(count).collect();
        (!counts.is_empty()).then(|| format!(", values: {}", counts.join(", ")))
    }

    /// Flushes or discards, then closes.
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
            // If the flush fails, the store stays open, so that the caller can repair the medium and try again.
            *self.lock() = Some(store);
        }
        ended.or_raise()
    }
}

/// A store that is dropped without being closed keeps its unflushed writes until the program exits.
impl Drop for Handle {
    fn drop(&mut self) {
        let store = self.open.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // A catalog hands over its records only at a flush, so `unflushed` may not count them.
        if let Some(store) = store.filter(|store| store.unflushed() > 0 || store.uses_catalog()) {
            registry::keep(store);
        }
    }
}
