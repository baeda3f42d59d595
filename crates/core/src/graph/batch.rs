//! Many relations of one put, in columns of texts, each in one piece.

use crate::value::Value;
use crate::{Error, Result};

/// Texts or other bytes, one for each row: concatenated, or one for all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextColumn {
    /// The same in all rows.
    One(Vec<u8>),
    /// All bytes, and the end of each row.
    Each(Vec<u8>, Vec<usize>),
}

impl Default for TextColumn {
    fn default() -> TextColumn {
        TextColumn::Each(Vec::new(), Vec::new())
    }
}

impl TextColumn {
    /// Number of rows; `None` if one text holds for all.
    pub fn rows(&self) -> Option<usize> {
        match self {
            TextColumn::One(_) => None,
            TextColumn::Each(_, ends) => Some(ends.len()),
        }
    }

    /// Adds a row with the bytes that `write` appends. Does not change a column with one text for all rows.
    pub fn push_with<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> Option<T> {
        let TextColumn::Each(bytes, ends) = self else { return None };
        let outcome = write(bytes);
        ends.push(bytes.len());
        Some(outcome)
    }

    /// Adds a row.
    pub fn push(&mut self, text: &str) {
        self.push_with(|bytes| bytes.extend_from_slice(text.as_bytes()));
    }

    /// The bytes of a row.
    pub fn get(&self, row: usize) -> &[u8] {
        match self {
            TextColumn::One(bytes) => bytes,
            TextColumn::Each(bytes, ends) => {
                let begin = row.checked_sub(1).map_or(0, |before| ends[before]);
                &bytes[begin..ends[row]]
            }
        }
    }

    /// The text of a row, if it is valid UTF-8.
    pub fn text(&self, row: usize) -> Result<&str> {
        std::str::from_utf8(self.get(row)).map_err(|_| Error::invalid("a text is not UTF-8"))
    }
}

/// A reference to the value of a property.
#[derive(Debug, Clone, Copy)]
pub enum PropValue<'a> {
    /// Any value.
    Any(&'a Value),
    /// A text.
    Text(&'a str),
}

impl<'a> From<&'a Value> for PropValue<'a> {
    fn from(value: &'a Value) -> PropValue<'a> {
        PropValue::Any(value)
    }
}

/// Relations of one put. A column of texts has as many rows as there are versions, or one text for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationBatch {
    /// Types of the relations, in the sources' direction.
    pub kinds: TextColumn,
    /// Types of the sources.
    pub source_kinds: TextColumn,
    /// Their ids.
    pub source_ids: TextColumn,
    /// Types of the targets.
    pub target_kinds: TextColumn,
    /// Their ids.
    pub target_ids: TextColumn,
    /// Properties, as `fieldstone_format::graph::push_props` adds them.
    pub props: TextColumn,
    /// Stamps at which they began; `None`: now.
    pub times: Option<Vec<Option<u64>>>,
    /// Stamps at which they ended; `None`: unknown.
    pub until: Option<Vec<Option<u64>>>,
    /// Number of relations.
    pub rows: usize,
}

impl RelationBatch {
    /// Whether each column has the same number of rows.
    pub fn is_even(&self) -> bool {
        let texts = [&self.kinds, &self.source_kinds, &self.source_ids, &self.target_kinds, &self.target_ids];
        let even = |n: Option<usize>| n.is_none_or(|n| n == self.rows);
        texts.into_iter().chain([&self.props]).all(|column| even(column.rows()))
            && [&self.times, &self.until].into_iter().all(|column| even(column.as_ref().map(Vec::len)))
    }

    /// The stamps at which one of them began and ended, if given.
    pub fn moments(&self, row: usize) -> (Option<u64>, Option<u64>) {
        let of = |column: &Option<Vec<Option<u64>>>| column.as_ref().and_then(|stamps| stamps[row]);
        (of(&self.times), of(&self.until))
    }
}
