//! Side records of which something was erased (takeovers.md, 6.7): rows lost their values, and kept their numbers.
//!
//! ```text
//! 0x03ff = kind: u16  varint { row: varint }  side body of a record of that kind
//! ```
//!
//! ```
//! use fieldstone_format::erased::{self, ErasedRecord};
//! use fieldstone_format::side;
//!
//! let record = ErasedRecord { rows: vec![1, 5], record: side::encode(0x0104, b"what is left") };
//! let side = erased::encode(&record);
//! assert_eq!(erased::kind_of(&side), 0x0104);
//! assert_eq!(erased::decode(&side)?, Some(record));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::Result;

use crate::bytes::{Cursor, Put};
use crate::log::SideRecord;

/// The kind of such a record.
pub const ERASED: u16 = 0x03ff;

/// A record of which rows were erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedRecord {
    /// The rows, ascending.
    pub rows: Vec<u32>,
    /// The record as it was, with empty values in these rows.
    pub record: SideRecord,
}

/// The kind of a record, before anything of it was erased.
pub fn kind_of(side: &SideRecord) -> u16 {
    match side.bytes.first_chunk::<2>() {
        Some(kind) if side.kind == ERASED => u16::from_le_bytes(*kind),
        _ => side.kind,
    }
}

/// Encodes such a record.
pub fn encode(erased: &ErasedRecord) -> SideRecord {
    let ErasedRecord { rows, record } = erased;
    let mut bytes = Vec::with_capacity(record.bytes.len() + 3 * rows.len() + 4);
    bytes.put_u16(record.kind);
    bytes.put_varint(rows.len() as u64);
    rows.iter().for_each(|row| bytes.put_varint(u64::from(*row)));
    bytes.extend_from_slice(&record.bytes);
    SideRecord { kind: ERASED, bytes: bytes.into() }
}

/// Decodes such a record; `None` for one of another kind.
pub fn decode(side: &SideRecord) -> Result<Option<ErasedRecord>> {
    if side.kind != ERASED {
        return Ok(None);
    }
    let mut cursor = Cursor::new(&side.bytes);
    let kind = cursor.u16()?;
    if kind == ERASED {
        return Err(cursor.fail("an erased record is of an erased one"));
    }
    let count = cursor.count(1)?;
    let mut rows = Vec::with_capacity(count);
    for _ in 0..count {
        let row = cursor.varint()?;
        let row = u32::try_from(row).ok().filter(|row| rows.last().is_none_or(|last| last < row));
        rows.push(row.ok_or_else(|| cursor.fail("the rows of an erased record do not ascend"))?);
    }
    let bytes = side.bytes[cursor.position()..].into();
    Ok(Some(ErasedRecord { rows, record: SideRecord { kind, bytes } }))
}

/// The rows of a record that were erased.
pub fn rows_of(side: &SideRecord) -> Result<Vec<u32>> {
    Ok(decode(side)?.map(|erased| erased.rows).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_ascend_and_records_are_not_nested() {
        let of = |kind, rows: &[u32]| {
            let record = SideRecord { kind, bytes: (*b"\0x").into() };
            decode(&encode(&ErasedRecord { rows: rows.to_vec(), record }))
        };
        assert!(of(0x0104, &[0, 7]).is_ok());
        assert!(of(0x0104, &[7, 7]).is_err());
        assert!(of(ERASED, &[0]).is_err());
        let plain = SideRecord { kind: 0x0104, bytes: (*b"\0x").into() };
        assert_eq!((decode(&plain).ok(), kind_of(&plain)), (Some(None), 0x0104));
    }
}
