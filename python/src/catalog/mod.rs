//! The catalog for Python: converts terms and values, and returns hits and rows.
//!
//! `terms`, `names`, `steps`, `levels`, `boxes` and `tests` turn keywords into the query model; `chain` joins them.
//! `values`, `columns`, `places` and `arrow` turn values and columns into records. `write` and `read` form the class
//! `_Catalog`, which `Store` and `Run` in Python wrap (B-2). `axis` selects xarray coordinates by the rules of
//! queries; `hits`, `hit_table` and `rows` are the results.

mod arrow;
mod axis;
mod boxes;
mod chain;
pub mod columns;
mod features;
pub mod hit_table;
pub mod hits;
pub mod levels;
mod names;
mod outside;
mod places;
pub mod read;
mod rows;
mod steps;
mod terms;
pub mod tests;
pub mod values;
mod write;
mod writers;

use fieldstone::catalog::{CatalogAccess, RunName};
use pyo3::prelude::*;

pub use axis::PyCoordinateAxis;
pub use boxes::Region;
pub use hit_table::PyHitTable;
pub use hits::{HitStream, PyHit};
pub use read::PyQuery;
pub use terms::{PyRelated, PyWhere};
pub use tests::PyTest;
pub use values::object;
pub use writers::PyWriter;

use crate::store::Store;

/// The catalog of a store, as the Python methods call it.
#[pyclass(frozen, name = "_Catalog", module = "fieldstone")]
pub struct PyCatalog {
    handle: fieldstone::Store,
    store: Py<Store>,
}

impl PyCatalog {
    /// The catalog of a store.
    pub fn of(store: &Bound<'_, Store>) -> PyResult<PyCatalog> {
        Ok(PyCatalog { handle: store.get().handle()?, store: store.clone().unbind() })
    }

    fn catalog(&self) -> &dyn CatalogAccess {
        self.handle.catalog()
    }
}

/// A run's project, if any, and its name.
type RunPair = (Option<String>, String);

fn run_name((project, name): RunPair) -> RunName {
    RunName { project: project.unwrap_or_default(), name }
}
