//! Results of users' statements, in PostgreSQL's text form, which every type has. Values that are not
//! numbers, truth values or bytes to us keep the text that PostgreSQL shows: moments, arrays, jsonb,
//! intervals and so on.

use fieldstone_core::value::{Value, ValueType};
use postgres::types::Type;

use super::cells::unescaped;

/// The type of a column's values, if the column type determines it.
pub(super) fn kind(of: &Type) -> Option<ValueType> {
    Some(match *of {
        // As in SQLite, whose truth values are 0 and 1.
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::BOOL => ValueType::Int,
        Type::FLOAT4 | Type::FLOAT8 => ValueType::Float,
        Type::BYTEA => ValueType::Bytes,
        Type::NUMERIC => return None,
        _ => ValueType::Text,
    })
}

/// A cell of a column.
pub(super) fn value(of: &Type, text: Option<&str>) -> Value {
    let Some(text) = text else { return Value::Null };
    let read = match kind(of) {
        Some(ValueType::Int) if *of == Type::BOOL => Some(Value::Int((text == "t").into())),
        Some(ValueType::Int) => text.parse().ok().map(Value::Int),
        Some(ValueType::Float) => text.parse().ok().map(Value::Float),
        Some(ValueType::Bytes) => hexadecimal(text).map(Value::Bytes),
        None => numeric(text),
        _ => None,
    };
    read.unwrap_or_else(|| Value::Text(unescaped(text).into_owned()))
}

/// A numeric is exact: a whole number is an integer if 64 bits hold it, else its digits as text; a fraction
/// is a float.
fn numeric(text: &str) -> Option<Value> {
    match text.parse::<i64>() {
        Ok(whole) => Some(Value::Int(whole)),
        Err(_) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => {
            text.parse().ok().map(Value::UInt)
        }
        Err(_) => text.parse().ok().map(Value::Float),
    }
}

/// Bytes as `bytea_output = hex` writes them.
fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_what_their_type_says() {
        for (kind, text, shown) in [
            (Type::INT8, "-7", "Int(-7)"),
            (Type::BOOL, "t", "Int(1)"),
            (Type::FLOAT8, "NaN", "Float(NaN)"),
            (Type::FLOAT8, "-Infinity", "Float(-inf)"),
            (Type::FLOAT4, "0.1", "Float(0.1)"),
            (Type::NUMERIC, "12", "Int(12)"),
            (Type::NUMERIC, "1.50", "Float(1.5)"),
            (Type::NUMERIC, "18446744073709551615", "UInt(18446744073709551615)"),
            (Type::NUMERIC, "123456789012345678901234567890", "Text(\"123456789012345678901234567890\")"),
            (Type::BYTEA, "\\x0aff", "Bytes([10, 255])"),
            (Type::TIMESTAMPTZ, "2000-01-01 00:00:00+00", "Text(\"2000-01-01 00:00:00+00\")"),
            (Type::INT4_ARRAY, "{1,2}", "Text(\"{1,2}\")"),
            (Type::TEXT, "a\u{1}0", "Text(\"a\\0\")"),
        ] {
            assert_eq!(format!("{:?}", value(&kind, Some(text))), shown);
        }
        assert!(matches!(value(&Type::INT8, None), Value::Null));
    }
}
