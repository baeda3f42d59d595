//! How stores are opened: the function `open`, and what another process needs to open one again.

use fieldstone::{Compression, Exist, Mode, OpenOptions};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::errors::{Raise, invalid, utf8};
use crate::log::Waiting as _;
use crate::registry;
use crate::request::type_name;
use crate::store::{self, Store};

/// How a store was opened, so that another process can do the same.
#[derive(Clone)]
pub struct Opening {
    /// As the caller wrote it.
    pub url: String,
    /// With an absolute path, for processes that run elsewhere; `None` for a store in memory.
    absolute: Option<String>,
    pub mode: String,
    pub schema: Option<String>,
    pub at: Option<String>,
    pub compression: Option<String>,
    /// Where the catalog's engine is, if not beside the store.
    pub catalog: Option<String>,
    /// Seconds between flushes by itself.
    pub autoflush: Option<f64>,
    /// The attempt of a job that what is written is of.
    pub attempt: Option<String>,
    /// The rank in the job.
    pub rank: Option<u32>,
    /// What an archive does where its key has a field.
    pub exist: Option<String>,
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
            // What is no URL is refused where it is opened.
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
            exist: None,
        })
    }

    /// For reading what was visible at a version; nothing for a store in memory.
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
            exist: None,
        })
    }

    /// The same with a schema.
    pub fn with_schema(&self, schema: &str) -> Opening {
        Opening { schema: Some(schema.to_owned()), ..self.clone() }
    }

    /// Opens the store, and remembers it for the end of the program.
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
            exist: exist(self.exist.as_deref())?,
            format: None,
        };
        let handle = py.waiting(|| fieldstone::open(&self.url, &options)).or_raise()?;
        registry::add(&handle);
        Ok(handle)
    }

    /// Whether it is opened for writing.
    pub fn writes(&self) -> bool {
        self.mode != "r" && self.at.is_none()
    }

    /// What another process needs to open the store. Refuses stores in memory.
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

    /// What `fieldstone.open` takes: URL, schema, compression. Refuses stores in memory.
    pub fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (url, schema, compression, _) = self.state()?;
        (url, schema, compression).into_pyobject(py)
    }
}

/// What an archive does where its key has a field, as text says.
pub fn exist(text: Option<&str>) -> PyResult<Option<Exist>> {
    text.map(Exist::parse).transpose().or_raise()
}

/// Opens the store at `url`: a folder's path, in which ``~/`` is the home folder, or "memory:" for a new store in
/// memory.
///
/// `mode` "a" reads and archives, "r" only reads (NotFound where no store is), "r+" reads and archives where a store is
/// (NotFound where none is, as beneath a mount point that nothing is mounted on), "x" makes a new store (Conflict where
/// one is). With the environment variable ``FIELDSTONE_CREATE=0``, "a" means "r+". `schema` is "simulation", "mars", the path of a schema file or a schema's
/// text; a store has its own, a new one takes "simulation". `at` is a ``store.version`` to read as it
/// was then. `compression` is "none", "zstd" or "zstd:LEVEL", for what is archived without saying.
/// `catalog` is where the catalog's index is kept: ``postgresql://…``, or beside the store if absent.
/// `autoflush`, in seconds, flushes by itself while the store is open, fields, catalog and graph alike; an error
/// of that is raised by the next call. With 0 every change outside of transactions is durable and visible to all
/// before its call returns; threads that change something at once share a sync. `attempt` names the execution of
/// a job that what is written is of: under a key a newer attempt, whose first flush came later, hides what older
/// ones wrote, whenever they flushed it. With `comm`, a communicator of mpi4py, all ranks open the store together;
/// they share an attempt, which is made where none is named. `exist` says what an archive does where its key has a
/// field: "new" makes a newer version, "error" is Conflict, at the call and again at the flush, for what others flushed
/// meanwhile; a piece is there where every element of its box is. Without it as the store says
/// (``fieldstone init --exist``), else "new".
///
/// Nothing is created before the first flush; reading before raises NotFound, unless something waits for that flush.
/// Raises Invalid where `url` is a file, or a folder of other files, which no store is made among.
#[pyfunction]
#[pyo3(signature = (url, mode="a", *, schema=None, at=None, compression=None, catalog=None, autoflush=None, attempt=None, comm=None, exist=None))]
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
    exist: Option<String>,
) -> PyResult<Py<Store>> {
    let fspath = py.import("os")?.getattr("fspath")?;
    let path = |argument: &Bound<'_, PyAny>, what: &str| -> PyResult<String> {
        let text = fspath.call1((argument,));
        if let Some(text) = text.as_ref().ok().and_then(|text| text.cast::<PyString>().ok()) {
            return utf8(text).map(str::to_owned);
        }
        text.and_then(|text| text.extract::<String>())
            .map_err(|_| invalid(format!("{} is no {what}", type_name(argument)), "give text or a path"))
    };
    let schema =
        schema.filter(|schema| !schema.is_none()).map(|schema| path(schema, "schema")).transpose()?;
    let version = |at: &Bound<'_, PyAny>| {
        let wrong =
            |_| invalid(format!("{} is no version", type_name(at)), "give a store.version, which is text");
        at.extract::<String>().map_err(wrong)
    };
    let at = at.filter(|at| !at.is_none()).map(version).transpose()?;
    let open = |attempt, rank| {
        let opening = Opening::new(py, path(url, "URL")?, mode.to_owned(), schema, at, compression, catalog)?;
        store::open(
            py,
            Opening { autoflush, attempt, rank, exist, ..opening },
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
