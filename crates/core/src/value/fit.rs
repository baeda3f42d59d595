//! The values that each type accepts, and their conversion.

use super::{Value, ValueType};
use crate::{Code, Error, Result};

/// Limit on the nesting of lists and maps.
pub const DEPTH: usize = 64;

impl Value {
    /// The value as one of type `kind`: itself, or widened without loss (an int in a float or uint tag, a list of
    /// numbers in an array tag); `None` if the type does not accept it.
    pub fn fits(&self, kind: ValueType) -> Option<Value> {
        if kind == ValueType::Json || (self.kind() == kind && kind != ValueType::Array) {
            return Some(self.clone());
        }
        match (self, kind) {
            (Value::Int(n), ValueType::UInt) => u64::try_from(*n).ok().map(Value::UInt),
            (Value::UInt(n), ValueType::Int) => i64::try_from(*n).ok().map(Value::Int),
            (Value::Int(n), ValueType::Float) => exact_i64(*n).map(Value::Float),
            (Value::UInt(n), ValueType::Float) => exact_u64(*n).map(Value::Float),
            (Value::IntRange(a, b), ValueType::FloatRange) => {
                Some(Value::FloatRange(exact_i64(*a)?, exact_i64(*b)?))
            }
            (Value::Array(items) | Value::List(items), ValueType::Array) => array(items).map(Value::Array),
            _ => None,
        }
    }

    /// As [`fits`](Value::fits), and a number stands for the range that holds it alone. `None` also where the
    /// value is not [sound](Value::check).
    pub fn stands_for(&self, kind: ValueType) -> Option<Value> {
        match self.fits(kind) {
            None if matches!(kind, ValueType::IntRange | ValueType::FloatRange) => match self {
                Value::Int(n) => Value::IntRange(*n, *n).fits(kind),
                Value::Float(n) if !n.is_nan() => Value::FloatRange(*n, *n).fits(kind),
                _ => None,
            },
            fitting => fitting.filter(|value| value.check().is_ok()),
        }
    }

    /// Whether it may be stored: ranges ascend and have no NaN, arrays are of one type, keys of maps are
    /// unique, and nothing is nested too deeply.
    pub fn check(&self) -> Result<()> {
        self.check_at(0)
    }

    fn check_at(&self, depth: usize) -> Result<()> {
        if depth > DEPTH {
            return Err(too_deep("a value"));
        }
        let sound = match self {
            Value::IntRange(a, b) => a <= b,
            Value::FloatRange(a, b) => a <= b,
            _ => true,
        };
        if !sound {
            return Err(Code::Value
                .error(format!("{self} is not a range"))
                .with_hint("a range goes from its smallest to its greatest number, both included"));
        }
        match self {
            // The reader treats the elements of an array as a level of their own.
            Value::Array(items) if !items.is_empty() && depth == DEPTH => Err(too_deep("a value")),
            Value::Array(items) => {
                let mixed = items.iter().find(|item| !scalar(item) || item.kind() != items[0].kind());
                mixed.map_or(Ok(()), |item| {
                    Err(Code::ValueType
                        .error(format!("an array of {} cannot hold {item}", items[0].kind()))
                        .with_hint("use the type json for mixed and nested lists"))
                })
            }
            Value::List(items) => items.iter().try_for_each(|item| item.check_at(depth + 1)),
            Value::Map(pairs) => {
                let mut keys: Vec<&str> = pairs.iter().map(|(key, _)| key.as_str()).collect();
                keys.sort_unstable();
                if let Some(twice) = keys.windows(2).find(|two| two[0] == two[1]) {
                    return Err(Code::Value
                        .error(format!("the key '{}' occurs twice", twice[0]))
                        .with_hint("give each key of a map once"));
                }
                pairs.iter().try_for_each(|(_, item)| item.check_at(depth + 1))
            }
            _ => Ok(()),
        }
    }
}

/// The error for a value nested beyond [`DEPTH`]; `what` names it.
pub fn too_deep(what: &str) -> Error {
    Code::Value
        .error(format!("{what} is nested more than {DEPTH} levels deep"))
        .with_hint("a list or map cannot contain itself; store deeper values as text or bytes")
}

/// Whether an array may contain the value.
fn scalar(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::DateTime(_)
    )
}

/// The float that equals this integer exactly, if there is one.
fn exact_i64(n: i64) -> Option<f64> {
    ((n as f64) as i128 == i128::from(n)).then_some(n as f64)
}

fn exact_u64(n: u64) -> Option<f64> {
    ((n as f64) as u128 == u128::from(n)).then_some(n as f64)
}

/// Elements of one type, or numbers that one numeric type holds exactly.
fn array(items: &[Value]) -> Option<Vec<Value>> {
    let Some(first) = items.first() else { return Some(Vec::new()) };
    if items.iter().all(|item| scalar(item) && item.kind() == first.kind()) {
        return Some(items.to_vec());
    }
    let all = |kind| items.iter().map(|item| item.fits(kind)).collect::<Option<Vec<Value>>>();
    if !items.iter().all(Value::is_number) {
        return None;
    }
    match items.iter().any(|item| matches!(item, Value::Float(_))) {
        true => all(ValueType::Float),
        false => all(ValueType::Int).or_else(|| all(ValueType::UInt)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_for_the_range_of_it_alone() {
        assert_eq!(Value::Int(3).stands_for(ValueType::FloatRange), Some(Value::FloatRange(3.0, 3.0)));
        assert_eq!(Value::Float(f64::NAN).stands_for(ValueType::FloatRange), None);
        assert_eq!(Value::Text("3".into()).stands_for(ValueType::IntRange), None);
        assert_eq!(Value::IntRange(4, 3).stands_for(ValueType::IntRange), None, "it is not a range");
    }
}
