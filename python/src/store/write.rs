//! Writing fields: archive, create, remove.

use std::ffi::CString;

use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, Compression, Field, FieldSpec, RemoveOptions, Value};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::{Store, session, warn_undated};
use crate::data::{self, Data};
use crate::errors::{Raise, invalid};
use crate::explain::reason;
use crate::fields::{PyField, PyFields};
use crate::keys::{Interner, Key};
use crate::log::Waiting as _;
use crate::request::{KeyText, requests};
use crate::sequence::each;
use crate::{grib, opening};

/// Start and shape of a piece, if either is given.
fn piece(
    data: &Data<'_>,
    start: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<(Vec<u64>, Vec<u64>)>> {
    match (data::numbers("start", start)?, data::numbers("shape", shape)?, &data.array) {
        (None, None, _) => Ok(None),
        (_, _, None) => Err(invalid(
            "opaque bytes have no start and shape",
            "give a numpy array, or leave out start and shape",
        )),
        (Some(start), Some(shape), Some(_)) => Ok(Some((start, shape))),
        (Some(_), None, _) => {
            Err(invalid("a piece has a start but no shape", "give shape=, of the whole array"))
        }
        (None, Some(_), _) => {
            Err(invalid("a piece has a shape but no start", "give start=, its place in the array"))
        }
    }
}

/// The fields given in place of a request.
fn these(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Field>>> {
    if let Ok(fields) = given.cast::<PyFields>() {
        return fields.get().fields().map(Some);
    }
    let Ok(list) = given.cast::<PyList>() else { return Ok(None) };
    let field = |item: Bound<'_, PyAny>| Some(item.cast::<PyField>().ok()?.get().field().clone());
    let fields: Option<Vec<Field>> = list.iter().map(field).collect();
    Ok(fields.filter(|fields| !fields.is_empty()))
}

#[pymethods]
impl Store {
    /// Archives `data` under `key`; it stays invisible until ``flush()``.
    ///
    /// `key` is a mapping with one value per keyword (None: absent), or text. `data` is bytes-like (opaque bytes) or
    /// a numpy array of any fixed-size type, byte order and layout: dtype and shape are kept. With `start` and
    /// `shape` (in elements, per dimension) the array is a piece of a larger array, whose other pieces are archived
    /// separately. `chunks` are the extents in which an array is stored; `compression` is "none", "zstd" or
    /// "zstd:LEVEL"; `txn` is the id of the transaction to archive into. `if_exists` says what to do if the key has a
    /// field, as in ``fieldstone.open``.
    ///
    /// The store has its own copy when this returns. Raises Invalid for a key or data that cannot be stored, Denied
    /// if the dataset has another owner or the store is open for reading.
    #[pyo3(signature = (key, data, *, start=None, shape=None, chunks=None, compression=None, if_exists=None, txn=None))]
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn archive(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        chunks: Option<&Bound<'_, PyAny>>,
        compression: Option<&str>,
        if_exists: Option<&str>,
        txn: Option<&str>,
    ) -> PyResult<()> {
        let handle = self.handle()?;
        let key = KeyText::new(key)?;
        let pairs = key.pairs()?;
        let data = Data::new(data)?;
        let piece = piece(&data, start, shape)?;
        let options = ArchiveOptions {
            session: session(txn)?,
            compression: compression.map(Compression::parse).transpose().or_raise()?,
            chunks: data::numbers("chunks", chunks)?,
            if_exists: opening::if_exists(if_exists)?,
            ..ArchiveOptions::default()
        };
        let bytes = data.bytes();
        let value = match (&data.array, &piece) {
            (None, _) => Value::Bytes(bytes),
            (Some((dtype, shape)), None) => Value::Array { data: bytes, dtype: *dtype, shape },
            (Some((dtype, count)), Some((start, shape))) => {
                Value::Piece { data: bytes, dtype: *dtype, start, count, shape }
            }
        };
        py.detach(|| handle.archive(&pairs, value, &options)).or_raise()?;
        warn_undated(py, &handle)
    }

    /// Archives many values, as ``archive`` does for one; `keys` and `datas` are iterables of equal length. All keys
    /// are checked before the first value is archived. Costs less per field than ``archive``.
    #[pyo3(signature = (keys, datas, *, compression=None, if_exists=None, txn=None))]
    fn archive_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        datas: &Bound<'_, PyAny>,
        compression: Option<&str>,
        if_exists: Option<&str>,
        txn: Option<&str>,
    ) -> PyResult<()> {
        let handle = self.handle()?;
        let keys = each(keys, |key| KeyText::new(&key))?;
        let datas = each(datas, |data| Data::new(&data))?;
        if keys.len() != datas.len() {
            return Err(invalid(
                format!("there are {} keys and {} values", keys.len(), datas.len()),
                "give as many keys as values",
            ));
        }
        let options = ArchiveOptions {
            session: session(txn)?,
            compression: compression.map(Compression::parse).transpose().or_raise()?,
            if_exists: opening::if_exists(if_exists)?,
            ..ArchiveOptions::default()
        };
        let pairs = keys.iter().map(|key| key.pairs()).collect::<PyResult<Vec<_>>>()?;
        let values = datas.iter().map(|data| match &data.array {
            None => Value::Bytes(data.bytes()),
            Some((dtype, shape)) => Value::Array { data: data.bytes(), dtype: *dtype, shape },
        });
        let items: Vec<_> = pairs.iter().map(|pairs| &pairs[..]).zip(values).collect();
        py.waiting(|| handle.archive_many(&items, &options)).or_raise()?;
        warn_undated(py, &handle)
    }

    /// Archives every field of every GRIB message of `source` under the key in its header; returns the number of
    /// fields.
    ///
    /// `source` is bytes-like or a path; it may mix messages of editions 1 and 2; each field of a multi-field message
    /// counts as one message. `key` is what every message's key must match, in any spelling of the values; keywords
    /// that a message lacks are added. `txn` is the id of a transaction.
    ///
    /// Like ``archive``, this does not flush, and a key archived again gets a new version. Nothing is archived if a
    /// message is damaged (Corrupt), contradicts `key` or does not fit the schema (Invalid): the error names the byte
    /// at which it begins. Unavailable: a header is new to this process, and ecCodes, which decodes new headers, is
    /// not installed.
    #[pyo3(signature = (source, key=None, *, txn=None))]
    fn archive_grib(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<u64> {
        grib::archive(py, &self.handle()?, source, key, session(txn)?)
    }

    /// Starts a new generation of an array field: the next flush hides all older pieces, and any process can add
    /// pieces. Returns a picklable FieldWriter with ``write(piece, start=)``.
    ///
    /// `fill` is the value of unwritten elements in reads with ``strict=False`` (NaN, NaT or zero if absent);
    /// `chunks` are the extents in which pieces are stored.
    #[pyo3(signature = (key, dtype, shape, *, fill=None, chunks=None, if_exists=None, txn=None))]
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn create_field<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        shape: &Bound<'py, PyAny>,
        fill: Option<&Bound<'py, PyAny>>,
        chunks: Option<&Bound<'py, PyAny>>,
        if_exists: Option<&str>,
        txn: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let handle = slf.get().handle()?;
        let key = KeyText::new(key)?;
        let pairs = key.pairs()?;
        let dtype = data::parse_dtype(dtype)?;
        let shape = data::numbers("shape", Some(shape))?
            .ok_or_else(|| invalid("create_field needs a shape", "give the extents of the whole array"))?;
        let chunks = data::numbers("chunks", chunks)?;
        let writers = py.import("fieldstone._fields")?;
        let object = data::dtype_object(py, dtype)?;
        let fill = match fill.filter(|fill| !fill.is_none()) {
            Some(fill) => Some(writers.getattr("fill_bytes")?.call1((fill, &object))?.extract::<Vec<u8>>()?),
            None => None,
        };
        let spec = FieldSpec { dtype, shape: &shape, fill: fill.as_deref(), chunks: chunks.as_deref() };
        let (session, if_exists) = (session(txn)?, opening::if_exists(if_exists)?);
        let options = ArchiveOptions { session, if_exists, ..ArchiveOptions::default() };
        let schema = handle.schema();
        let resolved = schema.resolve(&pairs).or_raise()?;
        py.waiting(|| handle.create_field(&pairs, &spec, &options)).or_raise()?;
        let key: Key = Interner::new(Some(schema)).key(py, resolved, 3)?;
        let shape = PyTuple::new(py, shape)?;
        let chunks = chunks.map(|chunks| PyTuple::new(py, chunks)).transpose()?;
        writers.getattr("FieldWriter")?.call1((slf, Py::new(py, key)?, object, shape, chunks, txn))
    }

    /// Removes the fields that `request` selects, or the given fields, from the visible fields and from those that
    /// this process archived and has not flushed; returns their number. After the next flush their keys have no
    /// field, until one is archived again. Their data stay readable in older versions (``open(url, at=version)``) and
    /// are listed with ``masked=True``; files ingested with ``copy=False`` are not touched.
    ///
    /// For fields from a retrieve, or a list of some of them, only those versions are removed: a field that is no
    /// longer the newest when the removal becomes visible stays, and so does a field that only a wider request would
    /// have selected.
    ///
    /// Warns if the request names a keyword or value that no field has, so that nothing is removed. Raises Invalid
    /// for a request that names everything, Denied if a dataset has another owner or the store is open for reading.
    #[pyo3(signature = (request, *, txn=None))]
    fn remove(&self, py: Python<'_>, request: &Bound<'_, PyAny>, txn: Option<&str>) -> PyResult<u64> {
        let (handle, session) = (self.handle()?, session(txn)?);
        if let Some(fields) = these(request)? {
            py.waiting(|| handle.remove_fields(&fields, &RemoveOptions { session })).or_raise()?;
            return Ok(fields.len() as u64);
        }
        let requests = requests(Some(request))?;
        let options = RemoveOptions { session };
        let removed = py.waiting(|| {
            requests.iter().try_fold(0, |sum, request| Ok(sum + handle.remove(request, &options)?))
        });
        let removed = removed.or_raise()?;
        if removed == 0
            && let Some(why) = requests.first().and_then(|request| reason(&handle, request))
        {
            let text = CString::new(format!("nothing is removed: {why}")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        }
        Ok(removed)
    }
}
