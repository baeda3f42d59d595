//! The name index after the last data byte of a classic file with many objects: it finds one of them without
//! reading the whole header. The normative text is `spec/name-index.md`.
//!
//! A file ends in *body*, *page sums* and *locator*. The body holds an entry for each dimension and variable
//! sorted by the hash of its path, the header offset of every 64th dimension and variable, and a checksum for
//! each 64 KiB of the header. The page sums are a checksum for each 4 KiB of the body. The locator is the
//! file's last 64 bytes.
//!
//! Ranks make an index together: each holds an [`IndexPart`]; the parts are concatenated in the order of
//! ranks, and sums of bytes that several ranks wrote are [joined](join). The bytes therefore do not depend on
//! the number of ranks.
//!
//! Invariants: integers are little-endian; the index is a hint, and readers trust none of it before they
//! check the header's own bytes; a locator that does not match the file's length is ignored.
//!
//! ```
//! use fieldstone_format::netcdf::trailer::{self, Kind};
//! let entry = trailer::entry(trailer::path_hash("event_7/hits"), Kind::Var, 12);
//! assert_eq!(trailer::object(entry), (Kind::Var, 12));
//! ```

use fieldstone_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::{Cursor, Put};
use crate::{crc, crc_append};

/// Bytes of the header under one checksum: a grid over the file's offsets.
pub const CHUNK: u64 = 65_536;
/// Bytes of the body under one checksum.
pub const PAGE: u64 = 4_096;
/// The index holds the offset of every object whose number is a multiple of this.
pub const STRIDE: u64 = 64;
/// Bytes of the locator.
pub const LOCATOR: u64 = 64;
/// By default, files with more objects than this get an index.
pub const MANY: u64 = 1_000;
/// Most dimensions or variables of a file with an index.
pub const MAX_OBJECTS: u64 = 1 << 31;

const MAGIC: &[u8; 8] = b"FSNAMES\n";
const VERSION: u32 = 1;
const SPELLED: u32 = 1;

/// The kind of an entry's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A dimension.
    Dim,
    /// A variable.
    Var,
}

/// The hash by which paths are sorted: XXH3-64 of the path's UTF-8. Entries keep its top 32 bits.
pub fn path_hash(path: &str) -> u64 {
    xxh3_64(path.as_bytes())
}

/// The entry of an object: from the top, 32 bits of the hash, one bit for the kind, 31 of its number.
pub fn entry(hash: u64, kind: Kind, id: u32) -> u64 {
    let kind = if kind == Kind::Var { 1 << 31 } else { 0 };
    (hash >> 32) << 32 | kind | u64::from(id & 0x7fff_ffff)
}

/// Kind and number of an entry's object.
pub fn object(entry: u64) -> (Kind, u32) {
    let kind = if entry & (1 << 31) == 0 { Kind::Dim } else { Kind::Var };
    (kind, entry as u32 & 0x7fff_ffff)
}

/// The checksum of bytes at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// Offset of the first byte.
    pub at: u64,
    /// Number of bytes.
    pub len: u64,
    /// Their CRC-32C.
    pub crc: u32,
}

/// Checksums of written bytes, cut at the lines of a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    grid: u64,
    list: Vec<Sum>,
}

impl Sums {
    /// No bytes yet, on a grid of `grid` bytes.
    pub fn new(grid: u64) -> Sums {
        Sums { grid: grid.max(1), list: Vec::new() }
    }

    /// Adds bytes at the offset `at`. Bytes that continue the last ones need no further sum.
    pub fn add(&mut self, mut at: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.grid - at % self.grid;
            let len = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
            let (now, rest) = bytes.split_at(len);
            match self.list.last_mut() {
                Some(last) if last.at + last.len == at && !at.is_multiple_of(self.grid) => {
                    last.crc = crc_append(last.crc, now);
                    last.len += len as u64;
                }
                _ => self.list.push(Sum { at, len: len as u64, crc: crc(now) }),
            }
            at += len as u64;
            bytes = rest;
        }
    }

    /// The sums, in the order in which bytes were added.
    pub fn list(&self) -> &[Sum] {
        &self.list
    }

    /// The sums as bytes, for another rank.
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.list.len() * 20);
        for sum in &self.list {
            bytes.put_u64(sum.at);
            bytes.put_u64(sum.len);
            bytes.put_u32(sum.crc);
        }
        bytes
    }

    /// Appends the [packed](Sums::pack) sums of another rank.
    pub fn unpack(&mut self, bytes: &[u8]) -> Result<()> {
        let mut cursor = Cursor::new(bytes);
        while !cursor.is_empty() {
            self.list.push(Sum { at: cursor.u64()?, len: cursor.u64()?, crc: cursor.u32()? });
        }
        Ok(())
    }

    /// Bytes of memory that it holds.
    pub fn memory(&self) -> u64 {
        (self.list.capacity() * size_of::<Sum>()) as u64
    }
}

/// One checksum for each cell of the grid that `from..to` touches, from sums of parts of it in any order.
/// `None` if the parts do not cover the range exactly once.
pub fn join(sums: &Sums, from: u64, to: u64) -> Option<Vec<u32>> {
    let mut parts: Vec<Sum> = sums.list.clone();
    parts.sort_unstable_by_key(|sum| sum.at);
    let (mut at, mut joined) = (from, Vec::new());
    for part in parts.iter().filter(|part| part.len > 0) {
        if part.at != at {
            return None;
        }
        match joined.last_mut() {
            Some(last) if !at.is_multiple_of(sums.grid) => {
                *last = crc32c::crc32c_combine(*last, part.crc, usize::try_from(part.len).ok()?);
            }
            _ => joined.push(part.crc),
        }
        at = at.checked_add(part.len)?;
    }
    (at == to).then_some(joined)
}

/// One rank's contribution to the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPart {
    /// Entries of its range of hashes, sorted; those of a lower rank are lower.
    pub entries: Vec<u64>,
    /// Header offset of each dimension that it wrote and whose number is a multiple of [`STRIDE`].
    pub dim_offsets: Vec<u64>,
    /// Header offset of each variable that it wrote and whose number is a multiple of [`STRIDE`].
    pub var_offsets: Vec<u64>,
    /// Sums of the header bytes that it wrote, from the tag of the dimension list, on a grid of [`CHUNK`].
    pub header: Sums,
}

impl Default for IndexPart {
    fn default() -> IndexPart {
        IndexPart {
            entries: Vec::new(),
            dim_offsets: Vec::new(),
            var_offsets: Vec::new(),
            header: Sums::new(CHUNK),
        }
    }
}

impl IndexPart {
    /// Bytes of memory that it holds.
    pub fn memory(&self) -> u64 {
        let words = self.entries.capacity() + self.dim_offsets.capacity() + self.var_offsets.capacity();
        words as u64 * 8 + self.header.memory()
    }
}

/// The last 64 bytes of a file with an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locator {
    /// Offset of the dimension list: 8 in CDF-1 and 2, 12 in CDF-5.
    pub dims_at: u64,
    /// Offset of the list of global attributes.
    pub attrs_at: u64,
    /// Offset of the variable list.
    pub vars_at: u64,
    /// Bytes of the header.
    pub header_len: u64,
    /// Number of dimensions.
    pub dims: u32,
    /// Number of variables.
    pub vars: u32,
    /// Bytes from one record to the next; 0 without record variables.
    pub record_size: u64,
    /// Whether names in the file are escaped by the rule of paths.
    pub escaped: bool,
    /// Checksum of the page sums.
    pub pages_crc: u32,
}

impl Locator {
    /// Encodes the locator.
    pub fn encode(&self) -> [u8; LOCATOR as usize] {
        let mut bytes = Vec::with_capacity(LOCATOR as usize);
        bytes.extend_from_slice(MAGIC);
        bytes.put_u32(VERSION);
        bytes.put_u32(if self.escaped { SPELLED } else { 0 } | (self.dims_at as u32) << 8);
        bytes.put_u64(self.header_len);
        bytes.put_u64(self.attrs_at);
        bytes.put_u64(self.vars_at);
        bytes.put_u32(self.dims);
        bytes.put_u32(self.vars);
        bytes.put_u64(self.record_size);
        bytes.put_u32(self.pages_crc);
        bytes.put_u32(crc(&bytes));
        let mut out = [0; LOCATOR as usize];
        out.copy_from_slice(&bytes);
        out
    }

    /// The locator in the last bytes of a file; `None` if there is none that we understand.
    pub fn decode(bytes: &[u8]) -> Option<Locator> {
        if bytes.len() as u64 != LOCATOR || !bytes.starts_with(MAGIC) {
            return None;
        }
        let mut cursor = Cursor::new(&bytes[MAGIC.len()..]);
        let (version, flags) = (cursor.u32().ok()?, cursor.u32().ok()?);
        let locator = Locator {
            dims_at: u64::from(flags >> 8),
            header_len: cursor.u64().ok()?,
            attrs_at: cursor.u64().ok()?,
            vars_at: cursor.u64().ok()?,
            dims: cursor.u32().ok()?,
            vars: cursor.u32().ok()?,
            record_size: cursor.u64().ok()?,
            escaped: flags & SPELLED != 0,
            pages_crc: cursor.u32().ok()?,
        };
        let known = version == VERSION && flags & 0xfe == 0 && crc(&bytes[..60]) == cursor.u32().ok()?;
        let ordered = locator.dims_at <= locator.attrs_at
            && locator.attrs_at <= locator.vars_at
            && locator.vars_at <= locator.header_len
            && u64::from(locator.dims) <= MAX_OBJECTS
            && u64::from(locator.vars) <= MAX_OBJECTS;
        (known && ordered).then_some(locator)
    }

    /// Positions of the parts of the index.
    pub fn places(&self) -> Places {
        let (dims, vars) = (u64::from(self.dims), u64::from(self.vars));
        let dim_offsets = (dims + vars) * 8;
        let var_offsets = dim_offsets + dims.div_ceil(STRIDE) * 8;
        let chunks = var_offsets + vars.div_ceil(STRIDE) * 8;
        let first_chunk = self.dims_at / CHUNK;
        let count = self.header_len.div_ceil(CHUNK).saturating_sub(first_chunk);
        let body = chunks + count * 4;
        Places { dim_offsets, var_offsets, chunks, body, pages: body.div_ceil(PAGE) }
    }
}

/// Positions of the parts of an index, counted from its first byte. The entries come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Header offsets of dimensions.
    pub dim_offsets: u64,
    /// Header offsets of variables.
    pub var_offsets: u64,
    /// Checksums of the header, four bytes each.
    pub chunks: u64,
    /// Bytes of the body; the page sums follow it.
    pub body: u64,
    /// Number of page sums, four bytes each.
    pub pages: u64,
}

impl Places {
    /// Bytes of the whole index.
    pub fn len(&self) -> u64 {
        self.body + self.pages * 4 + LOCATOR
    }
    /// Always false: an index has at least its locator.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// Offset of the index in a file of this length; `None` if it does not fit after the header.
    pub fn begin(&self, file_len: u64, header_len: u64) -> Option<u64> {
        file_len.checked_sub(self.len()).filter(|begin| *begin >= header_len && begin.is_multiple_of(8))
    }
}

/// Offset of an index in a file whose data end at `end`: the next multiple of eight.
pub fn begin_after(end: u64) -> Result<u64> {
    end.checked_next_multiple_of(8)
        .ok_or_else(|| Error::invalid(format!("data that end at byte {end} leave no room for a name index")))
}

/// Encodes a list of numbers for the body.
pub fn words(list: &[u64]) -> Vec<u8> {
    list.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn locator() -> Locator {
        Locator {
            dims_at: 12,
            attrs_at: 400,
            vars_at: 500,
            header_len: 200_000,
            dims: 130,
            vars: 70,
            record_size: 24,
            escaped: true,
            pages_crc: 7,
        }
    }

    #[test]
    fn entries_sort_by_hash_and_tell_kind_and_number() {
        let (a, b) = (path_hash("a"), path_hash("b"));
        for (kind, id) in [(Kind::Dim, 0), (Kind::Var, 0), (Kind::Var, 0x7fff_ffff)] {
            assert_eq!(object(entry(a, kind, id)), (kind, id));
        }
        assert_eq!(a < b, entry(a, Kind::Var, 9) < entry(b, Kind::Dim, 1));
        assert!(entry(a, Kind::Dim, 5) < entry(a, Kind::Var, 1));
    }

    #[test]
    fn sums_do_not_depend_on_who_wrote_what() {
        let data: Vec<u8> = (0..200_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let mut whole = Sums::new(CHUNK);
        whole.add(12, &data);
        assert_eq!(whole.list().len(), 4);
        let expected = join(&whole, 12, 12 + data.len() as u64).unwrap();
        for cuts in [vec![1, 70_000, 70_001], vec![65_524, 131_060], vec![100; 1]] {
            let mut edges = vec![0];
            edges.extend(cuts);
            edges.push(data.len());
            let mut parts: Vec<Sums> = edges
                .windows(2)
                .map(|edge| {
                    let mut part = Sums::new(CHUNK);
                    part.add(12 + edge[0] as u64, &data[edge[0]..edge[1]]);
                    part
                })
                .collect();
            parts.reverse();
            let mut gathered = Sums::new(CHUNK);
            parts.iter().for_each(|part| gathered.unpack(&part.pack()).unwrap());
            assert_eq!(join(&gathered, 12, 12 + data.len() as u64).unwrap(), expected);
            assert_eq!(join(&gathered, 12, 13 + data.len() as u64), None, "a byte is missing");
            gathered.add(20, b"again");
            assert_eq!(join(&gathered, 12, 12 + data.len() as u64), None, "bytes written twice");
        }
        assert_eq!(expected[0], crc(&data[..65_524]));
        assert_eq!(expected[1], crc(&data[65_524..131_060]));
    }

    #[test]
    fn a_locator_survives_its_bytes_and_no_damage() {
        let bytes = locator().encode();
        assert_eq!(Locator::decode(&bytes), Some(locator()));
        for i in 0..bytes.len() {
            let mut damaged = bytes;
            damaged[i] ^= 4;
            assert_eq!(Locator::decode(&damaged), None, "byte {i}");
        }
        assert_eq!(Locator::decode(&bytes[1..]), None);
    }

    #[test]
    fn places_follow_from_the_counts() {
        let places = locator().places();
        assert_eq!(places.dim_offsets, 200 * 8);
        assert_eq!(places.var_offsets, 200 * 8 + 3 * 8);
        assert_eq!(places.chunks, 200 * 8 + 5 * 8);
        assert_eq!(places.body, 200 * 8 + 5 * 8 + 4 * 4);
        assert_eq!(places.pages, 1);
        assert_eq!(places.len(), places.body + 4 + 64);
        assert_eq!(places.begin(200_000 + places.len(), 200_000), Some(200_000));
        assert_eq!(places.begin(200_000 + places.len() - 8, 200_000), None, "inside the header");
        assert_eq!(places.begin(10, 0), None);
    }
}
