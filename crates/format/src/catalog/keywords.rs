//! Further keywords of attributes: a column of texts for each keyword.
//!
//! ```text
//! keywords = n: varint  n x { keyword: text  values: texts(rows) }
//! ```
//!
//! Keywords ascend and are unique; an empty value means that the row does not have the keyword, and each
//! keyword has a value in at least one row.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::catalog::KeywordColumn;

use crate::bytes::{Cursor, Put};
use crate::columns::{put_strings, read_strings, texts};

/// Most keywords of a record.
pub const KEYWORDS_MAX: usize = 64;
/// Longest value of a keyword, in bytes.
pub const KEYWORD_VALUE_MAX: usize = 1024;

/// The keywords of rows `from..to`.
pub(super) fn slice(columns: &[KeywordColumn], from: usize, to: usize) -> Vec<KeywordColumn> {
    let all = columns.iter().map(|column| slice_one(column, from, to));
    all.filter(|column| column.values.iter().any(|value| !value.is_empty())).collect()
}

fn slice_one(column: &KeywordColumn, from: usize, to: usize) -> KeywordColumn {
    let values = match &column.values[..] {
        [_] => column.values.clone(),
        each => each[from..to].to_vec(),
    };
    KeywordColumn { keyword: column.keyword.clone(), values }
}

pub(super) fn check(columns: &[KeywordColumn], rows: usize) -> std::result::Result<(), String> {
    if columns.len() > KEYWORDS_MAX {
        return Err(format!("{} keywords; at most {KEYWORDS_MAX} are allowed", columns.len()));
    }
    if let Some(two) = columns.windows(2).find(|two| two[0].keyword >= two[1].keyword) {
        return Err(format!("the keyword '{}' follows '{}'", two[1].keyword, two[0].keyword));
    }
    for KeywordColumn { keyword, values } in columns {
        if keyword.is_empty() {
            return Err("a keyword needs a name".into());
        }
        if values.len() != 1 && values.len() != rows {
            return Err(format!("the keyword '{keyword}' does not have {rows} rows"));
        }
        if values.iter().all(|value| value.is_empty()) {
            return Err(format!("no row has a value of the keyword '{keyword}'"));
        }
        if let Some(long) = values.iter().find(|value| value.len() > KEYWORD_VALUE_MAX) {
            let most = KEYWORD_VALUE_MAX;
            return Err(format!(
                "a value of '{keyword}' has {} bytes; at most {most} are allowed",
                long.len()
            ));
        }
    }
    Ok(())
}

pub(super) fn put(out: &mut Vec<u8>, columns: &[KeywordColumn], rows: usize) {
    out.put_varint(columns.len() as u64);
    for column in columns {
        out.put_bytes(column.keyword.as_bytes());
        let one = || vec![column.values[0].as_bytes(); rows];
        let each = || column.values.iter().map(|value| value.as_bytes()).collect();
        put_strings::<&[u8]>(out, &if column.values.len() == 1 { one() } else { each() });
    }
}

pub(super) fn read(cursor: &mut Cursor<'_>, rows: usize) -> Result<Vec<KeywordColumn>> {
    let count = cursor.size()?;
    if !(1..=KEYWORDS_MAX).contains(&count) {
        return Err(cursor.fail("attributes have an impossible number of keywords"));
    }
    let mut columns = Vec::with_capacity(count);
    for _ in 0..count {
        let keyword: Arc<str> = cursor.text()?.into();
        let mut values: Vec<Arc<str>> = Vec::with_capacity(rows);
        for value in texts(read_strings(cursor, rows)?)? {
            let again = values.last().filter(|last| ***last == *value).cloned();
            values.push(again.unwrap_or_else(|| value.into()));
        }
        if values.windows(2).all(|two| two[0] == two[1]) {
            values.truncate(1);
        }
        columns.push(KeywordColumn { keyword, values });
    }
    Ok(columns)
}
