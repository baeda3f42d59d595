//! A rank's part of an unstructured mesh.

use std::borrow::Cow;
use std::path::PathBuf;

use fieldstone::arrays::{JobPartition, MemoryMut, MeshEdges, MeshVector, PartitionMethod, PartitionOptions};
use fieldstone::{DType, Error, Result};
use pyo3::prelude::*;

use super::files::{PyJobImport, PyJobMesh};
use super::{PyArrayJob, local};
use crate::container::{PyView, told};
use crate::data::{Strided, lent_array};
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;

/// Two arrays of edge ends; or an import and two names; or a mesh.
type EdgesGiven<'py> = (
    Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    Option<(Bound<'py, PyJobImport>, String, String)>,
    Option<Bound<'py, PyJobMesh>>,
);
/// "replicated", "shares" with an array; "block", "hilbert"; "file" with a path.
type VectorGiven<'py> = (String, Option<Bound<'py, PyAny>>, Option<PathBuf>);

/// The numbers of an array, if one was given.
fn integers<'a>(
    py: Python<'_>,
    array: &'a PyResult<Option<Strided<'_>>>,
    what: &str,
) -> PyResult<Option<Cow<'a, [i64]>>> {
    let numbers = |array: &'a Strided<'_>| {
        array.int64s().ok_or_else(|| {
            invalid(format!("{what} is not a one-dimensional array of int64"), "give whole numbers")
        })
    };
    let array = array.as_ref().map_err(|raised| raised.clone_ref(py))?;
    array.as_ref().map(numbers).transpose()
}

/// One rank's part.
#[pyclass(frozen, name = "_Partition", module = "fieldstone._native")]
pub struct PyPartition {
    part: JobPartition,
}

#[pymethods]
impl PyArrayJob {
    /// Exchanges each rank's description of its coming partition; returns those of all ranks, or raises `wrong` on
    /// all.
    fn say_of_partition(
        &self,
        py: Python<'_>,
        said: String,
        wrong: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let said = match wrong {
            Some(wrong) => Err(told(py, &PyErr::from_value(wrong.clone())).0),
            None => Ok(said),
        };
        py.waiting(|| self.job().tell_all("partition", said)).or_raise()
    }

    /// This rank's part of a mesh.
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn partition(
        &self,
        py: Python<'_>,
        edges: EdgesGiven<'_>,
        vector: VectorGiven<'_>,
        nodes: Option<u64>,
        base: u64,
        history: bool,
        method: &str,
        wrong: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyPartition> {
        let (arrays, import, mesh) = edges;
        let (word, ranks, path) = vector;
        let (first, second) = arrays.map_or((None, None), |(first, second)| (Some(first), Some(second)));
        let given = [first, second, ranks];
        // These own the borrowed numbers until the end of the call.
        let given = given.map(|array| array.as_ref().map(Strided::new).transpose());
        let read = || -> PyResult<_> {
            if let Some(wrong) = wrong {
                return Err(PyErr::from_value(wrong.clone()));
            }
            let [first, second, ranks] = &given;
            let arrays = integers(py, first, "edges")?.zip(integers(py, second, "edges")?);
            let ranks = integers(py, ranks, "the vector")?.unwrap_or_default();
            Ok((arrays, ranks, PartitionMethod::parse(method).or_raise()?))
        };
        let given = read().map_err(|raised| told(py, &raised).0);
        let method = given.as_ref().map_or(PartitionMethod::Direct, |(_, _, method)| *method);
        let options = PartitionOptions { nodes, base, history, method };
        let vector = |ranks| match (word.as_str(), path) {
            ("shares", _) => MeshVector::Shares(ranks),
            ("block", _) => MeshVector::Block,
            ("hilbert", _) => MeshVector::Hilbert,
            ("file", Some(path)) => MeshVector::File(path),
            _ => MeshVector::Replicated(ranks),
        };
        let begin = |edges: Result<MeshEdges<'_>>| {
            let both = match (&given, edges) {
                (Ok((_, ranks, _)), Ok(edges)) => Ok((edges, vector(ranks))),
                (Err(error), _) => Err(error.replicate()),
                (_, Err(error)) => Err(error),
            };
            self.job().partition(both, &options)
        };
        let import = import.as_ref().map(|(import, first, second)| (import.get(), first, second));
        let mesh = mesh.as_ref().map(|mesh| mesh.get());
        let part = py.waiting(|| match (&given, import, mesh) {
            (_, Some((import, first, second)), _) => {
                import.with(|import| begin(Ok(MeshEdges::Import(import, first, second))))
            }
            (_, _, Some(mesh)) => mesh.with(|mesh| begin(Ok(MeshEdges::Mesh(mesh)))),
            (Ok((Some((first, second)), ..)), ..) => begin(Ok(MeshEdges::Arrays(first, second))),
            _ => begin(Err(Error::invalid("a partition needs edges"))),
        });
        Ok(PyPartition { part: part.or_raise()? })
    }
}

#[pymethods]
impl PyPartition {
    /// Global numbers of nodes: owned ones first, then ghosts.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = [self.part.part().nodes().len() as u64];
        lent_array(py, self.part.part(), |part| part.nodes(), (DType::I8, &shape))
    }

    /// Global numbers of edges.
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = [self.part.part().edges().len() as u64];
        lent_array(py, self.part.part(), |part| part.edges(), (DType::I8, &shape))
    }

    /// Both ends of each edge, as local indices of nodes.
    fn ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = [self.part.part().ends().len() as u64, 2];
        // Indices below 2^31 are equal as signed integers, which are safer in arithmetic.
        let signed = self.part.part().nodes().len() <= i32::MAX as usize;
        let dtype = DType::parse(if signed { "i4" } else { "u4" }).or_raise()?;
        lent_array(py, self.part.part(), |part| part.ends(), (dtype, &shape))
    }

    /// The number of owned nodes.
    #[getter]
    fn owned(&self) -> usize {
        self.part.part().owned()
    }

    /// The number of edges whose first end is owned.
    #[getter]
    fn owned_edges(&self) -> usize {
        self.part.part().owned_edges()
    }

    /// How the partition was obtained.
    #[getter]
    fn source(&self) -> &'static str {
        self.part.part().source().word()
    }

    /// The stored histories that were not used.
    #[getter]
    fn ignored(&self) -> Vec<String> {
        self.part.ignored().to_vec()
    }

    /// This rank's view of an array on nodes.
    #[getter]
    fn node_view(&self) -> PyView {
        let text = format!(
            "irregular(map=<{} nodes>, owned={})",
            self.part.part().nodes().len(),
            self.part.part().owned()
        );
        PyView::of(self.part.part().node_view(), text)
    }

    /// This rank's view of an array on edges.
    #[getter]
    fn edge_view(&self) -> PyView {
        let edges = (self.part.part().edges().len(), self.part.part().owned_edges());
        PyView::of(
            self.part.part().edge_view(),
            format!("irregular(map=<{} edges>, owned={})", edges.0, edges.1),
        )
    }

    /// Copies the owners' values to ghosts, in arrays on nodes.
    fn update(&self, py: Python<'_>, arrays: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let targets = arrays.iter().map(Strided::writable).collect::<PyResult<Vec<_>>>();
        let mut targets = local(py, targets);
        let memories = match &mut targets {
            Ok(all) => {
                let known =
                    |one: &Strided<'_>| (one.dtype, one.origin, one.shape.clone(), one.strides.clone());
                let known: Vec<_> = all.iter().map(known).collect();
                let bytes = all.iter_mut().map(Strided::bytes_mut).collect::<PyResult<Vec<_>>>();
                local(py, bytes).map(|bytes| bytes.into_iter().zip(known).collect::<Vec<_>>())
            }
            Err(error) => Err(error.replicate()),
        };
        let done = py.waiting(|| {
            let mut memories = memories;
            let all = match &mut memories {
                Ok(all) => {
                    let mut lent = Vec::with_capacity(all.len());
                    for (bytes, (dtype, origin, shape, strides)) in all.iter_mut() {
                        lent.push(MemoryMut { bytes, dtype: *dtype, shape, strides, origin: *origin });
                    }
                    Ok(lent)
                }
                Err(error) => Err(error.replicate()),
            };
            self.part.update(all)
        });
        done.or_raise()
    }
}
