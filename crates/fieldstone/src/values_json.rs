//! Values of attributes and properties as JSON: the same form for the program's output and for exported lineages.

use fieldstone_core::value::{Value, moment_text};
use serde_json::{Map, Number, Value as Json};

/// A float; NaN and infinities, for which JSON has no number, as text.
pub fn float(number: f64) -> Json {
    Number::from_f64(number).map_or_else(|| Value::Float(number).to_string().into(), Json::Number)
}

/// A value: ranges as two numbers, bytes and moments as text.
pub fn value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(yes) => (*yes).into(),
        Value::Int(n) => (*n).into(),
        Value::UInt(n) => (*n).into(),
        Value::Float(x) => float(*x),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(_) => value.to_string().into(),
        Value::DateTime(moment) => moment_text(*moment).into(),
        Value::IntRange(low, high) => vec![*low, *high].into(),
        Value::FloatRange(low, high) => Json::Array(vec![float(*low), float(*high)]),
        Value::Array(items) | Value::List(items) => items.iter().map(self::value).collect(),
        Value::Map(pairs) => named(pairs),
    }
}

/// Values by name, in their order.
pub fn named(pairs: &[(String, Value)]) -> Json {
    Json::Object(pairs.iter().map(|(name, item)| (name.clone(), value(item))).collect::<Map<_, _>>())
}
