//! The value of an index entry: a field, a piece of one or a removal, and the location of its bytes.
//!
//! ```text
//! entry   = commit: varint      index into the segment's commit table
//!           ordinal: varint     position in its commit; the higher wins
//!           flags: u8           1 array, 2 starts a generation, 4 piece, 8 chunked, 16 fill value
//!           length: varint      raw bytes
//!           [ array ]           if flag 1
//!           location
//! array   = dtype: text (canonical)  rank: varint  { extent: varint }
//!           [ { start: varint } { count: varint } ]     if flag 4
//!           [ { chunk extent: varint } ]                if flag 8
//!           [ fill: bytes ]                             if flag 16
//!           summary
//! ```
//! [`location`](crate::location) describes where the bytes are. Opaque bytes are cut into blocks every `size`
//! bytes (0: one block), and so are arrays in a file of the store that grows; other arrays are cut by their
//! chunk grid over the piece's own box, in C order.
//!
//! An entry of no bytes at a location of kind 06 is a **removal**: after it the key has no field. One of kind 09, without
//! flags, is an **attempt tombstone**: it makes no field, and hides entries of older attempts.

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{ChunkGrid, IndexBox, MAX_RANK, Summary, element_count};
pub use fieldstone_core::id::EntryId;
use fieldstone_core::{Error, Result};

use crate::block::{put_summary, read_summary};
use crate::bytes::{Cursor, Put};
pub use crate::location::{AttemptTombstone, Blocks, External, Grown, Location};

const ARRAY: u8 = 1;
const GENERATION: u8 = 2;
const PIECE: u8 = 4;
const CHUNKED: u8 = 8;
const FILL: u8 = 16;

/// A field, or a piece of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Index into the segment's table of commits.
    pub commit: u64,
    /// Position in its commit.
    pub ordinal: u64,
    /// Whether it hides everything older under its key.
    pub generation: bool,
    /// Raw bytes.
    pub length: u64,
    /// Present for arrays.
    pub array: Option<Box<ArrayInfo>>,
    /// Location of the bytes.
    pub location: Location,
    /// In a takeover: the writer whose data log holds the bytes, as a number in the table of names. `None` where they lie in
    /// a file of the segment's writer, or of the takeover.
    pub holder: Option<u64>,
}

/// Description of an array.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayInfo {
    /// Element type.
    pub dtype: DType,
    /// Shape of the whole field.
    pub shape: Vec<u64>,
    /// The box of this entry; `None` for the whole field.
    pub piece: Option<IndexBox>,
    /// Extents of the chunks into which the box is cut; `None` for a single block.
    pub chunk: Option<Vec<u64>>,
    /// Value of unwritten elements.
    pub fill: Option<Vec<u8>>,
    /// Extremes and missing elements of the box.
    pub summary: Option<Summary>,
}

impl Entry {
    /// The box of an array entry, in the field's index space.
    pub fn index_box(&self) -> Result<Option<IndexBox>> {
        let Some(array) = &self.array else { return Ok(None) };
        array.piece.clone().map_or_else(|| IndexBox::whole(&array.shape), Ok).map(Some)
    }

    /// The blocks of the raw bytes.
    pub fn layout(&self, size: u64) -> Result<Layout> {
        match &self.array {
            Some(_) if matches!(self.location, Location::Grown(_)) => {
                Ok(Layout::Bytes { length: self.length, size })
            }
            Some(array) => {
                let count = match &array.piece {
                    Some(piece) => piece.count().to_vec(),
                    None => array.shape.clone(),
                };
                let chunk = array.chunk.clone().unwrap_or_else(|| count.iter().map(|&n| n.max(1)).collect());
                Ok(Layout::Chunks(ChunkGrid::new(count, chunk)?, array.dtype.size() as u64))
            }
            None => Ok(Layout::Bytes { length: self.length, size }),
        }
    }

    /// Writes the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(self.commit);
        out.put_varint(self.ordinal);
        let mut flags = if self.generation { GENERATION } else { 0 };
        if let Some(array) = &self.array {
            flags |= ARRAY;
            flags |= if array.piece.is_some() { PIECE } else { 0 };
            flags |= if array.chunk.is_some() { CHUNKED } else { 0 };
            flags |= if array.fill.is_some() { FILL } else { 0 };
        }
        out.push(flags);
        out.put_varint(self.length);
        if let Some(array) = &self.array {
            array.encode(out);
        }
        match self.holder {
            Some(holder) => self.location.encode_held(holder, self.array.is_some(), out),
            None => self.location.encode(self.array.is_some(), out),
        }
    }

    /// Reads an entry that ends where `bytes` ends.
    pub fn decode(bytes: &[u8]) -> Result<Entry> {
        let mut cursor = Cursor::new(bytes);
        let (commit, ordinal) = (cursor.varint()?, cursor.varint()?);
        let flags = cursor.u8()?;
        let opaque = flags & ARRAY == 0 && flags & !GENERATION != 0;
        if flags >= 32 || opaque || flags & (GENERATION | PIECE) == GENERATION | PIECE {
            return Err(cursor.fail("an entry has flags that do not go together"));
        }
        let length = cursor.varint()?;
        let array =
            if flags & ARRAY != 0 { Some(Box::new(ArrayInfo::decode(&mut cursor, flags)?)) } else { None };
        let mut entry = Entry {
            commit,
            ordinal,
            generation: flags & GENERATION != 0,
            length,
            array,
            location: Location::None,
            holder: None,
        };
        let (kind, holder) = Location::decode_kind(&mut cursor)?;
        entry.holder = holder;
        entry.location = entry.decode_location(kind, &mut cursor)?;
        if !cursor.is_empty() {
            return Err(cursor.fail("an entry is longer than its parts"));
        }
        entry.check_length()?;
        Ok(entry)
    }

    fn check_length(&self) -> Result<()> {
        match (&self.location, &self.array) {
            (Location::External(external), _) => external.check(self.length)?,
            (Location::Grown(grown), Some(array))
                if self.generation && array.piece.is_none() && array.chunk.is_none() =>
            {
                grown.check(self.length, array.dtype.size() as u64)?;
                let elements = element_count(&array.shape).map_err(wrong)?;
                if elements.checked_mul(array.dtype.size() as u64) != Some(self.length) {
                    return Err(Error::corrupt("an entry's length contradicts its content"));
                }
            }
            (Location::Grown(_), _) => {
                return Err(Error::corrupt("a file of the store holds whole arrays without chunks"));
            }
            _ => {}
        }
        let expected = match (&self.location, &self.array) {
            (Location::Removed { .. }, None) if self.generation => Ok(0),
            (Location::AttemptTombstone(_), None) if !self.generation => Ok(0),
            (Location::AttemptTombstone(_), _) => {
                Err(Error::corrupt("an attempt tombstone is neither an array nor a field"))
            }
            (Location::Removed { .. }, _) => Err(Error::corrupt("a removal is neither an array nor a piece")),
            (_, Some(_)) => self.layout(0).and_then(|layout| layout.total()),
            (Location::Inline { data, .. }, None) => Ok(data.len() as u64),
            (Location::None, None) => Err(Error::corrupt("opaque bytes have no location")),
            (_, None) => Ok(self.length),
        };
        match expected.map_err(wrong)? {
            length if length == self.length => Ok(()),
            _ => Err(Error::corrupt("an entry's length contradicts its content")),
        }
    }

    fn decode_location(&self, kind: u8, cursor: &mut Cursor<'_>) -> Result<Location> {
        let count = |size| self.layout(size).and_then(|layout| layout.count()).map_err(wrong);
        let ranges = |size| Layout::Bytes { length: self.length, size }.count();
        Location::decode(kind, cursor, self.array.is_some(), count, ranges)
    }

    /// Whether a purge left it of an entry that hides older attempts.
    pub fn is_attempt_tombstone(&self) -> bool {
        matches!(self.location, Location::AttemptTombstone(_))
    }

    /// Whether it makes a field by itself: all bytes of it, in as many bytes as the field has.
    pub fn is_whole_field(&self) -> bool {
        let makes_none = matches!(
            self.location,
            Location::None | Location::Removed { .. } | Location::AttemptTombstone(_)
        );
        let is_piece = self.array.as_ref().is_some_and(|array| array.piece.is_some());
        self.generation && !makes_none && !is_piece
    }

    /// Whether the key has no field after this entry.
    pub fn is_removal(&self) -> bool {
        matches!(self.location, Location::Removed { .. })
    }
}

/// Whether an encoded entry is a removal.
pub fn is_removal(value: &[u8]) -> Result<bool> {
    let mut cursor = Cursor::new(value);
    let (_commit, _ordinal) = (cursor.varint()?, cursor.varint()?);
    if cursor.u8()? != GENERATION {
        return Ok(false);
    }
    let _length = cursor.varint()?;
    Ok(cursor.u8()? == crate::location::REMOVED)
}

/// A wrong value in stored bytes is damage, even if it is another error in a caller's argument.
fn wrong(e: Error) -> Error {
    Error::corrupt(format!("an index entry is wrong: {}", e.message()))
}

impl ArrayInfo {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_bytes(self.dtype.to_string().as_bytes());
        out.put_varint(self.shape.len() as u64);
        let mut extents = |extents: &[u64]| extents.iter().for_each(|&e| out.put_varint(e));
        extents(&self.shape);
        if let Some(piece) = &self.piece {
            extents(piece.start());
            extents(piece.count());
        }
        if let Some(chunk) = &self.chunk {
            extents(chunk);
        }
        if let Some(fill) = &self.fill {
            out.put_bytes(fill);
        }
        put_summary(self.summary.as_ref(), out);
    }

    fn decode(cursor: &mut Cursor<'_>, flags: u8) -> Result<ArrayInfo> {
        let name = cursor.text()?;
        let dtype = DType::parse(name).map_err(wrong)?;
        // A short form ("f8") would mean another type on another machine.
        if dtype.to_string() != name {
            return Err(cursor.fail("an element type is not in its canonical form"));
        }
        let rank = cursor.count(1)?;
        if rank > MAX_RANK {
            return Err(cursor.fail("an array has too many dimensions"));
        }
        let extents =
            |cursor: &mut Cursor<'_>| (0..rank).map(|_| cursor.varint()).collect::<Result<Vec<u64>>>();
        let shape = extents(cursor)?;
        let piece = if flags & PIECE != 0 {
            let (start, count) = (extents(cursor)?, extents(cursor)?);
            Some(IndexBox::new(start, count, &shape).map_err(wrong)?)
        } else {
            None
        };
        let chunk = if flags & CHUNKED != 0 { Some(extents(cursor)?) } else { None };
        let fill = if flags & FILL != 0 { Some(cursor.bytes()?.to_vec()) } else { None };
        if fill.as_ref().is_some_and(|fill| fill.len() != dtype.size()) {
            return Err(cursor.fail("a fill value has another length than its type"));
        }
        Ok(ArrayInfo { dtype, shape, piece, chunk, fill, summary: read_summary(cursor)? })
    }
}

/// The blocks of an entry's raw bytes.
#[derive(Debug, Clone)]
pub enum Layout {
    /// Opaque bytes, cut every `size` bytes (0: not at all).
    Bytes {
        /// Raw bytes in all.
        length: u64,
        /// Raw length of all blocks but the last.
        size: u64,
    },
    /// An array, cut by a chunk grid; with the size of an element.
    Chunks(ChunkGrid, u64),
}

impl Layout {
    /// Number of blocks. Empty bytes and arrays without elements have none.
    pub fn count(&self) -> Result<u64> {
        Ok(match self {
            Layout::Bytes { length: 0, .. } => 0,
            Layout::Bytes { size: 0, .. } => 1,
            Layout::Bytes { length, size } => length.div_ceil(*size),
            Layout::Chunks(grid, _) => grid.chunk_count(),
        })
    }

    /// Raw bytes of block `index`.
    pub fn raw_len(&self, index: u64) -> Result<u64> {
        match self {
            Layout::Bytes { length, size: 0 } => Ok(*length),
            Layout::Bytes { length, size } => {
                Ok((*size).min(length.saturating_sub(index.saturating_mul(*size))))
            }
            Layout::Chunks(grid, item) => grid
                .chunk_box(index)?
                .element_count()
                .and_then(|n| n.checked_mul(*item).ok_or_else(|| Error::corrupt("a chunk exceeds 64 bits"))),
        }
    }

    /// Raw bytes in all.
    pub fn total(&self) -> Result<u64> {
        match self {
            Layout::Bytes { length, .. } => Ok(*length),
            Layout::Chunks(grid, item) => element_count(grid.shape())?
                .checked_mul(*item)
                .ok_or_else(|| Error::corrupt("an array exceeds 64 bits")),
        }
    }
}
