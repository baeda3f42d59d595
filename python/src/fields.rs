//! The result of a retrieve: fields in request order, one field, and all of them as one file.

use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use fieldstone::Session;
use fieldstone::prelude::*;
use fieldstone::{Field, Fields, FieldsReader};
use pyo3::exceptions::{PyIndexError, PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList, PySlice, PyTuple};

use crate::data::{self, Target};
use crate::errors::{Raise, Refuse, invalid};
use crate::keys::{Interner, Key};
use crate::listing::time_object;
use crate::opening::Opening;
use crate::store;

/// The most missing combinations listed by name.
const MISSING_NAMED: usize = 10_000;

/// The origin of fields: enough to find them again in another process.
#[derive(Clone)]
pub struct Origin {
    pub opening: Arc<Opening>,
    pub handle: fieldstone::Store,
    pub session: Session,
    pub strict: bool,
}

/// One request's share of the fields.
#[derive(Clone)]
struct Part {
    origin: Arc<Origin>,
    request: String,
    fields: Fields,
}

/// The fields that a request selects, in request order: a lazy, pinned snapshot.
///
/// ``len(fields)``, ``fields[i]``, ``for f in fields``; a slice is a list of fields. ``a + b`` has the fields of
/// both. Any part can be read in any order, also from several threads. Pickling keeps the store's URL, its version
/// and the request.
#[pyclass(frozen, sequence, name = "Fields", module = "fieldstone")]
pub struct PyFields {
    parts: Vec<Part>,
    all: Fields,
    interner: Arc<Mutex<Interner>>,
}

impl PyFields {
    /// The results of several requests.
    pub fn new(origin: Origin, found: Vec<(String, Fields)>) -> PyResult<PyFields> {
        let origin = Arc::new(origin);
        let part = |(request, fields)| Part { origin: origin.clone(), request, fields };
        PyFields::of(found.into_iter().map(part).collect())
    }

    fn of(parts: Vec<Part>) -> PyResult<PyFields> {
        let mut shares = parts.iter().map(|part| part.fields.clone());
        let first =
            shares.next().ok_or_else(|| invalid("no request for these fields", "retrieve something"))?;
        let all = shares.fold(first, |all, more| all.concat(more));
        let schema = parts.first().map(|part| part.origin.handle.schema());
        Ok(PyFields { parts, all, interner: Arc::new(Mutex::new(Interner::new(schema))) })
    }

    /// All fields.
    pub fn fields(&self) -> PyResult<Vec<Field>> {
        self.all.iter().collect::<fieldstone::Result<Vec<_>>>().or_raise()
    }

    fn at(&self, py: Python<'_>, index: usize) -> PyResult<PyField> {
        let field = py.detach(|| self.all.get(index)).or_raise()?;
        let mut before = 0;
        let part = self.parts.iter().find(|part| {
            before += part.fields.len();
            index < before
        });
        let origin = part.map(|part| part.origin.clone());
        Ok(PyField { field, origin, interner: Some(self.interner.clone()) })
    }
}

#[pymethods]
impl PyFields {
    fn __len__(&self) -> usize {
        self.all.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.all.len();
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(isize::try_from(len)?)?;
            let places = (0..range.slicelength).map(|i| range.start + i as isize * range.step);
            let fields = places.map(|place| Py::new(py, self.at(py, place as usize)?));
            return Ok(PyList::new(py, fields.collect::<PyResult<Vec<_>>>()?)?.into_any());
        }
        let index = index
            .extract::<isize>()
            .or_refuse(py, || PyTypeError::new_err("fields are indexed by whole numbers and slices"))?;
        let place = if index < 0 { index.checked_add_unsigned(len) } else { Some(index) };
        match place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place < len) {
            Some(place) => Ok(Bound::new(py, self.at(py, place)?)?.into_any()),
            None => Err(PyIndexError::new_err(format!("there are {len} fields, and none has index {index}"))),
        }
    }

    fn __iter__(slf: Py<Self>) -> FieldsIterator {
        FieldsIterator { fields: slf, next: std::sync::atomic::AtomicUsize::new(0) }
    }

    fn __add__(&self, other: &Bound<'_, PyFields>) -> PyResult<PyFields> {
        PyFields::of(self.parts.iter().chain(&other.get().parts).cloned().collect())
    }

    /// With ``strict=False``: the combinations of listed values that have no field, as text that is a request
    /// ("run=a,step=6"); at most the first 10000, while ``missing_count`` counts all.
    #[getter]
    fn missing(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.all.missing(MISSING_NAMED))
    }

    /// The number of combinations of listed values that have no field.
    #[getter]
    fn missing_count(&self) -> u64 {
        self.all.missing_count()
    }

    /// Bytes of all fields together.
    #[getter]
    fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.all.total_bytes()).or_raise()
    }

    /// The bytes of all fields, concatenated in request order; arrays in C order.
    ///
    /// Raises Corrupt if stored bytes are damaged, NotFound for an array with missing pieces unless retrieved with
    /// ``strict=False``. For data larger than memory use ``open()``.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let total = py.detach(|| self.all.total_bytes()).or_raise()?;
        data::new_bytes(py, total, |out| self.all.read_into(out).map(drop))
    }

    /// Reads all fields, concatenated, into a writable buffer (bytearray, memoryview, numpy array) of at least
    /// ``nbytes`` bytes; returns the number of bytes written.
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut target = Target::new(buffer)?;
        let out = target.bytes();
        py.detach(|| self.all.read_into(out)).or_raise()
    }

    /// All fields, concatenated, as a readable, seekable binary file; memory use stays bounded.
    #[pyo3(signature = (*, buffer_size=1 << 20))]
    fn open<'py>(&self, py: Python<'py>, buffer_size: usize) -> PyResult<Bound<'py, PyAny>> {
        let reader = Reader { inner: Mutex::new(self.all.reader()) };
        py.import("fieldstone._fields")?.getattr("open_file")?.call1((Py::new(py, reader)?, buffer_size))
    }

    /// The fields as a lazy xarray Dataset (needs the extra ``fieldstone[xarray]``), of the same snapshot; for a
    /// store in memory, of its state when values are read.
    fn to_xarray<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let part = match &self.parts[..] {
            [part] => part,
            _ => {
                return Err(invalid(
                    "fields of several requests cannot form a Dataset",
                    "retrieve one request",
                ));
            }
        };
        let store = store::again(py, &part.origin.opening, &part.origin.handle, part.fields.version())?;
        let request = pyo3::types::PyString::new(py, &part.request);
        py.import("fieldstone.xarray_engine")?.getattr("to_xarray")?.call1((store, request))
    }

    fn __repr__(&self) -> String {
        let n = self.all.len();
        let request = self.parts.first().map_or("", |part| &part.request);
        let shown: String = request.chars().take(120).collect();
        let more = if self.parts.len() > 1 || shown.len() < request.len() { "…" } else { "" };
        format!("<fieldstone.Fields: {n} of '{shown}{more}'>")
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::html(slf.py(), "fields", slf)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rows = self.parts.iter().map(|part| {
            let origin = &part.origin;
            let transaction = origin.session.transaction().map(|id| id.to_string());
            let opening = origin.opening.arguments(py)?;
            Ok((opening, part.fields.version(), &part.request, origin.strict, transaction))
        });
        let rows = PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?;
        let restore = py.import("fieldstone._fields")?.getattr("restore_fields")?;
        Ok((restore, PyTuple::new(py, [rows])?))
    }
}

/// An iterator over fields.
#[pyclass(frozen, name = "_FieldsIterator", module = "fieldstone")]
pub struct FieldsIterator {
    fields: Py<PyFields>,
    next: std::sync::atomic::AtomicUsize,
}

#[pymethods]
impl FieldsIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyField>> {
        let fields = self.fields.get();
        let place = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match place < fields.all.len() {
            true => fields.at(py, place).map(Some),
            false => Ok(None),
        }
    }
}

/// One field of a pinned snapshot, read lazily.
#[pyclass(frozen, name = "Field", module = "fieldstone")]
pub struct PyField {
    field: Field,
    origin: Option<Arc<Origin>>,
    interner: Option<Arc<Mutex<Interner>>>,
}

impl PyField {
    /// A field that does not belong to retrieved fields.
    pub fn alone(field: Field) -> PyField {
        PyField { field, origin: None, interner: None }
    }

    /// Its origin, if known.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    /// The field.
    pub fn field(&self) -> &Field {
        &self.field
    }
}

#[pymethods]
impl PyField {
    /// Its key: an immutable mapping from keyword to canonical text.
    #[getter]
    fn key(&self, py: Python<'_>) -> PyResult<Key> {
        let key = self.field.key().or_raise()?;
        match &self.interner {
            Some(interner) => {
                interner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).key(py, key, 3)
            }
            None => Interner::new(self.origin.as_ref().map(|origin| origin.handle.schema())).key(py, key, 3),
        }
    }

    /// Bytes of the complete field, before compression.
    #[getter]
    fn nbytes(&self) -> PyResult<u64> {
        self.field.nbytes().or_raise()
    }

    /// The numpy dtype of an array, in the byte order it was archived in; None for opaque bytes.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.field.dtype().or_raise()?.map(|dtype| data::dtype_object(py, dtype)).transpose()
    }

    /// Extents of an array; None for opaque bytes.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.field.shape().or_raise()?.map(|shape| PyTuple::new(py, shape)).transpose()
    }

    /// Whether every element exists; False until the pieces of an array cover its shape.
    #[getter]
    fn complete(&self) -> PyResult<bool> {
        self.field.is_complete().or_raise()
    }

    /// The flush time, by the writer's clock: a datetime.datetime in UTC.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        time_object(py, self.field.time())
    }

    /// The extents in which an array's newest part is stored; None for opaque bytes.
    #[getter]
    fn chunks<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.field.chunks().map(|chunks| PyTuple::new(py, chunks)).transpose()
    }

    /// The field's bytes; for an array, the elements in C order.
    ///
    /// Raises Corrupt if stored bytes are damaged, NotFound for an array with missing pieces unless retrieved with
    /// ``strict=False``.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let nbytes = self.field.nbytes().or_raise()?;
        data::new_bytes(py, nbytes, |out| self.field.read_into(out))
    }

    /// Reads the field into a writable buffer of exactly ``nbytes`` bytes; returns the number of bytes written.
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut target = Target::new(buffer)?;
        let out = target.bytes();
        let len = out.len() as u64;
        py.detach(|| self.field.read_into(out)).or_raise()?;
        Ok(len)
    }

    /// The array, or its box from `start` (in elements, per dimension) with `count` elements per dimension,
    /// half-open; only the blocks that the box touches are read. For a GRIB message, its values, decoded by ecCodes:
    /// float64, NaN for missing values, in rows and columns if the grid has them.
    ///
    /// Raises Invalid for other opaque bytes and for a box outside the shape, NotFound if pieces of the box are
    /// missing, unless retrieved with ``strict=False``.
    #[pyo3(signature = (start=None, count=None))]
    fn array<'py>(
        &self,
        py: Python<'py>,
        start: Option<&Bound<'py, PyAny>>,
        count: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.field.dtype().or_raise()?.is_none() {
            return crate::grib::decode(py, &self.field, start, count);
        }
        value(py, &self.field, start, count)
    }

    /// Supports ``numpy.asarray(field)``, which reads all of ``array()``.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(invalid(
                "a field is not an array in memory, so it cannot be shared",
                "leave out copy=False",
            ));
        }
        let array = self.array(py, None, None)?;
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// The upstream lineage ("up"), the downstream lineage ("down"), or both: a ``Lineage``, through the commits that
    /// hold its parts. The options are those of ``Graph.trace``. A field that no execution wrote has only the commit.
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
        let of_field = slf.py().import("fieldstone._lineage")?.getattr("of_field")?;
        of_field.call1((slf, direction, depth, at, since, causal, limit, stores))
    }

    /// Ids of the commits that hold its parts, the newest first.
    #[getter]
    fn _commits(&self) -> Vec<String> {
        let mut commits = self.field.commits();
        commits.sort_by_key(|(_, stamp)| std::cmp::Reverse(*stamp));
        commits.into_iter().map(|(id, _)| id.to_string()).collect()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let what = match (self.field.dtype().or_raise()?, self.field.shape().or_raise()?) {
            (Some(dtype), Some(shape)) => format!(" {dtype} {}", PyTuple::new(py, shape)?),
            _ => String::new(),
        };
        let key = self.field.key().or_raise()?;
        Ok(format!("<fieldstone.Field {key} {} bytes{what}>", self.field.nbytes().or_raise()?))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::html(slf.py(), "entry", slf)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let Some(origin) = &self.origin else {
            return Err(invalid("the store of this field is unknown", "pickle its Fields"));
        };
        let transaction = origin.session.transaction().map(|id| id.to_string());
        let key = Py::new(py, self.key(py)?)?;
        let row = (origin.opening.arguments(py)?, self.field.version(), key, origin.strict, transaction);
        let restore = py.import("fieldstone._fields")?.getattr("restore_field")?;
        Ok((restore, row.into_pyobject(py)?))
    }
}

/// A field's value, or a box of it: an array, or bytes for an opaque field.
pub fn value<'py>(
    py: Python<'py>,
    field: &Field,
    start: Option<&Bound<'py, PyAny>>,
    count: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (start, count) = (data::numbers("start", start)?, data::numbers("count", count)?);
    let (Some(dtype), Some(shape)) = (field.dtype().or_raise()?, field.shape().or_raise()?) else {
        let nbytes = field.nbytes().or_raise()?;
        let Some(range) = data::box_of(&[nbytes], start, count)? else {
            return Ok(data::new_bytes(py, nbytes, |out| field.read_into(out))?.into_any());
        };
        let (first, len) = (range.start()[0], range.count()[0]);
        return Ok(data::new_bytes(py, len, |out| field.read_range(first, out))?.into_any());
    };
    match data::box_of(&shape, start, count)? {
        None => data::new_array(py, dtype, &shape, |out| field.read_into(out)),
        Some(region) => data::new_array(py, dtype, region.count(), |out| field.read_box_into(&region, out)),
    }
}

/// The native half of a raw Python file object.
#[pyclass(frozen, name = "_Reader", module = "fieldstone")]
pub struct Reader {
    inner: Mutex<FieldsReader>,
}

#[pymethods]
impl Reader {
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut target = Target::new(buffer)?;
        let out = target.bytes();
        let mut reader = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let reader = &mut *reader;
        py.detach(|| reader.read(out)).map_err(io_error)
    }

    fn seek(&self, py: Python<'_>, offset: i64, whence: i32) -> PyResult<u64> {
        let to = match whence {
            0 => SeekFrom::Start(u64::try_from(offset).map_err(|_| {
                pyo3::exceptions::PyValueError::new_err(format!("negative seek position {offset}"))
            })?),
            1 => SeekFrom::Current(offset),
            2 => SeekFrom::End(offset),
            _ => {
                return Err(pyo3::exceptions::PyValueError::new_err(format!(
                    "{whence} is not a valid whence"
                )));
            }
        };
        let mut reader = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let reader = &mut *reader;
        py.detach(|| reader.seek(to)).map_err(io_error)
    }
}

/// Recovers our errors from the `std::io` errors that carry them.
fn io_error(error: std::io::Error) -> PyErr {
    match error.downcast::<fieldstone::Error>() {
        Ok(ours) => crate::errors::exception(ours),
        Err(other) => PyOSError::new_err(other.to_string()),
    }
}
