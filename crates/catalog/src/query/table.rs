//! Hits in columns.

use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_format::catalog::AttributeId;

/// Texts of a column, each distinct one once.
#[derive(Debug, Clone, Default)]
pub struct Coded {
    /// Index into `words`, a row; `u32::MAX` for none.
    pub codes: Vec<u32>,
    /// The distinct texts.
    pub words: Vec<Arc<str>>,
}

/// Hits in columns, all of the same length.
#[derive(Debug, Clone, Default)]
pub struct HitTable {
    /// The project; empty for none.
    pub project: Coded,
    /// The run.
    pub run: Coded,
    /// The step.
    pub step: Vec<Option<i64>>,
    /// Time of the step.
    pub time: Vec<Option<f64>>,
    /// The variable.
    pub variable: Coded,
    /// Its version.
    pub variable_version: Vec<i64>,
    /// The tag.
    pub tag: Coded,
    /// Its version, as it is shown.
    pub tag_version: Vec<i64>,
    /// Its unit; empty for none.
    pub unit: Coded,
    /// The value.
    pub value: Vec<Value>,
    /// Row i's box is `start[offsets[i]..offsets[i + 1]]` and the same of `count`; empty for none. One
    /// more than there are rows.
    pub offsets: Vec<u64>,
    /// Starts, in elements.
    pub start: Vec<i64>,
    /// Extents, in elements.
    pub count: Vec<i64>,
    /// Which attribute it is.
    pub id: Vec<AttributeId>,
    /// Rows of attr that were read to find these.
    pub visited: u64,
}
