//! Subjects of lineage queries, as `_lineage.subject` of Python passes them: a traced lineage; or vertices and
//! requests, and whether only the one vertex is meant.

use fieldstone::graph::{Dossier, Lineage, LineageStore, LineageSubject, TraceOptions};
use pyo3::prelude::*;

use super::{PyGraph, name};

/// A traced lineage, to be exported.
#[pyclass(frozen, name = "_Traced", module = "fieldstone")]
pub struct Traced {
    pub lineage: Lineage,
    pub stores: Vec<LineageStore>,
    pub at: Option<u64>,
}

/// A subject from Python.
pub(super) enum AskedFor {
    Subject(LineageSubject),
    /// A lineage, the other stores that it continues in, and the time of the query.
    Traced(Lineage, Vec<LineageStore>, Option<u64>),
}

/// Parses a subject.
pub(super) fn asked_for(object: &Bound<'_, PyAny>) -> PyResult<AskedFor> {
    if let Ok(traced) = object.cast::<Traced>() {
        let Traced { lineage, stores, at } = traced.get();
        return Ok(AskedFor::Traced(lineage.clone(), stores.clone(), *at));
    }
    let (vertices, requests, alone): (Vec<Bound<'_, PyAny>>, Option<Bound<'_, PyAny>>, bool) =
        object.extract()?;
    let mut vertices = vertices.iter().map(name).collect::<PyResult<Vec<_>>>()?;
    if alone && let Some(vertex) = vertices.pop() {
        return Ok(AskedFor::Subject(LineageSubject::Vertex(vertex)));
    }
    let requests = match &requests {
        Some(given) => crate::request::requests(Some(given))?,
        None => Vec::new(),
    };
    Ok(AskedFor::Subject(LineageSubject::Data { vertices, requests }))
}

impl AskedFor {
    /// The starting point of a trace: for a lineage, its own subject.
    pub fn subject(self) -> LineageSubject {
        match self {
            AskedFor::Subject(subject) => subject,
            AskedFor::Traced(lineage, ..) => {
                LineageSubject::Data { vertices: lineage.roots, requests: Vec::new() }
            }
        }
    }

    /// The dossier of a subject; a traced lineage stays as it is. `options` control the trace of a subject, and
    /// `across` whether it crosses into other stores.
    pub fn dossier(
        &self,
        graph: &PyGraph,
        across: bool,
        options: impl Fn(&LineageSubject) -> TraceOptions,
    ) -> fieldstone::Result<Dossier> {
        let tracer = graph.handle.tracer(&graph.session);
        match self {
            AskedFor::Subject(subject) if across => Ok(tracer.dossier_across(subject, &options(subject))?.0),
            AskedFor::Subject(subject) => tracer.dossier(subject, &options(subject)),
            AskedFor::Traced(lineage, stores, at) => tracer.around_across(lineage, stores, *at),
        }
    }
}
