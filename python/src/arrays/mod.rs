//! Distributed arrays: jobs and their groups, as the classes of `fieldstone._arrays` call them.
//!
//! All calls are collective: if an argument is wrong on one rank, the facade receives the error and reports it to all
//! ranks.

mod files;
mod group;
mod memory;
mod partition;

use fieldstone::arrays::{ArrayJob, GroupOptions, JobOptions, LevelChoice, Method, SetOptions};
use fieldstone::catalog::{ArrayLayout, MeshLocation, StorageOrder};
use std::path::PathBuf;

use fieldstone::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub use files::{PyJobImport, PyJobMesh, array_table, check_mesh, histories, meshes, write_xdmf};
pub use group::PyArrayGroup;
pub use partition::PyPartition;

use crate::catalog::values;
use crate::comm::{comm_from_python, hints_of};
use crate::container::told;
use crate::data;
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::store::{Store, session};

/// Name, dtype, extents, names of dimensions, attributes, and the bytes of a fill.
type SetRow<'py> = (
    String,
    Bound<'py, PyAny>,
    Vec<Option<u64>>,
    Vec<Option<String>>,
    Option<Bound<'py, PyDict>>,
    Option<Vec<u8>>,
);

/// Level (0: auto), method, order, attributes, mesh, location, chunks, compression, hints.
type GroupRow<'py> = (
    u64,
    String,
    String,
    Option<Bound<'py, PyDict>>,
    Option<String>,
    Option<String>,
    Option<Vec<u64>>,
    Option<String>,
    Bound<'py, PyAny>,
);

/// This rank's error in the form that all ranks receive.
fn local<T>(py: Python<'_>, found: PyResult<T>) -> Result<T> {
    found.map_err(|raised| told(py, &raised).0)
}

/// The ranks of a job and the run that they write.
#[pyclass(frozen, name = "_ArrayJob", module = "fieldstone._native")]
pub struct PyArrayJob {
    job: ArrayJob,
}

impl PyArrayJob {
    fn job(&self) -> &ArrayJob {
        &self.job
    }
}

/// Opens a job of a store. `comm` is mpi4py's communicator, or None for this process alone.
#[pyfunction]
#[pyo3(name = "_open_arrays")]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub fn open_arrays(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    name: Option<&str>,
    comm: &Bound<'_, PyAny>,
    project: Option<String>,
    writers: Option<usize>,
    readers: Option<usize>,
    buffer: usize,
    layout: &str,
    hints: &Bound<'_, PyAny>,
    txn: Option<&str>,
) -> PyResult<PyArrayJob> {
    let handle = store.get().handle()?;
    let comm = comm_from_python(comm)?;
    let options = JobOptions {
        project: project.unwrap_or_default(),
        writers,
        readers,
        buffer,
        layout: match layout {
            "files" => ArrayLayout::Files,
            "fields" => ArrayLayout::Fields,
            _ => return Err(invalid(format!("layout={layout:?}"), "give \"files\" or \"fields\"")),
        },
        hints: hints_of(hints)?,
        if_exists: None,
        session: session(txn)?,
    };
    let job = py.waiting(|| ArrayJob::open(&handle, Some(comm), name, &options)).or_raise()?;
    Ok(PyArrayJob { job })
}

fn set(row: SetRow<'_>) -> PyResult<SetOptions> {
    let (name, dtype, shape, dims, attrs, fill) = row;
    let attrs = values::named(attrs.as_ref(), "attrs")?;
    Ok(SetOptions { name, dtype: data::parse_dtype(&dtype)?, shape, dims, attrs, fill })
}

fn options(sets: Vec<SetRow<'_>>, properties: GroupRow<'_>) -> PyResult<GroupOptions> {
    let (level, method, order, attrs, mesh, location, chunks, compression, hints) = properties;
    Ok(GroupOptions {
        sets: sets.into_iter().map(set).collect::<PyResult<_>>()?,
        level: if level == 0 { LevelChoice::Auto } else { LevelChoice::number(level).or_raise()? },
        method: Method::parse(&method).or_raise()?,
        order: match order.as_str() {
            "C" => StorageOrder::C,
            "F" => StorageOrder::Fortran,
            _ => return Err(invalid(format!("order={order:?}"), "give \"C\" or \"F\"")),
        },
        attrs: values::named(attrs.as_ref(), "attrs")?,
        mesh,
        location: location.as_deref().map(location_of).transpose()?,
        chunks,
        compression,
        hints: hints_of(&hints)?,
    })
}

fn location_of(word: &str) -> PyResult<MeshLocation> {
    let all = [MeshLocation::Node, MeshLocation::Edge, MeshLocation::Face, MeshLocation::Volume];
    all.into_iter().find(|location| location.name() == word).ok_or_else(|| {
        invalid(format!("location={word:?}"), "give \"node\", \"edge\", \"face\" or \"volume\"")
    })
}

#[pymethods]
impl PyArrayJob {
    /// Project and name of the run.
    #[getter]
    fn run(&self) -> (String, String) {
        let run = self.job.run();
        (run.name().project.clone(), run.name().name.clone())
    }

    /// This rank's number.
    #[getter]
    fn rank(&self) -> usize {
        self.job.rank()
    }

    /// How many ranks there are.
    #[getter]
    fn size(&self) -> usize {
        self.job.size()
    }

    /// Declares a group, or without `sets` opens a declared one. `wrong` is an earlier error of this rank.
    fn group(
        &self,
        py: Python<'_>,
        name: &str,
        sets: Option<Vec<SetRow<'_>>>,
        properties: GroupRow<'_>,
        wrong: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyArrayGroup> {
        let found = match (wrong, sets) {
            (Some(wrong), _) => Some(Err(told(py, &PyErr::from_value(wrong.clone())).0)),
            (None, Some(sets)) => Some(local(py, options(sets, properties))),
            (None, None) => None,
        };
        let group = py.waiting(|| match &found {
            Some(options) => self.job.group_of(name, options.as_ref().map_err(Error::replicate)),
            None => self.job.declared_group(name),
        });
        Ok(PyArrayGroup::new(group.or_raise()?))
    }

    /// Opens a raw file, with rows of name, dtype, offset and shape, or variables of a netCDF file, by name.
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn import_file(
        &self,
        py: Python<'_>,
        path: PathBuf,
        raw: Option<Vec<files::RawRow<'_>>>,
        names: Vec<String>,
        checksum: bool,
        wrong: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyJobImport> {
        let raw = match (wrong, raw) {
            (Some(wrong), _) => Some(Err(told(py, &PyErr::from_value(wrong.clone())).0)),
            (None, Some(rows)) => Some(local(py, files::raw_variables(rows))),
            (None, None) => None,
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let import = py.waiting(|| match raw {
            Some(variables) => self.job.import_raw(&path, variables, checksum),
            None => self.job.import_netcdf(&path, &names, checksum),
        });
        Ok(PyJobImport::new(import.or_raise()?))
    }

    /// Creates a mesh from each rank's share.
    fn create_mesh(
        &self,
        py: Python<'_>,
        name: &str,
        parts: files::MeshParts<'_>,
        attrs: Option<Bound<'_, PyDict>>,
        wrong: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyJobMesh> {
        let parts = match wrong {
            Some(wrong) => Err(told(py, &PyErr::from_value(wrong.clone())).0),
            None => local(py, files::OwnedMesh::new(parts)),
        };
        let attrs = local(py, values::named(attrs.as_ref(), "attrs"));
        let mesh = py.waiting(|| {
            let content = match (&parts, &attrs) {
                (Ok(parts), Ok(attrs)) => parts.content(name, attrs),
                (Err(error), _) | (_, Err(error)) => Err(error.replicate()),
            };
            let attrs = attrs.as_deref().unwrap_or(&[]);
            self.job.create_mesh(name, content.as_ref().map_err(Error::replicate), attrs)
        });
        Ok(PyJobMesh::new(mesh.or_raise()?))
    }

    /// A mesh of the store.
    fn mesh(&self, py: Python<'_>, name: &str) -> PyResult<PyJobMesh> {
        Ok(PyJobMesh::new(py.waiting(|| self.job.mesh(name)).or_raise()?))
    }

    /// Makes all writes since the last flush durable and visible together, or none of them.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        py.waiting(|| self.job.flush()).or_raise()
    }

    /// Discards all writes since the last flush.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        py.waiting(|| self.job.discard()).or_raise()
    }

    /// Flushes, and closes all files.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.waiting(|| self.job.close()).or_raise()
    }

    /// Ends a `with` block: closes the job, or after an exception aborts it on all ranks.
    fn leave(&self, py: Python<'_>, raised: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        match raised {
            None => self.close(py),
            Some(raised) => {
                let error = told(py, &PyErr::from_value(raised.clone())).0;
                py.waiting(|| self.job.abandon(error));
                Ok(())
            }
        }
    }

    /// Bytes exchanged, written and read; files opened, plans, connections; seconds by phase.
    #[allow(clippy::type_complexity, reason = "a row for Python")]
    fn report(&self) -> (u64, u64, u64, u64, u64, u64, Vec<(&'static str, f64)>) {
        let r = self.job.report();
        let seconds = r.seconds.iter().map(|(phase, spent)| (phase.word(), *spent)).collect();
        (r.exchanged, r.written, r.read, r.opened, r.plans, r.connections, seconds)
    }
}
