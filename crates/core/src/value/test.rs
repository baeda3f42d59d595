//! Tests of a value, as queries use them.

use std::cmp::Ordering;

use super::order::Number;
use super::{Glob, Value};

/// A test of a value.
///
/// For a range, comparisons test whether some number in it passes, so that [`Test::Between`] tests for overlap.
/// [`Test::Not`] is true whenever its inner test is false, also for NaN and for values of another type.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// There is a value.
    Exists,
    /// Greater than.
    Above(Value),
    /// Greater or equal.
    AtLeast(Value),
    /// Less than.
    Below(Value),
    /// Less or equal.
    AtMost(Value),
    /// From the first to the second, both included; for a range: overlaps them.
    Between(Value, Value),
    /// Equal.
    Equal(Value),
    /// Equal to one of them.
    IsIn(Vec<Value>),
    /// A range contains the number or the whole range, a text the substring, bytes the byte string, an array the
    /// element.
    Contains(Value),
    /// A text matches the pattern: `*`, `?`, `[…]`; see [`Glob`].
    Glob(String),
    /// A text with `*`, `?` or `[` from a user who did not state whether it is a pattern. Reads treat it as a
    /// pattern; calls that change or remove data treat it as that text; see [`Test::exact`].
    Typed(String),
    /// All hold.
    All(Vec<Test>),
    /// At least one holds.
    Any(Vec<Test>),
    /// It does not hold.
    Not(Box<Test>),
}

impl Drop for Test {
    /// Drops without recursion, so that a test of any depth can be dropped.
    fn drop(&mut self) {
        let mut left = Vec::new();
        self.take_parts(&mut left);
        while let Some(mut part) = left.pop() {
            part.take_parts(&mut left);
        }
    }
}

impl Test {
    /// The same test with other values: `change` replaces each value in it.
    #[must_use]
    pub fn map(&self, change: &dyn Fn(&Value) -> Value) -> Test {
        let all = |tests: &[Test]| tests.iter().map(|test| test.map(change)).collect();
        match self {
            Test::All(tests) => Test::All(all(tests)),
            Test::Any(tests) => Test::Any(all(tests)),
            Test::Not(test) => Test::Not(Box::new(test.map(change))),
            Test::Equal(value) => Test::Equal(change(value)),
            Test::Above(value) => Test::Above(change(value)),
            Test::AtLeast(value) => Test::AtLeast(change(value)),
            Test::Below(value) => Test::Below(change(value)),
            Test::AtMost(value) => Test::AtMost(change(value)),
            Test::Between(from, to) => Test::Between(change(from), change(to)),
            Test::IsIn(values) => Test::IsIn(values.iter().map(change).collect()),
            Test::Contains(value) => Test::Contains(change(value)),
            Test::Glob(_) | Test::Typed(_) | Test::Exists => self.clone(),
        }
    }

    /// The same test for calls that change or remove data: a typed text is that text, not a pattern.
    #[must_use]
    pub fn exact(&self) -> Test {
        let all = |tests: &[Test]| tests.iter().map(Test::exact).collect();
        match self {
            Test::Typed(text) => Test::Equal(Value::Text(text.clone())),
            Test::All(tests) => Test::All(all(tests)),
            Test::Any(tests) => Test::Any(all(tests)),
            Test::Not(test) => Test::Not(Box::new(test.exact())),
            other => other.clone(),
        }
    }

    fn take_parts(&mut self, into: &mut Vec<Test>) {
        match self {
            Test::All(tests) | Test::Any(tests) => into.append(tests),
            Test::Not(test) => into.push(std::mem::replace(test, Test::Exists)),
            _ => {}
        }
    }

    /// Whether an absent value passes: true if the test demands absence, as `not exists` does. Any other test is
    /// neither true nor false for an absent value, so its negation does not hold either.
    pub fn matches_absent(&self) -> bool {
        self.of_absent() == Some(true)
    }

    fn of_absent(&self) -> Option<bool> {
        match self {
            Test::Exists => Some(false),
            Test::Not(test) => test.of_absent().map(|is| !is),
            Test::All(tests) => Test::join_absent(tests, false),
            Test::Any(tests) => Test::join_absent(tests, true),
            _ => None,
        }
    }

    /// A test that gives `decides` decides the result, and one without a result leaves it open.
    fn join_absent(tests: &[Test], decides: bool) -> Option<bool> {
        // A test that every value passes does not demand a value.
        let mut said = (!tests.is_empty()).then_some(!decides);
        for test in tests {
            match test.of_absent() {
                Some(is) if is == decides => return Some(decides),
                Some(_) => {}
                None => said = None,
            }
        }
        said
    }

    /// Whether a value, or the absence of one, passes.
    pub fn matches_maybe(&self, value: Option<&Value>) -> bool {
        value.map_or_else(|| self.matches_absent(), |value| self.matches(value))
    }

    /// Whether a value passes. The test must not exceed [`Size::MOST`](super::Size::MOST): calls refuse larger ones.
    pub fn matches(&self, value: &Value) -> bool {
        match self {
            Test::Exists => true,
            Test::Above(than) => greatest(value, than).is_some_and(Ordering::is_gt),
            Test::AtLeast(than) => greatest(value, than).is_some_and(Ordering::is_ge),
            Test::Below(than) => least(value, than).is_some_and(Ordering::is_lt),
            Test::AtMost(than) => least(value, than).is_some_and(Ordering::is_le),
            Test::Between(from, to) => {
                from.compare(to).is_some_and(Ordering::is_le)
                    && greatest(value, from).is_some_and(Ordering::is_ge)
                    && least(value, to).is_some_and(Ordering::is_le)
            }
            Test::Equal(other) => value == other,
            Test::IsIn(others) => others.iter().any(|other| value == other),
            Test::Contains(part) => contains(value, part),
            Test::Glob(pattern) | Test::Typed(pattern) => {
                matches!(value, Value::Text(text) if Glob::new(pattern).matches(text))
            }
            Test::All(tests) => tests.iter().all(|test| test.matches(value)),
            Test::Any(tests) => tests.iter().any(|test| test.matches(value)),
            Test::Not(test) => !test.matches(value),
        }
    }
}

/// Compares the greatest number in a value.
fn greatest(value: &Value, than: &Value) -> Option<Ordering> {
    match value.ends() {
        Some((from, to)) => sound(from, to)?.1.compare(than.number()?),
        None => value.compare(than),
    }
}

/// Compares the smallest number in a value.
fn least(value: &Value, than: &Value) -> Option<Ordering> {
    match value.ends() {
        Some((from, to)) => sound(from, to)?.0.compare(than.number()?),
        None => value.compare(than),
    }
}

/// The range, if it contains a number.
fn sound(from: Number, to: Number) -> Option<(Number, Number)> {
    from.compare(to)?.is_le().then_some((from, to))
}

fn contains(value: &Value, part: &Value) -> bool {
    if let Some((from, to)) = value.ends() {
        let asked = part.ends().or_else(|| part.number().map(|n| (n, n)));
        return asked.and_then(|(a, b)| sound(a, b)).is_some_and(|(a, b)| {
            from.compare(a).is_some_and(Ordering::is_le) && to.compare(b).is_some_and(Ordering::is_ge)
        });
    }
    match (value, part) {
        (Value::Text(text), Value::Text(part)) => text.contains(part.as_str()),
        (Value::Bytes(bytes), Value::Bytes(part)) => {
            part.is_empty() || bytes.windows(part.len()).any(|window| window == part)
        }
        (Value::Array(elements), part) => elements.contains(part),
        _ => false,
    }
}
