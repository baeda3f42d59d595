//! Waits until something becomes visible after a version.

use std::time::Duration;

use fieldstone::Env;
use fieldstone::prelude::*;
use pyo3::prelude::*;

use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;

/// The longest wait between two checks for signals.
const SLICE: Duration = Duration::from_millis(250);

/// Waits until something is flushed after a version, as in `Store.wait`.
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
    let timeout = timeout
        .map_err(|_| invalid("timeout is not a number of seconds", "give a number of at least 0, or None"))?;
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
