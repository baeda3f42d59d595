//! Storage of values and boxes in rows of attr.
//!
//! | value | num | payload |
//! |---|---|---|
//! | bool | | 0 or 1 |
//! | int, uint, datetime | rounded to a float | all 64 bits, if the float is not exact |
//! | float | the float | 1 for -0.0; NaN has neither |
//! | text, bytes | | itself |
//! | range | lower end, rounded | upper end, and the lower if the float is not exact |
//! | array, list, map, nothing | | its bytes, private to the engine |
//!
//! A datetime's `num` is nanoseconds. Rounding keeps the order: `a <= b` gives `num(a) <= num(b)`. A box is its
//! rank, then start (zigzag) and count of each dimension, as varints; without a box there are no bytes. Further keywords set
//! the highest bit of the rank, which is 0 without a box: their number follows, and keyword and value of each as
//! length and text. If the box holds a set of cells, their dimension and number follow, the first cell, and the
//! distance of each further cell from the one before.

use std::sync::Arc;

use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Error, Result};

use super::rows::damaged;
use super::{AttrRow, Cell};

/// Set in the rank of a box if keywords follow.
const KEYWORDS: u8 = 0x80;

/// Further keywords of an attribute, by name, each with its value.
pub type RowKeywords = Arc<[(Arc<str>, Arc<str>)]>;

/// Depth of nesting that can be read back; values are refused long before.
const DEPTH: usize = 128;

/// A value as it is stored; its payload may borrow from the value or from a buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored<'a> {
    /// Type of the value.
    pub kind: ValueType,
    /// See the table.
    pub num: Option<f64>,
    /// See the table.
    pub payload: Cell<'a>,
}

fn exact(num: f64, value: i128) -> bool {
    // Beyond 2^64 the cast saturates, far from any value here.
    num as i128 == value
}

impl<'a> Stored<'a> {
    /// An integer or, with `DateTime`, nanoseconds.
    pub fn int(value: i64, kind: ValueType) -> Stored<'a> {
        let num = value as f64;
        let payload = if exact(num, value.into()) { Cell::Null } else { Cell::Int(value) };
        Stored { kind, num: Some(num), payload }
    }

    /// An unsigned integer.
    pub fn uint(value: u64) -> Stored<'a> {
        let num = value as f64;
        let payload = if exact(num, value.into()) { Cell::Null } else { Cell::Int(value as i64) };
        Stored { kind: ValueType::UInt, num: Some(num), payload }
    }

    /// A float.
    pub fn float(value: f64) -> Stored<'a> {
        let negative_zero = value == 0.0 && value.is_sign_negative();
        let payload = if negative_zero { Cell::Int(1) } else { Cell::Null };
        Stored { kind: ValueType::Float, num: Some(value).filter(|v| !v.is_nan()), payload }
    }

    /// A bool.
    pub fn bool(value: bool) -> Stored<'a> {
        Stored { kind: ValueType::Bool, num: None, payload: Cell::Int(value.into()) }
    }

    /// A text.
    pub fn text(value: &'a str) -> Stored<'a> {
        Stored { kind: ValueType::Text, num: None, payload: Cell::Text(value) }
    }

    /// Any value. `buffer` takes the bytes of those that need them.
    pub fn value(value: &'a Value, buffer: &'a mut Vec<u8>) -> Stored<'a> {
        buffer.clear();
        let kind = value.kind();
        match value {
            Value::Bool(v) => return Stored::bool(*v),
            Value::Int(v) | Value::DateTime(v) => return Stored::int(*v, kind),
            Value::UInt(v) => return Stored::uint(*v),
            Value::Float(v) => return Stored::float(*v),
            Value::Text(v) => return Stored::text(v),
            Value::Bytes(v) => return Stored { kind, num: None, payload: Cell::Bytes(v) },
            Value::IntRange(low, high) => {
                let num = *low as f64;
                if exact(num, (*low).into()) {
                    return Stored { kind, num: Some(num), payload: Cell::Int(*high) };
                }
                buffer.extend([low.to_le_bytes(), high.to_le_bytes()].concat());
                return Stored { kind, num: Some(num), payload: Cell::Bytes(buffer) };
            }
            Value::FloatRange(low, high) => {
                buffer.extend(high.to_bits().to_le_bytes());
                if low.is_nan() || (*low == 0.0 && low.is_sign_negative()) {
                    buffer.extend(low.to_bits().to_le_bytes());
                }
                let num = Some(*low).filter(|low| !low.is_nan());
                return Stored { kind, num, payload: Cell::Bytes(buffer) };
            }
            Value::Null | Value::Array(_) | Value::List(_) | Value::Map(_) => encode(value, buffer),
        }
        Stored { kind, num: None, payload: Cell::Bytes(buffer) }
    }
}

impl AttrRow<'_> {
    /// The value.
    pub fn value(&self) -> Result<Value> {
        let wrong = || damaged(format!("holds an impossible {} {:?}", self.kind.name(), self.payload));
        let num = self.num;
        let whole = |payload: Cell<'_>| match payload {
            Cell::Null => num.map(|num| num as i64).ok_or_else(wrong),
            other => other.int(),
        };
        Ok(match (self.kind, self.payload) {
            (ValueType::Bool, payload) => Value::Bool(payload.int()? != 0),
            (ValueType::Int, payload) => Value::Int(whole(payload)?),
            (ValueType::DateTime, payload) => Value::DateTime(whole(payload)?),
            (ValueType::UInt, Cell::Null) => Value::UInt(num.ok_or_else(wrong)? as u64),
            (ValueType::UInt, payload) => Value::UInt(payload.int()? as u64),
            (ValueType::Float, Cell::Null) => Value::Float(num.unwrap_or(f64::NAN)),
            (ValueType::Float, _) => Value::Float(-0.0),
            (ValueType::Text, payload) => Value::Text(payload.text()?.to_owned()),
            (ValueType::Bytes, payload) => Value::Bytes(payload.bytes()?.to_vec()),
            (ValueType::IntRange, Cell::Int(high)) => Value::IntRange(num.ok_or_else(wrong)? as i64, high),
            (ValueType::IntRange, payload) => {
                let bytes: &[u8; 16] = payload.bytes()?.try_into().map_err(|_| wrong())?;
                let (low, high) = bytes.split_at(8);
                let end = |part: &[u8]| part.try_into().map(i64::from_le_bytes).map_err(|_| wrong());
                Value::IntRange(end(low)?, end(high)?)
            }
            (ValueType::FloatRange, payload) => {
                let bytes = payload.bytes()?;
                let end = |part: Option<&[u8]>| {
                    let part = part.and_then(|part| part.try_into().ok()).ok_or_else(wrong)?;
                    Ok::<_, Error>(f64::from_bits(u64::from_le_bytes(part)))
                };
                let low = if bytes.len() == 16 { end(bytes.get(8..))? } else { num.ok_or_else(wrong)? };
                Value::FloatRange(low, end(bytes.get(..8))?)
            }
            (ValueType::Array | ValueType::Json, payload) => {
                let mut bytes = payload.bytes()?;
                let value = decode(&mut bytes, DEPTH).filter(|_| bytes.is_empty());
                value.ok_or_else(|| damaged("holds a list or map that ends early"))?
            }
        })
    }
}

fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    varint(text.len() as u64, out);
    out.extend(text);
}

/// A value as bytes that [`decode`] reads; for this engine alone.
fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(v) => out.extend([1, u8::from(*v)]),
        Value::Int(v) => {
            out.push(2);
            varint(zigzag(*v), out);
        }
        Value::UInt(v) => {
            out.push(3);
            varint(*v, out);
        }
        Value::Float(v) => {
            out.push(4);
            out.extend(v.to_bits().to_le_bytes());
        }
        Value::Text(v) => {
            out.push(5);
            encode_text(v.as_bytes(), out);
        }
        Value::Bytes(v) => {
            out.push(6);
            encode_text(v, out);
        }
        Value::DateTime(v) => {
            out.push(7);
            varint(zigzag(*v), out);
        }
        Value::IntRange(a, b) => {
            out.push(8);
            varint(zigzag(*a), out);
            varint(zigzag(*b), out);
        }
        Value::FloatRange(a, b) => {
            out.push(9);
            out.extend(a.to_bits().to_le_bytes());
            out.extend(b.to_bits().to_le_bytes());
        }
        Value::Array(items) | Value::List(items) => {
            out.push(if matches!(value, Value::Array(_)) { 10 } else { 11 });
            varint(items.len() as u64, out);
            items.iter().for_each(|item| encode(item, out));
        }
        Value::Map(items) => {
            out.push(12);
            varint(items.len() as u64, out);
            for (name, item) in items {
                encode_text(name.as_bytes(), out);
                encode(item, out);
            }
        }
    }
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(n)?;
    *bytes = tail;
    Some(head)
}

fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let n = usize::try_from(read_varint(bytes)?).ok()?;
    take(bytes, n)
}

fn take_float(bytes: &mut &[u8]) -> Option<f64> {
    Some(f64::from_bits(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?)))
}

fn decode(bytes: &mut &[u8], depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    Some(match take(bytes, 1)?.first()? {
        0 => Value::Null,
        1 => Value::Bool(take(bytes, 1)? != [0]),
        2 => Value::Int(unzigzag(read_varint(bytes)?)),
        3 => Value::UInt(read_varint(bytes)?),
        4 => Value::Float(take_float(bytes)?),
        5 => Value::Text(text(take_text(bytes)?)?),
        6 => Value::Bytes(take_text(bytes)?.to_vec()),
        7 => Value::DateTime(unzigzag(read_varint(bytes)?)),
        8 => Value::IntRange(unzigzag(read_varint(bytes)?), unzigzag(read_varint(bytes)?)),
        9 => Value::FloatRange(take_float(bytes)?, take_float(bytes)?),
        kind @ (10 | 11) => {
            let n = read_varint(bytes)?;
            let items = (0..n).map(|_| decode(bytes, depth)).collect::<Option<_>>()?;
            if *kind == 10 { Value::Array(items) } else { Value::List(items) }
        }
        12 => {
            let n = read_varint(bytes)?;
            let item = |_| Some((text(take_text(bytes)?)?, decode(bytes, depth)?));
            Value::Map((0..n).map(item).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// An unsigned integer, 7 bits a byte, low ones first.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = bytes.split_first()?;
        *bytes = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends a box's bytes.
pub fn encode_region(start: &[i64], count: &[i64], out: &mut Vec<u8>) {
    out.push(start.len() as u8);
    for (&start, &count) in start.iter().zip(count) {
        varint(zigzag(start), out);
        varint(count as u64, out);
    }
}

/// Appends the bytes of keywords to those of a box that begin at `from`, or to nothing.
pub fn encode_keywords<'a>(
    keywords: impl ExactSizeIterator<Item = (&'a Arc<str>, &'a Arc<str>)>,
    from: usize,
    out: &mut Vec<u8>,
) {
    if keywords.len() == 0 {
        return;
    }
    match out.get_mut(from) {
        Some(rank) => *rank |= KEYWORDS,
        None => out.push(KEYWORDS),
    }
    varint(keywords.len() as u64, out);
    for (keyword, value) in keywords {
        for text in [keyword, value] {
            varint(text.len() as u64, out);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// The keywords of a stored box, and the bytes that follow them.
fn read_keywords(region: &[u8]) -> Result<(Option<RowKeywords>, &[u8])> {
    let mut dims = region_dims(region);
    dims.by_ref().try_for_each(|dim| dim.map(drop))?;
    let mut bytes = dims.bytes;
    if region.first().is_none_or(|rank| rank & KEYWORDS == 0) {
        return Ok((None, bytes));
    }
    let mut read = || {
        let count = read_varint(&mut bytes)?;
        let mut text = || {
            let length = usize::try_from(read_varint(&mut bytes)?).ok()?;
            let (text, tail) = bytes.split_at_checked(length)?;
            bytes = tail;
            Some(Arc::from(std::str::from_utf8(text).ok()?))
        };
        (0..count).map(|_| Some((text()?, text()?))).collect::<Option<RowKeywords>>()
    };
    let found = read().ok_or_else(|| damaged("holds keywords that end early"))?;
    Ok((Some(found), bytes))
}

/// The further keywords stored with or without a box; `None` if there are none.
pub fn region_keywords(region: &[u8]) -> Result<Option<RowKeywords>> {
    Ok(read_keywords(region)?.0)
}

/// Appends the bytes of a set of cells after those of its box.
pub fn encode_cells(dim: usize, cells: &[i64], out: &mut Vec<u8>) {
    varint(dim as u64, out);
    varint(cells.len() as u64, out);
    let mut before = 0;
    for cell in cells {
        varint((cell - before) as u64, out);
        before = *cell;
    }
}

/// The dimension and the indices of a stored box's cells; `None` if the box holds all of its elements.
pub fn region_cells(region: &[u8]) -> Result<Option<(usize, Arc<[i64]>)>> {
    let mut bytes = read_keywords(region)?.1;
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut read = || {
        let dim = usize::try_from(read_varint(&mut bytes)?).ok()?;
        let count = read_varint(&mut bytes)?;
        let mut before = 0i64;
        let cells = (0..count).map(|_| {
            before = before.checked_add(i64::try_from(read_varint(&mut bytes)?).ok()?)?;
            Some(before)
        });
        Some((dim, cells.collect::<Option<_>>()?))
    };
    read().map(Some).ok_or_else(|| damaged("holds a set of cells that ends early"))
}

/// Rank of a stored box; 0 for none.
pub fn region_rank(region: &[u8]) -> usize {
    (region.first().copied().unwrap_or(0) & !KEYWORDS).into()
}

/// Start and count of a stored box, dimension by dimension, without allocating.
pub fn region_dims(region: &[u8]) -> RegionDims<'_> {
    RegionDims { bytes: region.get(1..).unwrap_or_default(), left: region_rank(region) }
}

/// See [`region_dims`].
#[derive(Debug, Clone)]
pub struct RegionDims<'a> {
    bytes: &'a [u8],
    left: usize,
}

impl Iterator for RegionDims<'_> {
    type Item = Result<(i64, i64)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut dim =
            || Some((unzigzag(read_varint(&mut self.bytes)?), read_varint(&mut self.bytes)? as i64));
        Some(dim().ok_or_else(|| damaged("holds a box that ends early")))
    }
}

/// Start and count of a stored box; `None` for none.
pub fn decode_region(region: &[u8]) -> Result<Option<(Vec<i64>, Vec<i64>)>> {
    match region_rank(region) {
        0 => Ok(None),
        _ => region_dims(region).collect::<Result<_>>().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<u64>().prop_map(Value::UInt),
            (-100..100_i64).prop_map(Value::Int),
            any::<f64>().prop_map(Value::Float),
            Just(Value::Float(-0.0)),
            Just(Value::Float(f64::NAN)),
            Just(Value::Float(f64::NEG_INFINITY)),
            ".{0,9}".prop_map(Value::Text),
            prop::collection::vec(any::<u8>(), 0..9).prop_map(Value::Bytes),
            any::<i64>().prop_map(Value::DateTime),
            any::<(i64, i64)>().prop_map(|(a, b)| Value::IntRange(a.min(b), a.max(b))),
            any::<(f64, f64)>().prop_map(|(a, b)| Value::FloatRange(a.min(b), a.max(b))),
            Just(Value::FloatRange(-0.0, 0.0)),
        ]
    }

    fn any_value() -> impl Strategy<Value = Value> {
        plain().prop_recursive(4, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec((".{0,3}", inner), 0..4).prop_map(Value::Map),
                Just(Value::Null),
            ]
        })
    }

    fn row<'a>(stored: Stored<'a>, region: &'a [u8]) -> AttrRow<'a> {
        let Stored { kind, num, payload } = stored;
        AttrRow {
            run: 1,
            tag: 1,
            step: 0,
            variable: 0,
            curve: -1,
            batch: 1,
            row: 0,
            kind,
            num,
            payload,
            region,
        }
    }

    proptest! {
        #[test]
        fn values_come_back(value in any_value()) {
            let mut buffer = Vec::new();
            let stored = Stored::value(&value, &mut buffer);
            prop_assert!(!matches!(stored.payload, Cell::Real(_)));
            prop_assert!(stored.num.is_none_or(|num| !num.is_nan()));
            let back = row(stored, &[]).value().unwrap();
            // Debug distinguishes NaN and the sign of zero; equality does not.
            prop_assert_eq!(format!("{back:?}"), format!("{value:?}"));
        }

        #[test]
        fn numbers_keep_their_order(a in any::<i64>(), b in any::<i64>()) {
            let num = |v| Stored::int(v, ValueType::Int).num.unwrap();
            prop_assert!(a > b || num(a) <= num(b));
        }

        #[test]
        fn boxes_come_back(dims in prop::collection::vec((any::<i64>(), 1..=i64::MAX), 1..9)) {
            let (start, count): (Vec<i64>, Vec<i64>) = dims.into_iter().unzip();
            let mut bytes = Vec::new();
            encode_region(&start, &count, &mut bytes);
            prop_assert_eq!(decode_region(&bytes).unwrap(), Some((start, count)));
            prop_assert!(decode_region(&bytes[..bytes.len() - 1]).is_err());
        }

        #[test]
        fn damaged_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = decode(&mut bytes.as_slice(), DEPTH);
            let _ = decode_region(&bytes);
        }
    }
}
