//! Finders of a variable.

use fieldstone::catalog::value::Value;
use fieldstone::finders::Finder;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::tests::PyTest;
use super::values;
use crate::errors::{Raise, invalid, utf8};
use crate::request::type_name;

/// The declaration of `find=`: a word, a test, a dict of tags and tests, or a list of these.
pub fn declared(find: &Bound<'_, PyAny>) -> PyResult<Value> {
    let mut finders = Vec::new();
    if find.is_instance_of::<PyList>() || find.is_instance_of::<PyTuple>() {
        for one in find.try_iter()? {
            take(&one?, &mut finders)?;
        }
    } else {
        take(find, &mut finders)?;
    }
    // Reading back the declaration rejects an unusable finder here.
    let declared = Finder::declare(&finders).or_raise()?;
    Finder::parse(&declared).or_raise()?;
    Ok(declared)
}

fn take(one: &Bound<'_, PyAny>, finders: &mut Vec<Finder>) -> PyResult<()> {
    if let Ok(test) = one.cast::<PyTest>() {
        finders.push(Finder::region(test.get().test()).or_raise()?);
    } else if let Ok(word) = one.cast::<PyString>() {
        finders.extend(Finder::parse(&Value::Text(utf8(word)?.to_owned())).or_raise()?);
    } else if let Ok(named) = one.cast::<PyDict>() {
        for pair in named.items() {
            let (tag, test) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let Ok(test) = test.cast::<PyTest>() else {
                // A dict in declared form, as `variables()` returns it, is accepted as well.
                finders.extend(Finder::parse(&values::infer(one, "find")?).or_raise()?);
                return Ok(());
            };
            finders.push(Finder::named(test.get().test(), tag.extract()?).or_raise()?);
        }
    } else {
        let hint = "give \"min\", \"max\", \"mean\", fst.above(9000), or {\"hot\": fst.above(9000)}";
        return Err(invalid(format!("find has {}, which is not a finder", type_name(one)), hint));
    }
    Ok(())
}
