//! Writing to the graph: puts and deletions.

use fieldstone::catalog::value::ValueType;
use fieldstone::graph::{Deletion, EdgeType, RelationPut, TypeDecl, VertexPut, VertexType, archive};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::{PyGraph, columns, name, props};
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::sequence::each;

/// Type, source, target, properties, time and until, as arguments of a put.
type EdgeArguments<'py> =
    (String, Bound<'py, PyAny>, Bound<'py, PyAny>, Option<Bound<'py, PyDict>>, Option<u64>, Option<u64>);

/// Vertex, static properties, properties and time.
type VertexArguments<'py> =
    (Bound<'py, PyAny>, Option<Bound<'py, PyDict>>, Option<Bound<'py, PyDict>>, Option<u64>);

fn vertex((vertex, fixed, own, time): VertexArguments<'_>) -> PyResult<VertexPut> {
    let fixed = fixed.map(|fixed| props(Some(&fixed), "static")).transpose()?;
    Ok(VertexPut { vertex: name(&vertex)?, fixed, props: props(own.as_ref(), "props")?, time })
}

fn edge((kind, source, target, own, time, until): EdgeArguments<'_>) -> PyResult<RelationPut> {
    Ok(RelationPut {
        kind: kind.into(),
        source: name(&source)?,
        target: name(&target)?,
        props: props(own.as_ref(), "props")?,
        time,
        until,
    })
}

fn kind_of(text: &str) -> PyResult<ValueType> {
    text.parse().or_raise()
}

#[pymethods]
impl PyGraph {
    fn put_vertex(
        &self,
        py: Python<'_>,
        vertex_name: Bound<'_, PyAny>,
        fixed: Option<Bound<'_, PyDict>>,
        own: Option<Bound<'_, PyDict>>,
        time: Option<u64>,
    ) -> PyResult<u64> {
        let (graph, put) = (self.open()?, vertex((vertex_name, fixed, own, time))?);
        py.waiting(|| graph.put_vertices(vec![put], &self.session)).or_raise()
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a relation")]
    fn put_edge(
        &self,
        py: Python<'_>,
        kind: String,
        source: Bound<'_, PyAny>,
        target: Bound<'_, PyAny>,
        own: Option<Bound<'_, PyDict>>,
        time: Option<u64>,
        until: Option<u64>,
    ) -> PyResult<u64> {
        let (graph, put) = (self.open()?, edge((kind, source, target, own, time, until))?);
        py.waiting(|| graph.put_relations(vec![put], &self.session)).or_raise()
    }

    /// Puts vertices, then relations: each an iterable of arguments, or a dict of columns.
    fn put_many(
        &self,
        py: Python<'_>,
        vertices: Option<&Bound<'_, PyAny>>,
        edges: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let graph = self.open()?;
        let vertices = match vertices {
            None => Vec::new(),
            Some(given) => match given.cast::<PyDict>() {
                Ok(columns) => columns::vertices(columns)?,
                Err(_) => each(given, |row| vertex(arguments(&row)?))?,
            },
        };
        let mut batch = None;
        let edges = match edges {
            None => Vec::new(),
            Some(given) => match given.cast::<PyDict>() {
                Ok(columns) => {
                    batch = Some(columns::edges(columns)?);
                    Vec::new()
                }
                Err(_) => each(given, |row| edge(arguments(&row)?))?,
            },
        };
        // The iterable that gave the rows may have closed the store.
        self.open()?;
        py.waiting(|| match batch {
            None => graph.put(vertices, edges, &self.session),
            Some(batch) => graph.put_batch(vertices, &batch, &self.session),
        })
        .or_raise()
    }

    /// Deletes vertices by name, relations by (type, source, target).
    fn delete(
        &self,
        py: Python<'_>,
        vertices: Vec<Bound<'_, PyAny>>,
        edges: Vec<(String, Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        time: Option<u64>,
    ) -> PyResult<u64> {
        let graph = self.open()?;
        let mut what = Vec::with_capacity(vertices.len() + edges.len());
        for (kind, source, target) in &edges {
            what.push(Deletion::Relation(kind.as_str().into(), name(source)?, name(target)?));
        }
        for vertex in &vertices {
            what.push(Deletion::Vertex(name(vertex)?));
        }
        py.waiting(|| graph.delete(what, time, &self.session)).or_raise()
    }

    /// Versions of vertices and relations, bytes, versions of other users, whether they were moved.
    fn archive(
        &self,
        py: Python<'_>,
        before: u64,
        url: &str,
        doit: bool,
    ) -> PyResult<(u64, u64, u64, u64, bool)> {
        self.open()?;
        if self.session.transaction().is_some() {
            return Err(invalid("archive in a transaction", "call it outside the transaction"));
        }
        let report = py.waiting(|| archive(&self.handle, before, url, doit)).or_raise()?;
        Ok((report.vertices, report.relations, report.bytes, report.others, report.done))
    }

    fn define_vertex(
        &self,
        py: Python<'_>,
        name: String,
        fixed: Vec<(String, String)>,
        index: Vec<String>,
        text: Vec<String>,
    ) -> PyResult<()> {
        let fixed = fixed.into_iter().map(|(name, kind)| Ok((name, kind_of(&kind)?)));
        let fixed = fixed.collect::<PyResult<_>>()?;
        let declared = TypeDecl::Vertex(VertexType { name, fixed, index, text });
        let graph = self.open()?;
        py.waiting(|| graph.define(vec![declared], &self.session)).or_raise()
    }

    fn define_edge(
        &self,
        py: Python<'_>,
        name: String,
        reverse: String,
        source: Option<String>,
        target: Option<String>,
        index: Vec<String>,
    ) -> PyResult<()> {
        let declared = TypeDecl::Edge(EdgeType { name, reverse, source, target, index });
        let graph = self.open()?;
        py.waiting(|| graph.define(vec![declared], &self.session)).or_raise()
    }
}

/// The arguments in a row of `put_many`, padded with None.
fn arguments<'py, T>(row: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: pyo3::conversion::FromPyObjectOwned<'py, Error = PyErr>,
{
    let tuple = row.cast::<PyTuple>().map_err(|_| {
        invalid(
            "a row of put_many is not a tuple",
            "give the arguments of put_vertex or put_edge, or columns",
        )
    })?;
    tuple.as_any().extract()
}
