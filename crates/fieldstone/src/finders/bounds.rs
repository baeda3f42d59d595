//! A test of numbers as bounds that each element type compares exactly.

use fieldstone_core::geometry::Scalar;
use fieldstone_core::value::{Test, Value};
use fieldstone_core::{Error, Result};

/// The numbers that pass a test: from the first to the second, both included, for floats and for integers. None passes
/// if the first is greater.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub floats: (f64, f64),
    pub wholes: (i128, i128),
    least: bool,
}

/// A number in a test.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

const EMPTY_FLOATS: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

impl Number {
    fn of(value: &Value) -> Result<Number> {
        match value {
            Value::Int(i) => Ok(Number::Whole((*i).into())),
            Value::UInt(u) => Ok(Number::Whole((*u).into())),
            Value::Float(f) if !f.is_nan() => Ok(Number::Float(*f)),
            _ => Err(Error::invalid(format!("a finder compares with {value}, which is not a number"))
                .with_hint("write a test such as above(9000)")),
        }
    }

    /// Least float that is not less.
    fn float_from(self) -> f64 {
        match self {
            Number::Float(f) => f,
            Number::Whole(i) => {
                let near = i as f64;
                if (near as i128) < i { near.next_up() } else { near }
            }
        }
    }

    /// Greatest float that is not greater.
    fn float_to(self) -> f64 {
        match self {
            Number::Float(f) => f,
            Number::Whole(i) => {
                let near = i as f64;
                if near as i128 > i { near.next_down() } else { near }
            }
        }
    }

    /// Least whole number that is not less; casts saturate far beyond 64 bits.
    fn whole_from(self) -> i128 {
        match self {
            Number::Whole(i) => i,
            Number::Float(f) => f.ceil() as i128,
        }
    }

    /// Greatest whole number that is not greater.
    fn whole_to(self) -> i128 {
        match self {
            Number::Whole(i) => i,
            Number::Float(f) => f.floor() as i128,
        }
    }

    /// The least float that is greater; `None` if there is none.
    fn float_above(self) -> Option<f64> {
        let from = self.float_from();
        match self {
            Number::Float(f) => (f < f64::INFINITY).then(|| f.next_up()),
            Number::Whole(i) => Some(if from as i128 == i { from.next_up() } else { from }),
        }
    }

    fn float_below(self) -> Option<f64> {
        let to = self.float_to();
        match self {
            Number::Float(f) => (f > f64::NEG_INFINITY).then(|| f.next_down()),
            Number::Whole(i) => Some(if to as i128 == i { to.next_down() } else { to }),
        }
    }
}

impl Bounds {
    /// Fails with Invalid for tests that do not compare with one number or a range.
    pub fn of(test: &Test) -> Result<Bounds> {
        let all = (f64::NEG_INFINITY, f64::INFINITY);
        let (least, most) = (i128::MIN, i128::MAX);
        let bounds = |floats, wholes| Bounds { floats, wholes, least: false };
        Ok(match test {
            Test::AtLeast(value) => {
                let n = Number::of(value)?;
                bounds((n.float_from(), all.1), (n.whole_from(), most))
            }
            Test::Above(value) => {
                let n = Number::of(value)?;
                let floats = n.float_above().map_or(EMPTY_FLOATS, |from| (from, all.1));
                bounds(floats, (n.whole_to().saturating_add(1), most))
            }
            Test::AtMost(value) => {
                let n = Number::of(value)?;
                Bounds { least: true, ..bounds((all.0, n.float_to()), (least, n.whole_to())) }
            }
            Test::Below(value) => {
                let n = Number::of(value)?;
                let floats = n.float_below().map_or(EMPTY_FLOATS, |to| (all.0, to));
                Bounds { least: true, ..bounds(floats, (least, n.whole_from().saturating_sub(1))) }
            }
            Test::Between(from, to) => {
                let (from, to) = (Number::of(from)?, Number::of(to)?);
                bounds((from.float_from(), to.float_to()), (from.whole_from(), to.whole_to()))
            }
            Test::Equal(value) => {
                let n = Number::of(value)?;
                bounds((n.float_from(), n.float_to()), (n.whole_from(), n.whole_to()))
            }
            _ => {
                return Err(Error::invalid("a finder's test must compare with one number or a range")
                    .with_hint("use above, at_least, below, at_most, between or equal"));
            }
        })
    }

    /// Whether the least value is the most extreme one of a region.
    pub fn wants_least(&self) -> bool {
        self.least
    }

    /// Whether any number from `least` to `most` may pass.
    pub fn may_hold(&self, least: Scalar, most: Scalar) -> bool {
        match (least, most) {
            (Scalar::Float(least), Scalar::Float(most)) => self.floats.0 <= most && self.floats.1 >= least,
            (least, most) => self.wholes.0 <= whole(most) && self.wholes.1 >= whole(least),
        }
    }
}

fn whole(scalar: Scalar) -> i128 {
    match scalar {
        Scalar::Int(i) => i.into(),
        Scalar::UInt(u) => u.into(),
        Scalar::Float(f) => f as i128,
    }
}
