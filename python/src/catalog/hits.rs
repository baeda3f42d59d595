//! Attributes that a query found: one hit, and a stream of hits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fieldstone::Id;
use fieldstone::catalog::RunName;
use fieldstone::catalog::{Hit, Writer, step_number};
use fieldstone::prelude::*;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PySlice, PyTuple};

use super::values;
use super::writers::PyWriter;
use crate::data;
use crate::errors::{Raise, exception};
use crate::keys::{Interner, Key};
use crate::store::Store;

/// The first batch is small so that the first hit arrives at once; each batch is larger than the one before.
const FIRST_BATCH: usize = 16;
const LAST_BATCH: usize = 1024;

/// The store and transaction that hits come from.
pub struct Source {
    pub store: Py<Store>,
    pub txn: Option<String>,
    pub users: Arc<Users>,
}

/// Names of users and writers of logs, each looked up once.
pub struct Users {
    /// `None`: hits from another process carry all names.
    store: Option<fieldstone::Store>,
    names: Mutex<BTreeMap<u32, Arc<str>>>,
    writers: Mutex<BTreeMap<Option<Id>, Option<Arc<Writer>>>>,
}

impl Users {
    pub fn of(store: &fieldstone::Store) -> Arc<Users> {
        Arc::new(Users { store: Some(store.clone()), names: Mutex::default(), writers: Mutex::default() })
    }

    pub fn known(
        names: BTreeMap<u32, Arc<str>>,
        writers: BTreeMap<Option<Id>, Option<Arc<Writer>>>,
    ) -> Arc<Users> {
        Arc::new(Users { store: None, names: Mutex::new(names), writers: Mutex::new(writers) })
    }

    /// The writer of a log; `None` where its header is damaged.
    pub fn writer(&self, log: Option<Id>) -> fieldstone::Result<Option<Arc<Writer>>> {
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = writers.get(&log) {
            return Ok(known.clone());
        }
        let found = match &self.store {
            Some(store) => store.catalog().writer(log)?.map(Arc::new),
            None => None,
        };
        writers.insert(log, found.clone());
        Ok(found)
    }

    /// The name of a user.
    pub fn name(&self, user: u32) -> Arc<str> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let name = || match &self.store {
            Some(store) => store.catalog().user_name(user).into(),
            None => user.to_string().into(),
        };
        names.entry(user).or_insert_with(name).clone()
    }
}

/// An attribute that a query found: a typed value on a run, a step, or a box of a variable.
#[pyclass(frozen, name = "Hit", module = "fieldstone")]
pub struct PyHit {
    pub hit: Hit,
    pub source: Arc<Source>,
}

#[pymethods]
impl PyHit {
    /// The project of its run; None if the run has no project.
    #[getter]
    fn project(&self) -> Option<&str> {
        Some(&*self.hit.project).filter(|project| !project.is_empty())
    }

    /// The name of its run.
    #[getter]
    fn run(&self) -> &str {
        &self.hit.run
    }

    /// The step; None without a step, or if the step is not a whole number of hours.
    #[getter]
    fn step(&self) -> Option<i64> {
        self.hit.step.and_then(step_number::whole)
    }

    /// Time of the step, in the run's unit; None if the step has none.
    #[getter]
    fn time(&self) -> Option<f64> {
        self.hit.time
    }

    /// The name of the variable, or None.
    #[getter]
    fn variable(&self) -> Option<&str> {
        self.hit.variable.as_deref()
    }

    /// The variable's version; None without a variable.
    #[getter]
    fn variable_version(&self) -> Option<i64> {
        self.hit.variable.as_ref().map(|_| self.hit.variable_version)
    }

    /// The adaptive mesh level of the variable, or None.
    #[getter]
    fn level(&self) -> Option<i64> {
        self.hit.variable.as_deref().and_then(fieldstone::amr::split).map(|(level, _)| level)
    }

    /// The name of the tag.
    #[getter]
    fn tag(&self) -> &str {
        &self.hit.tag
    }

    /// The tag's version.
    #[getter]
    fn tag_version(&self) -> i64 {
        self.hit.tag_version
    }

    /// The unit of the value; None if the tag has none.
    #[getter]
    fn unit(&self) -> Option<&str> {
        Some(&*self.hit.unit).filter(|unit| !unit.is_empty())
    }

    /// The value: bool, int, float, str, bytes, datetime (UTC), IntRange, FloatRange, numpy array, list or
    /// dict, by the tag's type.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        values::object(py, &self.hit.value)
    }

    /// The user who annotated.
    #[getter]
    fn user(&self) -> String {
        self.source.users.name(self.hit.user).to_string()
    }

    /// The process that annotated, a Writer; None if the header of its log is damaged.
    #[getter]
    fn writer(&self, py: Python<'_>) -> PyResult<Option<PyWriter>> {
        let log = self.hit.id.writer;
        let found = py.detach(|| self.source.users.writer(log)).or_raise()?;
        Ok(found.map(|writer| PyWriter { writer, log }))
    }

    /// First element of the box, per dimension; None for a whole variable, step or run.
    #[getter]
    fn start<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.hit.region.as_ref().map(|(start, _)| PyTuple::new(py, start)).transpose()
    }

    /// Extents of the box, per dimension; None for a whole variable, step or run.
    #[getter]
    fn count<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.hit.region.as_ref().map(|(_, count)| PyTuple::new(py, count)).transpose()
    }

    /// The annotated cells as an ascending numpy array of int64: indices along one dimension of the box (for a
    /// variable on a mesh, the mesh's dimension). None if the attribute covers the whole box.
    #[getter]
    fn cells<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let array = |cells: &Arc<[i64]>| {
            data::new_array(py, fieldstone::DType::I8, &[cells.len() as u64], |out| {
                out.as_chunks_mut()
                    .0
                    .iter_mut()
                    .zip(cells.iter())
                    .for_each(|(out, cell)| *out = cell.to_ne_bytes());
                Ok(())
            })
        };
        self.hit.cells.as_ref().map(|(_, cells)| array(cells)).transpose()
    }

    /// The index of the cells' dimension; None without cells.
    #[getter]
    fn _cells_along(&self) -> Option<usize> {
        self.hit.cells.as_ref().map(|(dim, _)| *dim)
    }

    /// The box as a tuple of slices, which can index a numpy array or serve as a ``box=`` term; None for a whole
    /// variable, step or run.
    #[getter(r#box)]
    fn region<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some((start, count)) = &self.hit.region else { return Ok(None) };
        let slices = start.iter().zip(count).map(|(start, count)| {
            let stop = start.saturating_add(*count);
            PySlice::new(py, *start as isize, stop as isize, 1)
        });
        // numpy shows such a slice as written only if it has no step.
        let slices = slices.map(|slice| {
            let class = py.get_type::<PySlice>();
            class.call1((slice.getattr("start")?, slice.getattr("stop")?))
        });
        Ok(Some(PyTuple::new(py, slices.collect::<PyResult<Vec<_>>>()?)?))
    }

    /// The key of the annotated field. Without a variable, a dict of the known keywords.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = RunName { project: self.hit.project.to_string(), name: self.hit.run.to_string() };
        let further = self.hit.keywords.as_deref().unwrap_or_default();
        key_of(py, self.source.store.get(), &run, self.hit.variable.as_deref(), self.hit.step, further)
    }

    /// Further keywords of the field besides run, step and variable, by name; ``key`` includes them.
    #[getter]
    fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (keyword, value) in self.hit.keywords.iter().flat_map(|all| all.iter()) {
            dict.set_item(&**keyword, &**value)?;
        }
        Ok(dict)
    }

    /// Reads the annotated elements: the box of the field, or the whole field. Only the blocks that the box touches
    /// are read. With `within`, a box in the form of ``box=``, only the intersection of both is read; with
    /// two-dimensional coordinates, lat(y, x), the result is a masked array of the rectangle around the cells in the
    /// box. If the attribute has cells, the result holds only these, in their order, along their dimension.
    /// `variable` names another variable of the run, to be read in the same box at the same step.
    ///
    /// Raises NotFound if the field does not exist, Invalid if the attribute is not on a variable.
    #[pyo3(signature = (within=None, *, variable=None))]
    fn read<'py>(
        slf: &Bound<'py, Self>,
        within: Option<&Bound<'py, PyAny>>,
        variable: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let read = py.import("fieldstone._hits")?.getattr("read")?;
        read.call1((own.source.store.bind(py), slf, within, variable, own.source.txn.as_deref()))
    }

    /// The upstream lineage ("up"), the downstream lineage ("down"), or both: a ``Lineage`` of the commit that holds
    /// the attribute, which records who annotated it, and of the annotated field. The options are those of
    /// ``Graph.trace``.
    #[pyo3(signature = (*, direction="up", depth=None, at=None, since=None, causal=true, limit=Some(10_000), stores=true))]
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn lineage<'py>(
        slf: &Bound<'py, Self>,
        direction: &str,
        depth: Option<u32>,
        at: Option<Bound<'py, PyAny>>,
        since: Option<Bound<'py, PyAny>>,
        causal: bool,
        limit: Option<usize>,
        stores: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, source) = (slf.py(), &slf.get().source);
        let of_hit = py.import("fieldstone._lineage")?.getattr("of_hit")?;
        let native = py.import("fieldstone._native")?;
        let graph = native.call_method1("_graph_of", (source.store.bind(py), source.txn.as_deref()))?;
        of_hit.call1((graph, slf, direction, depth, at, since, causal, limit, stores))
    }

    /// The id of the commit that holds the attribute.
    #[getter]
    fn _commit(&self, py: Python<'_>) -> PyResult<String> {
        let handle = self.source.store.get().handle()?;
        let store = py.detach(|| handle.status()).or_raise()?.id;
        let id = self.hit.id;
        Ok(store.map_or_else(String::new, |store| {
            format!("{store}/{}/{}", id.writer.unwrap_or(Id::LEAST), id.sequence)
        }))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let hit = &self.hit;
        let mut text = format!("<fieldstone.Hit {}", hit.run);
        if let Some(step) = hit.step {
            text += &format!(" step {}", step_number::text(step));
        }
        if let Some(variable) = &hit.variable {
            text += &format!(" {variable}");
        }
        for (keyword, value) in hit.keywords.iter().flat_map(|all| all.iter()) {
            text += &format!(" {keyword}={value}");
        }
        if let Some((start, count)) = &hit.region {
            let ranges = start.iter().zip(count).map(|(a, n)| format!("{a}:{}", a.saturating_add(*n)));
            text += &format!(" [{}]", ranges.collect::<Vec<_>>().join(","));
        }
        if let Some((_, cells)) = &hit.cells {
            text += &format!(" {} cell{}", cells.len(), if cells.len() == 1 { "" } else { "s" });
        }
        let value: String = values::object(py, &hit.value)?.repr()?.to_string().chars().take(60).collect();
        let unit = if hit.unit.is_empty() { String::new() } else { format!(" {}", hit.unit) };
        Ok(format!("{text}: {} = {value}{unit}>", hit.tag))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::html(slf.py(), "text", slf)
    }
}

/// The key of a field of a run; without a variable, only the known keywords.
pub fn key_of<'py>(
    py: Python<'py>,
    store: &Store,
    run: &RunName,
    variable: Option<&str>,
    step: Option<i64>,
    further: &[(Arc<str>, Arc<str>)],
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.handle()?;
    let catalog = handle.catalog();
    let mut pairs = py.detach(|| catalog.key_of(run, variable, step)).or_raise()?;
    pairs.extend(further.iter().map(|(keyword, value)| (keyword.to_string(), value.to_string())));
    if variable.is_some() {
        let schema = handle.schema();
        let named: Vec<(&str, &str)> = pairs.iter().map(|(word, value)| (&**word, &**value)).collect();
        if let Ok(resolved) = schema.resolve(&named) {
            let key: Key = Interner::new(Some(schema)).key(py, resolved, 3)?;
            return Ok(Bound::new(py, key)?.into_any());
        }
    }
    let dict = PyDict::new(py);
    for (keyword, value) in pairs {
        dict.set_item(keyword, value)?;
    }
    Ok(dict.into_any())
}

/// Hits one by one, fetched in growing batches with the interpreter's lock released.
#[pyclass(frozen, name = "_HitStream", module = "fieldstone")]
pub struct HitStream {
    state: Mutex<Stream>,
    source: Arc<Source>,
}

type Hits = Box<dyn Iterator<Item = fieldstone::Result<Hit>> + Send>;

struct Stream {
    hits: Hits,
    batch: std::vec::IntoIter<fieldstone::Result<Hit>>,
    next_batch: usize,
}

impl HitStream {
    pub fn new(hits: Hits, source: Arc<Source>) -> HitStream {
        let stream = Stream { hits, batch: Vec::new().into_iter(), next_batch: FIRST_BATCH };
        HitStream { state: Mutex::new(stream), source }
    }
}

#[pymethods]
impl HitStream {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyHit>> {
        let mut guard = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        if state.batch.len() == 0 {
            py.detach(|| {
                let batch: Vec<_> = state.hits.by_ref().take(state.next_batch).collect();
                state.next_batch = (state.next_batch * 4).min(LAST_BATCH);
                state.batch = batch.into_iter();
            });
        }
        match state.batch.next() {
            Some(hit) => Ok(Some(PyHit { hit: hit.map_err(exception)?, source: self.source.clone() })),
            None => Ok(None),
        }
    }
}
