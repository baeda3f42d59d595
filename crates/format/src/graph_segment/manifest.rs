//! The list of live segments, with a mark per log: what the view is. It is replaced by rename.
//!
//! ```text
//! manifest = magic: 8 bytes  version: varint  store: id  generation: varint
//!            list { log: id  sequence: varint }                              marks
//!            list { log: id  sequence: varint }                              prepared
//!            list { transaction: id  print: bytes }                          decided
//!            list { name: text  bytes: varint }                              segments, the older first
//!            crc: u32 of all before
//! ```
//! A commit that stands under *prepared* is below its log's mark and in no segment: its transaction was not ended.
//! *decided* are transactions of which segments hold something, each with a digest of what was decided on it.

use fieldstone_core::{Code, Result};

use crate::bytes::{Cursor, Put};
use crate::{Id, crc, unknown_version};

const MAGIC: [u8; 8] = *b"FSGRAPHM";
const VERSION: u64 = 1;

/// A segment of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Name of its file.
    pub name: String,
    /// Length of its file.
    pub bytes: u64,
}

/// The list. See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The store's id.
    pub store: Option<Id>,
    /// Grows by one with each list.
    pub generation: u64,
    /// How far each log is applied.
    pub marks: Vec<(Id, u64)>,
    /// Commits below the marks that no segment holds.
    pub prepared: Vec<(Id, u64)>,
    /// Transactions of which segments hold something.
    pub decided: Vec<(Id, Vec<u8>)>,
    /// The segments.
    pub segments: Vec<Live>,
}

impl Manifest {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.put_varint(VERSION);
        out.put_id(self.store.unwrap_or(Id::NONE));
        out.put_varint(self.generation);
        for list in [&self.marks, &self.prepared] {
            out.put_varint(list.len() as u64);
            for (log, sequence) in list {
                out.put_id(*log);
                out.put_varint(*sequence);
            }
        }
        out.put_varint(self.decided.len() as u64);
        for (transaction, print) in &self.decided {
            out.put_id(*transaction);
            out.put_bytes(print);
        }
        out.put_varint(self.segments.len() as u64);
        for segment in &self.segments {
            out.put_bytes(segment.name.as_bytes());
            out.put_varint(segment.bytes);
        }
        out.put_u32(crc(&out.clone()));
        out
    }

    /// Reads a list; every defect is Corrupt, one of a later release Conflict.
    pub fn decode(bytes: &[u8]) -> Result<Manifest> {
        let mut cursor = Cursor::new(bytes);
        if cursor.array()? != MAGIC {
            return Err(cursor.fail("this is no list of segments"));
        }
        let body = bytes.len().saturating_sub(4);
        if bytes[body..] != crc(&bytes[..body]).to_le_bytes() {
            return Err(Code::Checksum.error("the list of segments does not match its checksum"));
        }
        let mut cursor = Cursor::new(&bytes[..body]);
        cursor.take(MAGIC.len())?;
        let version = cursor.varint()?;
        if version != VERSION {
            return Err(unknown_version("the list of the graph's segments", version));
        }
        let mut manifest =
            Manifest { store: Some(cursor.id()?), generation: cursor.varint()?, ..Manifest::default() };
        for list in [&mut manifest.marks, &mut manifest.prepared] {
            for _ in 0..cursor.count(17)? {
                list.push((cursor.id()?, cursor.varint()?));
            }
        }
        for _ in 0..cursor.count(17)? {
            manifest.decided.push((cursor.id()?, cursor.bytes()?.to_vec()));
        }
        for _ in 0..cursor.count(2)? {
            manifest.segments.push(Live { name: cursor.text()?.to_owned(), bytes: cursor.varint()? });
        }
        if cursor.is_empty() {
            Ok(manifest)
        } else {
            Err(cursor.fail("a list of segments is longer than its content"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_and_no_other_one() {
        let (a, b) = (Id([1; 16]), Id([2; 16]));
        let manifest = Manifest {
            store: Some(a),
            generation: 3,
            marks: vec![(a, 5), (b, 600)],
            prepared: vec![(b, 4)],
            decided: vec![(b, vec![1, 2])],
            segments: vec![Live { name: "1.segment".into(), bytes: 99 }],
        };
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode(&bytes).unwrap(), manifest);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&flipped).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..cut]).is_err());
        }
    }
}
