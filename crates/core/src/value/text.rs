//! Values as text, for people and for JSON.

use std::fmt;

use super::{Value, moment_text};

impl fmt::Display for Value {
    /// JSON if JSON has the value; else `NaN`, `inf`, `0x0aff`, `5..9` and moments in RFC 3339. Floats keep a point
    /// or an exponent, to distinguish them from integers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::UInt(n) => write!(f, "{n}"),
            Value::Float(n) => write!(f, "{n:?}"),
            Value::Text(text) => quoted(f, text),
            Value::Bytes(bytes) => {
                f.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::DateTime(moment) => f.write_str(&moment_text(*moment)),
            Value::IntRange(a, b) => write!(f, "{a}..{b}"),
            Value::FloatRange(a, b) => write!(f, "{a:?}..{b:?}"),
            Value::Array(items) | Value::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("]")
            }
            Value::Map(pairs) => {
                f.write_str("{")?;
                for (i, (key, item)) in pairs.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    quoted(f, key)?;
                    write!(f, ": {item}")?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A JSON string.
pub(super) fn quoted_text(text: &str) -> String {
    Value::Text(text.to_owned()).to_string()
}

/// A JSON string.
fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c < ' ' || c == '\u{7f}' => write!(f, "\\u{:04x}", c as u32)?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}
