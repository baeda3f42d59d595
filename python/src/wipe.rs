//! `Store.wipe`: hides whole datasets and indexes. `fieldstone._wipe` understands ages.

use std::time::{Duration, SystemTime};

use fieldstone::WipeOptions;
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::reports;
use crate::request::single_request;
use crate::store::Store;

/// Wipes; `older_than` is in nanoseconds since 1970.
#[pyfunction]
#[pyo3(name = "_wipe")]
pub fn wipe<'py>(
    py: Python<'py>,
    store: &Bound<'py, Store>,
    request: Option<&Bound<'py, PyAny>>,
    older_than: Option<i64>,
    doit: bool,
    all: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let handle = store.get().handle()?;
    let request = single_request(request)?;
    let time = |nanoseconds: i64| {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(u64::try_from(nanoseconds).ok()?));
        time.filter(|_| nanoseconds > 0)
    };
    let older_than = match older_than {
        None => None,
        Some(age) => {
            let refused =
                || invalid("older_than is before 1970", "give seconds, a timedelta, \"5d\" or a datetime");
            Some(time(age).ok_or_else(refused)?)
        }
    };
    let report = py.waiting(|| handle.wipe(&request, &WipeOptions { older_than, doit, all })).or_raise()?;
    reports::wiped(py, report)
}
