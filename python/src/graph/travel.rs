//! Traversals, for `Travel` and `Travelled` in Python.

use std::sync::{Mutex, PoisonError};

use fieldstone::graph::{
    Path, PathStream, SlotStep, StepFigures, Travel, TravelStep, Traversal, TypeMatches, Vertex, VertexTest,
    parse_travel,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::read::{EdgeRow, Pair, VertexRow, edge_row, pair, vertex_row};
use super::{PyGraph, name, partitions};
use crate::catalog::tests;
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;

/// Hop, round, frontier, reached, vertices, relations, seconds.
type FiguresRow = (usize, u32, u64, u64, u64, u64, f64);

/// Slot, hop, round; frontier, reached, relations, requests, forwards; messages, bytes, vertices read ahead; seconds
/// for vertices, for relations, for reading ahead.
type SlotRow = ((usize, u32, u32), (u64, u64, u64, u64, u64), (u64, u64, u64), (f64, f64, f64));

/// The vertices or relations found.
type FoundRows<'py> = (Option<Vec<VertexRow<'py>>>, Option<Vec<EdgeRow<'py>>>);

/// Names, type, tests by name, stamps that bound the versions.
type VertexTestRow<'py> =
    (Option<Vec<Bound<'py, PyAny>>>, Option<String>, Bound<'py, PyDict>, Option<(u64, u64)>);

/// Tests of properties, by name.
fn named_tests(tests: &Bound<'_, PyDict>) -> PyResult<Vec<(String, fieldstone::catalog::value::Test)>> {
    tests
        .iter()
        .map(|(name, test)| {
            let name: String = name.extract()?;
            let test = tests::test(&test, &name)?;
            Ok((name, test))
        })
        .collect()
}

/// A test of vertices: names, type, tests, versions.
fn vertex_test(of: &Bound<'_, PyTuple>) -> PyResult<VertexTest> {
    let (named, kind, tests, versions): VertexTestRow<'_> = of.extract()?;
    let named = named.map(|all| all.iter().map(name).collect::<PyResult<_>>()).transpose()?;
    Ok(VertexTest { named, kind, tests: named_tests(&tests)?, versions })
}

/// One step: its name and arguments.
fn step(given: &Bound<'_, PyTuple>) -> PyResult<Vec<TravelStep>> {
    let (word, taken): (String, Bound<'_, PyAny>) = given.extract()?;
    let property = || -> PyResult<(String, fieldstone::catalog::value::Test)> {
        let (name, test): (String, Bound<'_, PyAny>) = taken.extract()?;
        let test = tests::test(&test, &name)?;
        Ok((name, test))
    };
    let step = match &*word {
        "v" => TravelStep::Vertices(vertex_test(taken.cast::<PyTuple>()?)?),
        "e" => {
            let (kinds, versions) = taken.extract()?;
            TravelStep::Edges { kinds, versions }
        }
        "va" => property().map(|(name, test)| TravelStep::VertexProperty(name, test))?,
        "ea" => property().map(|(name, test)| TravelStep::EdgeProperty(name, test))?,
        "rtn" => TravelStep::Return,
        "repeat" => TravelStep::Repeat(taken.extract()?),
        "return_fp" => TravelStep::FullPaths,
        "text" => return parse_travel(&taken.extract::<String>()?).or_raise(),
        _ => return Err(invalid(format!("{word:?} is not a step"), "Travel makes the steps")),
    };
    Ok(vec![step])
}

#[pymethods]
impl PyGraph {
    /// `steps`: pairs of a name and arguments.
    fn travel(
        slf: &Bound<'_, Self>,
        steps: Vec<Bound<'_, PyTuple>>,
        at: Option<u64>,
        causal: bool,
        jobs: bool,
        limit: Option<usize>,
        engine: &str,
    ) -> PyResult<PyTravelled> {
        let this = slf.get();
        let graph = this.open()?;
        let mut all = Vec::new();
        for given in &steps {
            all.extend(step(given)?);
        }
        let travel = Travel { at, causal, jobs, limit, steps: all };
        let engine = partitions::engine(engine)?;
        let travelled = slf.py().waiting(|| graph.travel(&travel, engine, &this.session)).or_raise()?;
        Ok(PyTravelled { travelled })
    }

    /// Vertices of a type, or of any type, that pass tests; or relations, if the type names a relation.
    fn find<'py>(
        &self,
        py: Python<'py>,
        kind: Option<String>,
        tests: &Bound<'py, PyDict>,
        at: Option<u64>,
        limit: Option<usize>,
    ) -> PyResult<FoundRows<'py>> {
        let (graph, tests) = (self.open()?, named_tests(tests)?);
        let found = py.waiting(|| match kind {
            Some(kind) => graph.find_by_type(&kind, &tests, at, limit, &self.session),
            None => {
                let test = VertexTest { tests, ..VertexTest::default() };
                graph.find(&test, at, limit, &self.session).map(TypeMatches::Vertices)
            }
        });
        Ok(match found.or_raise()? {
            TypeMatches::Vertices(found) => {
                (Some(found.iter().map(|vertex| vertex_row(py, vertex)).collect::<PyResult<_>>()?), None)
            }
            TypeMatches::Relations(found) => {
                (None, Some(found.iter().map(|edge| edge_row(py, edge)).collect::<PyResult<_>>()?))
            }
        })
    }

    /// Vertices that contain words.
    fn search<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        kind: Option<&str>,
        limit: Option<usize>,
    ) -> PyResult<Vec<VertexRow<'py>>> {
        let graph = self.open()?;
        let found = py.waiting(|| graph.search(text, kind, limit, &self.session)).or_raise()?;
        found.iter().map(|vertex| vertex_row(py, vertex)).collect()
    }
}

/// The result of a traversal.
#[pyclass(frozen, name = "_Travelled", module = "fieldstone")]
pub struct PyTravelled {
    travelled: Traversal,
}

#[pymethods]
impl PyTravelled {
    /// The number of vertices in each set.
    fn sets(&self) -> Vec<usize> {
        self.travelled.summary().sets.clone()
    }

    /// Whether sets were truncated.
    fn truncated(&self) -> bool {
        self.travelled.summary().truncated
    }

    /// Whether the result has whole paths.
    fn has_paths(&self) -> bool {
        self.travelled.summary().has_paths
    }

    /// Type and id of up to `most` vertices of a set, from `start` on.
    fn names(&self, py: Python<'_>, of_set: usize, start: usize, most: usize) -> PyResult<Vec<Pair>> {
        let names = py.waiting(|| self.travelled.names(of_set, start, most)).or_raise()?;
        Ok(names.iter().map(pair).collect())
    }

    /// The same vertices with all their properties.
    fn vertices<'py>(
        &self,
        py: Python<'py>,
        of_set: usize,
        start: usize,
        most: usize,
    ) -> PyResult<Vec<VertexRow<'py>>> {
        let read = || -> fieldstone::Result<Vec<Vertex>> {
            let names = self.travelled.names(of_set, start, most)?;
            names.iter().map(|name| self.travelled.vertex(name)).collect()
        };
        let vertices = py.waiting(read).or_raise()?;
        vertices.iter().map(|vertex| vertex_row(py, vertex)).collect()
    }

    /// The paths, from the first on.
    fn paths(&self) -> Option<PyPaths> {
        self.travelled.paths().map(|paths| PyPaths { paths: Mutex::new(paths) })
    }

    /// The figures of each hop.
    fn figures(&self) -> Vec<FiguresRow> {
        let row = |step: &StepFigures| {
            let seconds = step.nanoseconds as f64 / 1e9;
            (step.hop, step.round, step.frontier, step.reached, step.vertices, step.relations, seconds)
        };
        self.travelled.summary().figures.iter().map(row).collect()
    }

    /// The figures of each slot in each hop of each round, with StatComm's requests and forwards, and StatReads; none
    /// if the view is not partitioned.
    fn slots(&self) -> Option<(Vec<SlotRow>, u64, u64, u64)> {
        let figures = self.travelled.summary().slots.as_ref()?;
        let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
        let row = |(slot, step): (usize, &SlotStep)| -> SlotRow {
            (
                (slot, step.hop, step.round),
                (step.frontier, step.reached, step.relations, step.requests, step.forwards),
                (step.frames, step.bytes, step.prefetched),
                (seconds(step.vertex_time), seconds(step.edge_time), seconds(step.prefetch_time)),
            )
        };
        let steps = figures.steps.iter().enumerate();
        let rows = steps.flat_map(|(slot, own)| own.iter().map(move |step| (slot, step))).map(row);
        Some((rows.collect(), figures.requests(), figures.forwards(), figures.reads()))
    }
}

/// An iterator over paths.
#[pyclass(frozen, name = "_Paths", module = "fieldstone")]
pub struct PyPaths {
    paths: Mutex<PathStream>,
}

#[pymethods]
impl PyPaths {
    /// Up to `most` further paths: vertices and relations of each; none after the last.
    fn next<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Vec<(Vec<Pair>, Vec<EdgeRow<'py>>)>> {
        let read = || -> fieldstone::Result<Vec<Path>> {
            let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
            let mut read = Vec::new();
            while read.len() < most {
                let Some(path) = paths.next().transpose()? else { break };
                read.push(path);
            }
            Ok(read)
        };
        let rows = |path: Path| {
            let edges = path.edges.iter().map(|edge| edge_row(py, edge)).collect::<PyResult<_>>()?;
            Ok((path.vertices.iter().map(pair).collect(), edges))
        };
        py.waiting(read).or_raise()?.into_iter().map(rows).collect()
    }
}
