//! Many relations of one put: columns of texts, each in one piece, which become side records without
//! conversion.

use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};

use super::columns::ROWS_MAX;
use super::record::{RELATIONS, RelationParts, SPLIT_BYTES, put_relation_parts};
use super::{Props, RelationRow, Version, VertexName};
use crate::bytes::Put;
use crate::log::SideRecord;
use crate::side;
use crate::value::{put_text, put_value};

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

impl Props {
    /// Appends the bytes of properties to `out`, in the form of [`Props::of`]. Names must be unique and not
    /// empty: the caller checks that once for all rows.
    pub fn put<'a>(
        out: &mut Vec<u8>,
        pairs: impl ExactSizeIterator<Item = (&'a str, PropValue<'a>)>,
    ) -> Result<()> {
        if pairs.len() == 0 {
            return Ok(());
        }
        let begin = out.len();
        out.put_varint(pairs.len() as u64);
        for (name, value) in pairs {
            out.put_bytes(name.as_bytes());
            match value {
                PropValue::Text(text) => put_text(out, text),
                PropValue::Any(value) => {
                    value.check().map_err(|e| e.context(format!("the property '{name}'")))?;
                    put_value(out, value);
                }
            }
        }
        Props::check_length(out.len() - begin)
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
    /// Properties, as [`Props::put`] writes them.
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

    /// One of them as a single row.
    pub fn row(&self, row: usize, version: Version) -> Result<RelationRow> {
        let shared = |column: &TextColumn| column.text(row).map(Arc::<str>::from);
        Ok(RelationRow {
            kind: shared(&self.kinds)?,
            source: VertexName { kind: shared(&self.source_kinds)?, id: shared(&self.source_ids)? },
            target: VertexName { kind: shared(&self.target_kinds)?, id: shared(&self.target_ids)? },
            version,
            until: self.until.as_ref().and_then(|until| until[row]),
            props: Props::of_bytes(self.props.get(row)),
        })
    }

    /// Encodes all of them as side records, each with its version.
    pub fn encode(&self, versions: &[Version]) -> Vec<SideRecord> {
        let texts = [&self.kinds, &self.source_kinds, &self.source_ids, &self.target_kinds, &self.target_ids];
        let weight = |row: usize| {
            texts.iter().chain([&&self.props]).map(|column| column.get(row).len()).sum::<usize>()
        };
        let (mut records, mut begin, mut bytes) = (Vec::new(), 0, 0);
        for row in 0..versions.len() {
            let own = weight(row);
            if row > begin && (row - begin == ROWS_MAX || bytes + own > SPLIT_BYTES) {
                records.push(self.record(begin..row, versions));
                (begin, bytes) = (row, 0);
            }
            bytes += own;
        }
        if begin < versions.len() {
            records.push(self.record(begin..versions.len(), versions));
        }
        records
    }

    fn record(&self, rows: std::ops::Range<usize>, versions: &[Version]) -> SideRecord {
        let of = |column| slices(column, rows.clone());
        let none = vec![None; if self.until.is_none() { rows.len() } else { 0 }];
        let parts = RelationParts {
            kinds: of(&self.kinds),
            source: [of(&self.source_kinds), of(&self.source_ids)],
            target: [of(&self.target_kinds), of(&self.target_ids)],
            versions: &versions[rows.clone()],
            until: self.until.as_ref().map_or(none.as_slice(), |until| &until[rows.clone()]),
            props: of(&self.props),
        };
        let mut body = Vec::new();
        put_relation_parts(&mut body, &parts);
        side::encode(RELATIONS, &body)
    }
}

fn slices(column: &TextColumn, rows: std::ops::Range<usize>) -> Vec<&[u8]> {
    rows.map(|row| column.get(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Record;
    use proptest::prelude::*;

    /// A column of these texts, or of the first for all rows.
    fn column(texts: &[String], one: bool) -> TextColumn {
        if one {
            return TextColumn::One(texts[0].clone().into_bytes());
        }
        let mut column = TextColumn::default();
        texts.iter().for_each(|text| column.push(text));
        column
    }

    proptest! {
        #[test]
        fn a_batch_says_what_its_rows_say(
            rows in proptest::collection::vec((proptest::array::uniform5("[a-c/]{1,4}"), any::<u64>(),
                proptest::option::of(any::<u64>()), proptest::option::of("[a-z]{0,9}")), 1..20),
            one in proptest::array::uniform5(any::<bool>()), ends in any::<bool>(),
        ) {
            let texts = |i: usize| rows.iter().map(|row| row.0[i].clone()).collect::<Vec<String>>();
            let [kinds, source_kinds, source_ids, target_kinds, target_ids] =
                [0, 1, 2, 3, 4].map(|i| column(&texts(i), one[i]));
            let mut props = TextColumn::default();
            for (.., text) in &rows {
                let pairs = text.iter().map(|text| ("note", PropValue::Text(text)));
                props.push_with(|out| Props::put(out, pairs)).unwrap().unwrap();
            }
            let until = ends.then(|| rows.iter().map(|row| row.2).collect());
            let batch = RelationBatch {
                kinds, source_kinds, source_ids, target_kinds, target_ids, props, times: None, until, rows: rows.len(),
            };
            prop_assert!(batch.is_even());
            let version = |stamp: u64| Version { stamp, time: 3, deleted: false };
            let versions: Vec<Version> = rows.iter().map(|row| version(row.1)).collect();
            let expected: Vec<RelationRow> =
                versions.iter().enumerate().map(|(i, version)| batch.row(i, *version).unwrap()).collect();
            for (row, (.., text)) in expected.iter().zip(&rows) {
                let value = text.clone().map(Value::Text);
                let own = Props::of(value.iter().map(|value| ("note", value))).unwrap();
                prop_assert_eq!(&row.props, &own);
            }
            prop_assert_eq!(batch.encode(&versions), Record::encode_rows(&[], &expected));
        }
    }
}
