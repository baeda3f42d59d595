//! Erasing values of attributes: the rows keep their places, so that they go on hiding what they hid.

use fieldstone_core::Result;
use fieldstone_core::catalog::{AttributeBatch, Values};
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::value::{Value, ValueType};

use super::Record;
use crate::erased::{self, ErasedRecord};
use crate::log::SideRecord;

/// The rows of a side record whose values were erased: they are as rows that were deleted.
pub fn rows_erased(side: &SideRecord) -> Result<Vec<u32>> {
    match planted::is(Planted::ErasedShown) {
        true => Ok(Vec::new()),
        false => erased::rows_of(side),
    }
}

/// A record of attributes without the values of the rows that `is_gone` names, and their number; `None` if it has none of
/// them, and for records of other kinds.
pub fn erase_rows(
    side: &SideRecord,
    is_gone: &mut dyn FnMut(&AttributeBatch, usize) -> Result<bool>,
) -> Result<Option<(SideRecord, u64)>> {
    let before = erased::rows_of(side)?;
    let Record::Attributes(mut batch) = Record::decode(side)? else { return Ok(None) };
    let mut rows = Vec::new();
    for row in 0..batch.rows {
        let number = row as u32;
        if before.binary_search(&number).is_ok() || is_gone(&batch, row)? {
            rows.push(number);
        }
    }
    let new = (rows.len() - before.len()) as u64;
    if new == 0 {
        return Ok(None);
    }
    empty(&mut batch, &rows);
    let record = Record::Attributes(batch).encode();
    Ok(Some((erased::encode(&ErasedRecord { rows, record }), new)))
}

/// Puts empty values into rows. A value that all rows share goes with the last of them.
fn empty(batch: &mut AttributeBatch, rows: &[u32]) {
    let all = [0];
    let rows = match batch.one_value {
        true if rows.len() < batch.rows => return,
        true => &all[..],
        false => rows,
    };
    let kind = batch.tag.kind;
    let at = |row: &u32| *row as usize;
    match &mut batch.values {
        Values::Bool(values) => rows.iter().for_each(|row| values[at(row)] = false),
        Values::Int(values) => rows.iter().for_each(|row| values[at(row)] = 0),
        Values::UInt(values) => rows.iter().for_each(|row| values[at(row)] = 0),
        Values::Float(values) => rows.iter().for_each(|row| values[at(row)] = 0.0),
        Values::Text(values) => rows.iter().for_each(|row| values[at(row)].clear()),
        Values::Any(values) => rows.iter().for_each(|row| values[at(row)] = empty_value(kind)),
    }
}

fn empty_value(kind: ValueType) -> Value {
    match kind {
        ValueType::Bool => Value::Bool(false),
        ValueType::Int => Value::Int(0),
        ValueType::UInt => Value::UInt(0),
        ValueType::Float => Value::Float(0.0),
        ValueType::Text => Value::Text(String::new()),
        ValueType::Bytes => Value::Bytes(Vec::new()),
        ValueType::DateTime => Value::DateTime(0),
        ValueType::IntRange => Value::IntRange(0, 0),
        ValueType::FloatRange => Value::FloatRange(0.0, 0.0),
        ValueType::Array => Value::Array(Vec::new()),
        ValueType::Json => Value::List(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fieldstone_core::catalog::{Column, RunName, TagDecl};

    use super::*;

    fn record(kind: ValueType, values: Values, one_value: bool) -> SideRecord {
        let batch = AttributeBatch {
            run: RunName { project: String::new(), name: "a".into() },
            tag: TagDecl { name: "note".into(), version: 0, kind, unit: String::new() },
            rows: 3,
            step: Some(Column::Each(vec![0, 6, 12])),
            variables: Vec::new(),
            variable: Column::One(0),
            boxes: None,
            keywords: Vec::new(),
            values,
            one_value,
            continues: false,
            singles: false,
        };
        Record::Attributes(batch).encode()
    }

    fn values_of(side: &SideRecord) -> String {
        match Record::decode(side).unwrap() {
            Record::Attributes(batch) => format!("{:?}", batch.values),
            other => panic!("{other:?}"),
        }
    }

    fn erase(side: &SideRecord, gone: &[usize]) -> Option<(SideRecord, u64)> {
        erase_rows(side, &mut |_, row| Ok(gone.contains(&row))).unwrap()
    }

    #[test]
    fn r36_rows_lose_their_values_and_keep_their_numbers() {
        let texts = ["a secret", "kept", "another secret"].map(String::from).to_vec();
        let side = record(ValueType::Text, Values::Text(texts), false);
        assert_eq!(erase(&side, &[]), None);
        let (first, new) = erase(&side, &[0]).unwrap();
        assert_eq!((new, rows_erased(&first).unwrap()), (1, vec![0]));
        let (both, new) = erase(&first, &[0, 2]).unwrap();
        assert_eq!((new, rows_erased(&both).unwrap()), (1, vec![0, 2]));
        assert_eq!(values_of(&both), r#"Text(["", "kept", ""])"#);
        assert!(!both.bytes.windows(6).any(|bytes| bytes == b"secret"));
        assert_eq!(erase(&both, &[0]), None, "it is erased already");
    }

    #[test]
    fn a_value_that_rows_share_goes_with_the_last_of_them() {
        let side = record(ValueType::Json, Values::Any(vec![Value::Text("secret".into())]), true);
        let (some, _) = erase(&side, &[0, 1]).unwrap();
        assert_eq!(values_of(&some), r#"Any([Text("secret")])"#);
        let (all, new) = erase(&some, &[0, 1, 2]).unwrap();
        assert_eq!((new, &*values_of(&all)), (1, "Any([List([])])"));
        // A value of each type is one that a reader accepts.
        for kind in ValueType::ALL {
            let values = match kind {
                ValueType::Bool => Values::Bool(vec![true; 3]),
                ValueType::Int | ValueType::DateTime => Values::Int(vec![7; 3]),
                ValueType::UInt => Values::UInt(vec![7; 3]),
                ValueType::Float => Values::Float(vec![0.5; 3]),
                ValueType::Text => Values::Text(vec!["x".into(); 3]),
                _ => Values::Any(vec![empty_value(kind); 3]),
            };
            let erased = erase(&record(kind, values, false), &[0, 1, 2]).unwrap().0;
            assert!(Record::decode(&erased).is_ok(), "{kind}");
        }
    }
}
