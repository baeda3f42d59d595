//! Steps of a query: what `step=` takes. Slices are half-open, `a/to/b` and tests include both ends.

use fieldstone::catalog::query::{Expr, Term};
use fieldstone::catalog::value::{Test, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyRange, PySlice, PyString};

use super::tests::PyTest;
use crate::errors::{Refuse, invalid, utf8};
use crate::request::type_name;
use crate::sequence::{Room, each};

/// Steps that a stride may name one by one.
const MANY: i64 = 1_000_000;

fn wrong(given: &str) -> PyErr {
    invalid(
        format!("step={given}"),
        "give a whole number, a list, slice(0, 100), range(0, 100, 6), \"0/to/24/by/6\" or fst.between(0, 24)",
    )
}

/// The condition on steps.
pub fn expr(object: &Bound<'_, PyAny>) -> PyResult<Expr> {
    if let Ok(test) = object.cast::<PyTest>() {
        return of_test(&test.get().test());
    }
    ranges(object, 0, &mut Room::new()).map(|ranges| Expr::Term(Term::Step(ranges)))
}

/// The steps that an object names, which stands `depth` lists deep.
fn ranges(object: &Bound<'_, PyAny>, depth: usize, room: &mut Room) -> PyResult<Vec<(i64, i64)>> {
    room.take(depth, "step")?;
    let py = object.py();
    if let Ok(text) = object.cast::<PyString>() {
        return from_text(utf8(text)?);
    }
    if object.is_instance_of::<PySlice>() || object.is_instance_of::<PyRange>() {
        let part = |name: &str| -> PyResult<Option<i64>> {
            let part = object.getattr(name)?;
            if part.is_none() {
                return Ok(None);
            }
            part.extract().map(Some).or_refuse(py, || {
                invalid(
                    format!("step={object}: slices are for integers only"),
                    "steps are integers; give time=fst.between(a, b) for times, both ends included",
                )
            })
        };
        let (start, stop, stride) = (part("start")?, part("stop")?, part("step")?.unwrap_or(1));
        return match (start, stop, stride) {
            (start, stop, 1) => {
                let last = stop.map_or(Some(i64::MAX), |stop| stop.checked_sub(1));
                Ok(Vec::from_iter(last.map(|last| (start.unwrap_or(i64::MIN), last)).filter(|(a, b)| a <= b)))
            }
            (Some(start), Some(stop), stride) => strided(start, stop, stride),
            _ => Err(invalid(
                format!("step={object}: a slice with a stride needs both ends"),
                "give slice(0, 240, 6)",
            )),
        };
    }
    if !object.is_instance_of::<PyBool>()
        && let Some(step) = object.extract::<i64>().if_it_is(py)?
    {
        return Ok(vec![(step, step)]);
    }
    if let Some(number) = super::places::float(object)? {
        let step = super::places::whole(number, "step")?;
        return Ok(vec![(step, step)]);
    }
    let items = object.try_iter().or_refuse(py, || wrong(&type_name(object)))?;
    let all = each(items.as_any(), |item| ranges(&item, depth + 1, room))?;
    Ok(merged(all.concat()))
}

/// Every `stride`-th from `start`, before `stop`.
fn strided(start: i64, stop: i64, stride: i64) -> PyResult<Vec<(i64, i64)>> {
    let count = match stride {
        0 => return Err(wrong("a range with a stride of 0")),
        1.. => (i128::from(stop) - i128::from(start) + i128::from(stride) - 1) / i128::from(stride),
        _ => (i128::from(start) - i128::from(stop) - i128::from(stride) - 1) / -i128::from(stride),
    };
    if count > i128::from(MANY) {
        return Err(invalid(
            format!("step names {count} steps one by one"),
            "give a slice without a stride, which is a range however long",
        ));
    }
    let all = (0..count.max(0) as i64).map(|i| start + i * stride);
    Ok(merged(all.map(|step| (step, step)).collect()))
}

fn from_text(text: &str) -> PyResult<Vec<(i64, i64)>> {
    let number = |word: &str| word.trim().parse::<i64>().map_err(|_| wrong(&format!("{text:?}")));
    let words: Vec<&str> = text.split('/').map(str::trim).collect();
    let mut all = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let first = number(words[at])?;
        if words.get(at + 1).is_some_and(|word| word.eq_ignore_ascii_case("to")) {
            let last = number(words.get(at + 2).copied().unwrap_or(""))?;
            let by = words.get(at + 3).is_some_and(|word| word.eq_ignore_ascii_case("by"));
            let stride = if by { number(words.get(at + 4).copied().unwrap_or(""))? } else { 1 };
            match stride {
                1 if first <= last => all.push((first, last)),
                stride if stride > 0 => all.extend(strided(first, last.saturating_add(1), stride)?),
                stride => all.extend(strided(first, last.saturating_sub(1), stride)?),
            }
            at += if by { 5 } else { 3 };
        } else {
            all.push((first, first));
            at += 1;
        }
    }
    Ok(merged(all))
}

/// Neighbours as one range.
fn merged(mut all: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    all.sort_unstable();
    let mut out: Vec<(i64, i64)> = Vec::with_capacity(all.len());
    for (first, last) in all {
        match out.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => out.push((first, last)),
        }
    }
    out
}

fn of_test(test: &Test) -> PyResult<Expr> {
    let is = |first: i64, last: i64| Ok(Expr::Term(Term::Step(vec![(first, last)])));
    let several = |tests: &[Test]| tests.iter().map(of_test).collect::<PyResult<Vec<_>>>();
    match test {
        Test::Exists => is(i64::MIN, i64::MAX),
        Test::Above(x) => is(floor(x)?.saturating_add(1), i64::MAX),
        Test::AtLeast(x) => is(ceil(x)?, i64::MAX),
        Test::Below(x) => is(i64::MIN, ceil(x)?.saturating_sub(1)),
        Test::AtMost(x) => is(i64::MIN, floor(x)?),
        Test::Between(a, b) => is(ceil(a)?, floor(b)?),
        Test::Equal(x) => is(ceil(x)?, floor(x)?),
        Test::IsIn(xs) => {
            let all = xs.iter().map(|x| Ok((ceil(x)?, floor(x)?))).collect::<PyResult<Vec<_>>>()?;
            Ok(Expr::Term(Term::Step(merged(all.into_iter().filter(|(a, b)| a <= b).collect()))))
        }
        Test::All(tests) => Ok(Expr::All(several(tests)?)),
        Test::Any(tests) => Ok(Expr::Any(several(tests)?)),
        Test::Not(test) => Ok(Expr::Not(Box::new(of_test(test)?))),
        Test::Contains(_) | Test::Glob(_) | Test::Typed(_) => Err(wrong("a test of texts")),
    }
}

fn floor(value: &Value) -> PyResult<i64> {
    whole(value, f64::floor)
}

fn ceil(value: &Value) -> PyResult<i64> {
    whole(value, f64::ceil)
}

fn whole(value: &Value, round: fn(f64) -> f64) -> PyResult<i64> {
    match value {
        Value::Int(n) => Ok(*n),
        Value::UInt(n) => Ok(i64::try_from(*n).unwrap_or(i64::MAX)),
        Value::Float(x) if !x.is_nan() => Ok(round(*x) as i64),
        other => Err(wrong(&format!("a test with {other}"))),
    }
}
