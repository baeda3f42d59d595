//! Bounds of the keys to read, derived from a condition: steps, numbers, texts, boxes.
//!
//! Every bound is a superset: a row outside of it cannot match, a row inside it may. So probes made from
//! bounds lose nothing, and the condition itself decides the rows.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use fieldstone_core::value::{Glob, Test, Value, ValueType};

use super::Scope;
use super::cond::{Cond, Leaf};
use super::region::BoxTest;
use crate::engine::NO_STEP;

/// Maximum number of separate ranges; more are merged.
const RANGES: usize = 32;

/// Closed ranges, ascending and disjoint.
pub(super) type Steps = Vec<(i64, i64)>;

/// The range of all steps, [`NO_STEP`] among them.
pub(super) const ALL_STEPS: (i64, i64) = (NO_STEP, i64::MAX);

/// Steps at which a row can match.
pub(super) fn steps(cond: &Cond) -> Steps {
    match cond {
        Cond::Const(false) => Vec::new(),
        Cond::Leaf(Leaf::Step(ranges)) => {
            union(ranges.iter().map(|(from, to)| ((*from).max(NO_STEP + 1), *to)).collect())
        }
        Cond::Leaf(Leaf::Time(_) | Leaf::Scope(Scope::Step)) => vec![(NO_STEP + 1, i64::MAX)],
        Cond::Leaf(Leaf::Scope(Scope::Run)) => vec![(NO_STEP, NO_STEP)],
        Cond::All(list) => list.iter().map(steps).fold(vec![ALL_STEPS], |all, one| common(&all, &one)),
        Cond::Any(list) => union(list.iter().flat_map(steps).collect()),
        _ => vec![ALL_STEPS],
    }
}

/// Sorts and merges; keeps more than [`RANGES`] too, because they are exact.
fn union(mut ranges: Steps) -> Steps {
    ranges.retain(|(from, to)| from <= to);
    ranges.sort_unstable();
    let mut merged: Steps = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match merged.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// The intersection of two lists.
pub(super) fn common(a: &[(i64, i64)], b: &[(i64, i64)]) -> Steps {
    let (mut i, mut j, mut both) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (from, to) = (x.0.max(y.0), x.1.min(y.1));
        if from <= to {
            both.push((from, to));
        }
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    both
}

/// Whether a step is in one of the ranges.
pub(super) fn within(ranges: &[(i64, i64)], step: i64) -> bool {
    let at = ranges.partition_point(|(_, to)| *to < step);
    ranges.get(at).is_some_and(|(from, _)| *from <= step)
}

/// `cond` without the tests that the ranges of [`steps`] already decide.
pub(super) fn without_steps(cond: Cond) -> Cond {
    let is_step = |one: &Cond| matches!(one, Cond::Leaf(Leaf::Step(_)));
    match cond {
        one if is_step(&one) => Cond::Const(true),
        Cond::All(mut list) => {
            list.retain(|one| !is_step(one));
            match (list.len(), list.pop()) {
                (1, Some(only)) => only,
                (_, None) => Cond::Const(true),
                (_, Some(last)) => {
                    list.push(last);
                    Cond::All(list)
                }
            }
        }
        other => other,
    }
}

/// A closed range of texts; `None`: no upper end.
pub(super) type TextRange = (String, Option<String>);

/// Values with which a row can match.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    /// Any, including values that are neither numbers nor texts.
    Any,
    /// Only rows with a number in one of these.
    Numbers(Vec<(f64, f64)>),
    /// Only rows with a text in one of these.
    Texts(Vec<TextRange>),
}

/// Values with which a row of a tag of this type can match.
pub(super) fn values(cond: &Cond, kind: ValueType) -> Values {
    match cond {
        Cond::Leaf(Leaf::Value(test)) => of_test(test, kind),
        Cond::All(list) => list.iter().map(|one| values(one, kind)).fold(Values::Any, both),
        Cond::Any(list) => either(list.iter().map(|one| values(one, kind))),
        _ => Values::Any,
    }
}

fn both(a: Values, b: Values) -> Values {
    match (a, b) {
        (Values::Any, one) | (one, Values::Any) => one,
        (Values::Numbers(a), Values::Numbers(b)) => {
            let pairs = a.iter().flat_map(|x| b.iter().map(|y| (x.0.max(y.0), x.1.min(y.1))));
            numbers(pairs.collect())
        }
        (Values::Texts(a), Values::Texts(b)) => {
            let pairs = a.iter().flat_map(|x| b.iter().map(|y| narrower(x, y)));
            texts(pairs.collect())
        }
        // One type has one kind of bound.
        (one, _) => one,
    }
}

fn either(all: impl Iterator<Item = Values>) -> Values {
    let (mut number, mut text, mut numeric) = (Vec::new(), Vec::new(), false);
    for one in all {
        match one {
            Values::Any => return Values::Any,
            Values::Numbers(ranges) => {
                numeric = true;
                number.extend(ranges);
            }
            Values::Texts(ranges) => text.extend(ranges),
        }
    }
    if numeric { numbers(number) } else { texts(text) }
}

fn numbers(mut ranges: Vec<(f64, f64)>) -> Values {
    ranges.retain(|(from, to)| from <= to);
    ranges.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    let mut merged: Vec<(f64, f64)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    if merged.len() > RANGES
        && let (Some(first), Some(last)) = (merged.first().copied(), merged.last().copied())
    {
        merged = vec![(first.0, last.1)];
    }
    Values::Numbers(merged)
}

/// Whether the end `a` is before `b`, the start or end of another range.
fn ends_before(a: Option<&str>, b: &str) -> bool {
    a.is_some_and(|a| a < b)
}

fn narrower(a: &TextRange, b: &TextRange) -> TextRange {
    let to = match (&a.1, &b.1) {
        (Some(x), Some(y)) => Some(x.min(y).clone()),
        (one, None) | (None, one) => one.clone(),
    };
    (a.0.clone().max(b.0.clone()), to)
}

fn texts(mut ranges: Vec<TextRange>) -> Values {
    ranges.retain(|(from, to)| !ends_before(to.as_deref(), from));
    ranges.sort_by(|a, b| a.0.cmp(&b.0));
    let mut merged: Vec<TextRange> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match merged.last_mut() {
            Some(last) if !ends_before(last.1.as_deref(), &from) => {
                if let Some(end) = &last.1
                    && to.as_deref().is_none_or(|to| end.as_str() < to)
                {
                    last.1 = to;
                }
            }
            _ => merged.push((from, to)),
        }
    }
    if merged.len() > RANGES
        && let (Some(first), Some(last)) = (merged.first().cloned(), merged.last().cloned())
    {
        merged = vec![(first.0, last.1)];
    }
    Values::Texts(merged)
}

const LEAST: f64 = f64::NEG_INFINITY;
const GREATEST: f64 = f64::INFINITY;

fn of_test(test: &Test, kind: ValueType) -> Values {
    match test {
        Test::All(tests) => return tests.iter().map(|one| of_test(one, kind)).fold(Values::Any, both),
        Test::Any(tests) => return either(tests.iter().map(|one| of_test(one, kind))),
        Test::IsIn(others) => {
            return either(others.iter().map(|other| of_test(&Test::Equal(other.clone()), kind)));
        }
        _ => {}
    }
    match kind {
        ValueType::Int | ValueType::UInt | ValueType::Float | ValueType::DateTime => {
            let at = |value: &Value| number_of(value, kind);
            let range = match test {
                Test::Above(from) | Test::AtLeast(from) => at(from).map(|from| (from, GREATEST)),
                Test::Below(to) | Test::AtMost(to) => at(to).map(|to| (LEAST, to)),
                Test::Between(from, to) => at(from).and_then(|from| Some((from, at(to)?))),
                Test::Equal(value) => at(value).map(|value| (value, value)),
                Test::Contains(_) | Test::Glob(_) | Test::Typed(_) => None,
                _ => return Values::Any,
            };
            // NaN, and values that are not numbers, compare with no number.
            range.map_or_else(|| Values::Numbers(Vec::new()), |range| numbers(vec![range]))
        }
        ValueType::IntRange | ValueType::FloatRange => {
            // The key is the lower end, which is below everything that the range touches.
            let below = match test {
                Test::Below(to) | Test::AtMost(to) | Test::Between(_, to) => number_of(to, ValueType::Float),
                Test::Contains(value) | Test::Equal(value) => lower_end(value),
                _ => return Values::Any,
            };
            below.map_or(Values::Any, |to| numbers(vec![(LEAST, to)]))
        }
        ValueType::Text => {
            let range = match test {
                Test::Equal(Value::Text(text)) => (text.clone(), Some(text.clone())),
                Test::Above(Value::Text(from)) | Test::AtLeast(Value::Text(from)) => (from.clone(), None),
                Test::Below(Value::Text(to)) | Test::AtMost(Value::Text(to)) => {
                    (String::new(), Some(to.clone()))
                }
                Test::Between(Value::Text(from), Value::Text(to)) => (from.clone(), Some(to.clone())),
                Test::Glob(pattern) | Test::Typed(pattern) => {
                    let prefix = Glob::new(pattern).prefix();
                    if prefix.is_empty() {
                        return Values::Any;
                    }
                    let end = if Glob::is_pattern(pattern) { after(&prefix) } else { Some(prefix.clone()) };
                    (prefix, end)
                }
                Test::Above(_)
                | Test::AtLeast(_)
                | Test::Below(_)
                | Test::AtMost(_)
                | Test::Between(..)
                | Test::Equal(_) => return Values::Texts(Vec::new()),
                _ => return Values::Any,
            };
            texts(vec![range])
        }
        _ => Values::Any,
    }
}

/// The key of a number among values of a type; `None` if it compares with none of them.
fn number_of(value: &Value, kind: ValueType) -> Option<f64> {
    match (value, kind) {
        (Value::DateTime(moment), ValueType::DateTime) => Some(*moment as f64),
        (_, ValueType::DateTime) => None,
        (Value::Int(number), _) => Some(*number as f64),
        (Value::UInt(number), _) => Some(*number as f64),
        (Value::Float(number), _) if !number.is_nan() => Some(*number),
        _ => None,
    }
}

fn lower_end(value: &Value) -> Option<f64> {
    match value {
        Value::IntRange(from, _) => Some(*from as f64),
        Value::FloatRange(from, _) if !from.is_nan() => Some(*from),
        number => number_of(number, ValueType::Float),
    }
}

/// A text after all those that begin with `prefix`; `None` if there is none.
fn after(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match u32::from(last) {
            0xD7FF => Some('\u{E000}'), // surrogates are not characters
            code => char::from_u32(code + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// Regions of which a row must match one, if there are few.
pub(super) fn regions(cond: &Cond) -> Option<Vec<&BoxTest>> {
    const FEW: usize = 4;
    match cond {
        Cond::Const(false) => Some(Vec::new()),
        Cond::Leaf(Leaf::Boxed(test)) if !test.sides.is_empty() || !test.points.is_empty() => {
            Some(vec![test])
        }
        Cond::All(list) => list.iter().filter_map(regions).min_by_key(Vec::len),
        Cond::Any(list) => {
            let all: Option<Vec<_>> = list.iter().map(regions).collect();
            all.map(|lists| lists.concat()).filter(|all| all.len() <= FEW)
        }
        _ => None,
    }
}

/// Whether rows between these least and greatest numbers can match.
pub(super) fn can_hold(values: &Values, numbers: Option<(f64, f64)>) -> bool {
    match values {
        Values::Any => true,
        Values::Texts(ranges) => !ranges.is_empty(),
        Values::Numbers(ranges) => numbers.is_some_and(|(least, greatest)| {
            ranges.iter().any(|(from, to)| *from <= greatest && least <= *to)
        }),
    }
}

/// First and last step of the ranges.
pub(super) fn hull(steps: &Steps) -> RangeInclusive<i64> {
    let first = steps.first().map_or(ALL_STEPS.0, |range| range.0);
    let last = steps.last().map_or(ALL_STEPS.1, |range| range.1);
    first..=last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_in_common() {
        assert_eq!(
            common(&[(0, 5), (8, 20)], &[(3, 9), (12, 12), (19, 30)]),
            [(3, 5), (8, 9), (12, 12), (19, 20)]
        );
        assert_eq!(union(vec![(5, 6), (1, 2), (3, 4), (9, 8), (20, 30)]), [(1, 6), (20, 30)]);
        assert!(within(&[(1, 6), (20, 30)], 20) && !within(&[(1, 6), (20, 30)], 7));
    }

    #[test]
    fn the_text_after_a_prefix_ends_it() {
        assert_eq!(after("tur").as_deref(), Some("tus"));
        assert_eq!(after("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(after("\u{10FFFF}"), None);
        assert_eq!(after("\u{D7FF}").as_deref(), Some("\u{E000}"));
    }

    #[test]
    fn bounds_of_tests() {
        let number = |n: i64| Value::Int(n);
        let of = |test: Test, kind| of_test(&test, kind);
        let apart = Test::Any(vec![Test::Below(number(1)), Test::AtLeast(number(9))]);
        assert_eq!(of(apart.clone(), ValueType::Float), Values::Numbers(vec![(LEAST, 1.0), (9.0, GREATEST)]));
        assert_eq!(of(Test::Not(Box::new(apart)), ValueType::Float), Values::Any);
        let never = Test::All(vec![Test::Below(number(1)), Test::Above(number(9))]);
        assert_eq!(of(never, ValueType::Int), Values::Numbers(Vec::new()));
        assert_eq!(
            of(Test::Glob("ab*".into()), ValueType::Text),
            Values::Texts(vec![("ab".into(), Some("ac".into()))])
        );
        assert_eq!(of(Test::Above(number(1)), ValueType::IntRange), Values::Any);
        assert_eq!(
            of(Test::Between(number(1), number(3)), ValueType::IntRange),
            Values::Numbers(vec![(LEAST, 3.0)])
        );
    }
}
