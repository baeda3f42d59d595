//! Encodes and decodes cells in PostgreSQL's binary form.
//!
//! PostgreSQL's text cannot hold NUL. Therefore characters 0 and 1 become U+0001 and a digit, which keeps the
//! order of texts. Nothing outside this module sees it.

use std::borrow::Cow;
use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::super::Cell;

type Boxed = Box<dyn StdError + Sync + Send>;

/// A cell as a parameter; the statement gives its type.
#[derive(Debug)]
pub(super) struct Parameter<'a>(pub(super) Cell<'a>);

impl ToSql for Parameter<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Boxed> {
        match (self.0, ty) {
            (Cell::Null, _) => return Ok(IsNull::Yes),
            (Cell::Int(v), &Type::INT8) => out.put_i64(v),
            (Cell::Int(v), &Type::INT4) => out.put_i32(v.try_into()?),
            (Cell::Int(v), &Type::INT2) => out.put_i16(v.try_into()?),
            (Cell::Int(v), &Type::BOOL) => out.put_u8(u8::from(v != 0)),
            // Both are numbers to SQLite too.
            (Cell::Int(v), &Type::FLOAT8) => out.put_f64(v as f64),
            (Cell::Real(v), &Type::FLOAT8) => out.put_f64(v),
            (Cell::Text(v), &Type::TEXT | &Type::VARCHAR | &Type::NAME | &Type::UNKNOWN) => {
                out.put_slice(escaped(v).as_bytes());
            }
            (Cell::Bytes(v), &Type::BYTEA) => out.put_slice(v),
            (Cell::Int(v), &Type::TEXT) => out.put_slice(v.to_string().as_bytes()),
            (Cell::Real(v), &Type::TEXT) => out.put_slice(v.to_string().as_bytes()),
            (cell, ty) => return Err(format!("{cell:?} given for a parameter of type {ty}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A cell of a result: borrowed from the row, except for texts that hold characters 0 or 1.
#[derive(Debug, Clone)]
pub(super) enum Taken<'a> {
    Plain(Cell<'a>),
    Text(String),
}

impl Taken<'_> {
    pub(super) fn cell(&self) -> Cell<'_> {
        match self {
            Taken::Plain(cell) => *cell,
            Taken::Text(text) => Cell::Text(text),
        }
    }
}

impl<'a> FromSql<'a> for Taken<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Taken<'a>, Boxed> {
        Ok(Taken::Plain(match *ty {
            Type::INT8 => Cell::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Cell::Int(i32::from_be_bytes(raw.try_into()?).into()),
            Type::INT2 => Cell::Int(i16::from_be_bytes(raw.try_into()?).into()),
            Type::OID => Cell::Int(u32::from_be_bytes(raw.try_into()?).into()),
            Type::BOOL => Cell::Int(raw.first().is_some_and(|b| *b != 0).into()),
            Type::FLOAT8 => Cell::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::FLOAT4 => Cell::Real(f32::from_be_bytes(raw.try_into()?).into()),
            Type::NUMERIC => numeric(raw)?,
            Type::BYTEA => Cell::Bytes(raw),
            _ => match unescaped(std::str::from_utf8(raw)?) {
                Cow::Borrowed(text) => Cell::Text(text),
                Cow::Owned(text) => return Ok(Taken::Text(text)),
            },
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Taken<'a>, Boxed> {
        Ok(Taken::Plain(Cell::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Sums of bigint are numeric: whole numbers that fit become integers, others floats.
fn numeric(raw: &[u8]) -> Result<Cell<'static>, Boxed> {
    let mut words = raw.chunks_exact(2).map(|w| u16::from_be_bytes([w[0], w[1]]));
    let mut word = || words.next().ok_or("numeric cut short");
    let (digits, weight, sign, _scale) = (word()?, word()? as i16, word()?, word()?);
    let (mut whole, mut float, mut exact) = (0i64, 0f64, true);
    for i in 0..i32::from(digits) {
        let digit = word()?;
        let power = i32::from(weight) - i;
        float += f64::from(digit) * 10_000f64.powi(power);
        let part = u32::try_from(power).ok().and_then(|p| 10_000i64.checked_pow(p));
        let part = part.and_then(|p| p.checked_mul(digit.into()));
        match part.and_then(|p| whole.checked_add(p)) {
            Some(sum) => whole = sum,
            None => exact = exact && digit == 0,
        }
    }
    match sign {
        0 if exact => Ok(Cell::Int(whole)),
        0x4000 if exact => Ok(Cell::Int(-whole)),
        0 => Ok(Cell::Real(float)),
        0x4000 => Ok(Cell::Real(-float)),
        _ => Ok(Cell::Null),
    }
}

/// A text in a form that PostgreSQL can hold; the order of texts stays.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| b > 1) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\u{1}0"),
            '\u{1}' => out.push_str("\u{1}1"),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The inverse of [`escaped`].
pub(super) fn unescaped(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|b| b > 1) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1}' => out.push(if chars.next() == Some('0') { '\0' } else { '\u{1}' }),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn texts_keep_their_order_and_come_back(a in "[\u{0}-\u{3}a]{0,6}", b in "[\u{0}-\u{3}a]{0,6}") {
            prop_assert!(!escaped(&a).contains('\0'));
            let (there, other) = (escaped(&a), escaped(&b));
            let back = unescaped(&there);
            prop_assert_eq!(back.as_ref(), a.as_str());
            prop_assert_eq!(there.as_ref().cmp(other.as_ref()), a.cmp(&b));
        }
    }

    #[test]
    fn sums_come_as_integers() {
        // 123456789012 = 1234 * 10^8 + 5678 * 10^4 + 9012, and a half.
        let raw = |words: &[u16]| words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<u8>>();
        assert_eq!(numeric(&raw(&[3, 2, 0, 0, 1234, 5678, 9012])).unwrap(), Cell::Int(123_456_789_012));
        assert_eq!(numeric(&raw(&[1, 0, 0x4000, 0, 7])).unwrap(), Cell::Int(-7));
        assert_eq!(numeric(&raw(&[1, -1i16 as u16, 0, 1, 5000])).unwrap(), Cell::Real(0.5));
        assert!(numeric(&raw(&[3, 2, 0, 0, 1234])).is_err());
    }
}
