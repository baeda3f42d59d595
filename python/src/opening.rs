//! Opening stores: the function `open`, and the arguments with which another process opens a store again.

use fieldstone::{Compression, IfExists, Mode, OpenOptions};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::errors::{Raise, invalid, utf8};
use crate::log::Waiting as _;
use crate::registry;
use crate::request::type_name;
use crate::store::{self, Store};

/// The arguments that opened a store, so that another process can open it in the same way.
#[derive(Clone)]
pub struct Opening {
    /// As the caller wrote it.
    pub url: String,
    /// With an absolute path, for processes with another working directory; `None` for a store in memory.
    absolute: Option<String>,
    pub mode: String,
    pub schema: Option<String>,
    pub at: Option<String>,
    pub compression: Option<String>,
    /// The location of the catalog's engine, if not next to the store.
    pub catalog: Option<String>,
    /// Seconds between automatic flushes.
    pub autoflush: Option<f64>,
    /// The attempt of the job to which writes belong.
    pub attempt: Option<String>,
    /// The rank in the job.
    pub rank: Option<u32>,
    /// The action of an archive if its key has a field.
    pub if_exists: Option<String>,
}

/// URL, schema, compression and catalog of a store that another process can open.
type State<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<&'a str>);

impl Opening {
    pub fn new(
        py: Python<'_>,
        url: String,
        mode: String,
        schema: Option<String>,
        at: Option<String>,
        compression: Option<String>,
        catalog: Option<String>,
    ) -> PyResult<Opening> {
        let absolute = match fieldstone::local_path(&url) {
            Ok(path) if url != "memory:" => {
                let path = py.import("os.path")?.call_method1("abspath", (path,))?;
                path.extract().ok()
            }
            // Opening refuses an invalid URL.
            _ => None,
        };
        Ok(Opening {
            url,
            absolute,
            mode,
            schema,
            at,
            compression,
            catalog,
            autoflush: None,
            attempt: None,
            rank: None,
            if_exists: None,
        })
    }

    /// For reading the content visible at a version; `None` for a store in memory.
    pub fn at(&self, version: String) -> Option<Opening> {
        let url = self.absolute.clone()?;
        let absolute = self.absolute.clone();
        Some(Opening {
            url,
            absolute,
            mode: "r".to_owned(),
            schema: None,
            at: Some(version),
            compression: None,
            catalog: self.catalog.clone(),
            autoflush: None,
            attempt: None,
            rank: None,
            if_exists: None,
        })
    }

    /// The same arguments with a schema.
    pub fn with_schema(&self, schema: &str) -> Opening {
        Opening { schema: Some(schema.to_owned()), ..self.clone() }
    }

    /// Opens the store, and registers it for the exit of the program.
    pub fn connect(&self, py: Python<'_>) -> PyResult<fieldstone::Store> {
        let options = OpenOptions {
            mode: Mode::parse(&self.mode).or_raise()?,
            schema: self.schema.clone(),
            at: self.at.clone(),
            compression: self.compression.as_deref().map(Compression::parse).transpose().or_raise()?,
            catalog: self.catalog.clone(),
            durable: self.autoflush == Some(0.0),
            attempt: self.attempt.clone(),
            rank: self.rank,
            if_exists: if_exists(self.if_exists.as_deref())?,
            format: None,
            closing_merges: None,
        };
        let handle = py.waiting(|| fieldstone::open(&self.url, &options)).or_raise()?;
        registry::add(&handle);
        Ok(handle)
    }

    /// Whether it is opened for writing.
    pub fn writes(&self) -> bool {
        self.mode != "r" && self.at.is_none()
    }

    /// The arguments with which another process opens the store. Refuses stores in memory.
    pub fn state(&self) -> PyResult<State<'_>> {
        match &self.absolute {
            Some(url) => {
                Ok((url, self.schema.as_deref(), self.compression.as_deref(), self.catalog.as_deref()))
            }
            None => Err(invalid(
                "a store in memory cannot be pickled: it lives in this process alone",
                "use a folder, or pass the data itself",
            )),
        }
    }

    /// The arguments of `fieldstone.open`: URL, schema, compression. Refuses stores in memory.
    pub fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (url, schema, compression, _) = self.state()?;
        (url, schema, compression).into_pyobject(py)
    }
}

/// Parses the action of an archive if its key has a field.
pub fn if_exists(text: Option<&str>) -> PyResult<Option<IfExists>> {
    text.map(IfExists::parse).transpose().or_raise()
}

/// Opens the store at `url`: a folder's path, in which ``~/`` is the home folder, or "memory:" for a new store in
/// memory.
///
/// `mode` is one of:
///
/// * "a" reads and archives;
/// * "r" only reads (NotFound if the store does not exist);
/// * "r+" reads and archives an existing store (NotFound if it does not exist, for example under an empty mount
///   point);
/// * "x" makes a new store (Conflict if one exists).
///
/// With the environment variable ``FIELDSTONE_CREATE=0``, "a" means "r+".
///
/// `schema` is "simulation", "mars", the path of a schema file or a schema's text; an existing store has its own, and
/// a new one takes "simulation" by default. `at` is a ``store.version``: reads show the store as it was then.
/// `compression` is "none", "zstd" or "zstd:LEVEL", the default for archived data. `catalog` is the location of the
/// catalog's index: ``postgresql://…``, or next to the store if absent. `autoflush`, in seconds, flushes fields,
/// catalog and graph automatically while the store is open; the next call raises an error of such a flush. With 0,
/// every change outside transactions is durable and visible to all before its call returns; threads that make changes
/// at the same time share a sync.
///
/// `attempt` names the execution of a job to which writes belong: under one key, the writes of a newer attempt, one
/// whose first flush came later, hide those of older attempts, whenever these were flushed. With `comm`, an mpi4py
/// communicator, all ranks open the store together and share an attempt, which is made if none is named.
///
/// `if_exists` is the action of an archive if its key has a field: "new" makes a newer version; "error" raises Conflict,
/// at the call, and again at the flush if other processes flushed the key in the meantime; for a piece, the key has a
/// field if every element of its box exists. The default is the store's setting (``fieldstone init --if-exists``), or
/// else "new".
///
/// Nothing is created before the first flush; reading before it raises NotFound, unless something waits for that
/// flush. Raises Invalid if `url` is a file, or a folder that holds other files, where no store can be made.
#[pyfunction]
#[pyo3(signature = (url, mode="a", *, schema=None, at=None, compression=None, catalog=None, autoflush=None, attempt=None, comm=None, if_exists=None))]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub fn open(
    py: Python<'_>,
    url: &Bound<'_, PyAny>,
    mode: &str,
    schema: Option<&Bound<'_, PyAny>>,
    at: Option<&Bound<'_, PyAny>>,
    compression: Option<String>,
    catalog: Option<String>,
    autoflush: Option<f64>,
    attempt: Option<String>,
    comm: Option<Py<PyAny>>,
    if_exists: Option<String>,
) -> PyResult<Py<Store>> {
    let fspath = py.import("os")?.getattr("fspath")?;
    let path = |argument: &Bound<'_, PyAny>, what: &str| -> PyResult<String> {
        let text = fspath.call1((argument,));
        if let Some(text) = text.as_ref().ok().and_then(|text| text.cast::<PyString>().ok()) {
            return utf8(text).map(str::to_owned);
        }
        text.and_then(|text| text.extract::<String>())
            .map_err(|_| invalid(format!("{} is not a {what}", type_name(argument)), "give text or a path"))
    };
    let schema =
        schema.filter(|schema| !schema.is_none()).map(|schema| path(schema, "schema")).transpose()?;
    let version = |at: &Bound<'_, PyAny>| {
        let wrong =
            |_| invalid(format!("{} is not a version", type_name(at)), "give a store.version, which is text");
        at.extract::<String>().map_err(wrong)
    };
    let at = at.filter(|at| !at.is_none()).map(version).transpose()?;
    let open = |attempt, rank| {
        let opening = Opening::new(py, path(url, "URL")?, mode.to_owned(), schema, at, compression, catalog)?;
        store::open(
            py,
            Opening { autoflush, attempt, rank, if_exists, ..opening },
            comm.as_ref().map(|comm| comm.clone_ref(py)),
        )
    };
    let Some(comm) = comm.as_ref().map(|comm| comm.bind(py)) else { return open(attempt, None) };
    let together = py.import("fieldstone._together")?;
    let (attempt, rank) = together.call_method1("attempt_of", (comm, attempt))?.extract()?;
    let opened = open(Some(attempt), Some(rank));
    let failed = opened.as_ref().err().map(|error| error.value(py));
    together.call_method1("agree", (comm, failed))?;
    opened
}
