//! Element types of arrays: every fixed-size kind of numpy, named by numpy's own type strings.
//!
//! A [`DType`] is a small `Copy` value. Its text ([`Display`](fmt::Display)) is the canonical numpy type string
//! (`np.dtype(...).str`), and files store that text: `<f8`, `>i2`, `|u1`, `|b1`, `<c16`, `|S12`, `<U3`, `<M8[ns]`,
//! `<m8[25s]`.
//!
//! Invariants:
//! * `size()` is at least 1 and at most `i32::MAX`, as in numpy;
//! * exactly the elements without a byte order (one byte, or bytes) have [`ByteOrder::None`];
//! * `DType::parse(&d.to_string())` gives `d` back.
//!
//! ```
//! use fieldstone_core::dtype::{DType, DTypeKind};
//! let d = DType::parse(">f4")?;
//! assert_eq!((d.kind(), d.size(), d.to_string().as_str()), (DTypeKind::Float, 4, ">f4"));
//! assert_eq!(DType::parse("datetime64[ns]")?.size(), 8);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use crate::{Code, Error, Result};
use std::fmt;
use std::str::FromStr;

/// The kind of an element, apart from its size and byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DTypeKind {
    /// One byte, 0 or 1.
    Bool,
    /// Signed integer of 1, 2, 4 or 8 bytes.
    Int,
    /// Unsigned integer of 1, 2, 4 or 8 bytes.
    UInt,
    /// IEEE float of 2, 4 or 8 bytes.
    Float,
    /// Two IEEE floats, 8 or 16 bytes together.
    Complex,
    /// Fixed-size bytes.
    Bytes,
    /// Fixed-size text, four bytes per code point.
    Unicode,
    /// A point in time: a 64-bit count of the unit since 1970; `i64::MIN` means "not a time".
    DateTime,
    /// A span of time: a 64-bit count of the unit; `i64::MIN` means "not a time".
    TimeDelta,
}

/// The order of the bytes in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ByteOrder {
    /// Least significant byte first (`<`).
    Little,
    /// Most significant byte first (`>`).
    Big,
    /// The element has no byte order (`|`).
    None,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: ByteOrder =
        if cfg!(target_endian = "little") { ByteOrder::Little } else { ByteOrder::Big };

    /// The character that numpy writes before the kind.
    pub fn sign(self) -> char {
        match self {
            ByteOrder::Little => '<',
            ByteOrder::Big => '>',
            ByteOrder::None => '|',
        }
    }
}

/// The unit of a datetime or timedelta: `multiple` times the unit at `UNITS[base]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct TimeUnit {
    multiple: u32,
    base: u8,
}

/// Numpy's units of time, coarsest first. `None` represents "generic" (no unit).
const UNITS: [&str; 13] = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"];

/// Size limit of an element, as in numpy.
const MAX_SIZE: u32 = i32::MAX as u32;

/// The type of an array's elements. See the module's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType {
    kind: DTypeKind,
    order: ByteOrder,
    size: u32,
    unit: Option<TimeUnit>,
}

impl DType {
    /// Booleans, one byte each.
    pub const BOOL: DType = DType::fixed(DTypeKind::Bool, 1);
    /// Bytes as numbers, `|u1`.
    pub const U1: DType = DType::fixed(DTypeKind::UInt, 1);
    /// 32-bit integers in this machine's byte order.
    pub const I4: DType = DType::fixed(DTypeKind::Int, 4);
    /// 64-bit integers in this machine's byte order.
    pub const I8: DType = DType::fixed(DTypeKind::Int, 8);
    /// 32-bit floats in this machine's byte order.
    pub const F4: DType = DType::fixed(DTypeKind::Float, 4);
    /// 64-bit floats in this machine's byte order.
    pub const F8: DType = DType::fixed(DTypeKind::Float, 8);

    const fn fixed(kind: DTypeKind, size: u32) -> DType {
        let order = if size == 1 { ByteOrder::None } else { ByteOrder::NATIVE };
        DType { kind, order, size, unit: None }
    }

    /// The type as numpy names it for people: `float64`, `int32`; else its type string.
    ///
    /// ```
    /// use fieldstone_core::dtype::DType;
    /// assert_eq!((DType::F8.name(), DType::BOOL.name()), ("float64".into(), "bool".into()));
    /// assert_eq!(DType::parse("<U4")?.name(), "<U4");
    /// # Ok::<(), fieldstone_core::Error>(())
    /// ```
    pub fn name(self) -> String {
        let name = match self.kind {
            DTypeKind::Bool => return "bool".to_owned(),
            DTypeKind::Int => "int",
            DTypeKind::UInt => "uint",
            DTypeKind::Float => "float",
            DTypeKind::Complex => "complex",
            _ => return self.to_string(),
        };
        format!("{name}{}", 8 * self.size)
    }

    /// Parses a numpy type string (`<f8`) or a short name (`f8`, `float64`, `datetime64[ns]`). Without a byte-order
    /// character, or with `=`, the byte order is this machine's. The error names each type that is refused because
    /// its bytes have no fixed meaning: long double, void, structured, object.
    pub fn parse(typestr: &str) -> Result<DType> {
        let text = typestr.trim();
        parse::dtype(text).map_err(|why| {
            let shown: String = text.chars().take(60).collect();
            Code::Dtype
                .error(format!("dtype {shown:?}: {why}"))
                .with_hint("write it as numpy does, such as f4, <f8, >i2, c16, S12, U3 or M8[ns]")
        })
    }

    /// Size of one element in bytes.
    pub fn size(self) -> usize {
        self.size as usize
    }

    /// The kind of the element.
    pub fn kind(self) -> DTypeKind {
        self.kind
    }

    /// The byte order; [`ByteOrder::None`] if the elements have no byte order.
    pub fn byte_order(self) -> ByteOrder {
        self.order
    }

    /// Whether this machine can compute with the bytes as they are.
    pub fn is_native(self) -> bool {
        self.order == ByteOrder::None || self.order == ByteOrder::NATIVE
    }

    /// The same type in another byte order; unchanged if it has no byte order, or `order` is [`ByteOrder::None`].
    pub fn with_order(self, order: ByteOrder) -> DType {
        match (self.order, order) {
            (ByteOrder::None, _) | (_, ByteOrder::None) => self,
            _ => DType { order, ..self },
        }
    }

    /// The same type in this machine's byte order.
    pub fn to_native(self) -> DType {
        self.with_order(ByteOrder::NATIVE)
    }

    /// Number of bytes that are reversed together when the byte order changes: 4 in `c8`, 4 in `U12`, 1 in `S12`.
    pub fn word(self) -> usize {
        match self.kind {
            DTypeKind::Complex => self.size() / 2,
            DTypeKind::Unicode => 4,
            DTypeKind::Bytes => 1,
            _ => self.size(),
        }
    }

    /// Reverses the byte order of every element of `data`, in place.
    pub fn swap_bytes(self, data: &mut [u8]) {
        fn reverse<const N: usize>(data: &mut [u8]) {
            data.as_chunks_mut::<N>().0.iter_mut().for_each(|word| word.reverse());
        }
        match self.word() {
            2 => reverse::<2>(data),
            4 => reverse::<4>(data),
            8 => reverse::<8>(data),
            _ => {}
        }
    }

    /// The element that means "no value here" if the caller does not name one: NaN for floats and complex numbers,
    /// "not a time" for times, zero bytes for every other kind. It has this type's byte order and
    /// [`size`](Self::size) bytes.
    pub fn default_fill(self) -> Vec<u8> {
        let mut word: Vec<u8> = match (self.kind, self.word()) {
            (DTypeKind::Float | DTypeKind::Complex, 2) => 0x7e00_u16.to_ne_bytes().into(),
            (DTypeKind::Float | DTypeKind::Complex, 4) => f32::NAN.to_ne_bytes().into(),
            (DTypeKind::Float | DTypeKind::Complex, _) => f64::NAN.to_ne_bytes().into(),
            (DTypeKind::DateTime | DTypeKind::TimeDelta, _) => i64::MIN.to_ne_bytes().into(),
            _ => return vec![0; self.size()],
        };
        if !self.is_native() {
            word.reverse();
        }
        word.repeat(self.size() / self.word())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<DType> {
        DType::parse(text)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (letter, number) = match self.kind {
            DTypeKind::Bool => ('b', self.size),
            DTypeKind::Int => ('i', self.size),
            DTypeKind::UInt => ('u', self.size),
            DTypeKind::Float => ('f', self.size),
            DTypeKind::Complex => ('c', self.size),
            DTypeKind::Bytes => ('S', self.size),
            DTypeKind::Unicode => ('U', self.size / 4),
            DTypeKind::DateTime => ('M', self.size),
            DTypeKind::TimeDelta => ('m', self.size),
        };
        write!(f, "{}{letter}{number}", self.order.sign())?;
        match self.unit {
            None => Ok(()),
            Some(TimeUnit { multiple: 1, base }) => write!(f, "[{}]", UNITS[base as usize]),
            Some(TimeUnit { multiple, base }) => write!(f, "[{multiple}{}]", UNITS[base as usize]),
        }
    }
}

/// The grammar: `sign? letter digits? ("[" digits? unit "]")?`, or a name.
mod parse {
    use super::{ByteOrder, DType, DTypeKind, MAX_SIZE, TimeUnit, UNITS};

    type Parsed<T> = std::result::Result<T, String>;

    pub(super) fn dtype(text: &str) -> Parsed<DType> {
        if let Some(refused) = refused(text) {
            return Err(refused.to_owned());
        }
        let (order, body) = match text.chars().next() {
            None => return Err("the text is empty".to_owned()),
            Some('<') => (Some(ByteOrder::Little), &text[1..]),
            Some('>') => (Some(ByteOrder::Big), &text[1..]),
            Some('|') => (Some(ByteOrder::None), &text[1..]),
            Some('=') => (Some(ByteOrder::NATIVE), &text[1..]),
            Some(_) => (None, text),
        };
        let code = if order.is_none() { long_name(body)? } else { body.to_owned() };
        let (kind, size, unit) = code_of(&code)?;
        let ordered = size > 1 && kind != DTypeKind::Bytes;
        let order = match (ordered, order) {
            (false, _) => ByteOrder::None,
            (true, None) => ByteOrder::NATIVE,
            (true, Some(ByteOrder::None)) => {
                return Err("elements of several bytes need a byte order, < or >".to_owned());
            }
            (true, Some(order)) => order,
        };
        Ok(DType { kind, order, size, unit })
    }

    /// The reason for refusing a type that numpy knows, or `None`.
    fn refused(text: &str) -> Option<&'static str> {
        let body = text.trim_start_matches(['<', '>', '|', '=']);
        let first = body.chars().next()?;
        let rest = &body[first.len_utf8()..];
        let number = rest.chars().all(|c| c.is_ascii_digit());
        match (first, rest) {
            ('f', "12" | "16") | ('g' | 'G', "") | ('c', "24" | "32") => Some(LONG_DOUBLE),
            ('V', _) if number || rest.starts_with('[') => Some(VOID),
            ('O', _) if number => Some(OBJECT),
            ('T', _) if number => Some(TEXT),
            ('[' | '{' | '(', _) => Some(VOID),
            _ => match body {
                "float96" | "float128" | "complex192" | "complex256" | "longdouble" => Some(LONG_DOUBLE),
                "clongdouble" => Some(LONG_DOUBLE),
                "void" => Some(VOID),
                "object" => Some(OBJECT),
                "StringDType()" => Some(TEXT),
                _ if body.contains(',') => Some(VOID),
                _ => None,
            },
        }
    }

    const LONG_DOUBLE: &str =
        "long double is refused, because its bytes mean different numbers on different machines";
    const VOID: &str = "void and structured types are refused; archive each member as its own field";
    const OBJECT: &str = "Python objects have no fixed bytes and are refused";
    const TEXT: &str = "text of variable length is refused; use U<n> or S<n>";

    /// The code of a spelled-out name; returns any other text unchanged.
    fn long_name(name: &str) -> Parsed<String> {
        let (word, tail) = name.split_at(name.find('[').unwrap_or(name.len()));
        let code = match word {
            "bool" | "bool_" | "?" => "b1",
            "int8" => "i1",
            "int16" => "i2",
            "int32" => "i4",
            "int64" | "int" => "i8",
            "uint8" => "u1",
            "uint16" => "u2",
            "uint32" => "u4",
            "uint64" | "uint" => "u8",
            "float16" | "half" => "f2",
            "float32" | "single" => "f4",
            "float64" | "double" | "float" => "f8",
            "complex64" => "c8",
            "complex128" | "complex" => "c16",
            "datetime64" => "M8",
            "timedelta64" => "m8",
            "str" | "bytes" | "S" | "U" => return Err("it needs a length, as in S12".to_owned()),
            other => other,
        };
        Ok(format!("{code}{tail}"))
    }

    fn code_of(code: &str) -> Parsed<(DTypeKind, u32, Option<TimeUnit>)> {
        let unknown = || "there is no such type".to_owned();
        let (letter, rest) = code.split_at_checked(1).ok_or_else(unknown)?;
        let (digits, tail) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
        let kind = match letter {
            "b" => DTypeKind::Bool,
            "i" => DTypeKind::Int,
            "u" => DTypeKind::UInt,
            "f" => DTypeKind::Float,
            "c" => DTypeKind::Complex,
            "S" => DTypeKind::Bytes,
            "U" => DTypeKind::Unicode,
            "M" => DTypeKind::DateTime,
            "m" => DTypeKind::TimeDelta,
            _ => return Err(unknown()),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(unknown());
        }
        let number: u32 = digits.parse().map_err(|_| "the size is too large".to_owned())?;
        let size = match kind {
            DTypeKind::Unicode => number.checked_mul(4).filter(|&size| size <= MAX_SIZE),
            _ => Some(number).filter(|&size| size <= MAX_SIZE),
        };
        let size = size.ok_or("the size is too large")?;
        let fits = match kind {
            DTypeKind::Bool => size == 1,
            DTypeKind::Int | DTypeKind::UInt => matches!(size, 1 | 2 | 4 | 8),
            DTypeKind::Float => matches!(size, 2 | 4 | 8),
            DTypeKind::Complex => matches!(size, 8 | 16),
            DTypeKind::DateTime | DTypeKind::TimeDelta => size == 8,
            DTypeKind::Bytes | DTypeKind::Unicode if size == 0 => {
                return Err("elements cannot have size zero".to_owned());
            }
            DTypeKind::Bytes | DTypeKind::Unicode => true,
        };
        if !fits {
            return Err(format!("there is no {letter} of {number} bytes"));
        }
        let timed = matches!(kind, DTypeKind::DateTime | DTypeKind::TimeDelta);
        match (timed, tail) {
            (_, "") => Ok((kind, size, None)),
            (true, tail) => Ok((kind, size, time_unit(tail)?)),
            (false, _) => Err("only M8 and m8 have a unit".to_owned()),
        }
    }

    /// Parses `[ns]`, `[25s]` or `[generic]`. Refuses numpy's divisors (`[s/2]`).
    fn time_unit(tail: &str) -> Parsed<Option<TimeUnit>> {
        let inner = tail.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let inner = inner.ok_or("the unit lacks its closing bracket")?;
        if inner == "generic" {
            return Ok(None);
        }
        let (digits, name) = inner.split_at(inner.find(|c: char| !c.is_ascii_digit()).unwrap_or(inner.len()));
        let multiple: u32 = match digits {
            "" => 1,
            _ => digits.parse().map_err(|_| "the multiple of the unit is too large".to_owned())?,
        };
        if multiple == 0 || multiple > i32::MAX as u32 {
            return Err("the multiple of the unit must be 1 to 2147483647".to_owned());
        }
        match UNITS.iter().position(|unit| *unit == name) {
            Some(base) => Ok(Some(TimeUnit { multiple, base: base as u8 })),
            None => Err(format!("there is no unit of time {name:?}; numpy has {}", UNITS.join(" "))),
        }
    }
}
