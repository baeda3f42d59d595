//! What a store says of itself, and what its owner may change: schema, settings, format, losses; checks and checkpoints.

use std::path::PathBuf;

use fieldstone::prelude::*;
use fieldstone::{CheckpointOptions, Exist, Session};
use pyo3::prelude::*;

use super::Store;
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;

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

    /// Says for the whole store, durably, what an archive does where its key has a field: "new" or "error". What a
    /// call, a run or ``open`` says goes before it. Denied for others than the store's owner.
    fn set_exist(&self, py: Python<'_>, exist: &str) -> PyResult<()> {
        let (handle, exist) = (self.handle()?, Exist::parse(exist).or_raise()?);
        py.waiting(|| handle.set_exist(exist)).or_raise()
    }

    /// Accepts what a log or data log lost, named as messages name it (``"logs/….log"``, ``"data/…-1.data"``): of a log
    /// that is missing or shorter than it was, all commits that cannot be read; of a data log that is missing, all fields
    /// with bytes in it; else the fields of the file that are damaged. It is on record, with who accepted it, when and
    /// `why`, and final: what is given up never counts again, also where the file comes back. Reads, ``verify`` and
    /// ``status`` go on without it; the latter two list it as ``.accepted``. Returns an AcceptanceReport.
    ///
    /// Raises Invalid where nothing of the file is lost, Denied for others than its owner, the store's, and root, and in a
    /// store of format 1, Conflict where the log's writer lives and may go on.
    #[pyo3(signature = (name, why=None))]
    fn accept<'py>(&self, py: Python<'py>, name: &str, why: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let report = py.waiting(|| handle.accept(name, why.unwrap_or_default())).or_raise()?;
        reports::acceptance(py, report)
    }

    /// Raises the store to the newest version of the format that this release writes, durably, and returns that version.
    /// Older releases read on what they know, and write nothing from then on. Raises Denied for others than the store's
    /// owner.
    fn upgrade(&self, py: Python<'_>) -> PyResult<u32> {
        let handle = self.handle()?;
        py.waiting(|| handle.upgrade()).or_raise().map(|(_, version)| version)
    }

    /// Flushes, and writes all that is visible then to the folder `path` as an ordinary store: durable when
    /// this returns, while other threads go on writing. Only for a store opened as ``memory:``.
    ///
    /// With ``incremental`` an earlier checkpoint of this store in the folder is gone on with, and only new
    /// bytes are written; without it, the folder must be new or empty. At any moment, also after a kill, a
    /// full disk or a power cut, the folder is a whole store: as of this checkpoint, the one before, or a
    /// flush between. What a transaction that is still open has flushed is not visible there.
    ///
    /// Returns a ``CheckpointReport``: version, bytes and files that were new, seconds. Raises Invalid for
    /// a store in a folder, Conflict where the folder holds another store or was written to since.
    #[pyo3(signature = (path, *, incremental=true))]
    fn checkpoint<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        incremental: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let report = py
            .waiting(|| handle.checkpoint(&path, &CheckpointOptions { incremental }, &Session::default()))
            .or_raise()?;
        reports::checkpoint(py, &report)
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
}
