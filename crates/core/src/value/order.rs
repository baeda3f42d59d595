//! Equality and order of values.
//!
//! Numbers are compared by their exact value, never through a rounded float: `2^53 + 1` as an int is greater than
//! `2^53` as a float.

use std::cmp::Ordering;

use super::Value;

/// A number or an end of a range.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    /// Any integer.
    Whole(i128),
    /// Any float.
    Real(f64),
}

impl Number {
    /// Exact order; `None` if one is NaN.
    pub(super) fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => Some(a.cmp(&b)),
            (Number::Real(a), Number::Real(b)) => a.partial_cmp(&b),
            (Number::Whole(a), Number::Real(b)) => whole_and_real(a, b),
            (Number::Real(a), Number::Whole(b)) => whole_and_real(b, a).map(Ordering::reverse),
        }
    }

    pub(super) fn is_nan(self) -> bool {
        matches!(self, Number::Real(real) if real.is_nan())
    }
}

/// Compares an integer of at most 65 bits with a float.
fn whole_and_real(whole: i128, real: f64) -> Option<Ordering> {
    if real.is_nan() {
        return None;
    }
    // Beyond 2^100 a float is beyond every integer here; below, its whole part is exact in an i128.
    let limit = (1u128 << 100) as f64;
    if real >= limit {
        return Some(Ordering::Less);
    }
    if real <= -limit {
        return Some(Ordering::Greater);
    }
    let floor = real.floor();
    Some(whole.cmp(&(floor as i128)).then(if real > floor { Ordering::Less } else { Ordering::Equal }))
}

impl Value {
    pub(super) fn number(&self) -> Option<Number> {
        Some(match self {
            Value::Int(n) => Number::Whole(i128::from(*n)),
            Value::UInt(n) => Number::Whole(i128::from(*n)),
            Value::Float(n) => Number::Real(*n),
            _ => return None,
        })
    }

    /// Lower and upper end of a range.
    pub(super) fn ends(&self) -> Option<(Number, Number)> {
        Some(match self {
            Value::IntRange(a, b) => (Number::Whole(i128::from(*a)), Number::Whole(i128::from(*b))),
            Value::FloatRange(a, b) => (Number::Real(*a), Number::Real(*b)),
            _ => return None,
        })
    }

    /// Less, equal or greater, for two numbers, moments, texts, byte strings or bools; `None` for everything else and
    /// for NaN. Texts compare by their bytes.
    pub fn compare(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            _ => self.number()?.compare(other.number()?),
        }
    }

    /// A total order for sorting: numbers, with ranges by their lower end, then NaN, moments, texts, and the rest
    /// (bools, bytes, arrays, lists, maps, null). Numbers of the same value are equal whatever their type, and all
    /// NaN are equal.
    pub fn order(&self, other: &Value) -> Ordering {
        let class = self.class().cmp(&other.class());
        if class != Ordering::Equal {
            return class;
        }
        if let (Some((a, a_end)), Some((b, b_end))) = (self.extent(), other.extent()) {
            return numbers(a, b)
                .then_with(|| self.ends().is_some().cmp(&other.ends().is_some()))
                .then_with(|| numbers(a_end, b_end));
        }
        match (self, other) {
            (Value::Array(a) | Value::List(a), Value::Array(b) | Value::List(b)) => sequences(a, b),
            (Value::Map(a), Value::Map(b)) => maps(a, b),
            _ => self.compare(other).unwrap_or(Ordering::Equal),
        }
    }

    /// The order in which values are displayed, ascending or descending: NaN comes last in either, also among
    /// elements of arrays and lists; a range that begins with NaN counts as NaN.
    pub fn order_in(&self, other: &Value, falling: bool) -> Ordering {
        let turned = |order: Ordering| if falling { order.reverse() } else { order };
        self.is_nan().cmp(&other.is_nan()).then_with(|| match (self, other) {
            (Value::Array(a) | Value::List(a), Value::Array(b) | Value::List(b)) => {
                let mut differing = a.iter().zip(b).map(|(x, y)| x.order_in(y, falling));
                let first = differing.find(|order| order.is_ne());
                first.unwrap_or_else(|| turned(a.len().cmp(&b.len())))
            }
            _ => turned(self.order(other)),
        })
    }

    fn is_nan(&self) -> bool {
        matches!(self, Value::Float(number) | Value::FloatRange(number, _) if number.is_nan())
    }

    fn class(&self) -> u8 {
        match self {
            Value::Int(_) | Value::UInt(_) => 0,
            Value::Float(n) => u8::from(n.is_nan()),
            Value::IntRange(..) => 0,
            Value::FloatRange(a, _) => u8::from(a.is_nan()),
            Value::DateTime(_) => 2,
            Value::Text(_) => 3,
            Value::Bool(_) => 4,
            Value::Bytes(_) => 5,
            Value::Array(_) | Value::List(_) => 6,
            Value::Map(_) => 7,
            Value::Null => 8,
        }
    }

    /// Both ends of a range; for a number, the number twice.
    fn extent(&self) -> Option<(Number, Number)> {
        self.ends().or_else(|| self.number().map(|n| (n, n)))
    }
}

/// Numbers, then NaN.
fn numbers(a: Number, b: Number) -> Ordering {
    a.compare(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

fn sequences(a: &[Value], b: &[Value]) -> Ordering {
    let differing = a.iter().zip(b).map(|(x, y)| x.order(y)).find(|order| order.is_ne());
    differing.unwrap_or_else(|| a.len().cmp(&b.len()))
}

/// Compares the pairs in the order of the keys, so that equal maps sort as equal.
fn maps(a: &[(String, Value)], b: &[(String, Value)]) -> Ordering {
    let (a, b) = (by_key(a), by_key(b));
    let pairs = a.iter().zip(&b).map(|(x, y)| x.0.cmp(&y.0).then_with(|| x.1.order(&y.1)));
    pairs.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn by_key(map: &[(String, Value)]) -> Vec<&(String, Value)> {
    let mut pairs: Vec<&(String, Value)> = map.iter().collect();
    pairs.sort_by(|x, y| x.0.cmp(&y.0));
    pairs
}

impl PartialEq for Value {
    /// NaN equals nothing, not even itself, also inside arrays. A list and an array are equal if their elements are,
    /// and ranges are equal if both ends are.
    fn eq(&self, other: &Value) -> bool {
        if let (Some(a), Some(b)) = (self.ends(), other.ends()) {
            return a.0.compare(b.0) == Some(Ordering::Equal) && a.1.compare(b.1) == Some(Ordering::Equal);
        }
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Array(a) | Value::List(a), Value::Array(b) | Value::List(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a.len() == b.len() && by_key(a) == by_key(b),
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }
}
