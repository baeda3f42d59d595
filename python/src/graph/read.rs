//! Reads from the graph, as tuples.

use fieldstone::catalog::value::Value;
use fieldstone::graph::{Lineage, LineageStore, Relation, TraceOptions, Versions, Vertex, VertexName, Way};
use fieldstone::prelude::*;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::subject::{Traced, asked_for};
use super::{PyGraph, name};
use crate::catalog::object;
use crate::errors::{Raise, invalid};
use crate::listing::PyListing;
use crate::log::Waiting as _;

/// Type and id.
pub(super) type Pair = (String, String);
/// Pair, static properties, properties, stamp, time in nanoseconds, user, whether it is a deletion, location of its
/// properties.
pub(super) type VertexRow<'py> =
    (Pair, Bound<'py, PyDict>, Bound<'py, PyDict>, u64, i64, u32, bool, Option<String>);
/// Type, near pair, far pair, whether the far end is the source, properties, stamp, time, until, user, deleted,
/// location of its properties.
pub(super) type EdgeRow<'py> =
    (String, Pair, Pair, bool, Bound<'py, PyDict>, u64, i64, Option<u64>, u32, bool, Option<String>);
/// Id, URL, commits, and why the lineage stops there.
type StoreRow = (String, Option<String>, u64, Option<String>);
/// Root, all roots, vertices with depths, relations, whether it was cut off, other stores, its tree as text, and
/// itself.
type LineageRow<'py> =
    (Pair, Vec<Pair>, Vec<(Pair, u32)>, Vec<EdgeRow<'py>>, bool, Vec<StoreRow>, String, Traced);

/// Segments, vertices, relations, bytes, problems, archives.
type StatsRow = (u64, u64, u64, u64, Vec<String>, Vec<(String, u64)>);

/// The most lines of a printed tree.
const SHOWN: usize = 40;

pub(super) fn pair(name: &VertexName) -> Pair {
    (name.kind.to_string(), name.id.to_string())
}

fn dict<'py>(py: Python<'py>, pairs: &[(String, Value)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in pairs {
        dict.set_item(name, object(py, value)?)?;
    }
    Ok(dict)
}

pub(super) fn vertex_row<'py>(py: Python<'py>, vertex: &Vertex) -> PyResult<VertexRow<'py>> {
    let (fixed, props) = (dict(py, &vertex.fixed)?, dict(py, &vertex.props)?);
    let archived = vertex.archived.as_ref().map(ToString::to_string);
    Ok((pair(&vertex.name), fixed, props, vertex.stamp, vertex.time, vertex.user, vertex.deleted, archived))
}

pub(super) fn edge_row<'py>(py: Python<'py>, edge: &Relation) -> PyResult<EdgeRow<'py>> {
    Ok((
        edge.kind.clone(),
        pair(&edge.near),
        pair(&edge.far),
        edge.reverse,
        dict(py, &edge.props)?,
        edge.stamp,
        edge.time,
        edge.until,
        edge.user,
        edge.deleted,
        edge.archived.as_ref().map(ToString::to_string),
    ))
}

fn way(direction: &str) -> PyResult<Way> {
    match direction {
        "up" => Ok(Way::Up),
        "down" => Ok(Way::Down),
        "both" => Ok(Way::Both),
        _ => Err(invalid(format!("direction={direction:?}"), "give \"up\", \"down\" or \"both\"")),
    }
}

fn lineage_row<'py>(
    py: Python<'py>,
    (found, stores): (Lineage, Vec<LineageStore>),
    at: Option<u64>,
) -> PyResult<LineageRow<'py>> {
    let tree = found.tree(SHOWN);
    let Lineage { root, roots, vertices, edges, truncated, .. } = &found;
    let roots = roots.iter().map(pair).collect();
    let other =
        |store: &LineageStore| (store.id.to_string(), store.url.clone(), store.commits, store.left.clone());
    let others = stores.iter().map(other).collect();
    let vertices = vertices.iter().map(|step| (pair(&step.name), step.depth)).collect();
    let edges = edges.iter().map(|edge| edge_row(py, edge)).collect::<PyResult<_>>()?;
    let (root, truncated) = (pair(root), *truncated);
    Ok((root, roots, vertices, edges, truncated, others, tree, Traced { lineage: found, stores, at }))
}

#[pymethods]
impl PyGraph {
    fn vertex<'py>(
        &self,
        py: Python<'py>,
        vertex: &Bound<'py, PyAny>,
        at: Option<u64>,
    ) -> PyResult<VertexRow<'py>> {
        let (graph, vertex) = (self.open()?, name(vertex)?);
        let found = py.waiting(|| graph.vertex(&vertex, at, &self.session)).or_raise()?;
        vertex_row(py, &found)
    }

    fn versions<'py>(&self, py: Python<'py>, vertex: &Bound<'py, PyAny>) -> PyResult<Vec<VertexRow<'py>>> {
        let (graph, vertex) = (self.open()?, name(vertex)?);
        let found = py.waiting(|| graph.versions(&vertex, &self.session)).or_raise()?;
        found.iter().map(|vertex| vertex_row(py, vertex)).collect()
    }

    /// `versions`: None for the relations that hold at `at`, or the two stamps that bound the versions.
    fn edges<'py>(
        &self,
        py: Python<'py>,
        vertex: &Bound<'py, PyAny>,
        kind: Option<&str>,
        at: Option<u64>,
        versions: Option<(u64, u64)>,
        limit: Option<usize>,
    ) -> PyResult<Vec<EdgeRow<'py>>> {
        let (graph, vertex) = (self.open()?, name(vertex)?);
        let versions = match (versions, at) {
            (Some((from, to)), _) => Versions::Between(from, to),
            (None, Some(at)) => Versions::At(at),
            (None, None) => Versions::NOW,
        };
        let found = py.waiting(|| graph.edges(&vertex, kind, versions, limit, &self.session)).or_raise()?;
        found.iter().map(|edge| edge_row(py, edge)).collect()
    }

    /// The lineage of a subject.
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn trace<'py>(
        &self,
        py: Python<'py>,
        subject: &Bound<'py, PyAny>,
        direction: &str,
        depth: Option<u32>,
        at: Option<u64>,
        since: Option<u64>,
        causal: bool,
        limit: usize,
        stores: bool,
    ) -> PyResult<LineageRow<'py>> {
        let options = TraceOptions { way: way(direction)?, depth, at, since, causal, limit };
        self.open()?;
        let subject = asked_for(subject)?.subject();
        let found = py.waiting(|| match stores {
            true => self.handle.tracer(&self.session).trace_across(&subject, &options),
            false => Ok((self.handle.tracer(&self.session).trace(&subject, &options)?, Vec::new())),
        });
        let found = found.or_raise()?;
        lineage_row(py, found, at)
    }

    /// The fields that an execution wrote, or that a commit holds.
    fn fields(&self, py: Python<'_>, vertex: &Bound<'_, PyAny>) -> PyResult<PyListing> {
        self.open()?;
        let vertex = name(vertex)?;
        let text = format!("fields of {vertex}").chars().take(200).collect();
        let found = py.waiting(|| self.handle.tracer(&self.session).fields_of(&vertex)).or_raise()?;
        Ok(PyListing::new(vec![found], self.handle.schema(), text))
    }

    /// The name of a user, or its number.
    fn user_name(&self, user: u32) -> String {
        self.handle.graph().user_name(user)
    }

    /// Number of lines compared, differences in the view, damaged records.
    fn verify(&self, py: Python<'_>) -> PyResult<(u64, Vec<String>, Vec<String>)> {
        let graph = self.open()?;
        let check = py.waiting(|| graph.verify()).or_raise()?;
        Ok((check.lines, check.different, check.damaged))
    }

    /// Segments, vertices, relations, bytes, problems, and the archives of moved versions: URL and time.
    fn stats(&self, py: Python<'_>) -> PyResult<StatsRow> {
        let graph = self.open()?;
        let stats = py.waiting(|| graph.stats()).or_raise()?;
        let archives = stats.archives.into_iter().map(|archive| (archive.url.to_string(), archive.before));
        let archives = archives.collect();
        Ok((stats.segments, stats.vertices, stats.relations, stats.bytes, stats.problems, archives))
    }
}
