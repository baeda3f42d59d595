//! The list of live segments, with a mark for each living log: the state of the graph's index. A new list replaces
//! the old one by rename.
//!
//! ```text
//! manifest = magic: 8 bytes  version: varint  store: id  revision: varint
//!            list { log: id  sequence: varint }                              marks
//!            list { owner  number: varint  digest: u64 }                     taken
//!            list { log: id  sequence: varint }                              prepared
//!            list { transaction: id  print: bytes }                          decided
//!            partitioning                                                    how it is cut into slots
//!            list { slot: varint  name: text  bytes: varint }                segments, of each slot the older first
//!            list { vertex: 16 bytes  list varint  list varint }             splits: partitions that are split, of
//!                                                                            these those that are finished
//!            crc: u32 of all before
//! ```
//! A commit under *prepared* is applied and in no segment: its transaction was undecided.
//! *taken* names the takeover of each owner up to which everything is applied: logs that these and earlier ones replace
//! have no mark.
//! *decided* lists the transactions that have content in segments, each with a digest of the decision.

use fieldstone_core::{Code, Result};

use super::partitioning::{Partitioning, put_partitioning, read_partitioning};
use crate::bytes::{Cursor, Put};
use crate::version::TakeoverName;
use crate::{Id, crc, unknown_version};

const MAGIC: [u8; 8] = *b"FSGRAPHM";
const VERSION: u64 = 3;

/// A segment of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Its slot; 0 if there is only one.
    pub slot: u16,
    /// Name of its file.
    pub name: String,
    /// Length of its file.
    pub bytes: u64,
}

/// The split partitions of a vertex, by their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SplitVertex {
    /// The vertex.
    pub vertex: u128,
    /// All split partitions.
    pub split: Vec<u32>,
    /// Those whose rows have all arrived at their new slots.
    pub finished: Vec<u32>,
}

/// The list. See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The store's id.
    pub store: Option<Id>,
    /// Grows by one with each list.
    pub revision: u64,
    /// How far each log is applied that no takeover of `taken` or earlier replaces.
    pub marks: Vec<(Id, u64)>,
    /// The takeover of each owner up to which everything is applied, by owner.
    pub taken: Vec<TakeoverName>,
    /// Applied commits that no segment holds.
    pub prepared: Vec<(Id, u64)>,
    /// Transactions that have content in segments.
    pub decided: Vec<(Id, Vec<u8>)>,
    /// The division of the index into slots.
    pub partitioning: Partitioning,
    /// The segments.
    pub segments: Vec<Live>,
    /// Vertices with split partitions.
    pub splits: Vec<SplitVertex>,
}

impl Manifest {
    /// Encodes the list.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.put_varint(VERSION);
        out.put_id(self.store.unwrap_or(Id([0; 16])));
        out.put_varint(self.revision);
        put_commits(&mut out, &self.marks);
        out.put_varint(self.taken.len() as u64);
        self.taken.iter().for_each(|name| name.put(&mut out));
        put_commits(&mut out, &self.prepared);
        out.put_varint(self.decided.len() as u64);
        for (transaction, print) in &self.decided {
            out.put_id(*transaction);
            out.put_bytes(print);
        }
        put_partitioning(&self.partitioning, &mut out);
        out.put_varint(self.segments.len() as u64);
        for segment in &self.segments {
            out.put_varint(u64::from(segment.slot));
            out.put_bytes(segment.name.as_bytes());
            out.put_varint(segment.bytes);
        }
        out.put_varint(self.splits.len() as u64);
        for SplitVertex { vertex, split, finished } in &self.splits {
            out.extend_from_slice(&vertex.to_le_bytes());
            for partitions in [split, finished] {
                out.put_varint(partitions.len() as u64);
                partitions.iter().for_each(|partition| out.put_varint(u64::from(*partition)));
            }
        }
        out.put_u32(crc(&out.clone()));
        out
    }

    /// Decodes a list. Every defect is Corrupt; a list of a later release is Conflict.
    pub fn decode(bytes: &[u8]) -> Result<Manifest> {
        let mut cursor = Cursor::new(bytes);
        if cursor.array()? != MAGIC {
            return Err(cursor.fail("this is not a list of segments"));
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
            Manifest { store: Some(cursor.id()?), revision: cursor.varint()?, ..Manifest::default() };
        manifest.marks = read_commits(&mut cursor)?;
        for _ in 0..cursor.count(11)? {
            manifest.taken.push(TakeoverName::read(&mut cursor)?);
        }
        if !manifest.taken.is_sorted_by(|a, b| a.owner < b.owner) {
            return Err(cursor.fail("the takeovers of a list of segments are out of order"));
        }
        manifest.prepared = read_commits(&mut cursor)?;
        for _ in 0..cursor.count(17)? {
            manifest.decided.push((cursor.id()?, cursor.bytes()?.to_vec()));
        }
        manifest.partitioning = read_partitioning(&mut cursor)?;
        for _ in 0..cursor.count(3)? {
            let slot = u16::try_from(cursor.varint()?).ok();
            let slot = slot.filter(|slot| *slot < manifest.partitioning.slots);
            let slot = slot.ok_or_else(|| cursor.fail("a segment belongs to a missing slot"))?;
            manifest.segments.push(Live { slot, name: cursor.text()?.to_owned(), bytes: cursor.varint()? });
        }
        for _ in 0..cursor.count(18)? {
            let vertex = u128::from_le_bytes(cursor.array()?);
            let mut partitions = || -> Result<Vec<u32>> {
                let too_large = |cursor: &Cursor<'_>| cursor.fail("a partition has an impossible number");
                let n = cursor.count(1)?;
                (0..n).map(|_| u32::try_from(cursor.varint()?).map_err(|_| too_large(&cursor))).collect()
            };
            let (split, finished) = (partitions()?, partitions()?);
            manifest.splits.push(SplitVertex { vertex, split, finished });
        }
        if cursor.is_empty() {
            Ok(manifest)
        } else {
            Err(cursor.fail("a list of segments is longer than its content"))
        }
    }
}

fn put_commits(out: &mut Vec<u8>, commits: &[(Id, u64)]) {
    out.put_varint(commits.len() as u64);
    for (log, sequence) in commits {
        out.put_id(*log);
        out.put_varint(*sequence);
    }
}

fn read_commits(cursor: &mut Cursor<'_>) -> Result<Vec<(Id, u64)>> {
    (0..cursor.count(17)?).map(|_| Ok((cursor.id()?, cursor.varint()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::OwnerName;

    #[test]
    fn a_manifest_comes_back_and_no_other_one() {
        let (a, b) = (Id([1; 16]), Id([2; 16]));
        let manifest = Manifest {
            store: Some(a),
            revision: 3,
            marks: vec![(a, 5), (b, 600)],
            taken: vec![
                TakeoverName { owner: OwnerName::User(1000), number: 4, digest: 5 },
                TakeoverName { owner: OwnerName::Subject([6; 8]), number: 300, digest: u64::MAX },
            ],
            prepared: vec![(b, 4)],
            decided: vec![(b, vec![1, 2])],
            partitioning: Partitioning { slots: 2, ..Partitioning::default() },
            segments: vec![Live { slot: 1, name: "slot-001/1.segment".into(), bytes: 99 }],
            splits: vec![SplitVertex { vertex: 7, split: vec![1, 3], finished: vec![1] }],
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
