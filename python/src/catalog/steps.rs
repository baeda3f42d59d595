//! Steps and levels of a query: the forms that `step=` and `level=` accept. Slices are half-open; `a/to/b` and tests
//! include both ends.

use fieldstone::catalog::query::{Expr, Term};
use fieldstone::catalog::value::{Test, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyRange, PySlice, PyString};

use super::tests::PyTest;
use crate::errors::{Raise, Refuse, invalid, utf8};
use crate::request::type_name;
use crate::sequence::{Room, each};

/// The most steps that a stride may list one by one.
const MANY: i64 = 1_000_000;

/// The quantity counted: steps or levels.
#[derive(Clone, Copy)]
pub struct CountedTerm {
    what: &'static str,
    term: fn(Vec<(i64, i64)>) -> fieldstone::Result<Term>,
}

pub const STEPS: CountedTerm = CountedTerm { what: "step", term: |ranges| Ok(Term::Step(ranges)) };
pub const LEVELS: CountedTerm = CountedTerm { what: "level", term: Term::level };

impl CountedTerm {
    fn wrong(self, given: &str) -> PyErr {
        let hint = "give a whole number, a list, slice(0, 100), range(0, 100, 6), \"0/to/24/by/6\" or fst.between(0, 24)";
        invalid(format!("{}={given}", self.what), hint)
    }

    fn among(self, ranges: Vec<(i64, i64)>) -> PyResult<Expr> {
        (self.term)(ranges).or_raise().map(Expr::Term)
    }

    /// The condition on steps or levels.
    pub fn expr(self, object: &Bound<'_, PyAny>) -> PyResult<Expr> {
        match object.cast::<PyTest>() {
            Ok(test) => self.of_test(&test.get().test()),
            Err(_) => self.among(self.ranges(object, 0, &mut Room::new())?),
        }
    }

    /// The numbers in an object at list depth `depth`.
    fn ranges(self, object: &Bound<'_, PyAny>, depth: usize, room: &mut Room) -> PyResult<Vec<(i64, i64)>> {
        let what = self.what;
        room.take(depth, what)?;
        let py = object.py();
        if let Ok(text) = object.cast::<PyString>() {
            return self.read_text(utf8(text)?);
        }
        if object.is_instance_of::<PySlice>() || object.is_instance_of::<PyRange>() {
            let part = |name: &str| -> PyResult<Option<i64>> {
                let part = object.getattr(name)?;
                if part.is_none() {
                    return Ok(None);
                }
                part.extract().map(Some).or_refuse(py, || {
                    let hint = match what {
                        "step" => {
                            "steps are integers; give time=fst.between(a, b) for times, both ends included"
                        }
                        _ => "levels are integers",
                    };
                    invalid(format!("{what}={object}: slices are for integers only"), hint)
                })
            };
            let (start, stop, stride) = (part("start")?, part("stop")?, part("step")?.unwrap_or(1));
            return match (start, stop, stride) {
                (start, stop, 1) => {
                    let last = stop.map_or(Some(i64::MAX), |stop| stop.checked_sub(1));
                    Ok(Vec::from_iter(
                        last.map(|last| (start.unwrap_or(i64::MIN), last)).filter(|(a, b)| a <= b),
                    ))
                }
                (Some(start), Some(stop), stride) => self.strided(start, stop, stride),
                _ => Err(invalid(
                    format!("{what}={object}: a slice with a stride needs both ends"),
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
            let step = super::places::whole(number, what)?;
            return Ok(vec![(step, step)]);
        }
        let items = object.try_iter().or_refuse(py, || self.wrong(&type_name(object)))?;
        let all = each(items.as_any(), |item| self.ranges(&item, depth + 1, room))?;
        Ok(merged(all.concat()))
    }

    /// Every `stride`-th number from `start`, before `stop`.
    fn strided(self, start: i64, stop: i64, stride: i64) -> PyResult<Vec<(i64, i64)>> {
        let count = match stride {
            0 => return Err(self.wrong("a range with a stride of 0")),
            // In 128 bits, because the distance of two i64 may not fit in 64.
            1.. => (i128::from(stop) - i128::from(start) + i128::from(stride) - 1) / i128::from(stride),
            _ => (i128::from(start) - i128::from(stop) - i128::from(stride) - 1) / -i128::from(stride),
        };
        if count > i128::from(MANY) {
            return Err(invalid(
                format!("{0} names {count} {0}s one by one", self.what),
                "give a slice without a stride, which is one range whatever its length",
            ));
        }
        let all = (0..count.max(0) as i64).map(|i| start + i * stride);
        Ok(merged(all.map(|step| (step, step)).collect()))
    }

    fn read_text(self, text: &str) -> PyResult<Vec<(i64, i64)>> {
        let number = |word: &str| word.trim().parse::<i64>().map_err(|_| self.wrong(&format!("{text:?}")));
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
                    stride if stride > 0 => {
                        all.extend(self.strided(first, last.saturating_add(1), stride)?)
                    }
                    stride => all.extend(self.strided(first, last.saturating_sub(1), stride)?),
                }
                at += if by { 5 } else { 3 };
            } else {
                all.push((first, first));
                at += 1;
            }
        }
        Ok(merged(all))
    }

    fn of_test(self, test: &Test) -> PyResult<Expr> {
        let is = |first: i64, last: i64| self.among(vec![(first, last)]);
        let several =
            |tests: &[Test]| tests.iter().map(|test| self.of_test(test)).collect::<PyResult<Vec<_>>>();
        match test {
            Test::Exists => is(i64::MIN, i64::MAX),
            Test::Above(x) => is(self.floor(x)?.saturating_add(1), i64::MAX),
            Test::AtLeast(x) => is(self.ceil(x)?, i64::MAX),
            Test::Below(x) => is(i64::MIN, self.ceil(x)?.saturating_sub(1)),
            Test::AtMost(x) => is(i64::MIN, self.floor(x)?),
            Test::Between(a, b) => is(self.ceil(a)?, self.floor(b)?),
            // For a fraction the ceiling exceeds the floor: the range is empty and matches no step.
            Test::Equal(x) => is(self.ceil(x)?, self.floor(x)?),
            Test::IsIn(xs) => {
                let all =
                    xs.iter().map(|x| Ok((self.ceil(x)?, self.floor(x)?))).collect::<PyResult<Vec<_>>>()?;
                self.among(merged(all.into_iter().filter(|(a, b)| a <= b).collect()))
            }
            Test::All(tests) => Ok(Expr::All(several(tests)?)),
            Test::Any(tests) => Ok(Expr::Any(several(tests)?)),
            Test::Not(test) => Ok(Expr::Not(Box::new(self.of_test(test)?))),
            Test::Contains(_) | Test::Glob(_) | Test::Typed(_) => Err(self.wrong("a test of texts")),
        }
    }

    fn floor(self, value: &Value) -> PyResult<i64> {
        self.whole(value, f64::floor)
    }

    fn ceil(self, value: &Value) -> PyResult<i64> {
        self.whole(value, f64::ceil)
    }

    fn whole(self, value: &Value, round: fn(f64) -> f64) -> PyResult<i64> {
        match value {
            Value::Int(n) => Ok(*n),
            Value::UInt(n) => Ok(i64::try_from(*n).unwrap_or(i64::MAX)),
            Value::Float(x) if !x.is_nan() => Ok(round(*x) as i64),
            other => Err(self.wrong(&format!("a test with {other}"))),
        }
    }
}

/// Merges neighbours into ranges.
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
