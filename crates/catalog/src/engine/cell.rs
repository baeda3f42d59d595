//! Typed access to the cells of a row. Another type than the column's is damage: the engine is an index, and
//! a rebuild makes it again.

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};

use super::{Cell, rows};

fn damaged(expected: &str, found: &Cell<'_>) -> Error {
    rows::damaged(format!("holds {found:?} in place of {expected}"))
}

impl<'a> Cell<'a> {
    /// An integer.
    pub fn int(&self) -> Result<i64> {
        match self {
            Cell::Int(value) => Ok(*value),
            other => Err(damaged("an integer", other)),
        }
    }

    /// An integer, or nothing.
    pub fn int_or_null(&self) -> Result<Option<i64>> {
        match self {
            Cell::Null => Ok(None),
            other => other.int().map(Some),
        }
    }

    /// A float.
    pub fn real(&self) -> Result<f64> {
        match self {
            Cell::Real(value) => Ok(*value),
            other => Err(damaged("a float", other)),
        }
    }

    /// A float, or nothing.
    pub fn real_or_null(&self) -> Result<Option<f64>> {
        match self {
            Cell::Null => Ok(None),
            other => other.real().map(Some),
        }
    }

    /// Text.
    pub fn text(&self) -> Result<&'a str> {
        match self {
            Cell::Text(value) => Ok(value),
            other => Err(damaged("text", other)),
        }
    }

    /// Text, or nothing.
    pub fn text_or_null(&self) -> Result<Option<&'a str>> {
        match self {
            Cell::Null => Ok(None),
            other => other.text().map(Some),
        }
    }

    /// Bytes; NULL counts as no bytes.
    pub fn bytes(&self) -> Result<&'a [u8]> {
        match self {
            Cell::Bytes(value) => Ok(value),
            Cell::Null => Ok(&[]),
            other => Err(damaged("bytes", other)),
        }
    }

    /// The cell as an owned value.
    pub fn to_value(&self) -> Value {
        match *self {
            Cell::Null => Value::Null,
            Cell::Int(value) => Value::Int(value),
            Cell::Real(value) => Value::Float(value),
            Cell::Text(value) => Value::Text(value.to_owned()),
            Cell::Bytes(value) => Value::Bytes(value.to_vec()),
        }
    }

    /// A number or nothing, as a cell.
    pub fn maybe_real(value: Option<f64>) -> Cell<'a> {
        value.map_or(Cell::Null, Cell::Real)
    }

    /// Text or nothing, as a cell.
    pub fn maybe_text(value: Option<&'a str>) -> Cell<'a> {
        value.map_or(Cell::Null, Cell::Text)
    }
}
