//! Containers for Python: `fieldstone.container` is a thin layer over the classes here.
//!
//! Every call that reads, writes or waits for other ranks runs with the interpreter's lock released.

mod columns;
mod options;
mod transfers;
mod variable;
mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone::container::{self, Attr, Attrs, Container, Format, Names, NcType, Report};
use fieldstone::env::comm::hints::HintedComm;
use fieldstone::{ErrorKind, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::comm::hints_of;
use crate::errors::{Raise, code_of, invalid};
use crate::log::Waiting as _;
use crate::sequence::Several;

use columns::Columns;
use variable::Shared;
pub use variable::{PyVar, told};
pub use views::{PyView, view_block, view_cyclic, view_decomposition, view_irregular, view_joined};

/// The most objects looked up in one step of a listing.
const PAGE: usize = 4096;

/// Creates a container.
#[pyfunction]
#[pyo3(name = "_container_create")]
pub fn container_create(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    comm: &Bound<'_, PyAny>,
    given: &Bound<'_, PyDict>,
    hints: &Bound<'_, PyAny>,
) -> PyResult<PyContainer> {
    let comm = options::comm(comm)?;
    let given = || Ok((path.extract::<PathBuf>()?, options::create(given)?, hints_of(hints)?));
    let (path, options, hints) = options::shared(py, comm.as_ref(), "create", given())?;
    let comm = comm.map(|comm| HintedComm::over(comm, &hints));
    let file = py.waiting(|| container::create(&path, comm, &options)).or_raise()?;
    Ok(PyContainer::new(file, path, "w"))
}

/// Opens a container.
#[pyfunction]
#[pyo3(name = "_container_open")]
pub fn container_open(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    mode: &Bound<'_, PyAny>,
    comm: &Bound<'_, PyAny>,
    hints: &Bound<'_, PyAny>,
) -> PyResult<PyContainer> {
    let comm = options::comm(comm)?;
    let given = || Ok((path.extract::<PathBuf>()?, options::mode(mode.extract()?)?, hints_of(hints)?));
    let (path, (mode, how), hints) = options::shared(py, comm.as_ref(), "open", given())?;
    let comm = comm.map(|comm| HintedComm::over(comm, &hints));
    let file = py.waiting(|| container::open(&path, how, comm)).or_raise()?;
    Ok(PyContainer::new(file, path, mode))
}

/// An open container.
#[pyclass(frozen, name = "_Container", module = "fieldstone._native")]
pub struct PyContainer {
    file: Arc<Shared>,
    path: PathBuf,
    mode: &'static str,
}

impl PyContainer {
    fn new(container: Container, path: PathBuf, mode: &'static str) -> PyContainer {
        PyContainer { file: Arc::new(Shared { container, changes: AtomicU64::new(0) }), path, mode }
    }

    /// Runs a call that changes the mode.
    fn changing<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Container) -> Result<T> + Send,
    ) -> PyResult<T> {
        py.waiting(|| {
            let done = act(&self.file.container);
            self.file.changes.fetch_add(1, Ordering::AcqRel);
            done
        })
        .or_raise()
    }

    /// Runs a call that keeps the mode.
    fn call<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&Container) -> Result<T> + Send) -> PyResult<T> {
        py.waiting(|| act(&self.file.container)).or_raise()
    }
}

/// A name, a type in numpy's notation, and external bytes.
type Attribute<'py> = (String, &'static str, Bound<'py, PyBytes>);

fn attributes<'py>(py: Python<'py>, attrs: &Attrs) -> Vec<Attribute<'py>> {
    attrs.iter().map(|a| (a.name.to_owned(), a.ty.numpy(), PyBytes::new(py, a.value))).collect()
}

#[pymethods]
impl PyContainer {
    /// The path of the file.
    #[getter]
    fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// `r`, `a` or `w`.
    #[getter]
    fn mode(&self) -> &'static str {
        self.mode
    }

    /// The name of the format.
    #[getter]
    fn format(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.call(py, Container::format).map(Format::word)
    }

    /// The hints in effect.
    fn hints(&self, py: Python<'_>) -> PyResult<BTreeMap<String, String>> {
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        self.call(py, |file| Ok(file.taken_hints()?.iter().map(owned).collect()))
    }

    /// Whether it is in define mode.
    #[getter]
    fn defining(&self, py: Python<'_>) -> bool {
        // A call that waits for other ranks holds the lock that this waits for, and then needs the interpreter's
        // lock.
        py.detach(|| self.file.container.is_defining())
    }

    /// Whether it is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.file.container.is_closed())
    }

    fn def_dim(&self, py: Python<'_>, name: &str, length: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
        let length = length.map(|length| columns::length(length, name)).transpose()?;
        self.call(py, |file| file.define().dim(name, length)).map(|made| made.0)
    }

    fn def_dims(
        &self,
        py: Python<'_>,
        names: &Bound<'_, PyAny>,
        lengths: &Bound<'_, PyAny>,
    ) -> PyResult<(u32, u32)> {
        let names = columns::texts(names, "names")?;
        let lengths = columns::lengths(lengths, names.len())?;
        let made = self.call(py, |file| file.define().dims(names, lengths))?;
        Ok((made.start, made.end))
    }

    fn def_var(
        &self,
        py: Python<'_>,
        name: &str,
        dtype: &Bound<'_, PyAny>,
        dims: Several<String>,
        attrs: Several<(String, String, Bound<'_, PyBytes>)>,
    ) -> PyResult<PyVar> {
        let ty = columns::type_of(dtype, "dtype")?;
        let dims: Vec<&str> = dims.0.iter().map(String::as_str).collect();
        let attrs = attrs.0.iter().map(|(name, dtype, value)| {
            Ok(Attr { name, ty: attribute_type(name, dtype)?, value: value.as_bytes() })
        });
        let attrs = attrs.collect::<PyResult<Vec<_>>>()?;
        let made = self.call(py, |file| file.define().var_with(name, ty, &dims, &attrs))?;
        Ok(PyVar::defined(&self.file, name, made))
    }

    fn def_many(
        &self,
        py: Python<'_>,
        names: &Bound<'_, PyAny>,
        dtypes: &Bound<'_, PyAny>,
        dims: &Bound<'_, PyAny>,
        attrs: &Bound<'_, PyAny>,
    ) -> PyResult<(u32, u32)> {
        let mut find = |vars: (&Names, usize), dims: (&Names, &[u64]), ids: &mut Vec<u32>| {
            self.call(py, |file| file.define().resolve_dims(vars, dims, ids))
        };
        let columns = Columns::new(names, dtypes, dims, attrs, &mut find)?;
        let made = self.call(py, |file| file.define().vars(&columns.view()))?;
        Ok((made.start, made.end))
    }

    fn put_att(
        &self,
        py: Python<'_>,
        variable: Option<&PyVar>,
        name: &str,
        dtype: &str,
        value: &Bound<'_, PyBytes>,
    ) -> PyResult<()> {
        let (ty, value) = (attribute_type(name, dtype)?, value.as_bytes());
        self.call(py, |file| {
            let variable = variable.map(PyVar::number).transpose()?;
            file.define().put_att(variable, name, ty, value)
        })
    }

    fn enddef<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = self.changing(py, Container::enddef)?;
        report_of(py, &report)
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report_of(py, &py.detach(|| self.file.container.report()))
    }

    fn redef(&self, py: Python<'_>) -> PyResult<()> {
        self.changing(py, Container::redef)
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Container::sync)
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.changing(py, Container::close)
    }

    /// `code` is an error code or the name of a kind; anything else, or None, is Invalid.
    fn abort(&self, py: Python<'_>, code: Option<&str>, message: &str) {
        let error = match (code, message) {
            (None, "") => None,
            (code, message) => Some(code_of(code, code.unwrap_or_default()).error(message)),
        };
        py.waiting(|| self.file.container.abort(error));
    }

    /// Reports this rank's error to the other ranks, which are in a collective call, and raises it.
    fn fail(&self, py: Python<'_>, code: &str, message: &str, hint: Option<&str>) -> PyResult<()> {
        let error = code_of(Some(code), code).error(message);
        let error = match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        };
        self.call(py, |file| Err(file.fail(error)))
    }

    fn counts(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let counts = self.call(py, Container::counts)?;
        Ok((counts.dims, counts.attrs, counts.vars))
    }

    fn dim(&self, py: Python<'_>, name: &str) -> PyResult<Option<u64>> {
        let found = absent(self.call(py, |file| Ok(file.dim(name)))?).or_raise()?;
        Ok(found.map(|dim| dim.len))
    }

    fn dims(&self, py: Python<'_>, first: u64, limit: usize) -> PyResult<Vec<(String, u64)>> {
        let page = self.call(py, |file| file.dims(first, limit))?;
        Ok(page.into_iter().map(|dim| (dim.name, dim.len)).collect())
    }

    fn var(&self, py: Python<'_>, name: &str) -> PyResult<Option<PyVar>> {
        let found = absent(self.call(py, |file| Ok(file.var(name)))?).or_raise()?;
        Ok(found.map(|info| PyVar::found(&self.file, info)))
    }

    fn vars(&self, py: Python<'_>, first: u64, limit: usize) -> PyResult<Vec<PyVar>> {
        let page = self.call(py, |file| file.vars(first, limit))?;
        Ok(page.into_iter().map(|info| PyVar::found(&self.file, info)).collect())
    }

    /// The variables directly under a path.
    fn vars_of(&self, py: Python<'_>, path: &str) -> PyResult<Vec<PyVar>> {
        let found = self.call(py, |file| file.vars_of(path))?;
        Ok(found.into_iter().map(|info| PyVar::found(&self.file, info)).collect())
    }

    fn attrs<'py>(&self, py: Python<'py>, variable: Option<&PyVar>) -> PyResult<Vec<Attribute<'py>>> {
        match variable {
            Some(variable) => Ok(attributes(py, &py.waiting(|| variable.info()).or_raise()?.attrs)),
            None => Ok(attributes(py, &self.call(py, Container::attrs)?)),
        }
    }

    /// Name of the record dimension.
    #[getter]
    fn record_dim(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.call(py, |file| {
            let mut first = 0;
            loop {
                let page = file.dims(first, PAGE)?;
                first += page.len() as u64;
                match page.iter().find(|dim| dim.is_record) {
                    Some(dim) => return Ok(Some(dim.name.clone())),
                    None if page.is_empty() => return Ok(None),
                    None => {}
                }
            }
        })
    }

    /// The paths that hold objects.
    fn paths(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let paths = self.call(py, paths)?;
        Ok(paths.into_iter().collect())
    }
}

fn attribute_type(name: &str, dtype: &str) -> PyResult<NcType> {
    let ty = NcType::from_numpy(dtype);
    ty.ok_or_else(|| invalid(format!("attribute {name}: {dtype} is not a type"), "such as f4"))
}

/// `None` if the object does not exist.
fn absent<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Every path that holds a dimension, a variable or an attribute, from the path lists of a partitioned header or by
/// one pass over all names.
fn paths(file: &Container) -> Result<BTreeSet<String>> {
    if !file.is_defining() {
        return Ok(file.metadata()?.below("")?.into_keys().collect());
    }
    let mut found = BTreeSet::new();
    let mut add = |name: &str| {
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !found.contains(parent) {
            found.insert(parent.to_owned());
        }
    };
    let mut first = 0;
    loop {
        let page = file.dims(first, PAGE)?;
        page.iter().for_each(|dim| add(&dim.name));
        first += page.len() as u64;
        if page.is_empty() {
            break;
        }
    }
    first = 0;
    loop {
        let page = file.vars(first, PAGE)?;
        page.iter().for_each(|var| add(&var.name));
        first += page.len() as u64;
        if page.is_empty() {
            break;
        }
    }
    file.attrs()?.names.iter().for_each(add);
    Ok(found)
}

fn report_of<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let raw = PyDict::new(py);
    let phases: Vec<_> =
        report.phases.iter().map(|p| (p.name.to_string(), p.seconds, p.peak_bytes)).collect();
    raw.set_item("phases", phases)?;
    raw.set_item("comparisons", report.comparisons)?;
    raw.set_item("names_held", report.names_held)?;
    raw.set_item("header_bytes_written", report.header_bytes_written)?;
    raw.set_item("messages", report.counters.messages)?;
    raw.set_item("bytes_sent", report.counters.sent)?;
    raw.set_item("bytes_received", report.counters.received)?;
    Ok(raw)
}
