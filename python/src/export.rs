//! `Store.export`: GRIB by the facade, netCDF by `fieldstone._export` in this process.

use std::path::PathBuf;

use fieldstone::export::{Form, export_grib};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::reports;
use crate::request::requests;
use crate::store::Store;

#[pymethods]
impl Store {
    /// Writes what `request` selects to a file: GRIB messages as they are, one behind the other, or netCDF.
    ///
    /// `format` is "grib", "netcdf4", "netcdf4-classic", "netcdf3", "cdf1", "cdf2" or "cdf5"; without one the
    /// path's suffix says GRIB (.grib, .grib1, .grib2, .grb, .bin) or netCDF (.nc, .nc4, .cdf, .h5), and a
    /// file that was ingested, or a Dataset that was stored, keeps its own format. A folder that exists gets a
    /// netCDF file for each run.
    ///
    /// A file is there whole or not at all. Conflict where it exists, unless `overwrite`; NotFound where
    /// nothing is selected; Invalid names what the format cannot hold. Returns an `ExportReport`: the files,
    /// fields, bytes, and in `skipped` what a file has not, or not as it was.
    #[pyo3(signature = (request, path, *, format = None, overwrite = false))]
    fn export<'py>(
        slf: &Bound<'py, Self>,
        request: Option<&Bound<'py, PyAny>>,
        path: PathBuf,
        format: Option<&str>,
        overwrite: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match Form::of(&path, format).or_raise()? {
            Form::Grib => {
                let requests = requests(request)?;
                let handle = slf.get().handle()?;
                let report = py.waiting(|| export_grib(&*handle, &requests, &path, overwrite)).or_raise()?;
                reports::export(py, report)
            }
            Form::Netcdf => {
                let options = PyDict::new(py);
                options.set_item("format", format)?;
                options.set_item("overwrite", overwrite)?;
                let written = py.import("fieldstone._export")?.getattr("export")?;
                written.call((slf, request, path), Some(&options))
            }
        }
    }
}
