//! Finders of a variable, and what they find in a piece that is written.

use fieldstone::catalog::records::VariableName;
use fieldstone::catalog::value::Value;
use fieldstone::finders::{Finder, Piece, annotate};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::tests::PyTest;
use super::{PyCatalog, RunPair, run_name, values};
use crate::data::{self, Data};
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::request::type_name;
use crate::store::transaction;

/// What `find=` takes, as a declaration: a word, a test, a dict of tags and tests, or a list of these.
pub fn declared(find: &Bound<'_, PyAny>) -> PyResult<Value> {
    let mut finders = Vec::new();
    if find.is_instance_of::<PyList>() || find.is_instance_of::<PyTuple>() {
        for one in find.try_iter()? {
            take(&one?, &mut finders)?;
        }
    } else {
        take(find, &mut finders)?;
    }
    // What is declared is what is read, so that a finder that cannot work is refused here.
    let declared = Finder::declare(&finders).or_raise()?;
    Finder::parse(&declared).or_raise()?;
    Ok(declared)
}

fn take(one: &Bound<'_, PyAny>, finders: &mut Vec<Finder>) -> PyResult<()> {
    if let Ok(test) = one.cast::<PyTest>() {
        finders.push(Finder::region(test.get().test()).or_raise()?);
    } else if let Ok(word) = one.cast::<PyString>() {
        finders.extend(Finder::parse(&Value::Text(word.to_str()?.to_owned())).or_raise()?);
    } else if let Ok(named) = one.cast::<PyDict>() {
        for pair in named.items() {
            let (tag, test) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let Ok(test) = test.cast::<PyTest>() else {
                // As it is declared: what `variables()` says can be given again.
                finders.extend(Finder::parse(&values::infer(one, "find")?).or_raise()?);
                return Ok(());
            };
            finders.push(Finder::named(test.get().test(), tag.extract()?).or_raise()?);
        }
    } else {
        let hint = "give \"min\", \"max\", \"mean\", fst.above(9000), or {\"hot\": fst.above(9000)}";
        return Err(invalid(format!("find has {}, which is no finder", type_name(one)), hint));
    }
    Ok(())
}

#[pymethods]
impl PyCatalog {
    /// Looks for what `find` declares in an array that was just archived as a piece that begins at `start`;
    /// returns how many features were found.
    #[allow(clippy::too_many_arguments, reason = "what a piece is made of")]
    fn find_features(
        &self,
        py: Python<'_>,
        run: RunPair,
        variable: (String, i64),
        step: Option<i64>,
        array: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        find: &Bound<'_, PyAny>,
        again: bool,
        txn: Option<&str>,
    ) -> PyResult<u64> {
        let finders = Finder::parse(&values::infer(find, "find")?).or_raise()?;
        let data = Data::new(array)?;
        let Some((dtype, shape)) = data.array.clone() else {
            return Err(invalid("features are found in arrays", "give a numpy array"));
        };
        let start = data::numbers("start", start)?.unwrap_or_else(|| vec![0; shape.len()]);
        let (run, txn) = (run_name(run), transaction(txn)?);
        let variable = VariableName { name: variable.0, version: variable.1 };
        let bytes = data.bytes();
        py.waiting(|| {
            let (run, variable) = (&run, &variable);
            let piece = Piece { run, variable, step, data: bytes, dtype, start: &start, count: &shape };
            annotate(&self.catalog, &piece, &finders, again, txn)
        })
        .or_raise()
    }
}
