//! The header of a data log, `data/<writer>-<number>.data`. Blocks follow it without gaps; only the index
//! describes them.
//!
//! ```text
//! "FIELDSTONE-DATA\0"  version: u32  writer: id  number: u32  crc: u32     44 bytes
//! ```

use fieldstone_core::{Code, Error, Result};

use crate::bytes::{Cursor, Put};
use crate::{FIRST_VERSION, Id, crc, unknown_version};

/// First bytes of a data log.
pub const MAGIC: &[u8; 16] = b"FIELDSTONE-DATA\0";
/// Length of the header: the offset of the first block.
pub const HEADER_LEN: u64 = 44;

/// Name of a data log inside the store's `data` folder.
pub fn file_name(writer: Id, number: u32) -> String {
    format!("{writer}-{number}.data")
}

/// The writer and number in a data log's file name.
pub fn parse_file_name(name: &str) -> Option<(Id, u32)> {
    let (writer, number) = name.strip_suffix(".data")?.split_once('-')?;
    let (writer, number) = (Id::parse(writer)?, number.parse().ok()?);
    (file_name(writer, number) == name).then_some((writer, number))
}

/// Writes the header.
pub fn encode_header(writer: Id, number: u32) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.put_u32(FIRST_VERSION);
    out.put_id(writer);
    out.put_u32(number);
    let sum = crc(&out);
    out.put_u32(sum);
    out
}

/// Checks the header of the data log with the name of (`writer`, `number`).
pub fn check_header(bytes: &[u8], writer: Id, number: u32) -> Result<()> {
    let mut cursor = Cursor::new(bytes);
    if cursor.take(16)? != MAGIC {
        return Err(Error::corrupt("a data log does not begin with its magic"));
    }
    let version = cursor.u32()?;
    if version != FIRST_VERSION {
        return Err(unknown_version("the data log", version));
    }
    let named = (cursor.id()?, cursor.u32()?);
    if cursor.u32()? != crc(&bytes[..cursor.position() - 4]) {
        return Err(Code::Checksum.error("the header of a data log does not match its checksum"));
    }
    if named != (writer, number) {
        return Err(Error::corrupt("a data log carries another log's name"));
    }
    Ok(())
}
