//! Segments: sorted, immutable parts of the index, in memory or in a file, with the same reads for both.
//!
//! * `storage`: the place of a segment's bytes; pages of files, checked and cached;
//! * `cursor`: sequential reads;
//! * `rows`: rows from the logs, with each name stored once;
//! * `route`: rows on their way to slots;
//! * `build`: a segment in memory, from rows;
//! * [`index`]: vertices by type, value and word;
//! * `merge`: one segment from several;
//! * `write`: the writer that `build` and `merge` use.
//!
//! Invariants:
//! * vertices are in the order of their places, and so are the far ends of a group; versions are newest
//!   first;
//! * among versions of one relation or vertex with the same stamp and user only the one known last is kept;
//! * every byte from a file was compared with its checksum.

mod build;
mod cursor;
pub mod index;
mod merge;
mod packer;
mod route;
mod rows;
mod storage;
mod write;

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Archive, TypeDecl, VertexName};
use fieldstone_format::graph_segment::directory::{Section, Summary};
use fieldstone_format::graph_segment::rows::read_name;
use fieldstone_format::graph_segment::{CommitKnown, KNOWN_BYTES, OFFSETS_BYTES, PLACE_BYTES, VertexPlace};

use index::SegmentIndex;

pub use build::build;
pub use cursor::SegmentCursor;
pub use merge::{KeepHalves, merge, merge_kept, merge_young};
pub use rows::{CommitOrder, Rows};
pub use storage::{FileStorage, PageCache, SectionBytes, Storage};
pub use write::{FileSink, MemorySink, Sink};

/// A declared type, with the time and user of the declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeRow {
    /// The time when it became known.
    pub known: CommitKnown,
    /// The user who declared it.
    pub user: u32,
    /// The declaration.
    pub declared: TypeDecl,
}

/// The store to which a commit's versions with stubs were moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveRow {
    /// The time when the commit became known: also that of each version that it has a stub of.
    pub known: CommitKnown,
    /// The user of the versions.
    pub user: u32,
    /// The other store.
    pub archive: Archive,
}

/// A deletion of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tombstone {
    /// The vertex.
    pub place: VertexPlace,
    /// The stamp.
    pub stamp: u64,
    /// The user who deleted it.
    pub user: u32,
}

/// A segment.
#[derive(Debug)]
pub struct Segment {
    storage: Storage,
    /// Facts about the segment as a whole.
    pub summary: Summary,
    /// Names of types, in the order of `summary`.
    pub names: Vec<Arc<str>>,
    /// Declared types.
    pub types: Vec<TypeRow>,
    /// Stores to which content was moved.
    pub archives: Vec<ArchiveRow>,
    /// Deletions of vertices, by place, newest first.
    pub tombstones: Vec<Tombstone>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its indexes of vertices by type, value and word, as far as they were used.
    pub(crate) index: SegmentIndex,
}

impl Segment {
    /// A segment over these bytes. Corrupt if they cannot be one.
    pub fn over(storage: Storage, summary: Summary) -> Result<Segment> {
        let vertices = summary.vertices;
        let sized = |section, bytes: usize, n: u64| storage.len(section) == n.saturating_mul(bytes as u64);
        let offsets = if vertices == 0 { 0 } else { vertices + 1 };
        if !sized(Section::Places, PLACE_BYTES, vertices)
            || !sized(Section::Offsets, OFFSETS_BYTES, offsets)
            || u32::try_from(vertices).is_err()
        {
            return Err(Error::corrupt("the sections of a segment do not fit its number of vertices"));
        }
        let names = summary.names.iter().map(|name| name.as_str().into()).collect();
        let bytes = storage.bytes();
        let (types, archives, tombstones, index) = Default::default();
        let mut segment = Segment { storage, summary, names, types, archives, tombstones, bytes, index };
        segment.types = write::read_types(&segment.section(Section::Types)?)?;
        segment.archives = write::read_archives(&segment.section(Section::Archives)?)?;
        segment.tombstones =
            write::read_tombstones(&segment.section(Section::Tombstones)?, &segment.summary)?;
        Ok(segment)
    }

    fn section(&self, section: Section) -> Result<SectionBytes<'_>> {
        self.storage.read(section, 0, self.storage.len(section) as usize)
    }

    /// Whether it is in memory alone.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.storage, Storage::Memory(_))
    }

    /// Its file; `None` if it is in memory.
    pub fn path(&self) -> Option<&Path> {
        match &self.storage {
            Storage::Memory(_) => None,
            Storage::File(file) => Some(file.path()),
        }
    }

    /// The number of vertices that it names.
    pub fn vertices(&self) -> u32 {
        self.summary.vertices as u32
    }

    /// The place of a vertex, by its number.
    pub fn place(&self, number: u32) -> Result<VertexPlace> {
        read_place(&self.storage.read(Section::Places, number as usize * PLACE_BYTES, PLACE_BYTES)?)
    }

    /// The bytes of the places of some vertices, by their numbers.
    pub fn places(&self, range: std::ops::Range<u32>) -> Result<SectionBytes<'_>> {
        let (from, len) = (range.start as usize * PLACE_BYTES, range.len() * PLACE_BYTES);
        self.storage.read(Section::Places, from, len)
    }

    /// The number of a vertex.
    pub fn find(&self, place: VertexPlace) -> Result<Option<u32>> {
        // Places are spread evenly: guess a position from the value, and narrow it down.
        let (mut low, mut high) = (0u32, self.vertices());
        let (mut least, mut most) = (0u128, u128::MAX);
        let mut halve = false;
        let mut cursor = SegmentCursor::default();
        while low < high {
            let middle = match halve {
                true => low + (high - low) / 2,
                false => {
                    let (span, at) = ((most - least) >> 64, (place.0 - least) >> 64);
                    let part = if span == 0 { 0 } else { at * u128::from(high - low) / (span + 1) };
                    low + (part as u32).min(high - low - 1)
                }
            };
            let found = self.place_on(middle, &mut cursor)?;
            if !(least..=most).contains(&found.0) {
                return Err(Error::corrupt("the places of a segment are out of order"));
            }
            match found.cmp(&place) {
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
                std::cmp::Ordering::Less => (low, least) = (middle + 1, found.0),
                std::cmp::Ordering::Greater => (high, most) = (middle, found.0),
            }
            // After a guess that is far off, as with few places, cut the range in the middle.
            halve = !halve && high - low > 8;
        }
        Ok(None)
    }

    /// The beginnings of rows and adjacency of a vertex, and those of the next one.
    fn offsets(&self, number: u32) -> Result<[(usize, usize); 3]> {
        let bytes =
            self.storage.read(Section::Offsets, number as usize * OFFSETS_BYTES, 2 * OFFSETS_BYTES)?;
        read_offsets(&bytes)
    }

    /// The rows of a vertex: its versions, followed by those of the relations that leave it.
    pub fn rows(&self, number: u32) -> Result<SectionBytes<'_>> {
        let [(from, to), ..] = self.offsets(number)?;
        self.storage.read(Section::Rows, from, to - from)
    }

    /// The adjacency of a vertex.
    pub fn adjacency(&self, number: u32) -> Result<SectionBytes<'_>> {
        let [_, (from, to), _] = self.offsets(number)?;
        self.storage.read(Section::Adjacency, from, to - from)
    }

    /// Type, as an index, and id of a vertex, as they are stored.
    pub fn name_bytes(&self, number: u32) -> Result<SectionBytes<'_>> {
        let [.., (from, to)] = self.offsets(number)?;
        self.storage.read(Section::Names, from, to - from)
    }

    /// Type and id of a vertex.
    pub fn name(&self, number: u32) -> Result<VertexName> {
        let name = self.name_bytes(number)?;
        let (kind, id) = read_name(&name)?;
        Ok(VertexName { kind: self.kind(kind)?.clone(), id: id.into() })
    }

    /// The name of a type, by its index.
    pub fn kind(&self, index: u32) -> Result<&Arc<str>> {
        self.names.get(index as usize).ok_or_else(outside)
    }

    /// A user, by its index.
    pub fn user(&self, index: u32) -> Result<u32> {
        self.summary.users.get(index as usize).copied().ok_or_else(outside)
    }

    /// The number of commits that made its content visible.
    pub fn known_len(&self) -> u32 {
        (self.storage.len(Section::Known) / KNOWN_BYTES as u64) as u32
    }

    /// The time when a commit became known, by its index.
    pub fn known(&self, index: u32) -> Result<CommitKnown> {
        read_known(&self.storage.read(Section::Known, index as usize * KNOWN_BYTES, KNOWN_BYTES)?)
    }
}

/// The begin and end of rows, adjacency and name of a vertex.
#[inline]
fn read_offsets(bytes: &[u8]) -> Result<[(usize, usize); 3]> {
    let six = |at: usize| {
        let bytes = bytes.get(at..at + 6).ok_or_else(outside)?;
        Ok(bytes.iter().rev().fold(0usize, |n, byte| n << 8 | usize::from(*byte)))
    };
    let span = |at: usize| Ok((six(at)?, six(at + OFFSETS_BYTES)?));
    let spans = [span(0)?, span(6)?, span(12)?];
    if spans.iter().any(|(from, to)| from > to) { Err(outside()) } else { Ok(spans) }
}

/// A place as it is stored.
fn read_place(bytes: &[u8]) -> Result<VertexPlace> {
    let bytes: [u8; PLACE_BYTES] = bytes.try_into().map_err(|_| outside())?;
    Ok(VertexPlace(u128::from_be_bytes(bytes)))
}

/// The time when a commit became known, as it is stored.
fn read_known(entry: &[u8]) -> Result<CommitKnown> {
    let stamp = |at: usize| {
        let bytes = entry.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes).ok_or_else(outside)
    };
    Ok(CommitKnown { since: stamp(0)?, stamp: stamp(8)? })
}

/// The error for content of a file that no segment can have.
pub fn outside() -> Error {
    Error::corrupt("a segment of the graph points outside of itself")
}
