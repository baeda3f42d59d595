//! Side records that extend a store's schema (4.4 of the store format).
//!
//! A commit with such a record also holds a decision on [`FLAG`], which no transaction has as its id: a
//! reader walks the chain of decisions at every open, and so finds these commits without reading other
//! commits with side records.
//!
//! ```
//! use fieldstone_format::schema_extension;
//! let record = schema_extension::encode("number?: Integer;");
//! assert_eq!(schema_extension::decode(&record)?.as_deref(), Some("number?: Integer;"));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::{Error, Result};

use crate::log::{Decision, SideRecord};
use crate::{Id, side};

/// Kinds of side records that are the store's own.
pub const KINDS: std::ops::RangeInclusive<u16> = 0x0300..=0x03ff;
const EXTENSION: u16 = 0x0300;

/// The id that the decision in a commit with such a record names.
pub const FLAG: Id = Id(*b"FIELDSTONESCHEMA");

/// Encodes an addition to the schema.
pub fn encode(text: &str) -> SideRecord {
    side::encode(EXTENSION, text.as_bytes())
}

/// The text that a record adds to the schema; `None` for a record of another kind.
pub fn decode(record: &SideRecord) -> Result<Option<String>> {
    if record.kind != EXTENSION {
        return Ok(None);
    }
    let body = side::body(record)?.into_owned();
    let text = String::from_utf8(body);
    text.map(Some).map_err(|_| Error::corrupt("an extension of the schema is not UTF-8"))
}

/// The decision that flags a commit with such a record. It decides nothing.
pub fn flag() -> Decision {
    Decision { transaction: FLAG, committed: true, kinds: u32::MAX, covers: Vec::new() }
}
