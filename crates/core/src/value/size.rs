//! How large a test or a query is, and how large it may be.
//!
//! Whoever decides by one walks it by recursion, for every row; so what is nested too deeply, or names too much,
//! is refused before. A size is measured without recursion: of whatever was put together, also by mistake.

use super::{Test, Value};
use crate::{Code, Result};

/// The size of a test or of an expression over tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Terms, tests, names and values.
    pub parts: usize,
    /// Lists of parts, negations and nested values within one another.
    pub levels: usize,
}

impl Size {
    /// The largest that is taken, in either number.
    pub const MOST: Size = Size { parts: 1_000_000, levels: 100 };

    /// Of a part without parts of its own.
    pub const ONE: Size = Size { parts: 1, levels: 0 };

    /// Of both beside one another.
    #[must_use]
    pub fn beside(self, other: Size) -> Size {
        Size { parts: self.parts.saturating_add(other.parts), levels: self.levels.max(other.levels) }
    }

    /// The same, one level further in.
    #[must_use]
    pub fn within(self) -> Size {
        Size { levels: self.levels.saturating_add(1), ..self }
    }

    /// Refuses what is larger than [`Size::MOST`].
    ///
    /// # Errors
    /// Invalid, with the limit.
    pub fn check(self) -> Result<()> {
        let most = Size::MOST;
        let what = match (self.levels > most.levels, self.parts > most.parts) {
            (true, _) => format!("{} levels within one another", most.levels),
            (_, true) => format!("{} terms, tests and values", most.parts),
            _ => return Ok(()),
        };
        Err(Code::TooLarge.error(format!("more than {what}")).with_hint("ask for less in one query"))
    }
}

/// What is left to measure, each with the levels around it.
pub struct Measure<P> {
    left: Vec<(P, usize)>,
    size: Size,
}

impl<P> Measure<P> {
    /// Measures `whole`. `visit` is called with every part and gives those within it to [`Measure::inside`]; it
    /// ends early where the size is too large for [`Size::MOST`] already.
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

    /// These stand `levels` deep.
    pub fn inside(&mut self, parts: impl IntoIterator<Item = P>, levels: usize) {
        self.left.extend(parts.into_iter().map(|part| (part, levels)));
    }

    /// What was measured already stands `levels` deep.
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
    /// Its size, with its values.
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
