//! Tests of a value: what a query asks of it.

use super::Value;

/// A test of a value.
#[derive(Debug, Clone)]
pub enum Test {
    /// There is a value, whatever it is.
    Exists,
    /// Greater.
    Above(Value),
    /// Greater or equal.
    AtLeast(Value),
    /// Less.
    Below(Value),
    /// Less or equal.
    AtMost(Value),
    /// From the first to the second, both included; of a range: it overlaps them.
    Between(Value, Value),
    /// Equal.
    Equal(Value),
    /// Equal to one of them.
    IsIn(Vec<Value>),
    /// A range holds the number, a text the substring, an array the element.
    Contains(Value),
    /// A text matches the pattern: `*`, `?`, `[…]`.
    Glob(String),
    /// All hold.
    All(Vec<Test>),
    /// One holds at least.
    Any(Vec<Test>),
    /// It does not hold.
    Not(Box<Test>),
}
