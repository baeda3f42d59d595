//! A rank's part of an unstructured mesh.

use std::path::PathBuf;

use fieldstone::arrays::{JobPartition, MemoryMut, MeshEdges, MeshVector, PartitionMethod, PartitionOptions};
use fieldstone::{DType, Error, Result};
use pyo3::prelude::*;

use super::files::{PyJobImport, PyJobMesh, words};
use super::{PyArrayJob, local};
use crate::container::{PyView, told};
use crate::data::{Strided, new_array};
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;

/// Arrays of both ends; or an import and two names; or a mesh.
type EdgesGiven<'py> = (
    Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    Option<(Bound<'py, PyJobImport>, String, String)>,
    Option<Bound<'py, PyJobMesh>>,
);
/// "replicated", "shares" with an array; "block", "hilbert"; "file" with a path.
type VectorGiven<'py> = (String, Option<Bound<'py, PyAny>>, Option<PathBuf>);

fn integers(array: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<i64>> {
    let array = Strided::new(array)?;
    match array.shape.len() == 1 && array.dtype == DType::I8 {
        true => Ok(words(&array, i64::from_ne_bytes)),
        false => Err(invalid(format!("{what} is no row of int64"), "give whole numbers")),
    }
}

/// One rank's part.
#[pyclass(frozen, name = "_Partition", module = "fieldstone._native")]
pub struct PyPartition {
    part: JobPartition,
}

#[pymethods]
impl PyArrayJob {
    /// What each rank says of the partition that it is about to make, on all ranks; `wrong` is raised on all.
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
        let read = || -> PyResult<_> {
            if let Some(wrong) = wrong {
                return Err(PyErr::from_value(wrong.clone()));
            }
            let arrays = match &arrays {
                Some((first, second)) => Some((integers(first, "edges")?, integers(second, "edges")?)),
                None => None,
            };
            let ranks = ranks.as_ref().map(|ranks| integers(ranks, "the vector")).transpose()?;
            Ok((arrays, ranks.unwrap_or_default(), PartitionMethod::parse(method).or_raise()?))
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
            _ => begin(Err(Error::invalid("a partition without edges"))),
        });
        Ok(PyPartition { part: part.or_raise()? })
    }
}

/// A new array of the words of a list.
fn array_of<'py, T: Copy + Send + Sync>(
    py: Python<'py>,
    dtype: DType,
    shape: &[u64],
    list: &[T],
    bytes: impl Fn(T) -> [u8; 8] + Send + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    new_array(py, dtype, shape, |out| {
        out.as_chunks_mut().0.iter_mut().zip(list).for_each(|(out, item)| *out = bytes(*item));
        Ok(())
    })
}

#[pymethods]
impl PyPartition {
    /// Global numbers of nodes: own ones, then ghosts.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let nodes = self.part.nodes();
        array_of(py, DType::I8, &[nodes.len() as u64], nodes, i64::to_ne_bytes)
    }

    /// Global numbers of edges.
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let edges = self.part.edges();
        array_of(py, DType::I8, &[edges.len() as u64], edges, i64::to_ne_bytes)
    }

    /// Both ends of each edge, as places among the nodes.
    fn ends<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ends = self.part.ends().as_flattened();
        let shape = [ends.len() as u64 / 2, 2];
        array_of(py, DType::I8, &shape, ends, |end| i64::from(end).to_ne_bytes())
    }

    /// How many nodes are own.
    #[getter]
    fn owned(&self) -> usize {
        self.part.owned()
    }

    /// How many edges have an own first end.
    #[getter]
    fn owned_edges(&self) -> usize {
        self.part.owned_edges()
    }

    /// How it came about.
    #[getter]
    fn source(&self) -> &'static str {
        self.part.source().word()
    }

    /// What was kept and not used.
    #[getter]
    fn ignored(&self) -> Vec<String> {
        self.part.ignored().to_vec()
    }

    /// What this rank holds of an array at the nodes.
    #[getter]
    fn node_view(&self) -> PyView {
        let text = format!("irregular(map=<{} nodes>, owned={})", self.part.nodes().len(), self.part.owned());
        PyView::of(self.part.node_view(), text)
    }

    /// What this rank holds of an array at the edges.
    #[getter]
    fn edge_view(&self) -> PyView {
        let edges = (self.part.edges().len(), self.part.owned_edges());
        PyView::of(self.part.edge_view(), format!("irregular(map=<{} edges>, owned={})", edges.0, edges.1))
    }

    /// Gives ghosts their owners' values, in arrays at the nodes.
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
