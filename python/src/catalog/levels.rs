//! Levels of an adaptive mesh: names of variables on them, and requests for their fields.

use fieldstone::catalog::Column;
use fieldstone::{Item, Request, Values, Wanted, amr};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::places::integers;
use crate::errors::{Raise, invalid, utf8};
use crate::request::{PyRequest, requests, type_name};

/// The one level that a caller gives.
fn one(level: &Bound<'_, PyAny>) -> PyResult<i64> {
    match integers(level, "level")? {
        Column::One(level) => Ok(level),
        Column::Each(_) => Err(invalid(format!("level is {}", type_name(level)), "give one level")),
    }
}

/// The full name of a variable on a level.
#[pyfunction]
#[pyo3(name = "_name_at")]
pub fn name_at(name: &Bound<'_, PyAny>, level: &Bound<'_, PyAny>) -> PyResult<String> {
    let Ok(name) = name.cast::<PyString>() else {
        return Err(invalid(format!("{} is not a name of a variable", type_name(name)), "names are text"));
    };
    amr::name_at(utf8(name)?, one(level)?).or_raise()
}

/// The level of a variable and its name there; None if it is not on a level.
#[pyfunction]
#[pyo3(name = "_level_of")]
pub fn level_of(name: &str) -> Option<(i64, &str)> {
    amr::split(name)
}

/// The group of a level, and a request for only its variables named by `keyword`.
#[pyfunction]
#[pyo3(name = "_on_level")]
pub fn on_level(
    request: Option<&Bound<'_, PyAny>>,
    keyword: &str,
    level: &Bound<'_, PyAny>,
) -> PyResult<(String, Vec<PyRequest>)> {
    let level = one(level)?;
    let group = amr::group_of(level).or_raise()?;
    let there = requests(request)?.into_iter().map(|request| narrowed(request, keyword, level, &group));
    Ok((group.clone(), there.collect::<PyResult<_>>()?))
}

fn narrowed(mut request: Request, keyword: &str, level: i64, group: &str) -> PyResult<PyRequest> {
    let glob = |pattern: &str| match pattern.strip_prefix(group).is_some_and(|rest| rest.starts_with('/')) {
        true => pattern.to_owned(),
        false => format!("{group}/{pattern}"),
    };
    let name = |name: &str| amr::name_at(name, level).or_raise();
    let no_names = |what: &str| {
        invalid(format!("{keyword} has {what} next to level={level}"), "give names of variables on the level")
    };
    let values = match request.get(keyword) {
        None | Some(Values::Any | Values::Present) => Values::Like(vec![Wanted::Glob(glob("*"))]),
        Some(Values::Absent) => return Err(no_names("no value")),
        Some(Values::Like(wanted)) => {
            let there = wanted.iter().map(|one| match one {
                Wanted::One(one) => name(one).map(Wanted::One),
                Wanted::Glob(pattern) => Ok(Wanted::Glob(glob(pattern))),
            });
            Values::Like(there.collect::<PyResult<_>>()?)
        }
        Some(Values::List(items)) => {
            let there = items.iter().map(|item| match item {
                Item::One(one) => name(one).map(Item::One),
                Item::Range { .. } => Err(no_names("a range")),
            });
            Values::List(there.collect::<PyResult<_>>()?)
        }
    };
    request.set(keyword, values);
    Ok(PyRequest(request))
}
