//! Side records with settings for a whole store (4.5 of the store format).
//!
//! They are in commits that [`schema_extension::mark`] marks, so that a reader finds them at every open.
//!
//! ```
//! use fieldstone_format::setting::{self, Setting};
//! let record = setting::encode(&Setting { name: "if_exists".into(), value: "error".into() });
//! assert_eq!(setting::decode(&record)?.map(|setting| setting.value).as_deref(), Some("error"));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::Result;
pub use fieldstone_core::if_exists::IfExists;

use crate::bytes::{Cursor, Put};
use crate::log::SideRecord;
#[cfg(doc)]
use crate::schema_extension;

const SETTING: u16 = 0x0301;

/// The setting that pins the version of the format: a number.
pub const FORMAT: &str = "format";

/// A setting of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name of the setting, such as `exist`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Encodes a setting.
pub fn encode(setting: &Setting) -> SideRecord {
    let mut bytes = Vec::new();
    bytes.put_bytes(setting.name.as_bytes());
    bytes.put_bytes(setting.value.as_bytes());
    SideRecord { kind: SETTING, bytes: bytes.into() }
}

/// Decodes a setting; `None` for a record of another kind.
pub fn decode(record: &SideRecord) -> Result<Option<Setting>> {
    if record.kind != SETTING {
        return Ok(None);
    }
    let mut cursor = Cursor::new(&record.bytes);
    let setting = Setting { name: cursor.text()?.to_owned(), value: cursor.text()?.to_owned() };
    if cursor.is_empty() { Ok(Some(setting)) } else { Err(cursor.fail("a setting is too long")) }
}
