//! Sequential reads of a segment: a caller that reads adjacent data asks the cache only once for each page.
//!
//! A cursor remembers pages of the one segment with which it is used, and does not change the results.

use std::borrow::Cow;

use fieldstone_core::Result;
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::directory::Section;
use fieldstone_format::graph_segment::rows::{read_name, relations_at};
use fieldstone_format::graph_segment::{CommitKnown, KNOWN_BYTES, OFFSETS_BYTES, PLACE_BYTES, VertexPlace};

use super::storage::PageCursor;
use super::{Segment, outside, read_known, read_offsets, read_place};

/// The position of the last of many reads of a segment.
#[derive(Debug, Default)]
pub struct SegmentCursor {
    places: PageCursor,
    offsets: PageCursor,
    adjacency: PageCursor,
    rows: PageCursor,
    names: PageCursor,
    known: PageCursor,
    /// A vertex, with the begin and end of the rows of its relations.
    relations: Option<(u32, usize, usize)>,
}

/// Bytes before the rows of a vertex that hold its length.
const FRONT: usize = 10;

impl Segment {
    /// The adjacency of a vertex.
    #[inline]
    pub fn adjacency_on<'a>(&'a self, number: u32, cursor: &'a mut SegmentCursor) -> Result<Cow<'a, [u8]>> {
        let [_, (from, to), _] = self.offsets_on(number, &mut cursor.offsets)?;
        self.storage.read_on(Section::Adjacency, from, to - from, &mut cursor.adjacency)
    }

    /// The place of a vertex, by its number.
    pub fn place_on(&self, number: u32, cursor: &mut SegmentCursor) -> Result<VertexPlace> {
        let at = number as usize * PLACE_BYTES;
        read_place(&self.storage.read_on(Section::Places, at, PLACE_BYTES, &mut cursor.places)?)
    }

    /// The time when a commit became known, by its index.
    pub fn known_on(&self, index: u32, cursor: &mut SegmentCursor) -> Result<CommitKnown> {
        let at = index as usize * KNOWN_BYTES;
        read_known(&self.storage.read_on(Section::Known, at, KNOWN_BYTES, &mut cursor.known)?)
    }

    /// Type and id of a vertex.
    pub fn name_on(&self, number: u32, cursor: &mut SegmentCursor) -> Result<VertexName> {
        let [.., (from, to)] = self.offsets_on(number, &mut cursor.offsets)?;
        let name = self.storage.read_on(Section::Names, from, to - from, &mut cursor.names)?;
        let (kind, id) = read_name(&name)?;
        Ok(VertexName { kind: self.kind(kind)?.clone(), id: id.into() })
    }

    /// Bytes of the rows of relations that leave a vertex, counted from the end of its versions.
    pub fn row_on<'a>(
        &'a self,
        number: u32,
        (from, len): (u64, u32),
        cursor: &'a mut SegmentCursor,
    ) -> Result<Cow<'a, [u8]>> {
        if len == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        let (first, end) = match cursor.relations {
            Some((of, first, end)) if of == number => (first, end),
            _ => {
                let [(vertex, end), ..] = self.offsets_on(number, &mut cursor.offsets)?;
                let front = (end - vertex).min(FRONT);
                let front = self.storage.read_on(Section::Rows, vertex, front, &mut cursor.rows)?;
                let first = vertex.checked_add(relations_at(&front)?).ok_or_else(outside)?;
                cursor.relations = Some((number, first, end));
                (first, end)
            }
        };
        let from = usize::try_from(from).ok().and_then(|from| first.checked_add(from)).ok_or_else(outside)?;
        let fits = from.checked_add(len as usize).is_some_and(|to| to <= end);
        match fits {
            true => self.storage.read_on(Section::Rows, from, len as usize, &mut cursor.rows),
            false => Err(outside()),
        }
    }

    #[inline]
    fn offsets_on(&self, number: u32, cursor: &mut PageCursor) -> Result<[(usize, usize); 3]> {
        let at = number as usize * OFFSETS_BYTES;
        read_offsets(&self.storage.read_on(Section::Offsets, at, 2 * OFFSETS_BYTES, cursor)?)
    }
}
