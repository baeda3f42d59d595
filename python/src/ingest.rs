//! `fieldstone.ingest`: takes files into a store. `fieldstone._ingest` displays the progress.

use std::cell::RefCell;
use std::path::PathBuf;

use fieldstone::helper::HelperOptions;
use fieldstone::{Error, IngestOptions, IngestReport, Progress, StepDim};
use pyo3::prelude::*;

use crate::errors::{exception, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::request::KeyText;
use crate::sequence::Several;
use crate::store::{Store, warn_undated};

/// Takes files; calls `progress(path, index, files, done, of)` during the work.
#[pyfunction]
#[pyo3(name = "_ingest")]
#[allow(clippy::too_many_arguments, reason = "Python's keywords")]
pub fn ingest<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    paths: Several<PathBuf>,
    key: Option<&Bound<'py, PyAny>>,
    python: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    copy: bool,
    tree: bool,
    mesh: Option<String>,
    recursive: bool,
    step_dim: Option<&Bound<'py, PyAny>>,
    timezone: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let paths = paths.0;
    let ahead = fieldstone::lineage::utc_offset(timezone).map_err(exception)?;
    let step_dim = step_dim.map_or(Ok(StepDim::Leading), step_dim_of)?;
    let key = key.map(KeyText::new).transpose()?;
    let pairs = key.as_ref().map(KeyText::pairs).transpose()?.unwrap_or_default();
    let key = pairs.into_iter().map(|(keyword, value)| (keyword.to_owned(), value.to_owned())).collect();
    let store = store.get();
    store.handle.give_schema(py, || Ok(fieldstone::suggest_schema(&paths).to_owned()))?;
    let handle = store.handle()?;
    let (report, outcome): (IngestReport, Result<(), (Error, Option<PyErr>)>) = py.waiting(|| {
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
        let helper = HelperOptions { python, ..HelperOptions::default() };
        let progress: Option<&fieldstone::OnProgress<'_>> = Some(&tell);
        let shallow = !recursive;
        let options =
            IngestOptions { key, external: !copy, mesh, tree, shallow, step_dim, ahead, helper, progress };
        let mut report = IngestReport::default();
        let outcome = fieldstone::ingest_into(&handle, &paths, &options, &mut report);
        let outcome = outcome.and_then(|()| report.check());
        (report, outcome.map_err(|error| (error, raised.take())))
    });
    warn_undated(py, &handle)?;
    let raised = match outcome {
        Ok(()) => return reports::ingest(py, report),
        Err((_, Some(interrupted))) => interrupted,
        Err((error, None)) => exception(error),
    };
    // Work done before the error stays, and the report covers it.
    raised.value(py).setattr("report", reports::ingest(py, report)?)?;
    Err(raised)
}

/// A dimension's name, or False for none.
fn step_dim_of(value: &Bound<'_, PyAny>) -> PyResult<StepDim> {
    if let Ok(name) = value.extract::<String>() {
        return Ok(StepDim::Named(name));
    }
    match value.extract::<bool>() {
        Ok(false) => Ok(StepDim::Nothing),
        _ => Err(invalid(
            "step_dim is neither a name nor False",
            "give the name of a dimension, such as \"time\"",
        )),
    }
}

/// The schema for a new store that is to take these files: "mars" if all recognised files are GRIB, "mixed" if they
/// include GRIB and netCDF, "simulation" otherwise.
#[pyfunction]
#[pyo3(name = "_suggest_schema")]
pub fn suggest_schema(py: Python<'_>, paths: Several<PathBuf>) -> &'static str {
    py.waiting(|| fieldstone::suggest_schema(&paths.0))
}
