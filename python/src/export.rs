//! The native part of `Store.export`: the facade writes GRIB; `fieldstone._export` writes netCDF, in this process.

use std::path::PathBuf;

use fieldstone::export::{Form, export_grib};
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;
use crate::store::Store;

/// Whether a file of this name and format holds GRIB messages; otherwise it holds netCDF.
#[pyfunction]
#[pyo3(name = "_exports_grib")]
pub fn exports_grib(path: PathBuf, format: Option<&str>) -> PyResult<bool> {
    Ok(matches!(Form::of(&path, format).or_raise()?, Form::Grib))
}

/// The metadata of the fields that `request` selects, as lines (`spec/exported-metadata.md`).
#[pyfunction]
#[pyo3(name = "_written")]
pub fn written(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    request: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<String>> {
    let requests = requests(request)?;
    let handle = store.get().handle()?;
    py.waiting(|| fieldstone::transfer::written(&handle, &requests)).or_raise()
}

/// Writes the GRIB messages that `request` selects to a file, unchanged.
#[pyfunction]
#[pyo3(name = "_export_grib")]
pub fn export_messages<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    path: PathBuf,
    overwrite: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let requests = requests(request)?;
    let handle = store.get().handle()?;
    let report = py.waiting(|| export_grib(&handle, &requests, &path, overwrite)).or_raise()?;
    reports::export(py, report)
}
