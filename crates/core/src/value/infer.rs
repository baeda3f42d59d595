//! The common type of several values, and the conversion of a value to a type chosen for it: for values that arrive
//! without a type, from text and tables.
//!
//! ```
//! use fieldstone_core::value::{Value, ValueType};
//! let values = [Value::Int(1), Value::Float(0.5)];
//! assert_eq!(ValueType::narrowest(&values), ValueType::Float);
//! ```

use super::{Value, ValueType};

impl ValueType {
    /// The narrowest type that accepts all values: int, uint, float for numbers, ranges for numbers and ranges, json
    /// for arrays of different types; text for everything else, and for an empty list. It stops as soon as only text
    /// is left.
    pub fn narrowest<'a>(values: impl IntoIterator<Item = &'a Value>) -> ValueType {
        let mut kind = None;
        for value in values {
            let own = match value {
                Value::List(_) if value.fits(ValueType::Array).is_some() => ValueType::Array,
                value => value.kind(),
            };
            kind = Some(match kind {
                Some(kind) if kind != own => wider(kind, own),
                _ => own,
            });
            if kind == Some(ValueType::Text) {
                break;
            }
        }
        kind.unwrap_or(ValueType::Text)
    }
}

fn wider(a: ValueType, b: ValueType) -> ValueType {
    use ValueType::{Array, Float, FloatRange, Int, IntRange, Json, Text, UInt};
    match (a, b) {
        (Int | UInt, Int | UInt) => UInt,
        (Int | UInt | Float, Int | UInt | Float) => Float,
        (Int | IntRange, Int | IntRange) => IntRange,
        (Int | Float | IntRange | FloatRange, Int | Float | IntRange | FloatRange) => FloatRange,
        (Array | Json, Array | Json) => Json,
        _ => Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_type_takes_every_value() {
        let ints = [Value::Int(1), Value::UInt(u64::MAX)];
        assert_eq!(ValueType::narrowest(&ints), ValueType::UInt);
        assert_eq!(ValueType::narrowest(&[Value::Float(0.5), Value::IntRange(1, 2)]), ValueType::FloatRange);
        let list = |items: &[Value]| Value::List(items.to_vec());
        let mixed = [list(&[Value::Int(1)]), list(&[Value::Int(1), Value::Null])];
        assert_eq!(ValueType::narrowest(&mixed[..1]), ValueType::Array);
        assert_eq!(ValueType::narrowest(&mixed), ValueType::Json);
        assert_eq!(ValueType::narrowest(&[Value::Bool(true), Value::Int(1)]), ValueType::Text);
        assert_eq!(ValueType::narrowest(&[]), ValueType::Text);
    }
}
