//! What became visible after a version, and waiting for it.

use std::time::Duration;

use fieldstone::prelude::*;
use fieldstone::{Env, ListOptions};
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::listing::{PyListing, since_version};
use crate::log::Waiting as _;
use crate::request::requests;
use crate::store::Store;

/// How long a wait goes on without a look at signals.
const SLICE: Duration = Duration::from_millis(250);

/// What became visible after a version, and the version at which this was so.
#[pyfunction]
#[pyo3(name = "_list_since")]
pub fn list_since(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    request: Option<&Bound<'_, PyAny>>,
    since: &str,
) -> PyResult<(PyListing, String)> {
    since_version(py, &store.get().handle()?, &requests(request)?, since, &ListOptions::default())
}

/// Waits until something was flushed after a version, as `Store.wait` says.
pub fn wait(
    py: Python<'_>,
    handle: &fieldstone::Store,
    since: Option<String>,
    timeout: Option<f64>,
) -> PyResult<bool> {
    let since = match since {
        Some(since) => since,
        None => py.waiting(|| handle.version()).or_raise()?,
    };
    let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
    let timeout =
        timeout.map_err(|_| invalid("timeout is no number of seconds", "give one of 0 and more, or None"))?;
    let clock = Env::real().clock;
    let begun = clock.monotonic();
    let waited = || Duration::from_nanos(clock.monotonic() - begun);
    loop {
        let left = timeout.map(|timeout| timeout.saturating_sub(waited()));
        let slice = left.unwrap_or(SLICE).min(SLICE);
        if py.waiting(|| handle.wait(&since, slice)).or_raise()? {
            return Ok(true);
        }
        if left.is_some_and(|left| left <= slice) {
            return Ok(false);
        }
        py.check_signals()?;
    }
}
