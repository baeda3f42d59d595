//! The text that names a snapshot: for every writer, the sequence of its last commit that belongs to
//! the snapshot. Stamps alone could not name one: a writer whose clock is behind may publish an older
//! stamp later.
//!
//! ```text
//! version = "v" base64url(without padding) of
//!           n: varint  { prefix: 8 bytes of the writer's id, sequence: varint }  crc: u32
//! ```
//! in the order of the ids. A writer that is not named has no commit in the snapshot.

use fieldstone_core::{Error, Result};

use crate::bytes::{Cursor, Put};
use crate::{Id, crc};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The commits that a snapshot holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Version {
    /// First eight bytes of each writer's id, and the sequence of its last commit; sorted.
    pub writers: Vec<([u8; 8], u64)>,
}

impl Version {
    /// The sequence up to which `writer` belongs to the snapshot; 0 for none.
    pub fn sequence(&self, writer: Id) -> u64 {
        let prefix = &writer.0[..8];
        match self.writers.binary_search_by(|(p, _)| p[..].cmp(prefix)) {
            Ok(i) => self.writers[i].1,
            Err(_) => 0,
        }
    }

    /// The text.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        bytes.put_varint(self.writers.len() as u64);
        for (prefix, sequence) in &self.writers {
            bytes.extend_from_slice(prefix);
            bytes.put_varint(*sequence);
        }
        let sum = crc(&bytes);
        bytes.put_u32(sum);
        let mut text = String::from("v");
        for group in bytes.chunks(3) {
            let bits =
                group.iter().fold(0u32, |bits, &b| bits << 8 | u32::from(b)) << (8 * (3 - group.len()));
            for i in 0..=group.len() {
                text.push(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize] as char);
            }
        }
        text
    }

    /// Reads the text.
    pub fn decode(text: &str) -> Result<Version> {
        let bad = || {
            Error::invalid(format!("'{text}' is not a version of a store"))
                .with_hint("take the text that store.version gave")
        };
        let digits = text.strip_prefix('v').ok_or_else(bad)?.as_bytes();
        let mut bytes = Vec::with_capacity(digits.len());
        for group in digits.chunks(4) {
            let mut bits = 0u32;
            for &c in group {
                bits = bits << 6 | ALPHABET.iter().position(|&a| a == c).ok_or_else(bad)? as u32;
            }
            bits <<= 6 * (4 - group.len());
            bytes.extend_from_slice(&bits.to_be_bytes()[1..group.len().max(1)]);
        }
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(bad)?;
        if crc(body).to_le_bytes() != *sum {
            return Err(bad());
        }
        let mut cursor = Cursor::new(body);
        let mut writers = Vec::new();
        for _ in 0..cursor.count(9).map_err(|_| bad())? {
            let prefix = cursor.array::<8>().map_err(|_| bad())?;
            writers.push((prefix, cursor.varint().map_err(|_| bad())?));
        }
        if !cursor.is_empty() || !writers.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(bad());
        }
        let version = Version { writers };
        // Base64 has spare bits and varints have long forms: one version has one text.
        if version.encode() == text { Ok(version) } else { Err(bad()) }
    }
}
