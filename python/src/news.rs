//! Waiting until something becomes visible after a version.

use std::time::Duration;

use fieldstone::Env;
use fieldstone::prelude::*;
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;

/// How long a wait goes on without a look at signals.
const SLICE: Duration = Duration::from_millis(250);

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
