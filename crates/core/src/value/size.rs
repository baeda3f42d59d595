//! Size of a test or a query, and its limit.
//!
//! Evaluating a test recurses through it for every row, so a test that is too large or nested too deeply is refused
//! first. Measuring its size takes no recursion, so it works for any test, even one built by mistake.

use super::{Test, Value};
use crate::{Code, Result};

/// The size of a test or of an expression over tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Terms, tests, names and values.
    pub parts: usize,
    /// Depth of nesting: lists of parts, negations and nested values.
    pub levels: usize,
}

impl Size {
    /// The limits for both numbers.
    pub const MOST: Size = Size { parts: 1_000_000, levels: 100 };

    /// The size of a part without parts of its own.
    pub const ONE: Size = Size { parts: 1, levels: 0 };

    /// The size of both parts next to each other.
    #[must_use]
    pub fn beside(self, other: Size) -> Size {
        Size { parts: self.parts.saturating_add(other.parts), levels: self.levels.max(other.levels) }
    }

    /// The same size, one level further in.
    #[must_use]
    pub fn within(self) -> Size {
        Size { levels: self.levels.saturating_add(1), ..self }
    }

    /// Refuses a size above [`Size::MOST`].
    ///
    /// # Errors
    /// Invalid, with the limit.
    pub fn check(self) -> Result<()> {
        let most = Size::MOST;
        let what = match (self.levels > most.levels, self.parts > most.parts) {
            (true, _) => format!("{} levels of nesting", most.levels),
            (_, true) => format!("{} terms, tests and values", most.parts),
            _ => return Ok(()),
        };
        Err(Code::TooLarge
            .error(format!("there are more than {what}"))
            .with_hint("ask for less in one query"))
    }
}

/// The parts left to measure, each with its level.
pub struct Measure<P> {
    left: Vec<(P, usize)>,
    size: Size,
}

impl<P> Measure<P> {
    /// Measures `whole`. Calls `visit` with every part, which passes the parts inside it to [`Measure::inside`];
    /// stops early if the size already exceeds [`Size::MOST`].
    pub fn of(whole: P, mut visit: impl FnMut(P, usize, &mut Measure<P>)) -> Size {
        let mut measure = Measure { left: vec![(whole, 0)], size: Size::default() };
        while let Some((part, levels)) = measure.left.pop() {
            measure.size = measure.size.beside(Size { parts: 1, levels });
            if measure.size.check().is_err() {
                break;
            }
            visit(part, levels, &mut measure);
        }
        measure.size
    }

    /// Adds parts at depth `levels`.
    pub fn inside(&mut self, parts: impl IntoIterator<Item = P>, levels: usize) {
        self.left.extend(parts.into_iter().map(|part| (part, levels)));
    }

    /// Adds a size that was measured already, at depth `levels`.
    pub fn add(&mut self, size: Size, levels: usize) {
        let size = Size { parts: size.parts, levels: size.levels.saturating_add(levels) };
        self.size = self.size.beside(size);
    }
}

/// A part of a test.
enum TestPart<'a> {
    Test(&'a Test),
    Value(&'a Value),
}

impl Test {
    /// The size, including its values.
    pub fn size(&self) -> Size {
        Measure::of(TestPart::Test(self), |part, levels, measure| match part {
            TestPart::Test(Test::All(tests) | Test::Any(tests)) => {
                measure.inside(tests.iter().map(TestPart::Test), levels + 1);
            }
            TestPart::Test(Test::Not(test)) => measure.inside([TestPart::Test(test)], levels + 1),
            TestPart::Test(Test::IsIn(values)) => measure.inside(values.iter().map(TestPart::Value), levels),
            TestPart::Test(Test::Between(a, b)) => {
                measure.inside([TestPart::Value(a), TestPart::Value(b)], levels)
            }
            TestPart::Test(
                Test::Above(value)
                | Test::AtLeast(value)
                | Test::Below(value)
                | Test::AtMost(value)
                | Test::Equal(value)
                | Test::Contains(value),
            ) => measure.inside([TestPart::Value(value)], levels),
            TestPart::Test(Test::Exists | Test::Glob(_) | Test::Typed(_)) => {}
            TestPart::Value(Value::List(items) | Value::Array(items)) => {
                measure.inside(items.iter().map(TestPart::Value), levels + 1);
            }
            TestPart::Value(Value::Map(pairs)) => {
                measure.inside(pairs.iter().map(|(_, value)| TestPart::Value(value)), levels + 1);
            }
            TestPart::Value(_) => {}
        })
    }
}
