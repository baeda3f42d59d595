//! What became visible after a version, and waiting for it.

use std::time::Duration;

use fieldstone::unpacked::unpacked;
use fieldstone::{Env, ListOptions};
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::listing::PyListing;
use crate::log::Waiting as _;
use crate::request::requests;
use crate::store::Store;

/// How long a wait goes on without a look at signals.
const SLICE: Duration = Duration::from_millis(250);

/// What requests select of what became visible after a version, and the version at which this was so.
pub fn since_version(
    py: Python<'_>,
    handle: &fieldstone::Store,
    requests: &[fieldstone::Request],
    since: &str,
    options: &ListOptions,
) -> PyResult<(PyListing, String)> {
    let found = py.waiting(|| {
        // Several requests are of one moment: the first one's.
        let mut streams = Vec::with_capacity(requests.len());
        let mut now = None;
        for request in requests {
            let (stream, version) = handle.list_since(request, since, options)?;
            streams.push(unpacked(handle, stream));
            now.get_or_insert(version);
        }
        Ok((streams, now.unwrap_or_else(|| since.to_owned())))
    });
    let (streams, now) = found.or_raise()?;
    let text = requests.first().map_or_else(String::new, |request| request.to_string());
    Ok((PyListing::new(streams, handle.schema(), text.chars().take(200).collect()), now))
}

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
