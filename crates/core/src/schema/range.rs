//! Ranges of a request (`a/to/b/by/c`) over a typed keyword: exact, and never expanded.
//!
//! Every type with ranges maps its values to whole units (days, seconds, thousandths ...); a range is then `from + i
//! * by`, so that arithmetic gives its i-th value and the position of a value.

use super::types::{KeywordType, step_value};
use super::{calendar, number, step};
use crate::key::KeyValue;
use crate::{Code, Error, Result};

/// A range with more values than this is refused.
pub(crate) const MAX_VALUES: u64 = 100_000_000;
/// Limit on the length of a list that is not one range, because memory holds such a list.
pub(crate) const MAX_LISTED: u64 = 1_000_000;

/// The values of one range.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValueRun {
    kind: KeywordType,
    scale: u32,
    from: i128,
    by: i128,
    count: u64,
}

impl ValueRun {
    /// The range `from/to/to/by/by` of a keyword; it includes `to` if steps of `by` reach it.
    pub(crate) fn new(
        kind: KeywordType,
        keyword: &str,
        from: &str,
        to: &str,
        by: Option<&str>,
    ) -> Result<ValueRun> {
        if !has_ranges(kind) {
            return Err(Code::RequestSyntax
                .error(format!(
                    "{keyword}={from}/to/{to} is a range, but {keyword} has type {}, which has no ranges",
                    kind.name()
                ))
                .with_hint(format!("list the values: {keyword}=a/b/c")));
        }
        let ends = [kind.canonical(keyword, from)?, kind.canonical(keyword, to)?];
        let by_scale = by.and_then(number::decimal).map_or(0, |(_, text)| number::scale(&text));
        let scale = match kind {
            KeywordType::Double | KeywordType::Mixed => {
                ends.iter().map(|e| number::scale(&e.text())).fold(by_scale, u32::max)
            }
            _ => 0,
        };
        let unit = |value: &KeyValue| {
            units(kind, scale, value).ok_or_else(|| {
                Code::RequestSyntax
                    .error(format!("{keyword}={value} cannot be the end of a range"))
                    .with_hint("list the values instead")
            })
        };
        let (first, last) = (unit(&ends[0])?, unit(&ends[1])?);
        let stride = match by {
            None => default_stride(kind, scale),
            Some(text) => stride(kind, scale, text),
        };
        let by = stride.ok_or_else(|| {
            Code::RequestSyntax.error(format!(
                "{keyword}: `by` {} is not an interval of type {}",
                by.unwrap_or(""),
                kind.name()
            ))
        })?;
        if by == 0 {
            return Err(Code::RequestSyntax
                .error(format!("{keyword}={from}/to/{to}: `by` is 0"))
                .with_hint("give an interval other than 0"));
        }
        // As in MARS, the interval of a descending range may have a minus or not.
        let by = if last < first && by > 0 { -by } else { by };
        if last > first && by < 0 {
            return Err(Code::RequestSyntax
                .error(format!("{keyword}={from}/to/{to} never ends: `by` leads away from {to}"))
                .with_hint("drop the minus of `by`"));
        }
        let count = last.checked_sub(first).and_then(|d| u64::try_from(d / by).ok()?.checked_add(1));
        match count {
            Some(count) if count <= MAX_VALUES => Ok(ValueRun { kind, scale, from: first, by, count }),
            _ => Err(too_many(keyword, MAX_VALUES)),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// The i-th value.
    pub(crate) fn get(&self, i: u64) -> Option<KeyValue> {
        if i >= self.count {
            return None;
        }
        value(self.kind, self.scale, self.from.checked_add(i128::from(i).checked_mul(self.by)?)?)
    }

    /// The position of a value in the range.
    pub(crate) fn position(&self, value: &KeyValue) -> Option<u64> {
        let distance = units(self.kind, self.scale, value)?.checked_sub(self.from)?;
        if distance % self.by != 0 {
            return None;
        }
        u64::try_from(distance / self.by).ok().filter(|i| *i < self.count)
    }

    /// All values, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = KeyValue> + '_ {
        (0..self.count).filter_map(|i| self.get(i))
    }
}

pub(crate) fn too_many(keyword: &str, limit: u64) -> Error {
    let error = Code::RequestTooBroad.error(format!("{keyword} lists more than {limit} values"));
    match limit {
        MAX_LISTED => error.with_hint("write them as one range a/to/b/by/c, or ask for less at a time"),
        _ => error.with_hint(format!("ask for less at a time, or for all values with {keyword}=*")),
    }
}

fn has_ranges(kind: KeywordType) -> bool {
    use KeywordType as T;
    matches!(
        kind,
        T::Integer
            | T::Double
            | T::Mixed
            | T::Date
            | T::Time
            | T::Step
            | T::Param
            | T::ParamId
            | T::Year
            | T::Month
            | T::ClimateMonthly
            | T::YearMonth
    )
}

/// A value in whole units of the type; `None` if it has none (a span, a name).
fn units(kind: KeywordType, scale: u32, value: &KeyValue) -> Option<i128> {
    match (kind, value) {
        (_, KeyValue::Int(i)) => Some(i128::from(*i)),
        (KeywordType::Double | KeywordType::Mixed, KeyValue::Real(_, text)) => number::to_units(text, scale),
        (KeywordType::Step, KeyValue::Span { text, .. }) => {
            step::span(text).filter(|(start, end)| start == end).map(|(start, _)| i128::from(start))
        }
        (KeywordType::Date, KeyValue::Text(text)) => Some(i128::from(calendar::date(text)?.number())),
        (KeywordType::Time, KeyValue::Text(text)) => Some(i128::from(calendar::time_of_day(text)?)),
        (KeywordType::YearMonth, KeyValue::Text(text)) => {
            let number = i128::from(calendar::digits(text)?);
            Some(number / 100 * 12 + number % 100 - 1)
        }
        _ => None,
    }
}

/// The inverse of `units`.
fn value(kind: KeywordType, scale: u32, units: i128) -> Option<KeyValue> {
    match kind {
        KeywordType::Double | KeywordType::Mixed => {
            let (x, text) = number::from_units(units, scale)?;
            Some(KeyValue::Real(x, text.into()))
        }
        KeywordType::Step => {
            let second = i64::try_from(units).ok()?;
            Some(step_value(second, second))
        }
        KeywordType::Date => {
            let day = calendar::Day::from_number(i64::try_from(units).ok()?)?;
            Some(KeyValue::Text(day.text().into()))
        }
        KeywordType::Time => Some(KeyValue::Text(calendar::time_text(u16::try_from(units).ok()?).into())),
        KeywordType::YearMonth => {
            Some(KeyValue::Text(format!("{:04}{:02}", units.div_euclid(12), units.rem_euclid(12) + 1).into()))
        }
        _ => i64::try_from(units).ok().map(KeyValue::Int),
    }
}

/// The default interval: MARS's own (12 hours for steps, 6 for times); else one day, month or whole number.
fn default_stride(kind: KeywordType, scale: u32) -> Option<i128> {
    match kind {
        KeywordType::Double | KeywordType::Mixed => 10i128.checked_pow(scale),
        KeywordType::Step => Some(12 * 3_600),
        KeywordType::Time => Some(6 * 60),
        _ => Some(1),
    }
}

fn stride(kind: KeywordType, scale: u32, text: &str) -> Option<i128> {
    let (negative, size) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let size = match kind {
        KeywordType::Double | KeywordType::Mixed => number::to_units(&number::decimal(size)?.1, scale)?,
        KeywordType::Step => i128::from(step::seconds(size)?),
        KeywordType::Time => match calendar::time_of_day(size) {
            Some(minutes) => i128::from(minutes),
            None => i128::from(step::minutes(size)?),
        },
        _ => i128::from(size.parse::<u64>().ok()?),
    };
    Some(if negative { -size } else { size })
}
