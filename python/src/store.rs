//! The class `_Store`, the native half of `fieldstone.Store`: each method converts its arguments, releases the
//! interpreter's lock, calls the facade and converts what comes back.
//!
//! What a method of Python makes of these, and of the catalog, stands in `fieldstone._store`, once (B-14). So a store
//! that is made here becomes an object of that class before anybody holds it.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use fieldstone::Session;
use fieldstone::prelude::*;
use fieldstone::unpacked::unpacked_all;
use fieldstone::{
    ArchiveOptions, Compression, Exist, FieldSpec, Id, ListOptions, ReadOptions, RetrieveOptions, Value,
    key_request,
};
use pyo3::exceptions::{PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use crate::autoflush::Autoflush;
use crate::data::{self, Data};
use crate::errors::{Raise, invalid};
use crate::explain::explained;
use crate::fields::{self, Origin, PyFields};
use crate::keys::{Interner, Key};
use crate::listing::{PyListing, since_version};
use crate::log::Waiting as _;
use crate::opening::{self, Opening};
use crate::request::{KeyText, requests};
use crate::sequence::each;
use crate::{registry, reports};

/// The calls of a store that are native.
#[pyclass(frozen, subclass, weakref, name = "_Store", module = "fieldstone._native")]
pub struct Store {
    handle: Mutex<Option<fieldstone::Store>>,
    autoflush: Option<Autoflush>,
    opening: Arc<Opening>,
    /// The communicator whose ranks opened it together.
    comm: Option<Py<PyAny>>,
}

/// A store that is open, on its way into the object that holds it.
#[pyclass(frozen, name = "_Opened", module = "fieldstone._native")]
pub struct Opened(Mutex<Option<Store>>);

/// Warns of logs that are missing from every answer; Python shows each text once.
fn warn_of_passed_over(py: Python<'_>, handle: &fieldstone::Store) -> PyResult<()> {
    for note in py.waiting(|| handle.passed_over()).or_raise()? {
        let text = CString::new(note).map_err(|_| invalid("a file's name holds a zero byte", ""))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}

impl Store {
    pub fn open(py: Python<'_>, opening: Opening, comm: Option<Py<PyAny>>) -> PyResult<Py<Store>> {
        let handle = opening.connect(py)?;
        warn_of_passed_over(py, &handle)?;
        let autoflush = opening
            .autoflush
            .filter(|every| *every != 0.0 && opening.writes())
            .map(Autoflush::new)
            .transpose();
        let mut store = Store::new(handle, Arc::new(opening));
        store.autoflush = autoflush.or_raise()?;
        store.comm = comm;
        store.into_object(py)
    }

    fn new(handle: fieldstone::Store, opening: Arc<Opening>) -> Store {
        Store { handle: Mutex::new(Some(handle)), autoflush: None, opening, comm: None }
    }

    /// What people hold: an object of the Python class over this one (B-14).
    fn into_object(self, py: Python<'_>) -> PyResult<Py<Store>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.import(py, "fieldstone._store", "Store")?;
        let object = class.call1((Opened(Mutex::new(Some(self))),))?;
        Ok(object.cast_into::<Store>()?.unbind())
    }

    /// A store that is new, holds nothing and was opened without a schema gets the one that fits files.
    pub fn give_schema_of(&self, py: Python<'_>, files: &[PathBuf]) -> PyResult<()> {
        self.give_schema(py, || Ok(fieldstone::suggest_schema(files).to_owned()))
    }

    /// As [`Store::give_schema_of`], for the schema that `fitting` tells.
    pub fn give_schema(
        &self,
        py: Python<'_>,
        fitting: impl FnOnce() -> fieldstone::Result<String> + Send,
    ) -> PyResult<()> {
        let handle = self.handle()?;
        if self.opening.schema.is_some() || self.opening.at.is_some() || handle.unflushed() > 0 {
            return Ok(());
        }
        let fitting = py.waiting(|| -> fieldstone::Result<_> {
            if handle.status()?.id.is_some() {
                return Ok(None);
            }
            let fitting = fitting()?;
            let (known, schema) = (Some(fitting.as_str()), handle.schema());
            Ok((schema.name() != known && schema.text() != fitting).then_some(fitting))
        });
        if let Some(fitting) = fitting.or_raise()? {
            let opened = self.opening.with_schema(&fitting).connect(py)?;
            *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        }
        Ok(())
    }

    /// The store of some fields again, pinned to their version; one in memory as it is now.
    pub fn again(
        py: Python<'_>,
        opening: &Arc<Opening>,
        handle: &fieldstone::Store,
        version: String,
    ) -> PyResult<Py<Store>> {
        match opening.at(version) {
            Some(pinned) => Store::open(py, pinned, None),
            None => Store::new(handle.clone(), opening.clone()).into_object(py),
        }
    }

    /// The one field that a key names.
    pub fn found(
        &self,
        py: Python<'_>,
        key: &KeyText<'_>,
        options: &ReadOptions,
    ) -> PyResult<fieldstone::Field> {
        let (handle, pairs) = (self.handle()?, key.pairs()?);
        let found = || {
            let found = handle.get(&pairs, options);
            found.map_err(|error| explained(&handle, &key_request(&pairs), error))
        };
        py.detach(found).or_raise()
    }

    pub fn handle(&self) -> PyResult<fieldstone::Store> {
        Python::attach(crate::context::sync);
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let handle = handle
            .ok_or_else(|| invalid(format!("the store {} is closed", self.opening.url), "open it again"))?;
        if let Some(autoflush) = &self.autoflush {
            autoflush.check(&handle).or_raise()?;
        }
        Ok(handle)
    }

    /// What it holds, in a few words: how many values its first keywords have. Nothing where that cannot be said.
    fn held(&self, py: Python<'_>) -> Option<String> {
        let handle = self.handle().ok()?;
        let axes = py.waiting(|| handle.axes(&fieldstone::Request::new(), &ReadOptions::default()));
        let count = |(keyword, values): &(Arc<str>, Vec<fieldstone::KeyValue>)| {
            format!("{} of {keyword}", values.len())
        };
        let counts: Vec<String> = axes.ok()?.iter().take(3).map(count).collect();
        (!counts.is_empty()).then(|| format!(", values: {}", counts.join(", ")))
    }

    fn end(&self, py: Python<'_>, discard: bool) -> PyResult<()> {
        let Some(handle) = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        if let Some(autoflush) = &self.autoflush {
            autoflush.stop();
        }
        let ended = py.waiting(|| {
            if discard {
                handle.discard(None)?;
            }
            handle.close()
        });
        if ended.is_err() {
            // What could not be flushed stays with the caller, who may mend the medium and try again.
            *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
        }
        ended.or_raise()
    }
}

/// A store that is dropped without being closed keeps what it did not flush until the program ends.
impl Drop for Store {
    fn drop(&mut self) {
        let handle = self.handle.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle.filter(|handle| handle.unflushed() > 0 || handle.uses_catalog()) {
            registry::keep(handle);
        }
    }
}

/// The handle's session, within the transaction that a call names.
pub fn session(txn: Option<&str>) -> PyResult<Session> {
    let parse = |text: &str| {
        Id::parse(text).ok_or_else(|| {
            invalid(format!("txn={text:?} is not a valid transaction id"), "give tx.id of a transaction")
        })
    };
    Ok(txn.map(parse).transpose()?.into())
}

/// Start and shape of a piece, where either is given.
fn piece(
    data: &Data<'_>,
    start: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<(Vec<u64>, Vec<u64>)>> {
    match (data::numbers("start", start)?, data::numbers("shape", shape)?, &data.array) {
        (None, None, _) => Ok(None),
        (_, _, None) => Err(invalid(
            "opaque bytes have no start and shape",
            "give a numpy array, or leave start and shape out",
        )),
        (Some(start), Some(shape), Some(_)) => Ok(Some((start, shape))),
        (Some(_), None, _) => {
            Err(invalid("a piece has a start and no shape", "give shape=, of the whole array"))
        }
        (None, Some(_), _) => {
            Err(invalid("a piece has a shape and no start", "give start=, its place in the array"))
        }
    }
}

/// An extension of a schema: its text, or the file that holds it.
#[derive(FromPyObject)]
enum SchemaText {
    Text(String),
    File(PathBuf),
}

impl SchemaText {
    fn read(&self) -> fieldstone::Result<String> {
        match self {
            SchemaText::Text(text) => Ok(text.clone()),
            SchemaText::File(path) => fieldstone::files::read_text(path)
                .map_err(|e| fieldstone::Error::io("read the schema", path, e)),
        }
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (*args))]
    fn take(args: &Bound<'_, PyTuple>) -> PyResult<Store> {
        let given = args.extract::<(Bound<'_, Opened>,)>().ok();
        let opened =
            given.and_then(|(way,)| way.get().0.lock().unwrap_or_else(PoisonError::into_inner).take());
        opened.ok_or_else(|| {
            PyTypeError::new_err("cannot create 'fieldstone.Store' instances: fieldstone.open makes them")
        })
    }

    /// The URL, as it was opened.
    #[getter]
    fn url(&self) -> &str {
        &self.opening.url
    }

    /// The mode it was opened with: "a", "r" or "x".
    #[getter]
    fn mode(&self) -> &str {
        &self.opening.mode
    }

    /// The text of the schema in force.
    #[getter]
    fn schema(&self) -> PyResult<String> {
        Ok(self.handle()?.schema().text().to_owned())
    }

    /// Adds rules to the schema, behind those that are there, and optional keywords: text such as
    /// ``"number?: Integer;"`` or ``"[centre [type [step]]]"``; a path object names a file with it.
    ///
    /// A key without the new keyword stays the same key, down to its bytes, and fields keep theirs. What is
    /// added is durable and in force for everybody at once, beside transactions. Invalid where a rule would
    /// make no key, because one that is there takes all of its keys, Denied for others than the store's owner.
    fn extend_schema(&self, py: Python<'_>, text: SchemaText) -> PyResult<()> {
        let handle = self.handle()?;
        py.waiting(|| handle.extend_schema(&text.read()?, &Session::default()).map(drop)).or_raise()
    }

    /// Whether the store was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// The text that names what is visible now; ``open(url, at=version)`` reads it again later.
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<String> {
        let handle = self.handle()?;
        py.waiting(|| handle.version()).or_raise()
    }

    /// Fields that this process archived here and did not flush.
    #[getter]
    fn unflushed(&self, py: Python<'_>) -> PyResult<u64> {
        let handle = self.handle()?;
        Ok(py.detach(|| handle.unflushed()))
    }

    /// Takes `data` under `key`; it is visible to nobody before ``flush()``.
    ///
    /// `key` is a mapping with one value per keyword (None: absent), or text. `data` is bytes-like
    /// (opaque bytes) or a numpy array of any fixed-size type, byte order and layout: dtype and shape
    /// are kept. With `start` and `shape` (in elements, per dimension) the array is a piece of a larger
    /// one whose other pieces come from elsewhere. `chunks` are the extents in which an array is stored;
    /// `compression` is "none", "zstd" or "zstd:LEVEL"; `txn` the id of a transaction to belong to. `exist` says what
    /// happens where the key has a field, as in ``fieldstone.open``.
    ///
    /// The store has its own copy when this returns. Raises Invalid for a key or data that cannot be
    /// stored, Denied where the dataset has another owner or the store is open for reading.
    #[pyo3(signature = (key, data, *, start=None, shape=None, chunks=None, compression=None, exist=None, txn=None))]
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
        exist: Option<&str>,
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
            exist: opening::exist(exist)?,
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

    /// Takes many values, as ``archive`` takes one; `keys` and `datas` are iterables of equal length.
    /// All keys are checked before the first value is taken. Costs less per field than ``archive``.
    #[pyo3(signature = (keys, datas, *, compression=None, exist=None, txn=None))]
    fn archive_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        datas: &Bound<'_, PyAny>,
        compression: Option<&str>,
        exist: Option<&str>,
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
            exist: opening::exist(exist)?,
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

    /// Starts a new generation of an array field: all older pieces are hidden once this is flushed, and
    /// anybody adds pieces. Returns a picklable FieldWriter with ``write(piece, start=)``.
    ///
    /// `fill` stands where nobody wrote when read with ``strict=False`` (NaN, NaT or zero if absent);
    /// `chunks` are the extents in which pieces are stored.
    #[pyo3(signature = (key, dtype, shape, *, fill=None, chunks=None, exist=None, txn=None))]
    #[allow(clippy::too_many_arguments, reason = "Python's keywords")]
    fn create_field<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        dtype: &Bound<'py, PyAny>,
        shape: &Bound<'py, PyAny>,
        fill: Option<&Bound<'py, PyAny>>,
        chunks: Option<&Bound<'py, PyAny>>,
        exist: Option<&str>,
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
        let (session, exist) = (session(txn)?, opening::exist(exist)?);
        let options = ArchiveOptions { session, exist, ..ArchiveOptions::default() };
        let schema = handle.schema();
        let resolved = schema.resolve(&pairs).or_raise()?;
        py.waiting(|| handle.create_field(&pairs, &spec, &options)).or_raise()?;
        let key: Key = Interner::new(Some(schema)).key(py, resolved, 3)?;
        let shape = PyTuple::new(py, shape)?;
        let chunks = chunks.map(|chunks| PyTuple::new(py, chunks)).transpose()?;
        writers.getattr("FieldWriter")?.call1((slf, Py::new(py, key)?, object, shape, chunks, txn))
    }

    /// Says for the whole store, durably, what an archive does where its key has a field: "new" or "error". What a
    /// call, a run or ``open`` says goes before it. Denied for others than the store's owner.
    fn set_exist(&self, py: Python<'_>, exist: &str) -> PyResult<()> {
        let (handle, exist) = (self.handle()?, Exist::parse(exist).or_raise()?);
        py.waiting(|| handle.set_exist(exist)).or_raise()
    }

    /// Makes everything that this process archived here durable, indexed and visible, all or nothing.
    /// With `txn`: what was archived into that transaction becomes durable and stays invisible.
    ///
    /// Raises Unavailable where that fails, with the keys that are lost; also where the log or the store has been
    /// removed or replaced meanwhile. Another thread whose fields were lost with them gets the same from its own
    /// next flush or close, once; that call flushes nothing. A transaction that lost a part so refuses to commit.
    #[pyo3(signature = (*, txn=None))]
    fn flush(&self, py: Python<'_>, txn: Option<&str>) -> PyResult<()> {
        let (handle, txn) = (self.handle()?, session(txn)?);
        py.waiting(|| handle.flush(txn)).or_raise()
    }

    /// Forgets what this process archived here and did not flush.
    #[pyo3(signature = (*, txn=None))]
    fn discard(&self, py: Python<'_>, txn: Option<&str>) -> PyResult<()> {
        let (handle, txn) = (self.handle()?, session(txn)?);
        py.waiting(|| handle.discard(txn)).or_raise()
    }

    /// Looks for newer commits now. Every read does so by itself.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.handle()?;
        py.waiting(|| handle.refresh()).or_raise()?;
        warn_of_passed_over(py, &handle)
    }

    /// Exactly one field: bytes for opaque data, a numpy array otherwise. With `start` and `count` (in
    /// elements per dimension, half-open; in bytes for opaque data) that box of it: only the blocks that
    /// it touches are read.
    ///
    /// Raises NotFound where no field has this key or pieces are missing, Invalid where the key names
    /// several fields or the box lies outside, Corrupt where the stored bytes are damaged.
    #[pyo3(signature = (key, start=None, count=None, *, txn=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        start: Option<&Bound<'py, PyAny>>,
        count: Option<&Bound<'py, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = ReadOptions { session: session(txn)? };
        let field = self.found(py, &KeyText::new(key)?, &options)?;
        fields::value(py, &field, start, count)
    }

    /// The fields that `request` names, in request order, as a pinned snapshot that reads lazily.
    ///
    /// With ``strict=True`` each listed value or combination without a field raises NotFound before any
    /// byte is read; with ``strict=False`` you get what exists, ``fields.missing`` lists the rest, and
    /// missing pieces of arrays are filled.
    #[pyo3(signature = (request=None, *, strict=true, txn=None))]
    fn retrieve(
        &self,
        py: Python<'_>,
        request: Option<&Bound<'_, PyAny>>,
        strict: bool,
        txn: Option<&str>,
    ) -> PyResult<PyFields> {
        let (handle, session) = (self.handle()?, session(txn)?);
        let requests = requests(request)?;
        let options = RetrieveOptions { strict, session: session.clone() };
        let found = py.waiting(|| {
            let found = requests.iter().map(|request| {
                let found = handle.retrieve(request, &options);
                let found = found.map_err(|error| explained(&handle, request, error))?;
                Ok((request.to_string(), found))
            });
            found.collect::<fieldstone::Result<Vec<_>>>()
        });
        let origin = Origin { opening: self.opening.clone(), handle, session, strict };
        PyFields::new(origin, found.or_raise()?)
    }

    /// What exists, as an iterator of entries in key order: ``e.key``, ``e.nbytes``, ``e.dtype``,
    /// ``e.shape``, ``e.complete``, ``e.location``, ``e.time``, ``e.owner``.
    ///
    /// `depth` 1 lists datasets, 2 indexes, 3 fields; ``masked=True`` also lists versions that newer
    /// ones hide. With `since`, a ``store.version``, only what became visible after it: fields that are new or have a
    /// newer version or piece; NotFound where that version is gone.
    #[pyo3(signature = (request=None, *, depth=3, masked=false, since=None, txn=None))]
    fn list(
        &self,
        py: Python<'_>,
        request: Option<&Bound<'_, PyAny>>,
        depth: i64,
        masked: bool,
        since: Option<&str>,
        txn: Option<&str>,
    ) -> PyResult<PyListing> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let depth = u8::try_from(depth).unwrap_or(u8::MAX); // refused below, as 0 and 4 are
        let options = ListOptions { depth, masked, session: session(txn)? };
        if let Some(since) = since {
            if masked {
                return Err(invalid(
                    "since= and masked=True do not go together",
                    "list all versions without since=",
                ));
            }
            return Ok(since_version(py, &handle, &requests, since, &options)?.0);
        }
        let streams = py.waiting(|| {
            let listed = requests.iter().map(|request| handle.list(request, &options));
            Ok(unpacked_all(&handle, &requests, listed.collect::<fieldstone::Result<Vec<_>>>()?))
        });
        let text = requests.first().map_or_else(String::new, |request| request.to_string());
        let listing = PyListing::new(streams.or_raise()?, handle.schema(), text.chars().take(200).collect());
        Ok(match requests.into_iter().next() {
            Some(request) => listing.explained_by(handle, request),
            None => listing,
        })
    }

    /// The values present, per keyword: a dict of lists of text in typed order.
    #[pyo3(signature = (request=None, *, txn=None))]
    fn axes<'py>(
        &self,
        py: Python<'py>,
        request: Option<&Bound<'py, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let options = ReadOptions { session: session(txn)? };
        let axes = py.waiting(|| {
            let mut all: Vec<(Arc<str>, Vec<fieldstone::KeyValue>)> = Vec::new();
            for request in &requests {
                for (keyword, values) in handle.axes(request, &options)? {
                    match all.iter_mut().find(|(known, _)| *known == keyword) {
                        Some((_, known)) => known.extend(values),
                        None => all.push((keyword, values)),
                    }
                }
            }
            if requests.len() > 1 {
                for (_, values) in &mut all {
                    values.sort_unstable();
                    values.dedup();
                }
            }
            Ok(all)
        });
        let dict = PyDict::new(py);
        for (keyword, values) in axes.or_raise()? {
            dict.set_item(&*keyword, PyList::new(py, values.iter().map(|value| value.text()))?)?;
        }
        Ok(dict)
    }

    /// Where the bytes of fields begin, in the order of ``list``: "file:offset", files relative to the
    /// store's folder. Created fields without a piece are nowhere, and left out.
    #[pyo3(name = "where", signature = (request=None, *, txn=None))]
    fn locations(
        &self,
        py: Python<'_>,
        request: Option<&Bound<'_, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<Vec<String>> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let options = ListOptions { session: session(txn)?, ..ListOptions::default() };
        let found = py.waiting(|| {
            let mut found = Vec::new();
            for request in &requests {
                for entry in handle.list(request, &options)? {
                    found.extend(entry?.place.map(|place| place.to_string()));
                }
            }
            Ok(found)
        });
        found.or_raise()
    }

    /// The store's structures as lines of text: logs, commits, segments, entries.
    #[pyo3(signature = (request=None))]
    fn dump(&self, py: Python<'_>, request: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let lines = py.waiting(|| {
            let mut lines = Vec::new();
            for request in &requests {
                lines.extend(handle.dump(request)?);
            }
            Ok(lines)
        });
        lines.or_raise()
    }

    /// Counts of what one request selects, and of the store's files: a Stats.
    #[pyo3(signature = (request=None))]
    fn stats<'py>(
        &self,
        py: Python<'py>,
        request: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let [request] = &requests[..] else {
            return Err(invalid("stats takes one request", "ask for each request by itself"));
        };
        let stats = py.waiting(|| handle.stats(request)).or_raise()?;
        reports::stats(py, &stats)
    }

    /// Writers, undecided transactions and what is wrong with the store: a Status.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let status = py.waiting(|| handle.status()).or_raise()?;
        reports::status(py, status)
    }

    /// Reads everything that `request` selects and the store's own structures, and compares it with
    /// its checksums. Returns a VerifyReport with ``.ok`` and ``.damaged`` (key, file, why); does not
    /// raise for what it finds.
    #[pyo3(signature = (request=None))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        request: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let reports = py.waiting(|| {
            requests.iter().map(|request| handle.verify(request)).collect::<fieldstone::Result<Vec<_>>>()
        });
        reports::verify(py, reports.or_raise()?)
    }

    /// The store as it is now, for reads that come later: pinned to its version; one in memory is itself.
    fn _pinned(&self, py: Python<'_>) -> PyResult<Py<Store>> {
        let handle = self.handle()?;
        let version = py.waiting(|| handle.version()).or_raise()?;
        Store::again(py, &self.opening, &handle, version)
    }

    /// Flushes and closes. Closing again does nothing; every other call raises Invalid from now on.
    /// Fields that were retrieved stay readable.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, false)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        self.end(py, !kind.is_none())?;
        Ok(false)
    }

    /// The communicator whose ranks opened it together.
    #[getter]
    fn _comm(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.comm.as_ref().map(|comm| comm.clone_ref(py))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let closed = if self.closed() { " closed" } else { "" };
        let at = self.opening.at.as_ref().map_or("", |_| " at an older version");
        let held = self.held(py).unwrap_or_default();
        format!("<fieldstone.Store '{}' mode='{}'{at}{closed}{held}>", self.opening.url, self.opening.mode)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (url, schema, compression, catalog) = self.opening.state()?;
        // What "x" made is there now.
        let mode = if self.opening.mode == "x" { "a" } else { &self.opening.mode };
        let (attempt, exist) = (&self.opening.attempt, &self.opening.exist);
        let row = (url, mode, schema, &self.opening.at, compression, catalog, attempt, exist);
        let restore = py.import("fieldstone._fields")?.getattr("restore_store")?;
        Ok((restore, row.into_pyobject(py)?))
    }
}

/// Warns, once for each open store, of a field that lacks the date that its run is named by.
pub fn warn_undated(py: Python<'_>, store: &fieldstone::Store) -> PyResult<()> {
    let Some(message) = store.undated() else { return Ok(()) };
    py.import("warnings")?.call_method1("warn", (message,))?;
    Ok(())
}
