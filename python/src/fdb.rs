//! `fieldstone.ingest` of an FDB: takes its fields through the helper.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use fieldstone::helper::HelperOptions;
use fieldstone::{Error, FdbSource, IngestOptions, IngestReport, Progress, Request};
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::request::{KeyText, requests};
use crate::store::Store;

/// Takes the fields that a request selects; calls `progress(path, index, files, done, of)` during the work.
#[pyfunction]
#[pyo3(name = "_ingest_fdb")]
pub fn ingest_fdb<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    config: PathBuf,
    request: Option<&Bound<'py, PyAny>>,
    key: Option<&Bound<'py, PyAny>>,
    python: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = match <[Request; 1]>::try_from(requests(request)?) {
        Ok([request]) => request,
        Err(_) => return Err(invalid("an FDB takes one request", "call ingest once for each")),
    };
    let key = key.map(KeyText::new).transpose()?;
    let pairs = key.as_ref().map(KeyText::pairs).transpose()?.unwrap_or_default();
    let key = pairs.into_iter().map(|(keyword, value)| (keyword.to_owned(), value.to_owned())).collect();
    let helper = HelperOptions { python, ..HelperOptions::default() };
    let store = store.get();
    store.handle.give_schema(py, || schema_of(&config, &helper))?;
    let handle = store.handle()?;
    let source = FdbSource { config, request };
    let outcome: Result<IngestReport, (Error, Option<PyErr>)> = py.waiting(|| {
        let raised = RefCell::new(None);
        let tell = |p: &Progress<'_>| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) => progress.call1(py, (p.path, p.index, p.files, p.done, p.of)).map(drop),
                    None => Ok(()),
                }
            });
            told.map_err(|exception| {
                raised.replace(Some(exception));
                Error::internal("interrupted")
            })
        };
        let options = IngestOptions { key, helper, progress: Some(&tell), ..IngestOptions::default() };
        let outcome = fieldstone::ingest_fdb(&handle, &source, &options);
        outcome.map_err(|error| (error, raised.take()))
    });
    match outcome {
        Ok(report) => reports::ingest(py, report),
        Err((_, Some(exception))) => Err(exception),
        Err((error, None)) => Err(error).or_raise(),
    }
}

/// The text of an FDB's schema.
#[pyfunction]
#[pyo3(name = "_fdb_schema")]
pub fn fdb_schema(py: Python<'_>, config: PathBuf, python: Option<PathBuf>) -> PyResult<String> {
    let helper = HelperOptions { python, ..HelperOptions::default() };
    py.waiting(|| schema_of(&config, &helper)).or_raise()
}

fn schema_of(config: &Path, helper: &HelperOptions) -> fieldstone::Result<String> {
    fieldstone::fdb_schema(config, helper)
}
