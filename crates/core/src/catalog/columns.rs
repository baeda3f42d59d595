//! Attributes in columns: one value for all rows, or one for each.

use std::sync::Arc;

use super::{RunName, TagDecl, VariableName};
use crate::value::{Value, ValueType};

/// A column of a batch: one value for all rows, or one for each.
#[derive(Debug, Clone, PartialEq)]
pub enum Column<T> {
    /// The same in all rows.
    One(T),
    /// One for each row.
    Each(Vec<T>),
}

/// Boxes of a batch, half-open: `start[row * rank + d]`, `count[row * rank + d]`; only one row if all rows
/// have the same box.
#[derive(Debug, Clone, PartialEq)]
pub struct Boxes {
    /// Dimensions.
    pub rank: usize,
    /// Starts, in elements.
    pub start: Vec<i64>,
    /// Extents, in elements.
    pub count: Vec<i64>,
    /// The cells inside the boxes, if those are not all of their elements.
    pub cells: Option<CellSets>,
}

/// Cells along one dimension: a set for each box, which is the smallest box around its cells in that
/// dimension. In other dimensions the cells cover the whole box.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSets {
    /// The dimension.
    pub dim: usize,
    /// Indices along the dimension, ascending and unique; a set for each box.
    pub sets: Vec<Arc<[i64]>>,
}

/// A keyword of a batch, with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeywordColumn {
    /// The keyword.
    pub keyword: Arc<str>,
    /// Its canonical values: one for each row, or a single one for all. Empty if a row's key does not have
    /// the keyword.
    pub values: Vec<Arc<str>>,
}

/// Values of a batch, by type. [`Values::Any`] holds types that have no column of their own.
#[derive(Debug, Clone)]
pub enum Values {
    /// Bools.
    Bool(Vec<bool>),
    /// Integers; datetimes too, as nanoseconds since 1970.
    Int(Vec<i64>),
    /// Unsigned integers.
    UInt(Vec<u64>),
    /// Floats.
    Float(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
    /// All others.
    Any(Vec<Value>),
}

/// Attributes of one run and one tag: a typed value on the run (no step, no variable), on steps, or on
/// variables, each with or without a box.
#[derive(Debug, Clone)]
pub struct AttributeBatch {
    /// The run.
    pub run: RunName,
    /// The tag, with the type of the values.
    pub tag: TagDecl,
    /// Number of rows.
    pub rows: usize,
    /// The steps; `None` for attributes of the run, or of a variable at no step.
    pub step: Option<Column<i64>>,
    /// The variables, which rows name by index; empty for attributes of the run or of steps.
    pub variables: Vec<VariableName>,
    /// Index into `variables` for each row; without meaning if that is empty.
    pub variable: Column<u32>,
    /// The boxes; `None` for the whole variable.
    pub boxes: Option<Boxes>,
    /// Further keywords of the rows' keys, in addition to those of run, step and variable; by name,
    /// ascending.
    pub keywords: Vec<KeywordColumn>,
    /// The values: one for each row, or a single one for all rows if `one_value` is set.
    pub values: Values,
    /// Whether all rows have the same value.
    pub one_value: bool,
    /// Whether this continues the call of the previous record: rows of one call never replace each other;
    /// rows of a later call replace earlier ones in the same cell.
    pub continues: bool,
    /// Whether each row is a call of its own.
    pub singles: bool,
}

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Bool(v) => v.len(),
            Values::Int(v) => v.len(),
            Values::UInt(v) => v.len(),
            Values::Float(v) => v.len(),
            Values::Text(v) => v.len(),
            Values::Any(v) => v.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`, of type `kind`; `Null` if there is none.
    pub fn get(&self, index: usize, kind: ValueType) -> Value {
        let value = match self {
            Values::Bool(v) => v.get(index).map(|b| Value::Bool(*b)),
            Values::Int(v) if kind == ValueType::DateTime => v.get(index).map(|n| Value::DateTime(*n)),
            Values::Int(v) => v.get(index).map(|n| Value::Int(*n)),
            Values::UInt(v) => v.get(index).map(|n| Value::UInt(*n)),
            Values::Float(v) => v.get(index).map(|n| Value::Float(*n)),
            Values::Text(v) => v.get(index).map(|text| Value::Text(text.clone())),
            Values::Any(v) => v.get(index).cloned(),
        };
        value.unwrap_or(Value::Null)
    }

    /// A column for values of type `kind`, each of that type already.
    pub fn of(kind: ValueType, values: Vec<Value>) -> Values {
        macro_rules! column {
            ($to:ident, $($from:ident)|+) => {
                Values::$to(values.into_iter().filter_map(|value| match value {
                    $(Value::$from(v))|+ => Some(v),
                    _ => None,
                }).collect())
            };
        }
        match kind {
            ValueType::Bool => column!(Bool, Bool),
            ValueType::Int | ValueType::DateTime => column!(Int, Int | DateTime),
            ValueType::UInt => column!(UInt, UInt),
            ValueType::Float => column!(Float, Float),
            ValueType::Text => column!(Text, Text),
            _ => Values::Any(values),
        }
    }
}

impl<T: Copy> Column<T> {
    /// The value of a row.
    pub fn get(&self, row: usize) -> Option<T> {
        match self {
            Column::One(value) => Some(*value),
            Column::Each(values) => values.get(row).copied(),
        }
    }
}

impl Boxes {
    /// Whether one box holds for all of `rows`.
    pub fn is_one(&self) -> bool {
        self.start.len() == self.rank
    }

    /// Start and count of a row.
    pub fn get(&self, row: usize) -> Option<(&[i64], &[i64])> {
        let at = if self.is_one() { 0 } else { row.checked_mul(self.rank)? };
        Some((self.start.get(at..at + self.rank)?, self.count.get(at..at + self.rank)?))
    }

    /// The dimension and the indices of a row's cells; `None` if its box contains all of its elements.
    pub fn cells(&self, row: usize) -> Option<(usize, &Arc<[i64]>)> {
        let cells = self.cells.as_ref()?;
        Some((cells.dim, cells.sets.get(if self.is_one() { 0 } else { row })?))
    }
}

impl KeywordColumn {
    /// The value of a row; `None` if it does not have the keyword.
    pub fn get(&self, row: usize) -> Option<&Arc<str>> {
        let value = match &self.values[..] {
            [one] => one,
            each => each.get(row)?,
        };
        Some(value).filter(|value| !value.is_empty())
    }
}

impl AttributeBatch {
    /// Step of a row.
    pub fn step_of(&self, row: usize) -> Option<i64> {
        self.step.as_ref()?.get(row)
    }

    /// Index of a row's variable in `variables`.
    pub fn variable_index(&self, row: usize) -> Option<usize> {
        let index = self.variable.get(row)? as usize;
        (index < self.variables.len()).then_some(index)
    }

    /// Variable of a row.
    pub fn variable_of(&self, row: usize) -> Option<&VariableName> {
        self.variables.get(self.variable_index(row)?)
    }

    /// Start and count of a row's box.
    pub fn box_of(&self, row: usize) -> Option<(&[i64], &[i64])> {
        self.boxes.as_ref()?.get(row)
    }

    /// Value of a row, of the tag's type.
    pub fn value_of(&self, row: usize) -> Value {
        self.values.get(if self.one_value { 0 } else { row }, self.tag.kind)
    }

    /// Keywords and values of a row.
    pub fn keywords_of(&self, row: usize) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.keywords.iter().filter_map(move |column| Some((&column.keyword, column.get(row)?)))
    }
}
