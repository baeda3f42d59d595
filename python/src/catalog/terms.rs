//! Translates keywords of a query into the query model.

use std::fmt::{self, Write};

use fieldstone::catalog::query::{Expr, Key, Pick, Query, Scope, Term, Where, text};
use fieldstone::catalog::value::{Test, Value};
use fieldstone::nearest;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};

use super::chain::{Chain, Joint};
use super::{boxes, names, steps, tests, values, writers};
use crate::errors::{Raise, Refuse, invalid, utf8};
use crate::request::type_name;
use crate::sequence::{Room, Several, each, pairs};

/// Subjects of text queries whose keyword here is plural and takes a dict of several.
const PLURALS: [(&str, &str); 2] = [("param", "params"), ("keyword", "keywords")];
/// Terms that add conditions but that no term of a text query begins with.
const OURS: [&str; 3] = ["with_related", "without_related", "where"];
/// Terms that control the output.
const SHOWN: [&str; 4] = ["txn", "order", "limit", "pick"];

/// An expression over terms. Made by ``fieldstone.where(…)``; ``a & b``, ``a | b`` and ``~a`` combine them.
#[pyclass(frozen, name = "Where", module = "fieldstone")]
#[derive(Clone)]
pub struct PyWhere(Chain<Expr>);

#[pymethods]
impl PyWhere {
    #[new]
    #[pyo3(signature = (r#where=None, /, **terms))]
    fn new(r#where: Option<&Bound<'_, PyAny>>, terms: Option<&Bound<'_, PyDict>>) -> PyResult<PyWhere> {
        let mut all = Vec::new();
        extend(&mut all, r#where, 0, &mut Room::new())?;
        for (name, value) in terms.into_iter().flat_map(|terms| terms.iter()) {
            let name = utf8(name.cast::<PyString>()?)?.to_owned();
            if SHOWN.contains(&&*name) {
                let hint = "give it to the call that asks: attributes, runs, steps, variables or tags";
                return Err(invalid(format!("{name}= is not a condition"), hint));
            }
            if !value.is_none() {
                all.push(filter(&name, &value)?);
            }
        }
        Chain::all(all).map(PyWhere)
    }

    fn __and__(&self, other: &Bound<'_, PyWhere>) -> PyResult<PyWhere> {
        self.0.joined(Joint::All, &other.get().0).map(PyWhere)
    }

    fn __or__(&self, other: &Bound<'_, PyWhere>) -> PyResult<PyWhere> {
        self.0.joined(Joint::Any, &other.get().0).map(PyWhere)
    }

    fn __invert__(&self) -> PyResult<PyWhere> {
        self.0.not().map(PyWhere)
    }

    fn __repr__(&self) -> String {
        format!("<fieldstone.Where {}>", shown(&self.0.made()))
    }
}

/// Another attribute that must exist, or must not. Made by ``fieldstone.related``.
#[pyclass(frozen, name = "Related", module = "fieldstone")]
pub struct PyRelated(pub Expr);

#[pymethods]
impl PyRelated {
    #[new]
    fn new(place: &str, r#where: &Bound<'_, PyWhere>) -> PyResult<PyRelated> {
        let place = match place {
            "same run" => Where::SameRun,
            "same step" => Where::SameStep,
            "same variable" => Where::SameVariable,
            "overlapping" => Where::Overlapping,
            other => {
                let hint = "use \"same run\", \"same step\", \"same variable\" or \"overlapping\"";
                return Err(invalid(format!("{other:?} is not a place of a related attribute"), hint));
            }
        };
        let related = Expr::Related(place, Box::new(r#where.get().0.made()));
        related.size().check().or_raise()?;
        Ok(PyRelated(related))
    }

    fn __repr__(&self) -> String {
        format!("<fieldstone.Related {}>", shown(&self.0))
    }
}

/// An expression as text, shortened if it is long.
fn shown(expr: &Expr) -> String {
    let mut text = Cut(String::new());
    match write!(text, "{expr}") {
        Ok(()) => text.0,
        Err(_) => text.0 + "…",
    }
}

/// Text that stops growing at the length shown.
struct Cut(String);

impl fmt::Write for Cut {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        const SHOWN: usize = 200;
        let room = SHOWN.saturating_sub(self.0.chars().count());
        match more.char_indices().nth(room) {
            Some((cut, _)) => {
                self.0.push_str(&more[..cut]);
                Err(fmt::Error)
            }
            None => {
                self.0.push_str(more);
                Ok(())
            }
        }
    }
}

/// Joins several expressions by "and".
pub fn one(mut all: Vec<Expr>) -> Expr {
    match (all.len(), all.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            all.push(last);
            Expr::All(all)
        }
        (_, None) => Expr::All(all),
    }
}

/// Adds the value of `where=`: our expressions, text, or a list of these, all of which must hold. Lists may nest;
/// `depth` is the current depth.
fn extend(
    all: &mut Vec<Chain<Expr>>,
    r#where: Option<&Bound<'_, PyAny>>,
    depth: usize,
    room: &mut Room,
) -> PyResult<()> {
    room.take(depth, "where")?;
    let Some(given) = r#where.filter(|given| !given.is_none()) else { return Ok(()) };
    if let Ok(expr) = given.cast::<PyWhere>() {
        all.push(expr.get().0.clone());
    } else if let Ok(text) = given.cast::<PyString>() {
        all.push(Chain::of(text::parse_expr(utf8(text)?).or_raise()?)?);
    } else if let Ok(list) = given.cast::<PyList>() {
        for item in list.iter() {
            extend(all, Some(&item), depth + 1, room)?;
        }
    } else {
        let hint = "give fst.where(…), text as store.find takes it, or a list of these";
        return Err(invalid(format!("{} is not a condition", type_name(given)), hint));
    }
    Ok(())
}

/// The query of a call: a condition and keywords.
pub fn query(r#where: Option<&Bound<'_, PyAny>>, terms: Option<&Bound<'_, PyDict>>) -> PyResult<Query> {
    let mut all = Vec::new();
    let mut query = Query::all();
    extend(&mut all, r#where, 0, &mut Room::new())?;
    for (name, value) in terms.into_iter().flat_map(|terms| terms.iter()) {
        if value.is_none() {
            continue;
        }
        let name = name.cast::<PyString>()?;
        match utf8(name)? {
            "txn" => query.session = crate::store::session(Some(value.extract()?))?,
            "order" => query.order = order(&value)?,
            "limit" => {
                let wrong = || invalid(format!("limit={value}"), "give a whole number of at least 0");
                query.limit = Some(value.extract().or_refuse(value.py(), wrong)?);
            }
            "pick" => query.pick = Some(pick(&value)?),
            name => all.push(filter(name, &value)?),
        }
    }
    query.expr = Chain::all(all)?.made();
    Ok(query)
}

fn order(given: &Bound<'_, PyAny>) -> PyResult<Vec<(Key, bool)>> {
    let key = |text: &Bound<'_, PyAny>| -> PyResult<(Key, bool)> {
        let word: String = text.extract().map_err(|_| unordered(&type_name(text)))?;
        let (name, descending) = match word.strip_prefix('-') {
            Some(name) => (name, true),
            None => (&*word, false),
        };
        let key = match name {
            "run" => Key::Run,
            "created" => Key::Created,
            "step" => Key::Step,
            "time" => Key::Time,
            "variable" => Key::Variable,
            "tag" => Key::Tag,
            "value" => Key::Value,
            "volume" => Key::Volume,
            _ => return Err(unordered(&word)),
        };
        Ok((key, descending))
    };
    match given.is_instance_of::<PyString>() {
        true => Ok(vec![key(given)?]),
        false => each(given, |text| key(&text)),
    }
}

fn unordered(word: &str) -> PyErr {
    invalid(
        format!("order={word:?}"),
        "order by run, created, step, time, variable, tag, value or volume; \"-value\" is descending",
    )
}

fn pick(given: &Bound<'_, PyAny>) -> PyResult<Pick> {
    match given.extract::<String>().as_deref() {
        Ok("first") => Ok(Pick::First),
        Ok("last") => Ok(Pick::Last),
        _ => Err(invalid(
            format!("pick={given}"),
            "pick \"first\" or \"last\": only the first or last step per run, variable and tag",
        )),
    }
}

fn unknown(name: &str) -> PyErr {
    let plural = |subject| PLURALS.iter().find(|(text, _)| *text == subject).map(|(_, keyword)| *keyword);
    let subjects = text::SUBJECTS.iter().map(|&subject| plural(subject).unwrap_or(subject));
    let known = subjects.chain(OURS).chain(SHOWN);
    let near = nearest::did_you_mean(name, known.clone());
    let all = || format!("terms are {}", known.collect::<Vec<_>>().join(" "));
    invalid(format!("there is no term {name}="), &near.unwrap_or_else(all))
}

/// Rejects a comparison written as a pair, which would be a list of two values.
fn check_comparison(name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let Ok(pair) = value.cast::<PyTuple>() else { return Ok(()) };
    let first = pair.get_item(0).ok().and_then(|first| first.extract::<String>().ok());
    let test = match first.as_deref() {
        Some(">") => "above",
        Some(">=") => "at_least",
        Some("<") => "below",
        Some("<=") => "at_most",
        Some("=" | "==") => "equal",
        _ => return Ok(()),
    };
    match pair.get_item(1) {
        Ok(bound) if pair.len() == 2 => {
            let bound = bound.repr()?;
            Err(invalid(
                format!("{name}={} is not a test", pair.repr()?),
                &format!("give fst.{test}({bound})"),
            ))
        }
        _ => Ok(()),
    }
}

/// The condition of one keyword.
fn filter(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Chain<Expr>> {
    check_comparison(name, value)?;
    if name == "where" {
        let mut all = Vec::new();
        extend(&mut all, Some(value), 0, &mut Room::new())?;
        return Chain::all(all);
    }
    Chain::of(term(name, value)?)
}

/// Tests of parameters or attributes by their names.
fn tested(value: &Bound<'_, PyAny>, what: &str, term: fn(String, Test) -> Term) -> PyResult<Expr> {
    if !value.is_instance_of::<PyDict>() {
        let hint = format!("give a dict: {what}={{\"units\": \"K\"}}, {what}={{\"nx\": fst.above(100)}}");
        return Err(invalid(format!("{what}={}", type_name(value)), &hint));
    }
    let each = pairs(value, |key, test| {
        let key: String = key.extract()?;
        let test = tests::test_or_pattern(&test, &format!("{what}[{key:?}]"))?;
        Ok(Expr::Term(term(key, test)))
    });
    each.map(one)
}

fn term(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    match name {
        "run" => names::named(value, name, Term::Run, names::project_of),
        "project" => names::named(value, name, Term::Project, names::nothing_more),
        "job" => names::named(value, name, Term::Job, names::nothing_more),
        "variable" => names::named(value, name, Term::Variable, |object| {
            names::version_of(object, Term::VariableVersion)
        }),
        "tag" => names::named(value, name, Term::Tag, |object| names::version_of(object, Term::TagVersion)),
        "unit" => names::named(value, name, Term::Unit, names::nothing_more),
        "params" => tested(value, name, Term::Param),
        "attr" => tested(value, name, Term::Attr),
        "created" => Ok(Expr::Term(Term::Created(moments(&created(value)?)?))),
        "step" => steps::STEPS.expr(value),
        "level" => steps::LEVELS.expr(value),
        "time" => Ok(Expr::Term(Term::Time(tests::test(value, name)?))),
        "version" => Ok(Expr::Term(Term::VariableVersion(numbers(value, name)?))),
        "tag_version" => Ok(Expr::Term(Term::TagVersion(numbers(value, name)?))),
        "value" => Ok(Expr::Term(Term::Value(tests::test(value, name)?))),
        "scope" => match value.extract::<String>().as_deref() {
            Ok("run") => Ok(Expr::Term(Term::Scope(Scope::Run))),
            Ok("step") => Ok(Expr::Term(Term::Scope(Scope::Step))),
            Ok("variable") => Ok(Expr::Term(Term::Scope(Scope::Variable))),
            _ => Err(invalid(format!("scope={value}"), "give \"run\", \"step\" or \"variable\"")),
        },
        "box" => boxes::expr(value),
        "extent" => {
            let extents = value.cast::<PyDict>().map_err(|_| {
                invalid(format!("extent={}", type_name(value)), "give a dict: {\"z\": fst.above(5)}")
            })?;
            let tests = pairs(extents.as_any(), |dim, test| {
                Ok(Expr::Term(Term::Extent(boxes::dim(&dim)?, tests::test(&test, "an extent")?)))
            });
            tests.map(one)
        }
        "volume" => Ok(Expr::Term(Term::Volume(tests::test(value, name)?))),
        "keywords" => {
            let keywords = value.cast::<PyDict>().map_err(|_| {
                invalid(format!("keywords={}", type_name(value)), "give a dict: {\"number\": 3}")
            })?;
            let tests = pairs(keywords.as_any(), |keyword, test| {
                let keyword: String = keyword.extract()?;
                let test = tests::test(&test, &format!("keywords[{keyword:?}]"))?;
                Ok(Expr::Term(Term::Keyword(keyword, test)))
            });
            tests.map(one)
        }
        "user" => names::named(value, name, Term::User, names::nothing_more),
        "writer" => writers::expr(value),
        "with_related" => related(value).map(one),
        "without_related" => {
            Ok(one(related(value)?.into_iter().map(|related| Expr::Not(Box::new(related))).collect()))
        }
        name => Err(unknown(name)),
    }
}

fn related(value: &Bound<'_, PyAny>) -> PyResult<Vec<Expr>> {
    if let Ok(related) = value.cast::<PyRelated>() {
        return Ok(vec![related.get().0.clone()]);
    }
    let wrong = || {
        let hint = "give fst.related(\"same step\", tag=…), or a list of these";
        invalid(format!("{} is not a related attribute", type_name(value)), hint)
    };
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return Err(wrong());
    }
    each(value, |item| item.cast::<PyRelated>().map(|related| related.get().0.clone()).map_err(|_| wrong()))
}

/// Whole numbers: one, or several.
fn numbers(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<i64>> {
    let (py, wrong) =
        (value.py(), || invalid(format!("{name}={value}"), "give a whole number, or a list of these"));
    match value.extract::<i64>().if_it_is(py)? {
        Some(number) if !value.is_instance_of::<PyBool>() => Ok(vec![number]),
        _ => value.extract::<Several<i64>>().or_refuse(py, wrong).map(|several| several.0),
    }
}

/// The test of a time, whose values may still be texts. A slice gets a matching hint.
fn created(value: &Bound<'_, PyAny>) -> PyResult<Test> {
    tests::test(value, "created")
}

/// A test of times: texts are parsed as ISO 8601.
fn moments(test: &Test) -> PyResult<Test> {
    let moment = |value: &Value| -> PyResult<Value> {
        match value {
            Value::DateTime(moment) => Ok(Value::DateTime(*moment)),
            Value::Text(text) => Python::attach(|py| values::nanoseconds(PyString::new(py, text).as_any()))
                .map(Value::DateTime),
            other => Err(invalid(
                format!("created is {other}, which is not a time"),
                "give a datetime, or text such as \"2026-11-21\"",
            )),
        }
    };
    let several = |tests: &[Test]| tests.iter().map(moments).collect::<PyResult<Vec<_>>>();
    Ok(match test {
        Test::Above(x) => Test::Above(moment(x)?),
        Test::AtLeast(x) => Test::AtLeast(moment(x)?),
        Test::Below(x) => Test::Below(moment(x)?),
        Test::AtMost(x) => Test::AtMost(moment(x)?),
        Test::Between(a, b) => Test::Between(moment(a)?, moment(b)?),
        Test::Equal(x) => Test::Equal(moment(x)?),
        Test::IsIn(xs) => Test::IsIn(xs.iter().map(moment).collect::<PyResult<_>>()?),
        Test::All(tests) => Test::All(several(tests)?),
        Test::Any(tests) => Test::Any(several(tests)?),
        Test::Not(test) => Test::Not(Box::new(moments(test)?)),
        Test::Exists => Test::Exists,
        Test::Contains(_) | Test::Glob(_) | Test::Typed(_) => {
            return Err(invalid("created is a time, not a text", "give fst.between(a, b), above or below"));
        }
    })
}
