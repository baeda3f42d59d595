//! The text that names a snapshot: for every writer, the sequence of its last commit in the snapshot (J-14).
//! Stamps alone could not name one: a writer with a late clock may publish an older stamp later.
//!
//! ```text
//! version = "v" base64url(without padding) of
//!           n: varint  { prefix: 8 bytes of the writer's id, sequence: varint }  crc: u32
//!         | "w" the same with all 16 bytes of each id, if the first 8 bytes of two ids are equal
//! ```
//! in the order of the ids. A writer that is not named has no commit in the snapshot. Ids are random, so only
//! made-up ids begin alike; if one of two such ids appeared after the text was written, the text means both.

use fieldstone_core::{Code, Result};

use crate::bytes::{Cursor, Put};
use crate::{Id, crc};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The commits in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Version {
    /// Each writer's id, and the sequence of its last commit; sorted. From a text with prefixes, the other
    /// bytes are zero.
    writers: Vec<(Id, u64)>,
    /// Whether the ids are complete.
    whole: bool,
}

/// Bytes of an id that name it if no other id begins with them.
const PREFIX: usize = 8;

impl Version {
    /// The version that holds each writer's commits up to a sequence.
    pub fn new(mut writers: Vec<(Id, u64)>) -> Version {
        writers.sort_unstable();
        let whole = Version::has_twins(&writers);
        if !whole {
            writers.iter_mut().for_each(|(id, _)| id.0[PREFIX..].fill(0));
        }
        Version { writers, whole }
    }

    /// Each named writer (only the prefix, in a text with prefixes), and the sequence of its last commit.
    pub fn writers(&self) -> &[(Id, u64)] {
        &self.writers
    }

    fn prefix(&self) -> usize {
        if self.whole { 16 } else { PREFIX }
    }

    /// The sequence up to which `writer` belongs to the snapshot; 0 for none.
    pub fn sequence(&self, writer: Id) -> u64 {
        let prefix = self.prefix();
        match self.writers.binary_search_by(|(id, _)| id.0[..prefix].cmp(&writer.0[..prefix])) {
            Ok(i) => self.writers[i].1,
            Err(_) => 0,
        }
    }

    /// Whether these logs, in the order of their ids with their last sequences, contain for each named writer
    /// a log that reaches its commit.
    pub fn is_reached(&self, logs: &[(Id, u64)]) -> bool {
        let prefix = self.prefix();
        self.writers.iter().all(|(id, sequence)| {
            let first = logs.partition_point(|(log, _)| log.0[..prefix] < id.0[..prefix]);
            let alike = logs[first..].iter().take_while(|(log, _)| log.0[..prefix] == id.0[..prefix]);
            alike.into_iter().any(|(_, head)| head >= sequence)
        })
    }

    fn has_twins(writers: &[(Id, u64)]) -> bool {
        writers.windows(2).any(|pair| pair[0].0.0[..PREFIX] == pair[1].0.0[..PREFIX])
    }

    /// Encodes the text.
    pub fn encode(&self) -> String {
        let mut bytes = Vec::new();
        bytes.put_varint(self.writers.len() as u64);
        for (id, sequence) in &self.writers {
            bytes.extend_from_slice(&id.0[..self.prefix()]);
            bytes.put_varint(*sequence);
        }
        let sum = crc(&bytes);
        bytes.put_u32(sum);
        let mut text = String::from(if self.whole { "w" } else { "v" });
        for group in bytes.chunks(3) {
            let bits =
                group.iter().fold(0u32, |bits, &b| bits << 8 | u32::from(b)) << (8 * (3 - group.len()));
            for i in 0..=group.len() {
                text.push(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize] as char);
            }
        }
        text
    }

    /// Decodes the text.
    pub fn decode(text: &str) -> Result<Version> {
        let bad = || {
            Code::Value
                .error(format!("'{text}' is not a version of a store"))
                .with_hint("use the text of store.version")
        };
        let whole = text.starts_with('w');
        let digits = text.strip_prefix(if whole { 'w' } else { 'v' }).ok_or_else(bad)?.as_bytes();
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
            let mut id = Id([0; 16]);
            match whole {
                true => id = cursor.id().map_err(|_| bad())?,
                false => id.0[..PREFIX].copy_from_slice(&cursor.array::<PREFIX>().map_err(|_| bad())?),
            }
            writers.push((id, cursor.varint().map_err(|_| bad())?));
        }
        let in_order = writers.is_sorted_by(|a, b| a.0 < b.0) && Version::has_twins(&writers) == whole;
        if !cursor.is_empty() || !in_order {
            return Err(bad());
        }
        let version = Version { writers, whole };
        // Base64 has spare bits and varints have long forms: each version has only one valid text.
        if version.encode() == text { Ok(version) } else { Err(bad()) }
    }
}
