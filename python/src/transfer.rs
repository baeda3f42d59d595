//! `fieldstone.copy` and `fieldstone.move`: fields from store to store.

use std::cell::RefCell;

use fieldstone::Error;
use fieldstone::transfer::{TransferOptions, copy, move_fields};
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;
use crate::store::Store;

/// Copies or moves what a request names; `progress(done, of)` is called before each field.
#[pyfunction]
#[pyo3(name = "_transfer")]
pub fn transfer<'py>(
    py: Python<'py>,
    source: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    target: &Bound<'py, Store>,
    moving: bool,
    strict: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (from, to) = (source.get().handle()?, target.get().handle()?);
    let requests = requests(request)?;
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
        let options = TransferOptions { strict, progress: Some(&tell) };
        let outcome = match moving {
            true => move_fields(&*from, &requests, &*to, &options),
            false => copy(&*from, &requests, &*to, &options),
        };
        outcome.map_err(|error| (error, raised.take()))
    });
    match outcome {
        Ok(report) => reports::transfer(py, report),
        Err((_, Some(exception))) => Err(exception),
        Err((error, None)) => Err(error).or_raise(),
    }
}
