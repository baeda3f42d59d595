//! `fieldstone.copy` and `fieldstone.move`: transfer fields, and the attributes on them, between stores.

use std::cell::RefCell;

use fieldstone::Error;
use fieldstone::transfer::{TransferOptions, What, copy, move_to};
use pyo3::prelude::*;
use pyo3::types::PySequence;

use crate::catalog::hit_table::PyHitTable;
use crate::catalog::hits::PyHit;
use crate::catalog::read::PyQuery;
use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;
use crate::store::Store;

/// The selection: requests; or a query, all its hits, one hit, or a list of hits.
pub fn what(given: Option<&Bound<'_, PyAny>>) -> PyResult<What> {
    let Some(given) = given else { return requests(None).map(What::Requests) };
    if let Ok(query) = given.cast::<PyQuery>() {
        return Ok(What::Query(query.get().query.clone()));
    }
    if let Ok(found) = given.cast::<PyHitTable>() {
        let table = &found.get().table;
        return Ok(What::Hits((0..table.id.len()).filter_map(|row| table.hit(row)).collect()));
    }
    if let Ok(hit) = given.cast::<PyHit>() {
        return Ok(What::Hits(vec![hit.get().hit.clone()]));
    }
    let first = given.cast::<PySequence>().ok().and_then(|list| list.get_item(0).ok());
    if first.is_some_and(|first| first.is_instance_of::<PyHit>()) {
        let hits = given.try_iter()?.map(|hit| Ok(hit?.cast::<PyHit>()?.get().hit.clone()));
        return hits.collect::<PyResult<_>>().map(What::Hits);
    }
    requests(Some(given)).map(What::Requests)
}

/// Copies or moves the fields of a request or of hits; calls `progress(done, of)` before each field.
#[pyfunction]
#[pyo3(name = "_transfer")]
#[allow(clippy::too_many_arguments, reason = "the arguments of copy and move")]
pub fn transfer<'py>(
    py: Python<'py>,
    source: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    target: &Bound<'py, Store>,
    moving: bool,
    strict: bool,
    fields_only: bool,
    before: Option<i64>,
    versions: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (from, to) = (source.get().handle()?, target.get().handle()?);
    let what = what(request)?;
    let outcome = py.waiting(|| {
        let raised = RefCell::new(None);
        let tell = |done: u64, of: u64| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                match &progress {
                    Some(progress) => progress.call1(py, (done, of)).map(drop),
                    None => Ok(()),
                }
            });
            told.map_err(|exception| {
                raised.replace(Some(exception));
                Error::internal("interrupted")
            })
        };
        let options = TransferOptions {
            strict,
            fields_only,
            before,
            versions,
            progress: Some(&tell),
            ..TransferOptions::default()
        };
        let outcome = match moving {
            true => move_to(&from, what.clone(), &to, &options),
            false => copy(&from, what.clone(), &to, &options),
        };
        outcome.map_err(|error| (error, raised.take()))
    });
    match outcome {
        Ok(report) => reports::transfer(py, report),
        Err((_, Some(exception))) => Err(exception),
        Err((error, None)) => Err(error).or_raise(),
    }
}
