//! Names of a query: the forms that `run=`, `variable=`, `tag=` and the like accept.

use fieldstone::catalog::query::{Expr, NameTest, Term};
use fieldstone::catalog::value::{Glob, Test, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PySlice, PyString, PyTuple};

use super::terms::one;
use super::tests::{PyTest, no_slice};
use crate::errors::{Refuse, invalid, utf8};
use crate::request::type_name;
use crate::sequence::{Room, each};

/// The condition on names. Plain text with `*`, `?` or `[` is a pattern; `more` adds conditions that an object
/// carries besides its name.
pub fn named(
    value: &Bound<'_, PyAny>,
    what: &str,
    term: fn(NameTest) -> Term,
    more: impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<Expr>> + Copy,
) -> PyResult<Expr> {
    nested(value, (what, term, more), 0, &mut Room::new())
}

/// Like [`named`], at list depth `depth`.
fn nested(
    value: &Bound<'_, PyAny>,
    asked: (&str, fn(NameTest) -> Term, impl Fn(&Bound<'_, PyAny>) -> PyResult<Option<Expr>> + Copy),
    depth: usize,
    room: &mut Room,
) -> PyResult<Expr> {
    let (what, term, more) = asked;
    room.take(depth, what)?;
    let is = |test: NameTest| Expr::Term(term(test));
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(is(plain(utf8(text)?)));
    }
    if what == "user"
        && !value.is_instance_of::<PyBool>()
        && let Ok(number) = value.extract::<u32>()
    {
        return Ok(is(NameTest::Is(number.to_string())));
    }
    if let Ok(test) = value.cast::<PyTest>() {
        return of_test(&test.get().test(), what, term);
    }
    if value.is_instance_of::<PySlice>() {
        return Err(no_slice(what));
    }
    if let Ok(pair) = value.cast::<PyTuple>()
        && pair.len() == 2
        && let (Ok(name), Ok(version)) =
            (pair.get_item(0)?.extract::<String>(), pair.get_item(1)?.extract::<i64>())
    {
        return match what {
            "variable" => Ok(one(vec![is(plain(&name)), Expr::Term(Term::VariableVersion(vec![version]))])),
            "tag" => Ok(one(vec![is(plain(&name)), Expr::Term(Term::TagVersion(vec![version]))])),
            _ => Err(invalid(format!("{what} has no versions"), "give its name alone")),
        };
    }
    if value.hasattr("name")? && !value.hasattr("__array_interface__")? {
        let mut all = vec![is(NameTest::Is(value.getattr("name")?.extract()?))];
        all.extend(more(value)?);
        return Ok(one(all));
    }
    let wrong = || {
        let hint = "give text, fst.exact(…), fst.glob(…), fst.contains(…), or a list of these";
        invalid(format!("{what} is {}, which is not a name", type_name(value)), hint)
    };
    if value.is_instance_of::<PyDict>() || value.is_instance_of::<PyBytes>() {
        return Err(wrong());
    }
    let items = value.try_iter().or_refuse(value.py(), wrong)?;
    let all = each(items.as_any(), |item| nested(&item, asked, depth + 1, room))?;
    // Plain names become one term, which one index lookup answers.
    let names = all.iter().map(|expr| match expr {
        Expr::Term(
            Term::Run(test)
            | Term::Project(test)
            | Term::Job(test)
            | Term::Variable(test)
            | Term::Tag(test)
            | Term::Unit(test)
            | Term::User(test),
        ) => Some(test.clone()),
        _ => None,
    });
    match names.collect::<Option<Vec<_>>>() {
        Some(names) => Ok(is(NameTest::Any(names))),
        None => Ok(Expr::Any(all)),
    }
}

fn plain(text: &str) -> NameTest {
    match Glob::is_pattern(text) {
        true => NameTest::Typed(text.to_owned()),
        false => NameTest::Is(text.to_owned()),
    }
}

fn of_test(test: &Test, what: &str, term: fn(NameTest) -> Term) -> PyResult<Expr> {
    let is = |test: NameTest| Ok(Expr::Term(term(test)));
    let several =
        |tests: &[Test]| tests.iter().map(|test| of_test(test, what, term)).collect::<PyResult<Vec<_>>>();
    let text = |value: &Value| match value {
        Value::Text(text) => Ok(text.clone()),
        other => Err(invalid(format!("{what} is compared with {other}"), "names are text")),
    };
    match test {
        Test::Exists => is(NameTest::Glob("*".to_owned())),
        Test::Equal(value) => is(NameTest::Is(text(value)?)),
        Test::IsIn(values) => {
            let names = values.iter().map(|value| text(value).map(NameTest::Is));
            is(NameTest::Any(names.collect::<PyResult<_>>()?))
        }
        Test::Contains(value) => is(NameTest::Glob(format!("*{}*", Glob::escape(&text(value)?)))),
        Test::Glob(pattern) => is(NameTest::Glob(pattern.clone())),
        Test::Typed(text) => is(NameTest::Typed(text.clone())),
        Test::All(tests) => Ok(Expr::All(several(tests)?)),
        Test::Any(tests) => Ok(Expr::Any(several(tests)?)),
        Test::Not(test) => Ok(Expr::Not(Box::new(of_test(test, what, term)?))),
        _ => Err(invalid(
            format!("{what} is a name, and names are not compared by size"),
            "use fst.exact, fst.isin, fst.contains or fst.glob",
        )),
    }
}

/// For objects that carry nothing but a name.
pub fn nothing_more(_: &Bound<'_, PyAny>) -> PyResult<Option<Expr>> {
    Ok(None)
}

/// A run object also carries its project.
pub fn project_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Expr>> {
    let Some(project) = object.getattr_opt("project")? else { return Ok(None) };
    let name = project.extract::<Option<String>>()?.unwrap_or_default();
    Ok(Some(Expr::Term(Term::Project(NameTest::Is(name)))))
}

/// A tag or variable that a query found also carries its version.
pub fn version_of(object: &Bound<'_, PyAny>, term: fn(Vec<i64>) -> Term) -> PyResult<Option<Expr>> {
    let Some(version) = object.getattr_opt("version")? else { return Ok(None) };
    Ok(Some(Expr::Term(term(vec![version.extract()?]))))
}
