//! Values as strict JSON, for database columns that the database can query.

use super::text::quoted_text;
use super::{Value, moment_text};

impl Value {
    /// Strict JSON. Values that JSON lacks are written so: NaN as null; an infinity as a number beyond all doubles;
    /// bytes as hexadecimal text; moments as text in RFC 3339; a range as its two ends.
    ///
    /// ```
    /// use fieldstone_core::value::Value;
    /// let values = Value::List(vec![Value::DateTime(0), Value::IntRange(1, 2), Value::Float(f64::NAN)]);
    /// assert_eq!(values.to_json(), "[\"1970-01-01T00:00:00Z\", [1, 2], null]");
    /// ```
    pub fn to_json(&self) -> String {
        match self {
            Value::Float(number) => float(*number),
            Value::Bytes(_) => format!("\"{self}\""),
            Value::DateTime(moment) => format!("\"{}\"", moment_text(*moment)),
            Value::IntRange(low, high) => format!("[{low}, {high}]"),
            Value::FloatRange(low, high) => format!("[{}, {}]", float(*low), float(*high)),
            Value::Array(items) | Value::List(items) => {
                format!("[{}]", items.iter().map(Value::to_json).collect::<Vec<_>>().join(", "))
            }
            Value::Map(pairs) => Value::named_json(pairs),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Text(_) => {
                self.to_string()
            }
        }
    }

    /// Named values as a JSON object.
    pub fn named_json(pairs: &[(String, Value)]) -> String {
        let pair = |(name, value): &(String, Value)| format!("{}: {}", quoted_text(name), value.to_json());
        format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(", "))
    }
}

fn float(number: f64) -> String {
    match number {
        number if number.is_nan() => "null".to_owned(),
        f64::INFINITY => "9e999".to_owned(),
        f64::NEG_INFINITY => "-9e999".to_owned(),
        number => format!("{number:?}"),
    }
}
