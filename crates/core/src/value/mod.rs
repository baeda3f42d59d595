//! A value of metadata: of an attribute, of a run's parameter, or of a variable's own attribute.
//!
//! Numbers compare exactly across int, uint and float; a bool is not a number; NaN equals nothing, and only
//! [`Test::Exists`] finds it. Ranges include both ends. Nested lists and maps can only be tested for equality and
//! existence.
//!
//! ```
//! use fieldstone_core::value::{Test, Value};
//! assert!(Test::Above(Value::Int(9000)).matches(&Value::Float(9000.5)));
//! assert!(Test::Contains(Value::Int(7)).matches(&Value::IntRange(5, 9)));
//! assert_eq!(Value::Int(3), Value::Float(3.0));
//! assert_eq!(Value::IntRange(5, 9).to_string(), "5..9");
//! ```
//!
//! Three relations, each with one purpose:
//! * `==`: equality in queries; numbers by their exact value, maps in any order;
//! * [`Value::compare`]: less and greater in one family; values of different families are not comparable;
//! * [`Value::order`]: a total order for sorting.

use std::fmt;
use std::str::FromStr;

use crate::nearest::did_you_mean;
use crate::{Code, Error, Result};

mod fit;
mod infer;
mod json;
mod moment;
mod order;
mod size;
mod test;
mod text;

pub use crate::glob::Glob;
pub use fit::{DEPTH, too_deep};
pub use moment::{moment_text, parse_moment};
pub use size::{Measure, Size};
pub use test::Test;

/// A typed value.
#[derive(Debug, Clone)]
pub enum Value {
    /// No value; only inside lists and maps.
    Null,
    /// True or false.
    Bool(bool),
    /// An unsigned integer, possibly beyond `i64::MAX`.
    Int(i64),
    /// A float, including NaN and infinities.
    UInt(u64),
    /// A float, with NaN and infinities.
    Float(f64),
    /// UTF-8 text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A moment, nanoseconds since 1970-01-01 UTC.
    DateTime(i64),
    /// Integers from the first to the second, both included.
    IntRange(i64, i64),
    /// Numbers from the first to the second, both included.
    FloatRange(f64, f64),
    /// A small array of numbers, bools or texts, with elements of one type.
    Array(Vec<Value>),
    /// A nested list.
    List(Vec<Value>),
    /// A nested map, in its original order; keys are unique.
    Map(Vec<(String, Value)>),
}

/// The type of a tag's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ValueType {
    /// [`Value::Bool`]
    Bool = 1,
    /// [`Value::Int`]
    Int = 2,
    /// [`Value::UInt`]
    UInt = 3,
    /// [`Value::Float`]
    Float = 4,
    /// [`Value::Text`]
    Text = 5,
    /// [`Value::Bytes`]
    Bytes = 6,
    /// [`Value::DateTime`]
    DateTime = 7,
    /// [`Value::IntRange`]
    IntRange = 8,
    /// [`Value::FloatRange`]
    FloatRange = 9,
    /// [`Value::Array`]
    Array = 10,
    /// Any value: [`Value::List`], [`Value::Map`] and all others.
    Json = 11,
}

impl ValueType {
    /// Every type, ordered by number.
    pub const ALL: [ValueType; 11] = [
        ValueType::Bool,
        ValueType::Int,
        ValueType::UInt,
        ValueType::Float,
        ValueType::Text,
        ValueType::Bytes,
        ValueType::DateTime,
        ValueType::IntRange,
        ValueType::FloatRange,
        ValueType::Array,
        ValueType::Json,
    ];

    /// The type's name, the same everywhere.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::Bool => "bool",
            ValueType::Int => "int",
            ValueType::UInt => "uint",
            ValueType::Float => "float",
            ValueType::Text => "text",
            ValueType::Bytes => "bytes",
            ValueType::DateTime => "datetime",
            ValueType::IntRange => "int_range",
            ValueType::FloatRange => "float_range",
            ValueType::Array => "array",
            ValueType::Json => "json",
        }
    }

    /// The type with this name.
    pub fn parse(name: &str) -> Result<ValueType> {
        ValueType::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = ValueType::ALL.map(ValueType::name);
            let hint = did_you_mean(name, names).unwrap_or_else(|| format!("types are {}", names.join(", ")));
            Code::ValueType.error(format!("'{name}' is not a type of values")).with_hint(hint)
        })
    }

    /// The type with this stored number.
    pub fn from_u8(number: u8) -> Option<ValueType> {
        ValueType::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! from {
    ($($from:ty => $to:ident),+) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Value {
                Value::$to(value.into())
            }
        }
    )+};
}

from! {
    bool => Bool, i32 => Int, i64 => Int, u32 => Int, u64 => UInt, f32 => Float, f64 => Float, &str => Text,
    String => Text
}

impl FromStr for ValueType {
    type Err = Error;
    fn from_str(name: &str) -> Result<ValueType> {
        ValueType::parse(name)
    }
}

impl Value {
    /// The value's type; lists, maps and null are [`ValueType::Json`].
    pub fn kind(&self) -> ValueType {
        match self {
            Value::Bool(_) => ValueType::Bool,
            Value::Int(_) => ValueType::Int,
            Value::UInt(_) => ValueType::UInt,
            Value::Float(_) => ValueType::Float,
            Value::Text(_) => ValueType::Text,
            Value::Bytes(_) => ValueType::Bytes,
            Value::DateTime(_) => ValueType::DateTime,
            Value::IntRange(..) => ValueType::IntRange,
            Value::FloatRange(..) => ValueType::FloatRange,
            Value::Array(_) => ValueType::Array,
            Value::Null | Value::List(_) | Value::Map(_) => ValueType::Json,
        }
    }

    /// Whether the value is an int, uint or float.
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::UInt(_) | Value::Float(_))
    }
}
