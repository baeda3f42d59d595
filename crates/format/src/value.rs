//! Values as bytes. The same value always gives the same bytes.
//!
//! ```text
//! value = 0                                  nothing
//!       | 1 u8                               bool, 0 or 1
//!       | 2 zigzag | 3 varint | 4 f64        int, uint, float
//!       | 5 text | 6 bytes                   length as varint, then the bytes
//!       | 7 zigzag                           datetime
//!       | 8 zigzag zigzag | 9 f64 f64        range of ints, of floats
//!       | 10 n: varint [type: u8 n x value without its first byte]    array
//!       | 11 n: varint n x value             list
//!       | 12 n: varint n x { text value }    map
//! ```

use fieldstone_core::Result;
use fieldstone_core::value::{DEPTH, Value, ValueType};

use crate::bytes::{Cursor, Put};
use crate::columns::{put_zigzag, read_zigzag};

const LIST: u8 = 11;
const MAP: u8 = 12;

/// Appends a value.
pub fn put_value(out: &mut Vec<u8>, value: &Value) {
    out.push(head(value));
    put_rest(out, value);
}

/// Appends a text, in the form of [`put_value`].
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(ValueType::Text as u8);
    out.put_bytes(text.as_bytes());
}

fn head(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::List(_) => LIST,
        Value::Map(_) => MAP,
        other => other.kind() as u8,
    }
}

fn put_rest(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(b) => out.push(u8::from(*b)),
        Value::Int(n) | Value::DateTime(n) => put_zigzag(out, *n),
        Value::UInt(n) => out.put_varint(*n),
        Value::Float(n) => out.put_u64(n.to_bits()),
        Value::Text(text) => out.put_bytes(text.as_bytes()),
        Value::Bytes(bytes) => out.put_bytes(bytes),
        Value::IntRange(a, b) => [*a, *b].into_iter().for_each(|end| put_zigzag(out, end)),
        Value::FloatRange(a, b) => [*a, *b].into_iter().for_each(|end| out.put_u64(end.to_bits())),
        Value::Array(items) => {
            out.put_varint(items.len() as u64);
            if let Some(first) = items.first() {
                out.push(head(first));
            }
            items.iter().for_each(|item| put_rest(out, item));
        }
        Value::List(items) => {
            out.put_varint(items.len() as u64);
            items.iter().for_each(|item| put_value(out, item));
        }
        Value::Map(pairs) => {
            out.put_varint(pairs.len() as u64);
            for (key, item) in pairs {
                out.put_bytes(key.as_bytes());
                put_value(out, item);
            }
        }
    }
}

/// Reads a value.
pub fn read_value(cursor: &mut Cursor<'_>) -> Result<Value> {
    let kind = cursor.u8()?;
    read_rest(cursor, kind, 0)
}

/// Skips a value, with the checks of [`read_value`].
pub(crate) fn skip_value(cursor: &mut Cursor<'_>) -> Result<()> {
    let mut ahead = cursor.clone();
    match ahead.u8()? {
        2..=3 | 7 => drop(ahead.varint()?),
        4 => drop(ahead.u64()?),
        5 => drop(ahead.text()?),
        6 => drop(ahead.bytes()?),
        _ => return read_value(cursor).map(drop),
    }
    *cursor = ahead;
    Ok(())
}

fn read_rest(cursor: &mut Cursor<'_>, kind: u8, depth: usize) -> Result<Value> {
    if depth > DEPTH {
        return Err(cursor.fail("a value is nested too deeply"));
    }
    Ok(match kind {
        0 => Value::Null,
        1 => match cursor.u8()? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            _ => return Err(cursor.fail("a bool is neither 0 nor 1")),
        },
        2 => Value::Int(read_zigzag(cursor)?),
        3 => Value::UInt(cursor.varint()?),
        4 => Value::Float(f64::from_bits(cursor.u64()?)),
        5 => Value::Text(cursor.text()?.to_owned()),
        6 => Value::Bytes(cursor.bytes()?.to_vec()),
        7 => Value::DateTime(read_zigzag(cursor)?),
        8 => match (read_zigzag(cursor)?, read_zigzag(cursor)?) {
            (first, last) if first <= last => Value::IntRange(first, last),
            _ => return Err(cursor.fail("a range ends before it begins")),
        },
        9 => match (f64::from_bits(cursor.u64()?), f64::from_bits(cursor.u64()?)) {
            (first, last) if first <= last => Value::FloatRange(first, last),
            _ => return Err(cursor.fail("a range ends before it begins")),
        },
        10 => {
            // Allocates item by item: a count alone does not justify an allocation.
            let n = cursor.count(1)?;
            let mut items = Vec::new();
            let kind = if n > 0 { cursor.u8()? } else { 2 };
            if !matches!(kind, 1..=5 | 7) {
                return Err(cursor.fail("an array has a type that arrays cannot hold"));
            }
            for _ in 0..n {
                items.push(read_rest(cursor, kind, depth + 1)?);
            }
            Value::Array(items)
        }
        LIST => {
            let mut items = Vec::new();
            for _ in 0..cursor.count(1)? {
                let kind = cursor.u8()?;
                items.push(read_rest(cursor, kind, depth + 1)?);
            }
            Value::List(items)
        }
        MAP => {
            let mut pairs = Vec::new();
            for _ in 0..cursor.count(2)? {
                let key = cursor.text()?.to_owned();
                let kind = cursor.u8()?;
                pairs.push((key, read_rest(cursor, kind, depth + 1)?));
            }
            let mut keys: Vec<&str> = pairs.iter().map(|(key, _): &(String, Value)| key.as_str()).collect();
            keys.sort_unstable();
            if keys.windows(2).any(|two| two[0] == two[1]) {
                return Err(cursor.fail("a map has a key twice"));
            }
            Value::Map(pairs)
        }
        _ => return Err(cursor.fail("a value has an unknown type")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_stored_is_what_can_be_read() {
        let innermost = [
            Value::Int(1),
            Value::List(Vec::new()),
            Value::Array(Vec::new()),
            Value::Array(vec![Value::Int(1)]),
            Value::Map(vec![("a".into(), Value::Null)]),
        ];
        for inside in innermost {
            for depth in [0, 1, DEPTH - 1, DEPTH, DEPTH + 1] {
                let value = (0..depth).fold(inside.clone(), |inner, _| Value::List(vec![inner]));
                let mut bytes = Vec::new();
                put_value(&mut bytes, &value);
                let read = read_value(&mut Cursor::new(&bytes));
                assert_eq!(value.check().is_ok(), read.is_ok(), "{inside} in {depth} lists");
                assert_eq!(read.ok().is_some_and(|read| read == value), value.check().is_ok());
            }
        }
    }
}
