//! Files that a job reads in whole or in part: imports, meshes.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use fieldstone::arrays::{JobImport, JobMesh, MeshArray, MeshContent, MeshCoordinate, MeshRows, View};
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{FileSums, ImportedVariable};
use fieldstone::container::Attrs;
use fieldstone::{Error, Result, Session};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::memory::read_into;
use crate::catalog::values;
use crate::container::PyView;
use crate::data::{self, Strided, dtype_object, new_array};
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::store::{Store, session};

/// Name, dtype, offset, shape.
pub type RawRow<'py> = (String, Bound<'py, PyAny>, u64, Vec<u64>);

/// The variables of a raw file.
pub fn raw_variables(rows: Vec<RawRow<'_>>) -> PyResult<Vec<ImportedVariable>> {
    let variable = |(name, dtype, offset, shape): RawRow<'_>| {
        Ok(ImportedVariable { name, dtype: data::parse_dtype(&dtype)?, offset, shape })
    };
    rows.into_iter().map(variable).collect()
}

/// Name, dtype and shape of a variable.
type VariableShown = (String, Py<PyAny>, Vec<u64>);

/// An external file.
#[pyclass(frozen, name = "_JobImport", module = "fieldstone._native")]
pub struct PyJobImport {
    import: Mutex<Option<JobImport>>,
}

impl PyJobImport {
    pub fn new(import: JobImport) -> PyJobImport {
        PyJobImport { import: Mutex::new(Some(import)) }
    }

    pub fn with<T>(&self, act: impl FnOnce(&JobImport) -> Result<T>) -> Result<T> {
        let import = self.import.lock().unwrap_or_else(PoisonError::into_inner);
        act(import.as_ref().ok_or_else(|| Error::invalid("the import is closed"))?)
    }
}

#[pymethods]
impl PyJobImport {
    /// Name, dtype and shape of each variable.
    fn variables(&self, py: Python<'_>) -> PyResult<Vec<VariableShown>> {
        let all = self.with(|import| Ok(import.variables())).or_raise()?;
        all.into_iter().map(|v| Ok((v.name, dtype_object(py, v.dtype)?, v.shape))).collect()
    }

    /// Reads a variable by a view.
    fn read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        view: Option<&Bound<'_, PyView>>,
        into: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let view: Option<&View> = view.map(|view| view.get().view());
        let begun = py.waiting(|| self.with(|import| import.begin_read(name, view))).or_raise()?;
        read_into(py, (begun.dtype(), begun.local_shape()), into, |memory| {
            self.with(|import| import.read(&begun, memory).map(drop))
        })
    }

    /// Closes the file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let import = self.import.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.waiting(|| import.map_or(Ok(()), JobImport::close)).or_raise()
    }
}

/// Coordinates with their attributes; edges, faces, volumes; base.
pub type MeshParts<'py> = (
    Vec<(Bound<'py, PyAny>, Option<Bound<'py, pyo3::types::PyDict>>)>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    i64,
);

/// Values of a coordinate, and its attributes.
type OwnedCoordinate = (Vec<f64>, Vec<(String, Value)>);

/// This rank's share of a mesh, in our own memory.
pub struct OwnedMesh {
    coordinates: Vec<OwnedCoordinate>,
    rows: [Option<(usize, Vec<i64>)>; 3],
    base: i64,
}

/// The elements of a dense array of 8 bytes each.
pub fn words<T>(array: &Strided<'_>, word: impl Fn([u8; 8]) -> T) -> Vec<T> {
    let (bytes, strides, shape) = (array.bytes(), &array.strides, &array.shape);
    if strides[..] == fieldstone::arrays::dense_strides(array.dtype, shape) {
        return bytes.as_chunks::<8>().0.iter().map(|bytes| word(*bytes)).collect();
    }
    let total: u64 = shape.iter().product();
    let place = |mut n: u64| {
        let mut at = array.origin as isize;
        for (len, stride) in shape.iter().zip(strides).rev() {
            at += (n % len) as isize * stride;
            n /= len;
        }
        at as usize
    };
    let each = |n: u64| bytes[place(n)..].first_chunk::<8>().map_or([0; 8], |word| *word);
    (0..total).map(|n| word(each(n))).collect()
}

impl OwnedMesh {
    /// Takes float64 coordinates and int64 rows, which `fieldstone._arrays` built.
    pub fn new((coordinates, edges, faces, volumes, base): MeshParts<'_>) -> PyResult<OwnedMesh> {
        let rows = |rows: Option<Bound<'_, PyAny>>, what: &str| -> PyResult<Option<(usize, Vec<i64>)>> {
            let Some(rows) = rows else { return Ok(None) };
            let array = Strided::new(&rows)?;
            match (&array.shape[..], array.dtype == fieldstone::DType::I8) {
                ([_, width], true) => {
                    let width = usize::try_from(*width).unwrap_or(usize::MAX);
                    Ok(Some((width, words(&array, i64::from_ne_bytes))))
                }
                _ => {
                    Err(invalid(format!("{what} is not an array of rows of int64"), "give one row per item"))
                }
            }
        };
        let coordinate = |(values, attrs): (Bound<'_, PyAny>, Option<Bound<'_, pyo3::types::PyDict>>)| {
            let array = Strided::new(&values)?;
            if array.shape.len() != 1 || array.dtype != fieldstone::DType::F8 {
                return Err(invalid(
                    "a coordinate is not a one-dimensional array of float64",
                    "give one number per node",
                ));
            }
            Ok((words(&array, f64::from_ne_bytes), values::named(attrs.as_ref(), "attrs")?))
        };
        Ok(OwnedMesh {
            coordinates: coordinates.into_iter().map(coordinate).collect::<PyResult<_>>()?,
            rows: [rows(edges, "edges")?, rows(faces, "faces")?, rows(volumes, "volumes")?],
            base,
        })
    }

    /// Borrows the mesh in the form that the facade takes.
    pub fn content<'a>(&'a self, name: &'a str, attrs: &[(String, Value)]) -> Result<MeshContent<'a>> {
        let coordinate = |(values, attrs): &'a OwnedCoordinate| {
            Ok(MeshCoordinate { values, attrs: fieldstone::arrays::netcdf_attrs(attrs)? })
        };
        let rows =
            |place: usize| self.rows[place].as_ref().map(|(width, nodes)| MeshRows { width: *width, nodes });
        let attrs: Attrs = fieldstone::arrays::netcdf_attrs(attrs)?;
        Ok(MeshContent {
            name,
            coordinates: self.coordinates.iter().map(coordinate).collect::<Result<_>>()?,
            edges: rows(0),
            faces: rows(1),
            volumes: rows(2),
            base: self.base,
            fill: None,
            attrs,
        })
    }
}

/// A mesh of a store.
#[pyclass(frozen, name = "_JobMesh", module = "fieldstone._native")]
pub struct PyJobMesh {
    mesh: Mutex<Option<JobMesh>>,
}

impl PyJobMesh {
    pub fn new(mesh: JobMesh) -> PyJobMesh {
        PyJobMesh { mesh: Mutex::new(Some(mesh)) }
    }

    pub fn with<T>(&self, act: impl FnOnce(&JobMesh) -> Result<T>) -> Result<T> {
        let mesh = self.mesh.lock().unwrap_or_else(PoisonError::into_inner);
        act(mesh.as_ref().ok_or_else(|| Error::invalid("the mesh is closed"))?)
    }
}

#[pymethods]
impl PyJobMesh {
    /// Name, counts, checksum, path and available arrays.
    #[allow(clippy::type_complexity, reason = "a row for Python")]
    fn info<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(String, [u64; 4], Bound<'py, PyBytes>, std::path::PathBuf, Vec<&'static str>)> {
        let found = self.with(|mesh| {
            let arrays = mesh.arrays().into_iter().map(MeshArray::word).collect();
            Ok((mesh.name().to_owned(), mesh.counts(), mesh.checksum(), mesh.path(), arrays))
        });
        let (name, counts, checksum, path, arrays) = found.or_raise()?;
        Ok((name, counts, PyBytes::new(py, &checksum), path, arrays))
    }

    /// Reads an array by a view.
    fn read<'py>(
        &self,
        py: Python<'py>,
        array: &str,
        view: Option<&Bound<'_, PyView>>,
        into: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = MeshArray::ALL.into_iter().find(|known| known.word() == array).ok_or_else(|| {
            let words: Vec<&str> = MeshArray::ALL.into_iter().map(MeshArray::word).collect();
            invalid(format!("a mesh has no {array}"), &format!("its arrays are {}", words.join(", ")))
        })?;
        let view: Option<&View> = view.map(|view| view.get().view());
        let begun = py.waiting(|| self.with(|mesh| mesh.begin_read(array, view))).or_raise()?;
        read_into(py, (begun.dtype(), begun.local_shape()), into, |memory| {
            self.with(|mesh| mesh.read(array, &begun, memory).map(drop))
        })
    }

    /// This rank's share of the edges, or if there are none, of the edges of its faces or volumes: two nodes per row.
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let share = py.waiting(|| self.with(JobMesh::edges)).or_raise()?;
        new_array(py, fieldstone::DType::I8, &[share.ends.len() as u64, 2], |out| {
            let numbers = share.ends.iter().flatten().flat_map(|node| node.to_ne_bytes());
            out.iter_mut().zip(numbers).for_each(|(byte, number)| *byte = number);
            Ok(())
        })
    }

    /// Closes its file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mesh = self.mesh.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.waiting(|| mesh.map_or(Ok(()), JobMesh::close)).or_raise()
    }
}

/// Bytes of a mesh file, bytes of a block, and the checksums of its blocks.
type SumsRow = (u64, u64, Vec<u32>);

/// Reads a mesh file and compares it with its block checksums, or without these with the checksum in its header.
#[pyfunction]
#[pyo3(name = "_check_mesh")]
pub fn check_mesh(py: Python<'_>, path: std::path::PathBuf, sums: Option<SumsRow>) -> PyResult<()> {
    let sums = sums.map(|(size, block, sums)| FileSums { size, block, sums: sums.into() });
    py.waiting(|| fieldstone::arrays::check_mesh(&path, sums.as_ref()).map(drop)).or_raise()
}

/// Name, counts, checksum, path (inside the store) and file checksums of each mesh.
#[pyfunction]
#[pyo3(name = "_meshes")]
#[allow(clippy::type_complexity, reason = "rows for Python")]
pub fn meshes(
    py: Python<'_>,
    store: &Bound<'_, Store>,
) -> PyResult<Vec<(String, [u64; 4], Py<PyBytes>, String, Option<SumsRow>)>> {
    let handle = store.get().handle()?;
    let found = py.waiting(|| handle.catalog().meshes(&Session::default())).or_raise()?;
    let row = |mesh: fieldstone::catalog::MeshDecl| {
        let sums = mesh.sums.map(|sums| (sums.size, sums.block, sums.sums.to_vec()));
        (mesh.name, mesh.counts, PyBytes::new(py, &mesh.checksum).unbind(), mesh.path, sums)
    };
    Ok(found.into_iter().map(row).collect())
}

/// Writes XDMF for a run's fields on a mesh; returns its files, variables and steps, and the skipped variables with
/// reasons.
#[pyfunction]
#[pyo3(name = "_write_xdmf")]
#[allow(clippy::type_complexity, reason = "rows for Python")]
pub fn write_xdmf(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    project: String,
    run: String,
    mesh: Option<String>,
    path: PathBuf,
    txn: Option<&str>,
) -> PyResult<(Vec<PathBuf>, Vec<String>, Vec<i64>, Vec<(String, String)>)> {
    let handle = store.get().handle()?;
    let name = fieldstone::catalog::RunName { project, name: run };
    let run = fieldstone::Run::new(&handle, name, &session(txn)?);
    let report = py.waiting(|| fieldstone::arrays::write_xdmf(&run, mesh.as_deref(), &path)).or_raise()?;
    Ok((report.files, report.variables, report.steps, report.omitted))
}

/// Path, checksum of the mesh, nodes, edges and, for finished partitions, the number of ranks, of each history.
#[pyfunction]
#[pyo3(name = "_histories")]
#[allow(clippy::type_complexity, reason = "rows for Python")]
pub fn histories(
    py: Python<'_>,
    store: &Bound<'_, Store>,
) -> PyResult<Vec<(String, Py<PyBytes>, u64, u64, Option<usize>)>> {
    let handle = store.get().handle()?;
    let found = py.waiting(|| handle.catalog().histories(&Session::default())).or_raise()?;
    let row = |history: fieldstone::catalog::HistoryDecl| {
        let ranks = match &history.content {
            fieldstone::catalog::HistoryContent::Edges => None,
            fieldstone::catalog::HistoryContent::Parts { ranks, .. } => Some(ranks.len()),
        };
        (history.path, PyBytes::new(py, &history.mesh).unbind(), history.nodes, history.edges, ranks)
    };
    Ok(found.into_iter().map(row).collect())
}

/// The column names and rows of one of SDM's tables.
#[pyfunction]
#[pyo3(name = "_array_table")]
#[allow(clippy::type_complexity, reason = "rows for Python")]
pub fn array_table<'py>(
    py: Python<'py>,
    store: &Bound<'_, Store>,
    name: &str,
) -> PyResult<(Vec<String>, Vec<Vec<Bound<'py, PyAny>>>)> {
    let handle = store.get().handle()?;
    let (columns, rows) = py.waiting(|| handle.catalog().array_table(name)).or_raise()?;
    let row =
        |row: Vec<Value>| row.iter().map(|value| values::object(py, value)).collect::<PyResult<Vec<_>>>();
    Ok((columns, rows.into_iter().map(row).collect::<PyResult<_>>()?))
}
