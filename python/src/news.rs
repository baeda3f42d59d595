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

#[pymethods]
impl Store {
    /// What became visible after a version, and the version at which this was so.
    fn _list_since(
        &self,
        py: Python<'_>,
        request: Option<&Bound<'_, PyAny>>,
        since: &str,
    ) -> PyResult<(PyListing, String)> {
        since_version(py, &self.handle()?, &requests(request)?, since, &ListOptions::default())
    }

    /// Waits until something was flushed after a version, by any process, and says True; False where nothing was in
    /// `timeout` seconds (None: for ever). `since` is a ``store.version``, now if absent. What was flushed may be
    /// invisible yet, in a transaction. Other threads go on meanwhile; Ctrl-C ends it.
    #[pyo3(signature = (since=None, timeout=None))]
    fn wait(&self, py: Python<'_>, since: Option<String>, timeout: Option<f64>) -> PyResult<bool> {
        let handle = self.handle()?;
        let since = match since {
            Some(since) => since,
            None => py.waiting(|| handle.version()).or_raise()?,
        };
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout
            .map_err(|_| invalid("timeout is no number of seconds", "give one of 0 and more, or None"))?;
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
}
