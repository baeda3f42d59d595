//! Segments: sorted, searchable lists of a log's entries. A commit adds one; a writer merges its own so that
//! few remain.
//!
//! ```text
//! segment = meta  blocks  filter  meta      the same meta twice: either copy will do
//! block   = { shared: varint  rest: varint  rest bytes of the key  value length: varint  value }
//! filter  = bits                            a Bloom filter, absent from small segments
//! meta    = version: u8
//!            entries: varint  bytes: varint
//!            commits: varint { sequence: varint  stamp: varint  time: zigzag  flags: u8  [transaction: id]  [origin]  [view: varint] }
//!            first key: bytes  last key: key
//!            datasets: u8 complete, varint { prefix: key  first commit: varint }
//!            axes: varint { level: u8  keyword: text  complete: u8  values: varint { value } }
//!            filter: length: varint  hashes: u8  crc: u32
//!            directory: varint { length: varint  crc: u32  entries: varint  first key: key }
//! key     = shared: varint  rest: bytes     beyond the key before it in its list; the first of a list,
//!                                            and the last key, beyond the segment's first key
//! reference = file: varint  offset: varint  length: varint  meta length: varint  meta crc: u32
//!               weight: varint  entries: varint
//! ```
//! Entries are sorted by key, then newest first (later commit of the table, then higher ordinal). The first
//! entry of a block shares nothing. The commit table is in ascending order of sequence. Its sequences and
//! stamps are stored as increments over the previous commit (over 0 for the first), its times as the
//! difference from the stamp, zigzag coded (0, -1, 1, -2, … as 0, 1, 2, 3, …). Flag 1: it is prepared under a transaction.
//! Flag 2, since version 2: the entries of this row were moved from the commit that [`origin`](crate::origin) names; a
//! commit has a row for each origin, and at its end one without if it needs one. Flag 4, since version 2: it was made under
//! a view of a stack of stores.

mod build;
mod filter;
mod merge;
mod meta;

pub use build::SegmentBuilder;
pub use filter::{Filter, key_hash};
pub use merge::merge_segments;
pub(crate) use meta::shared_prefix;
pub use meta::{Axis, CommitInfo, Directory, SegmentMeta};

use fieldstone_core::{Error, Result};

use crate::bytes::{Cursor, Put};

/// Raw length at which a block of entries is closed.
pub const BLOCK_TARGET: usize = 4 << 10;
/// Most distinct values of an axis; with more, the axis is incomplete and empty.
pub const AXIS_MAX: usize = 4096;
/// Most datasets in a segment's list; with more, the list is incomplete and empty.
pub const DATASETS_MAX: usize = 1024;

/// Position and size of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentRef {
    /// 0 for the writer's log, otherwise the number of its data log.
    pub file: u32,
    /// First byte.
    pub offset: u64,
    /// Bytes in total.
    pub length: u64,
    /// Bytes of the meta part, which is stored at the beginning and at the end.
    pub meta_len: u64,
    /// CRC-32C of the meta part.
    pub meta_crc: u32,
    /// Number of commits whose entries it holds.
    pub weight: u64,
    /// Number of entries.
    pub entries: u64,
}

impl SegmentRef {
    /// Encodes the reference.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.file));
        out.put_varint(self.offset);
        out.put_varint(self.length);
        out.put_varint(self.meta_len);
        out.put_u32(self.meta_crc);
        out.put_varint(self.weight);
        out.put_varint(self.entries);
    }

    /// Decodes a reference.
    pub fn decode(cursor: &mut Cursor<'_>) -> Result<SegmentRef> {
        let segment = SegmentRef {
            file: u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a file number is too large"))?,
            offset: cursor.varint()?,
            length: cursor.varint()?,
            meta_len: cursor.varint()?,
            meta_crc: cursor.u32()?,
            weight: cursor.varint()?,
            entries: cursor.varint()?,
        };
        if segment.meta_len > segment.length / 2 || segment.offset.checked_add(segment.length).is_none() {
            return Err(cursor.fail("a segment is shorter than its meta part"));
        }
        Ok(segment)
    }

    /// Offsets in the file of the two copies of the meta part.
    pub fn meta_offsets(&self) -> [u64; 2] {
        [self.offset + self.length - self.meta_len, self.offset]
    }
}

/// Walks the entries of a block.
#[derive(Debug)]
pub struct BlockCursor<B> {
    block: B,
    position: usize,
    key: Vec<u8>,
    value: (usize, usize),
}

impl<B: AsRef<[u8]>> BlockCursor<B> {
    /// Starts before the first entry.
    pub fn new(block: B) -> BlockCursor<B> {
        BlockCursor { block, position: 0, key: Vec::with_capacity(128), value: (0, 0) }
    }

    /// Moves to the next entry; `false` at the end.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        let data = self.block.as_ref();
        if self.position == data.len() {
            return Ok(false);
        }
        let mut cursor = Cursor::new(&data[self.position..]);
        let (shared, rest) = (cursor.size()?, cursor.size()?);
        if shared > self.key.len() {
            return Err(Error::corrupt("an index entry shares more than the previous key has"));
        }
        let rest = cursor.take(rest)?;
        let length = cursor.size()?;
        let start = self.position + cursor.position();
        cursor.take(length)?;
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        self.value = (start, start + length);
        self.position = start + length;
        Ok(true)
    }

    /// Key of the current entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Value of the current entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        &self.block.as_ref()[self.value.0..self.value.1]
    }
}
