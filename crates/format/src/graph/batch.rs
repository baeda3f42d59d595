//! Many relations of one put: their columns become side records without conversion.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::graph::{PropValue, RelationBatch, TextColumn, VertexName};

use super::columns::ROWS_MAX;
use super::props::{props_of_bytes, put_props};
use super::record::{RELATIONS, RelationParts, SPLIT_BYTES, put_relation_parts};
use super::{RelationRow, Version};
use crate::log::SideRecord;
use crate::side;

/// Adds a row of properties to a column for [`RelationBatch::props`]. Names must be unique and not empty: the
/// caller checks that once for all rows. Does not change a column with the same properties for all rows.
pub fn push_props<'a>(
    column: &mut TextColumn,
    pairs: impl ExactSizeIterator<Item = (&'a str, PropValue<'a>)>,
) -> Result<()> {
    column.push_with(|out| put_props(out, pairs)).unwrap_or(Ok(()))
}

/// One relation of a batch as a single row.
pub fn batch_row(batch: &RelationBatch, row: usize, version: Version) -> Result<RelationRow> {
    let shared = |column: &TextColumn| column.text(row).map(Arc::<str>::from);
    Ok(RelationRow {
        kind: shared(&batch.kinds)?,
        source: VertexName { kind: shared(&batch.source_kinds)?, id: shared(&batch.source_ids)? },
        target: VertexName { kind: shared(&batch.target_kinds)?, id: shared(&batch.target_ids)? },
        version,
        until: batch.until.as_ref().and_then(|until| until[row]),
        props: props_of_bytes(batch.props.get(row)),
    })
}

/// Encodes all relations of a batch as side records, each with its version.
pub fn encode_batch(batch: &RelationBatch, versions: &[Version]) -> Vec<SideRecord> {
    let texts =
        [&batch.kinds, &batch.source_kinds, &batch.source_ids, &batch.target_kinds, &batch.target_ids];
    let weight =
        |row: usize| texts.iter().chain([&&batch.props]).map(|column| column.get(row).len()).sum::<usize>();
    let (mut records, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for row in 0..versions.len() {
        let own = weight(row);
        if row > begin && (row - begin == ROWS_MAX || bytes + own > SPLIT_BYTES) {
            records.push(record(batch, begin..row, versions));
            (begin, bytes) = (row, 0);
        }
        bytes += own;
    }
    if begin < versions.len() {
        records.push(record(batch, begin..versions.len(), versions));
    }
    records
}

fn record(batch: &RelationBatch, rows: std::ops::Range<usize>, versions: &[Version]) -> SideRecord {
    let of = |column| slices(column, rows.clone());
    let none = vec![None; if batch.until.is_none() { rows.len() } else { 0 }];
    let parts = RelationParts {
        kinds: of(&batch.kinds),
        source: [of(&batch.source_kinds), of(&batch.source_ids)],
        target: [of(&batch.target_kinds), of(&batch.target_ids)],
        versions: &versions[rows.clone()],
        until: batch.until.as_ref().map_or(none.as_slice(), |until| &until[rows.clone()]),
        props: of(&batch.props),
    };
    let mut body = Vec::new();
    put_relation_parts(&mut body, &parts);
    side::encode(RELATIONS, &body)
}

fn slices(column: &TextColumn, rows: std::ops::Range<usize>) -> Vec<&[u8]> {
    rows.map(|row| column.get(row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Props, Record};
    use fieldstone_core::value::Value;
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
                push_props(&mut props, pairs).unwrap();
            }
            let until = ends.then(|| rows.iter().map(|row| row.2).collect());
            let batch = RelationBatch {
                kinds, source_kinds, source_ids, target_kinds, target_ids, props, times: None, until, rows: rows.len(),
            };
            prop_assert!(batch.is_even());
            let version = |stamp: u64| Version { stamp, time: 3, deleted: false };
            let versions: Vec<Version> = rows.iter().map(|row| version(row.1)).collect();
            let expected: Vec<RelationRow> =
                versions.iter().enumerate().map(|(i, version)| batch_row(&batch, i, *version).unwrap()).collect();
            for (row, (.., text)) in expected.iter().zip(&rows) {
                let value = text.clone().map(Value::Text);
                let own = Props::of(value.iter().map(|value| ("note", value))).unwrap();
                prop_assert_eq!(&row.props, &own);
            }
            prop_assert_eq!(encode_batch(&batch, &versions), Record::encode_rows(&[], &expected));
        }
    }
}
