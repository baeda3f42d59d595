//! The provenance graph for Python: the class `_Graph`, which `Graph` in Python wraps.
//!
//! `write` puts and deletes, `columns` puts many at once, `read` returns vertices, relations and lineages as tuples,
//! from which Python makes its classes; `travel` traverses step by step; `share` exports, compares and audits;
//! `subject` parses the subjects of lineage queries.

mod columns;
mod partitions;
mod read;
mod share;
mod subject;
mod travel;
mod write;

pub use self::partitions::{partition, partitions_of};
pub use share::{audit, compare, export, script};
pub use subject::Traced;
pub use travel::{PyPaths, PyTravelled};

use fieldstone::graph::{GraphAccess, Props, VertexName};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::catalog::values;
use crate::errors::{Raise, invalid};
use crate::fields::{Origin, PyField};
use crate::request::type_name;
use crate::store::{Store, session};

/// The graph of a store, as seen by a transaction if one is named.
#[pyclass(frozen, name = "_Graph", module = "fieldstone")]
pub struct PyGraph {
    session: fieldstone::Session,
    handle: fieldstone::Store,
    /// `None` for the graph of a field, which keeps its store open.
    store: Option<Py<Store>>,
}

/// The graph of a store, in a transaction if an id is given.
#[pyfunction]
#[pyo3(name = "_graph_of", signature = (store, txn=None))]
pub fn graph_of(store: &Bound<'_, Store>, txn: Option<&str>) -> PyResult<PyGraph> {
    let (handle, session) = (store.get().handle()?, session(txn)?);
    Ok(PyGraph { session, handle, store: Some(store.clone().unbind()) })
}

#[pymethods]
impl PyField {
    /// The graph of its store.
    fn _graph(&self) -> PyResult<PyGraph> {
        let none = || invalid("the store of this field is unknown", "retrieve it");
        let Origin { handle, session, .. } = self.origin().ok_or_else(none)?;
        Ok(PyGraph { session: session.clone(), handle: handle.clone(), store: None })
    }
}

impl PyGraph {
    /// Returns the graph; Invalid if the store is closed.
    fn open(&self) -> PyResult<&dyn GraphAccess> {
        if let Some(store) = &self.store {
            store.get().handle()?;
        }
        Ok(self.handle.graph())
    }
}

/// A vertex: a pair of texts, or an object with such a pair as `pair`.
fn name(object: &Bound<'_, PyAny>) -> PyResult<VertexName> {
    if let Ok(pair) = object.cast::<PyTuple>()
        && pair.len() == 2
        && let (Ok(kind), Ok(id)) =
            (pair.get_item(0)?.cast::<PyString>(), pair.get_item(1)?.cast::<PyString>())
    {
        let text = |part: &Bound<'_, PyString>| {
            let text = part.to_str().map(str::to_owned);
            text.map_err(|_| {
                invalid("a vertex's type or id is text that UTF-8 cannot encode", "write it in ASCII")
            })
        };
        return Ok(VertexName::new(&text(kind)?, &text(id)?));
    }
    if let Ok(pair) = object.getattr("pair") {
        return name(&pair);
    }
    Err(invalid(
        format!("{} does not name a vertex", type_name(object)),
        "a vertex is a pair of texts: (\"file\", \"/data/a.nc\")",
    ))
}

/// The properties in a dict; None is a value.
fn props(map: Option<&Bound<'_, PyDict>>, what: &str) -> PyResult<Props> {
    let Some(map) = map else { return Ok(Props::default()) };
    let pairs = values::with_none(map, what)?;
    Props::of(pairs.iter().map(|(name, value)| (name.as_str(), value))).or_raise()
}
