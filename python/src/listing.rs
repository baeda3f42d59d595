//! Listings: a stream of entries, fetched in growing batches with the interpreter's lock released.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use fieldstone::prelude::*;
use fieldstone::unpacked::unpacked_all;
use fieldstone::{
    DType, DTypeKind, Extremes, FieldLocation, ListEntry, ListOptions, Listing, Request, Scalar, Schema,
};
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyString, PyTuple};

use crate::data;
use crate::errors::{Raise as _, exception};
use crate::explain::reason;
use crate::keys::{Interner, Key};
use crate::log::Waiting as _;
use crate::request::requests;
use crate::store::Store;
use crate::table::{FieldTable, Table};

/// The first batch is small so that the first entry arrives at once; each batch is larger than the one before.
const FIRST_BATCH: usize = 16;
const LAST_BATCH: usize = 1024;
/// The most entries in a repr, and the most characters of each.
const SHOWN: usize = 10;
const WIDTH: usize = 120;

/// The result of ``store.list``: an iterator of entries in key order. It holds one block per segment and one batch of
/// entries, however long the listing is, and keeps the snapshot that it began with.
#[pyclass(frozen, name = "Listing", module = "fieldstone")]
pub struct PyListing {
    state: Mutex<ListingState>,
    request: String,
    /// The store and request that explain an empty listing.
    asked: Option<(fieldstone::Store, Request)>,
}

struct ListingState {
    schema: Schema,
    streams: VecDeque<Listing>,
    batch: std::vec::IntoIter<fieldstone::Result<ListEntry>>,
    next_batch: usize,
    /// Whether an entry was returned.
    given: bool,
    interner: Interner,
    owner: Option<(std::sync::Arc<str>, Py<PyString>)>,
    dtype: Option<(DType, Py<PyAny>)>,
    /// The remaining entries, once taken as an Arrow stream.
    exported: Option<Py<Table>>,
}

impl PyListing {
    pub fn new(streams: Vec<Listing>, schema: Schema, request: String) -> PyListing {
        let state = ListingState {
            schema: schema.clone(),
            streams: streams.into(),
            batch: Vec::new().into_iter(),
            next_batch: FIRST_BATCH,
            given: false,
            interner: Interner::new(Some(schema)),
            owner: None,
            dtype: None,
            exported: None,
        };
        PyListing { state: Mutex::new(state), request, asked: None }
    }

    /// The same listing, able to explain why it is empty.
    pub fn explained_by(self, store: fieldstone::Store, request: Request) -> PyListing {
        PyListing { asked: Some((store, request)), ..self }
    }

    /// Lines for the first remaining entries, without consuming them; or the reason why there are none.
    fn lines(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut guard = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        if state.batch.len() == 0 {
            py.detach(|| state.fetch());
        }
        let mut lines: Vec<String> = state.batch.as_slice().iter().take(SHOWN + 1).map(line).collect();
        if lines.len() > SHOWN {
            lines.truncate(SHOWN);
            lines.push("…".to_owned());
        }
        if lines.is_empty() && !state.given {
            let asked = self.asked.as_ref();
            let why = py.detach(|| asked.and_then(|(store, request)| reason(store, request)));
            lines.push(why.map_or_else(|| "none".to_owned(), |why| format!("none: {why}")));
        }
        Ok(lines)
    }
}

#[pymethods]
impl PyListing {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Entry>> {
        let mut guard = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        if state.batch.len() == 0 {
            py.detach(|| state.fetch());
        }
        state.given = true;
        match state.batch.next() {
            Some(entry) => state.entry(py, entry.map_err(exception)?).map(Some),
            None => Ok(None),
        }
    }

    /// The rest of the listing as a ``Table``: a column per keyword, then ``nbytes``, ``dtype``, ``shape``,
    /// ``complete``, ``masked``, ``location``, ``flushed``, ``owner``, ``min``, ``max``, ``missing``.
    ///
    /// A keyword column is int64, double or date32 if all its values are integers, numbers or dates, otherwise text;
    /// a step is in hours if all steps are whole numbers of hours. `min` and `max` are doubles.
    fn to_arrow(&self, py: Python<'_>) -> PyResult<Table> {
        let mut guard = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let asked = self.asked.as_ref();
        py.detach(|| state.table(asked)).map_err(exception)
    }

    /// The rest of the listing as an Arrow stream, which pyarrow, polars, DuckDB and others read directly, in place
    /// of ``to_arrow()``. It is kept for a consumer that asks again, as DuckDB does.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let kept = || {
            let guard = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            guard.exported.as_ref().map(|table| table.clone_ref(py))
        };
        let table = match kept() {
            Some(table) => table,
            None => {
                let table = Py::new(py, self.to_arrow(py)?)?;
                let mut guard = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
                guard.exported.insert(table).clone_ref(py)
            }
        };
        table.bind(py).call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// The rest of the listing as a pandas DataFrame, with the columns of ``to_arrow``. pyarrow is not needed.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Table::to_pandas(&Bound::new(py, self.to_arrow(py)?)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let head = format!("<fieldstone.Listing of '{}'>", self.request);
        let lines = self.lines(py)?.into_iter().map(|line| format!("  {line}"));
        Ok(std::iter::once(head).chain(lines).collect::<Vec<_>>().join("\n"))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::html(slf.py(), "text", slf)
    }
}

/// One entry as a line of a repr.
fn line(entry: &fieldstone::Result<ListEntry>) -> String {
    let entry = match entry {
        Ok(entry) => entry,
        Err(error) => return error.message().chars().take(WIDTH).collect(),
    };
    let what = match (entry.dtype, &entry.shape) {
        (Some(dtype), Some(shape)) => format!("{} {shape:?}", dtype.name()),
        _ => format!("{} bytes", entry.nbytes),
    };
    let state = match (entry.masked, entry.complete) {
        (true, _) => ", masked",
        (_, false) => ", incomplete",
        _ => "",
    };
    format!("{} {what}{state}", entry.key).chars().take(WIDTH).collect()
}

impl ListingState {
    /// The whole rest. If a request selects nothing, the columns are those of the store's first field.
    fn table(&mut self, asked: Option<&(fieldstone::Store, Request)>) -> fieldstone::Result<Table> {
        let mut table = FieldTable::new(self.schema.clone());
        let fetched = std::mem::take(&mut self.batch);
        let mut rows = 0;
        for entry in fetched.chain(self.streams.drain(..).flatten()) {
            table.push(entry?);
            rows += 1;
        }
        // Consumers need the columns of an empty table as well; any field of the store shows them.
        if let (0, Some((store, _))) = (rows, asked)
            && let Some(first) = store.list(&Request::new(), &ListOptions::default())?.next()
        {
            table.push(first?);
            return Ok(table.finish_without_rows());
        }
        Ok(table.finish())
    }

    fn fetch(&mut self) {
        let mut batch = Vec::with_capacity(self.next_batch);
        while let Some(stream) = self.streams.front_mut() {
            batch.extend(stream.by_ref().take(self.next_batch - batch.len()));
            if batch.len() == self.next_batch {
                break;
            }
            self.streams.pop_front();
        }
        self.next_batch = (self.next_batch * 4).min(LAST_BATCH);
        self.batch = batch.into_iter();
    }

    fn entry(&mut self, py: Python<'_>, entry: ListEntry) -> PyResult<Entry> {
        let owner = match &self.owner {
            Some((last, text)) if *last == entry.owner => text.clone_ref(py),
            _ => {
                let text = PyString::new(py, &entry.owner).unbind();
                self.owner = Some((entry.owner.clone(), text.clone_ref(py)));
                text
            }
        };
        let dtype = match (entry.dtype, &self.dtype) {
            (None, _) => None,
            (Some(dtype), Some((last, object))) if dtype == *last => Some((dtype, object.clone_ref(py))),
            (Some(dtype), _) => {
                let object = data::dtype_object(py, dtype)?;
                self.dtype = Some((dtype, object.clone_ref(py)));
                Some((dtype, object))
            }
        };
        Ok(Entry {
            key: Py::new(py, self.interner.key(py, entry.key, usize::from(entry.depth))?)?,
            nbytes: entry.nbytes,
            dtype,
            shape: entry.shape,
            complete: entry.complete,
            masked: entry.masked,
            place: entry.place,
            time: entry.time,
            owner,
            summary: entry.summary,
            attempt: entry.attempt,
        })
    }
}

/// One line of a listing: a field, or, at depth 1 and 2, the first field of a dataset or index.
#[pyclass(frozen, name = "Entry", module = "fieldstone")]
pub struct Entry {
    /// The key: an immutable mapping from keyword to canonical text.
    #[pyo3(get)]
    key: Py<Key>,
    /// Bytes of the complete field, before compression.
    #[pyo3(get)]
    nbytes: u64,
    dtype: Option<(DType, Py<PyAny>)>,
    shape: Option<std::sync::Arc<[u64]>>,
    /// Whether every element exists; False until the pieces of an array cover its shape.
    #[pyo3(get)]
    complete: bool,
    /// Whether a newer version hides this one; listed only with ``masked=True``.
    #[pyo3(get)]
    masked: bool,
    place: Option<FieldLocation>,
    time: i64,
    /// The user who wrote it.
    #[pyo3(get)]
    owner: Py<PyString>,
    summary: Option<Extremes>,
    attempt: Option<std::sync::Arc<str>>,
}

#[pymethods]
impl Entry {
    /// The attempt of the job that wrote it; None if its writer had none.
    #[getter]
    fn attempt(&self) -> Option<&str> {
        self.attempt.as_deref()
    }

    /// The numpy dtype of an array, in the byte order it was archived in; None for opaque bytes.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.dtype.as_ref().map(|(_, object)| object.clone_ref(py))
    }

    /// Extents of an array; None for opaque bytes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.shape.as_ref().map(|shape| PyTuple::new(py, shape.iter())).transpose()
    }

    /// "file:offset" of the newest part, with the file relative to the store's folder; None for a created field
    /// without a written piece.
    #[getter]
    fn location(&self) -> Option<String> {
        self.place.as_ref().map(|place| place.to_string())
    }

    /// The flush time, by the writer's clock: a datetime.datetime in UTC.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        time_object(py, self.time)
    }

    /// Smallest element that is not missing, from the index; None if unknown. For a packed variable of an ingested
    /// file, the value that xarray shows: unpacked, without fill values.
    #[getter]
    fn min<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.scalar(py, self.summary.as_ref().and_then(|summary| summary.min))
    }

    /// Largest element that is not missing, from the index, as `min`; None if unknown.
    #[getter]
    fn max<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.scalar(py, self.summary.as_ref().and_then(|summary| summary.max))
    }

    /// The number of elements that are NaN, NaT or the fill value; None if unknown.
    #[getter]
    fn missing(&self) -> Option<u64> {
        self.summary.as_ref().and_then(|summary| summary.missing)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let key = self.key.bind(py).str()?;
        let what = match (&self.dtype, &self.shape) {
            (Some((dtype, _)), Some(shape)) => format!(" {dtype} {}", PyTuple::new(py, shape.iter())?),
            _ => String::new(),
        };
        let state = match (self.masked, self.complete) {
            (true, _) => " masked",
            (_, false) => " incomplete",
            _ => "",
        };
        Ok(format!("<fieldstone.Entry {key} {} bytes{what}{state}>", self.nbytes))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::html(slf.py(), "entry", slf)
    }
}

impl Entry {
    fn scalar<'py>(&self, py: Python<'py>, value: Option<Scalar>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(value) = value else { return Ok(None) };
        let number = match value {
            Scalar::Int(i) => i.into_pyobject(py)?.into_any(),
            Scalar::UInt(u) => u.into_pyobject(py)?.into_any(),
            Scalar::Float(x) => x.into_pyobject(py)?.into_any(),
        };
        match &self.dtype {
            Some((dtype, _)) if matches!(dtype.kind(), DTypeKind::DateTime | DTypeKind::TimeDelta) => {
                data::time_scalar(py, *dtype, number).map(Some)
            }
            _ => Ok(Some(number)),
        }
    }
}

/// Nanoseconds since 1970 as a datetime in UTC, to the microsecond.
pub fn time_object(py: Python<'_>, nanoseconds: i64) -> PyResult<Bound<'_, PyAny>> {
    static EPOCH: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    let (epoch, timedelta) = EPOCH.get_or_try_init(py, || -> PyResult<_> {
        let module = py.import("datetime")?;
        let utc = module.getattr("timezone")?.getattr("utc")?;
        let epoch = module.getattr("datetime")?.call_method1("fromtimestamp", (0, utc))?;
        Ok((epoch.unbind(), module.getattr("timedelta")?.unbind()))
    })?;
    let since = timedelta.bind(py).call1((0, 0, nanoseconds.div_euclid(1000)))?;
    epoch.bind(py).add(since)
}

/// The fields that became visible after a version, and the version of this reading.
#[pyfunction]
#[pyo3(name = "_list_since")]
pub fn list_since(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    request: Option<&Bound<'_, PyAny>>,
    since: &str,
) -> PyResult<(PyListing, String)> {
    since_version(py, &store.get().handle()?, &requests(request)?, since, &ListOptions::default())
}

/// The fields of requests that became visible after a version, and the version of this reading.
pub fn since_version(
    py: Python<'_>,
    handle: &fieldstone::Store,
    requests: &[fieldstone::Request],
    since: &str,
    options: &ListOptions,
) -> PyResult<(PyListing, String)> {
    let found = py.waiting(|| {
        // All requests read one snapshot: that of the first.
        let mut streams = Vec::with_capacity(requests.len());
        let mut now = None;
        for request in requests {
            let (stream, version) = handle.list_since(request, since, options)?;
            streams.push(stream);
            now.get_or_insert(version);
        }
        let streams = unpacked_all(handle, requests, streams);
        Ok((streams, now.unwrap_or_else(|| since.to_owned())))
    });
    let (streams, now) = found.or_raise()?;
    let text = requests.first().map_or_else(String::new, |request| request.to_string());
    Ok((PyListing::new(streams, handle.schema(), text.chars().take(200).collect()), now))
}
