//! Options of `create` and `open`.

use std::sync::Arc;

use fieldstone::container::{Alignment, Comm, CreateOptions, Format, Indexing, Mode, Strategy};
use fieldstone::env::comm::{Step, Team};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyDictMethods};

use crate::errors::{Raise, Refuse, invalid};

use super::variable::told;

/// The options of `create`.
pub fn create(given: &Bound<'_, PyDict>) -> PyResult<CreateOptions> {
    let word = |name: &str| -> PyResult<String> { required(given, name)?.extract() };
    let number = |name: &str| -> PyResult<Option<u64>> {
        let value = required(given, name)?;
        match value.is_none() {
            true => Ok(None),
            false => value.extract().map(Some).or_refuse(value.py(), || {
                let shown = value.repr().map_or_else(|_| String::new(), |text| text.to_string());
                invalid(format!("{name}={shown}"), "give a whole number of at least 0")
            }),
        }
    };
    let format = Format::parse(&word("format")?).or_raise()?;
    let slots = number("hash_size")?;
    let strategy = match (required(given, "strategy")?.extract::<Option<String>>()?, slots) {
        (Some(name), slots) => Some(Strategy::parse(&name, slots).or_raise()?),
        (None, None) => None,
        (None, Some(_)) => {
            return Err(invalid(
                "hash_size belongs to the strategy library-hash",
                "give strategy='library-hash' too",
            ));
        }
    };
    let default = Alignment::default();
    Ok(CreateOptions {
        format,
        strategy,
        indexing: match &*word("index")? {
            "auto" => Indexing::Auto,
            "always" => Indexing::Always,
            "never" => Indexing::Never,
            other => return Err(invalid(format!("index={other:?}"), "give auto, always or never")),
        },
        fill: required(given, "fill")?.extract()?,
        alignment: Alignment {
            v_align: number("v_align")?.unwrap_or(default.v_align),
            r_align: number("r_align")?.unwrap_or(default.r_align),
            h_minfree: number("h_minfree")?.unwrap_or(default.h_minfree),
            v_minfree: number("v_minfree")?.unwrap_or(default.v_minfree),
        },
    })
}

fn required<'py>(given: &Bound<'py, PyDict>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    given.get_item(name)?.ok_or_else(|| invalid(format!("the option {name} is missing"), "give it"))
}

/// The open mode for a word, with the word.
pub fn mode(word: &str) -> PyResult<(&'static str, Mode)> {
    match word {
        "r" => Ok(("r", Mode::Read)),
        "a" => Ok(("a", Mode::Append)),
        other => Err(invalid(format!("mode={other:?}"), "give 'r' or 'a'; container.create makes a new one")),
    }
}

/// This rank's contribution to a collective call that opens a container. If the rank cannot take part, the other
/// ranks, which are in the first step of that call, receive its error.
pub fn shared<T>(
    py: Python<'_>,
    comm: Option<&Arc<dyn Comm>>,
    step: impl Into<Step>,
    given: PyResult<T>,
) -> PyResult<T> {
    let step = step.into();
    if let (Err(raised), Some(comm)) = (&given, comm) {
        let (comm, error) = (comm.clone(), told(py, raised).0);
        let _ = py.detach(|| Team::new(comm).agree::<()>(step, Err(error)));
    }
    given
}

/// The communicator, if there are several processes.
pub fn comm(given: &Bound<'_, PyAny>) -> PyResult<Option<Arc<dyn Comm>>> {
    match given.is_none() {
        true => Ok(None),
        false => crate::comm::comm_from_python(given).map(Some),
    }
}
