//! GRIB messages: how a store takes them, the keys that they get, and their values.

use std::path::PathBuf;

use fieldstone::helper::HelperOptions;
use fieldstone::{ArchiveOptions, Field, GribOptions, GribSource, Session};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use crate::data::{self, Data};
use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::request::KeyText;
use crate::store::warn_undated;

/// Archives the fields of GRIB messages, as in `Store.archive_grib`; returns their number.
pub fn archive(
    py: Python<'_>,
    handle: &fieldstone::Store,
    source: &Bound<'_, PyAny>,
    key: Option<&Bound<'_, PyAny>>,
    session: Session,
) -> PyResult<u64> {
    let key = key.map(KeyText::new).transpose()?;
    let pairs = key.as_ref().map(KeyText::pairs).transpose()?.unwrap_or_default();
    let key = pairs.into_iter().map(|(keyword, value)| (keyword.to_owned(), value.to_owned())).collect();
    let options = GribOptions { key, helper: helper(py)? };
    let archive = ArchiveOptions { session, ..ArchiveOptions::default() };
    let go = |source| fieldstone::archive_grib(handle, source, &options, &archive);
    let taken = if let Ok(path) = source.extract::<PathBuf>() {
        py.waiting(|| go(GribSource::Path(&path))).or_raise()?
    } else {
        let data = Data::new(source)?;
        let bytes = data.bytes();
        py.waiting(|| go(GribSource::Bytes(bytes))).or_raise()?
    };
    warn_undated(py, handle)?;
    Ok(taken)
}

/// The keys of the GRIB fields in bytes, in order; a text in place of a key gives the reason for its absence.
#[pyfunction]
#[pyo3(name = "_grib_keys")]
pub fn grib_keys<'py>(py: Python<'py>, source: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let data = Data::new(source)?;
    let bytes = data.bytes();
    let options = helper(py)?;
    let keys = py.waiting(|| fieldstone::grib_keys(bytes, &options)).or_raise()?;
    let one = |key: Result<Vec<(String, String)>, String>| match key {
        Ok(key) => {
            let dict = pyo3::types::PyDict::new(py);
            key.iter().try_for_each(|(keyword, value)| dict.set_item(keyword, value))?;
            Ok(dict.into_any())
        }
        Err(why) => Ok(pyo3::types::PyString::new(py, &why).into_any()),
    };
    keys.into_iter().map(one).collect()
}

/// The values of a GRIB message, or a box of them.
pub fn decode<'py>(
    py: Python<'py>,
    field: &Field,
    start: Option<&Bound<'py, PyAny>>,
    count: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (start, count) = (data::numbers("start", start)?, data::numbers("count", count)?);
    let name = field.key().or_raise()?.to_string();
    let bytes = data::new_bytes(py, field.nbytes().or_raise()?, |out| field.read_into(out))?;
    let values = py.import("fieldstone._fields")?.getattr("decode_grib")?.call1((bytes, name))?;
    let shape: Vec<u64> = values.getattr("shape")?.extract()?;
    let Some(region) = data::box_of(&shape, start, count)? else { return Ok(values) };
    let slice = |(start, count): (&u64, &u64)| {
        let (start, count) = (isize::try_from(*start)?, isize::try_from(*count)?);
        Ok::<_, PyErr>(PySlice::new(py, start, start + count, 1))
    };
    let slices: Vec<_> = region.start().iter().zip(region.count()).map(slice).collect::<PyResult<_>>()?;
    values.get_item(PyTuple::new(py, slices)?)?.call_method0("copy")
}

/// The helper runs in this Python, unless the caller names another.
fn helper(py: Python<'_>) -> PyResult<HelperOptions> {
    let named = std::env::var_os("FIELDSTONE_PYTHON").filter(|name| !name.is_empty()).map(PathBuf::from);
    let python = match named {
        Some(named) => Some(named),
        None => py.import("sys")?.getattr("executable")?.extract::<Option<PathBuf>>()?,
    };
    let python = python.filter(|python| !python.as_os_str().is_empty());
    Ok(HelperOptions { python, ..HelperOptions::default() })
}
