//! Reports of a store, and the changes reserved to its owner: schema, settings, format, losses; checks and
//! checkpoints.

use std::path::PathBuf;

use fieldstone::prelude::*;
use fieldstone::{CheckpointOptions, IfExists, Session};
use pyo3::prelude::*;

use super::Store;
use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::request::{requests, single_request};

/// An extension of a schema: its text, or the path of a file with the text.
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
    /// Appends rules to the schema, and adds optional keywords: text such as ``"number?: Integer;"`` or ``"[centre
    /// [type [step]]]"``; a path object names a file with the text.
    ///
    /// A key without the new keyword stays the same key, byte for byte, and fields keep their keys. The extension is
    /// durable and applies to everyone at once, outside transactions. Raises Invalid for a rule that would make no
    /// key because an existing rule takes all of its keys, Denied for users other than the store's owner.
    fn extend_schema(&self, py: Python<'_>, text: SchemaText) -> PyResult<()> {
        let handle = self.handle()?;
        py.waiting(|| handle.extend_schema(&text.read()?, &Session::default()).map(drop)).or_raise()
    }

    /// Sets, durably and for the whole store, what an archive does if its key has a field: "new" or "error". The
    /// argument of a call, a run or ``open`` takes precedence. Raises Denied for users other than the store's owner.
    fn set_if_exists(&self, py: Python<'_>, if_exists: &str) -> PyResult<()> {
        let (handle, if_exists) = (self.handle()?, IfExists::parse(if_exists).or_raise()?);
        py.waiting(|| handle.set_if_exists(if_exists)).or_raise()
    }

    /// Accepts the loss of data in a log or data log, named as in messages (``"logs/….log"``, ``"data/…-1.data"``).
    /// For a log that is missing or shorter than it was, accepts all unreadable commits; for a missing data log, all
    /// fields with bytes in it; otherwise the damaged fields of the file. The store records who accepted the loss,
    /// when, and `why`. It is final: the lost data never count again, even if the file comes back. Reads, ``verify``
    /// and ``status`` continue without the file; the latter two list it as ``.accepted``. Returns an
    /// AcceptanceReport.
    ///
    /// Raises Invalid if nothing of the file is lost; Denied for users other than the file's owner, the store's owner
    /// and root, and in a store of format 1; Conflict if the log's writer is alive and may continue it.
    #[pyo3(signature = (name, why=None))]
    fn accept<'py>(&self, py: Python<'py>, name: &str, why: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let report = py.waiting(|| handle.accept(name, why.unwrap_or_default())).or_raise()?;
        reports::acceptance(py, report)
    }

    /// Raises the store to the newest format version that this release writes, durably, and returns that version.
    /// From then on, older releases can read the data that they know and cannot write. Raises Denied for users other
    /// than the store's owner.
    fn upgrade(&self, py: Python<'_>) -> PyResult<u32> {
        let handle = self.handle()?;
        py.waiting(|| handle.upgrade()).or_raise().map(|(_, version)| version)
    }

    /// Flushes, and writes everything then visible to the folder `path` as an ordinary store: durable on return,
    /// while other threads go on writing. Only for a store opened as ``memory:``.
    ///
    /// With ``incremental`` it continues an earlier checkpoint of this store in the folder, and writes only new
    /// bytes; without it, the folder must be new or empty. At any moment, even after a kill, a full disk or a power
    /// cut, the folder is a complete store: as of this checkpoint, the previous one, or a flush between them. It does
    /// not show the flushed part of an open transaction.
    ///
    /// Returns a ``CheckpointReport``: version, new bytes and files, seconds. Raises Invalid for a store in a folder,
    /// Conflict if the folder holds another store or was written to since.
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

    /// The store's structures as text, line by line: logs, commits, segments, entries.
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

    /// Counts of the fields that one request selects, and of the store's files: a Stats.
    #[pyo3(signature = (request=None))]
    fn _stats<'py>(
        &self,
        py: Python<'py>,
        request: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let request = single_request(request)?;
        let stats = py.waiting(|| handle.stats(&request)).or_raise()?;
        reports::stats(py, &stats)
    }

    /// Writers, undecided transactions and problems of the store: a Status.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let status = py.waiting(|| handle.status()).or_raise()?;
        reports::status(py, status)
    }

    /// Reads everything that `request` selects and the store's own structures, and compares it with its checksums.
    /// Returns a VerifyReport with ``.ok`` and ``.damaged`` (key, file, why); does not raise on damage. With a version as
    /// `since`, only what later flushes brought; a note counts what was passed over.
    #[pyo3(signature = (request=None, *, since=None))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        request: Option<&Bound<'py, PyAny>>,
        since: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let handle = self.handle()?;
        let requests = requests(request)?;
        let reports = py.waiting(|| {
            let verified = |request| match since {
                Some(since) => handle.backend().verify_since(request, since),
                None => handle.verify(request),
            };
            requests.iter().map(verified).collect::<fieldstone::Result<Vec<_>>>()
        });
        reports::verify(py, reports.or_raise()?)
    }
}
