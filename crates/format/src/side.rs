//! Bodies of side records, compressed if that is shorter.
//!
//! ```text
//! side record = 0 body | 1 raw length: varint  body as one zstd frame
//! ```
//!
//! ```
//! use fieldstone_format::side;
//! let record = side::encode(0x0200, &[7; 1000]);
//! assert!(record.bytes.len() < 100);
//! assert_eq!(*side::body(&record)?, [7; 1000]);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use std::borrow::Cow;

use fieldstone_core::Result;

use crate::block::{check_raw_len, pack, unpack_checked};
use crate::bytes::{Cursor, Put};
use crate::log::SideRecord;

/// Bodies shorter than this are not compressed.
const SMALL: usize = 64;
/// Longest body accepted.
const BODY_MAX: usize = 1 << 30;
const LEVEL: i32 = 1;

/// Makes a side record of this kind with this body.
pub fn encode(kind: u16, body: &[u8]) -> SideRecord {
    let packed = pack(body, (body.len() >= SMALL).then_some(LEVEL));
    let mut bytes = Vec::with_capacity(packed.len() + 6);
    if packed.len() < body.len() {
        bytes.push(1);
        bytes.put_varint(body.len() as u64);
    } else {
        bytes.push(0);
    }
    bytes.extend_from_slice(&packed);
    SideRecord { kind, bytes: bytes.into() }
}

/// The body of a side record; every defect is Corrupt.
pub fn body(side: &SideRecord) -> Result<Cow<'_, [u8]>> {
    let mut cursor = Cursor::new(&side.bytes);
    match cursor.u8()? {
        0 => Ok(Cow::Borrowed(&side.bytes[1..])),
        1 => {
            let raw = cursor.size()?;
            if raw > BODY_MAX {
                return Err(cursor.fail("a body has an impossible length"));
            }
            let stored = &side.bytes[cursor.position()..];
            check_raw_len(stored.len() as u64, raw as u64)?;
            if stored.len() == raw {
                return Err(cursor.fail("a compressed body is not shorter than its content"));
            }
            let mut body = vec![0; raw];
            unpack_checked(stored, &mut body)?;
            Ok(Cow::Owned(body))
        }
        _ => Err(cursor.fail("a body has an unknown form")),
    }
}
