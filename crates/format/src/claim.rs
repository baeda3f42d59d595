//! A claim: a file that makes its owner, as the file system names them, the owner of a dataset or a run.
//! Stores with several users have a claim for each dataset and run; a writer creates it exclusively before
//! its first commit to the dataset. Its content only names the level of keys that it claims.
//!
//! ```text
//! name  = hex(xxh3-128 of level, 32 digits) [ "-" digits ] ".claim"      in the folder of logs
//! claim = "FIELDSTONE-CLAIM"  version: u32  length: u32  level: bytes (an encoded first level)  crc: u32
//! ```
//! The number in a name separates levels with equal hashes; it is the lowest free one. A truncated or damaged
//! file still claims the level of its name.

use fieldstone_core::{Code, Result};
use xxhash_rust::xxh3::xxh3_128;

use crate::bytes::{Cursor, Put};
use crate::{crc, unknown_version};

const MAGIC: &[u8; 16] = b"FIELDSTONE-CLAIM";
/// Number of names to try for one level.
pub const NAMES: u32 = 16;
/// Longest claim that a reader accepts.
pub const CLAIM_MAX: u64 = 1 << 20;

/// The name of the claim on a level; a writer tries the numbers below [`NAMES`] in order.
pub fn file_name(level: &[u8], number: u32) -> String {
    let hash = xxh3_128(level);
    match number {
        0 => format!("{hash:032x}.claim"),
        n => format!("{hash:032x}-{n}.claim"),
    }
}

/// Whether a name is the name of a claim.
pub fn is_file_name(name: &str) -> bool {
    name.strip_suffix(".claim")
        .and_then(|stem| stem.get(..32))
        .is_some_and(|hash| hash.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
}

/// Encodes a claim.
pub fn encode(level: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.put_u32(crate::FIRST_VERSION);
    out.put_u32(level.len() as u32);
    out.extend_from_slice(level);
    let sum = crc(&out);
    out.put_u32(sum);
    out
}

/// Decodes the level of a claim.
pub fn decode(bytes: &[u8]) -> Result<Vec<u8>> {
    let (body, sum) =
        bytes.split_last_chunk().ok_or_else(|| Code::Truncated.error("a claim is truncated"))?;
    if crc(body).to_le_bytes() != *sum {
        return Err(Code::Checksum.error("a claim does not match its checksum"));
    }
    let mut cursor = Cursor::new(body);
    if cursor.take(16)? != MAGIC {
        return Err(cursor.fail("a claim has the wrong magic"));
    }
    match cursor.u32()? {
        crate::FIRST_VERSION => {}
        version => return Err(unknown_version("the claim", version)),
    }
    let length = cursor.u32()? as usize;
    let level = cursor.take(length)?.to_vec();
    if cursor.is_empty() { Ok(level) } else { Err(cursor.fail("a claim has bytes after its level")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_names_its_level() {
        for level in [&b""[..], b"run=a", &[0xff; 300]] {
            assert_eq!(decode(&encode(level)).ok().as_deref(), Some(level));
            assert!(is_file_name(&file_name(level, 0)) && is_file_name(&file_name(level, 3)));
        }
        let whole = encode(b"run=a");
        for i in 0..whole.len() {
            let mut bad = whole.clone();
            bad[i] ^= 1;
            assert!(decode(&bad).is_err(), "byte {i}");
            assert!(decode(&whole[..i]).is_err(), "cut at {i}");
        }
        assert!(!is_file_name("x.claim") && !is_file_name("00.log"));
    }
}
