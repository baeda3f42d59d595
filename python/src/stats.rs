//! `Store.stats(by=)`: counts by owner, dataset, writer or keyword. `fieldstone._stats` makes rows of them.

use fieldstone::prelude::*;
use fieldstone::{StatsBy, StatsRow};
use pyo3::prelude::*;

use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::request::single_request;
use crate::store::Store;

/// A row: name, fields, bytes, stored and dead bytes.
type CountsRow = (Option<String>, u64, u64, u64, u64);

/// The rows of a store.
#[pyfunction]
#[pyo3(name = "_stats_by")]
pub fn stats_by(
    py: Python<'_>,
    store: &Bound<'_, Store>,
    request: Option<&Bound<'_, PyAny>>,
    by: &str,
) -> PyResult<Vec<CountsRow>> {
    let handle = store.get().handle()?;
    let request = single_request(request)?;
    let rows = py.waiting(|| handle.stats_by(&request, &StatsBy::parse(by))).or_raise()?;
    let row = |row: StatsRow| (row.name, row.fields, row.nbytes, row.stored, row.dead);
    Ok(rows.into_iter().map(row).collect())
}
