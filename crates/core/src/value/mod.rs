//! One value of metadata: what an attribute, a run's parameter or a variable's own attribute holds.
//!
//! Numbers compare exactly across int, uint and float; a bool is no number; NaN equals nothing and is
//! found only by [`Test::Exists`]. Ranges are closed at both ends. Nested lists and maps are tested for
//! equality and existence only.
//!
//! ```
//! use fieldstone_core::value::{Test, Value};
//! assert!(Test::Above(Value::Int(9000)).matches(&Value::Float(9000.5)));
//! assert!(Test::Contains(Value::Int(7)).matches(&Value::IntRange(5, 9)));
//! ```

mod test;

pub use test::Test;

/// A typed value.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nothing; only inside lists and maps.
    Null,
    /// True or false.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer, beyond `i64::MAX` too.
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
    /// A small array of numbers, bools or texts, all of one type.
    Array(Vec<Value>),
    /// A nested list.
    List(Vec<Value>),
    /// A nested map, in the order it was given; keys are unique.
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
