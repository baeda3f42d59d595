//! Values as JSON that keeps their types.
//!
//! ```text
//! null, true, "text"        themselves
//! 7, -7                     int
//! 7.0, 1e300                float: there is a point or an exponent
//! [v, …]                    list
//! {"uint": 7}               of bool, int, uint, float, text, bytes, datetime, int_range, float_range, array, map, null
//! ```
//!
//! Floats that JSON lacks are the texts `NaN`, `Infinity`, `-Infinity`; a NaN with other bits is `0x` and its
//! bits.

use fieldstone_core::value::Value;
use serde_json::{Value as Json, json};

/// A float in a place where the reader expects a float.
pub fn float(x: f64) -> Json {
    match x {
        x if x.is_finite() => json!(x),
        x if x == f64::INFINITY => "Infinity".into(),
        x if x == f64::NEG_INFINITY => "-Infinity".into(),
        x if x.to_bits() == f64::NAN.to_bits() => "NaN".into(),
        x => format!("{:#018x}", x.to_bits()).into(),
    }
}

/// The float in such a place.
pub fn float_of(json: &Json) -> Option<f64> {
    match json.as_str() {
        None => json.as_f64(),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        Some("NaN") => Some(f64::NAN),
        Some(bits) => u64::from_str_radix(bits.strip_prefix("0x")?, 16).ok().map(f64::from_bits),
    }
}

/// A value.
pub fn value_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(yes) => (*yes).into(),
        Value::Int(n) => (*n).into(),
        Value::Float(x) if x.is_finite() => json!(x),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(value_json).collect(),
        Value::UInt(n) => json!({ "uint": n }),
        Value::Float(x) => json!({ "float": float(*x) }),
        Value::Bytes(bytes) => json!({ "bytes": hex(bytes) }),
        Value::DateTime(moment) => json!({ "datetime": moment }),
        Value::IntRange(low, high) => json!({ "int_range": [low, high] }),
        Value::FloatRange(low, high) => json!({ "float_range": [float(*low), float(*high)] }),
        Value::Array(items) => json!({ "array": items.iter().map(value_json).collect::<Vec<_>>() }),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| json!([name, value_json(value)]));
            json!({ "map": pairs.collect::<Vec<_>>() })
        }
    }
}

/// A value in a place where null means that there is none.
pub fn given_json(value: &Value) -> Json {
    if matches!(value, Value::Null) { json!({ "null": true }) } else { value_json(value) }
}

/// The value of JSON; `None` if it has none.
pub fn value_of(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Null,
        Json::Bool(yes) => Value::Bool(*yes),
        Json::Number(n) if n.is_f64() => Value::Float(n.as_f64()?),
        Json::Number(n) => Value::Int(n.as_i64()?),
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(value_of).collect::<Option<_>>()?),
        Json::Object(facts) => {
            let mut facts = facts.iter();
            let (Some((kind, inside)), None) = (facts.next(), facts.next()) else { return None };
            of_kind(kind, inside)?
        }
    })
}

fn of_kind(kind: &str, inside: &Json) -> Option<Value> {
    let items = || inside.as_array().map(Vec::as_slice);
    Some(match kind {
        "null" => Value::Null,
        "uint" => Value::UInt(inside.as_u64()?),
        "float" => Value::Float(float_of(inside)?),
        "bytes" => Value::Bytes(unhex(inside.as_str()?)?),
        "datetime" => Value::DateTime(inside.as_i64()?),
        "int_range" => match items()? {
            [low, high] => Value::IntRange(low.as_i64()?, high.as_i64()?),
            _ => return None,
        },
        "float_range" => match items()? {
            [low, high] => Value::FloatRange(float_of(low)?, float_of(high)?),
            _ => return None,
        },
        "array" => Value::Array(items()?.iter().map(value_of).collect::<Option<_>>()?),
        "map" => {
            let pair = |json: &Json| match json.as_array().map(Vec::as_slice) {
                Some([name, value]) => Some((name.as_str()?.to_owned(), value_of(value)?)),
                _ => None,
            };
            Value::Map(items()?.iter().map(pair).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| (16 * high + low) as u8).collect())
}
