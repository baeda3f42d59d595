//! The value of an index entry: what a field (or a piece of one) is, and where its bytes are.
//!
//! ```text
//! entry   = commit: varint      index into the run's commit table
//!           ordinal: varint     place within its commit; the higher wins
//!           flags: u8           1 array, 2 starts a generation, 4 piece, 8 chunked, 16 fill value
//!           length: varint      raw bytes
//!           [ array ]           if flag 1
//!           location
//! array   = dtype: text (canonical)  rank: varint  { extent: varint }
//!           [ { start: varint } { count: varint } ]     if flag 4
//!           [ { chunk extent: varint } ]                if flag 8
//!           [ fill: bytes ]                             if flag 16
//!           summary
//! location = 00                                           no bytes yet (a created field)
//!          | 01 file: varint offset: varint size: varint blocks    blocks, in line
//!          | 02 file offset size table offset: varint table length: varint table crc: u32
//!          | 03 url: text offset: varint layout: text crc: u32 size: u64 mtime: i64    external
//!          | 04 data: bytes crc: u32                                                   in line
//! ```
//! `file` 0 is the log that holds the run, n its writer's data log n. `size` is the raw length of every
//! block but the last for opaque bytes (0: one block); arrays are cut by their chunk grid over the
//! piece's own box, in C order. Blocks stand one behind the other from `offset` on.

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{ChunkGrid, IndexBox, MAX_RANK, Summary};
use fieldstone_core::{Error, Result};

use crate::block::{Block, INLINE_BLOCKS, put_blocks, put_summary, read_blocks, read_summary};
use crate::bytes::{Cursor, Put};

const ARRAY: u8 = 1;
const GENERATION: u8 = 2;
const PIECE: u8 = 4;
const CHUNKED: u8 = 8;
const FILL: u8 = 16;

/// A field, or a piece of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Index into the run's table of commits.
    pub commit: u64,
    /// Place within its commit.
    pub ordinal: u64,
    /// Whether it hides everything older under its key.
    pub generation: bool,
    /// Raw bytes.
    pub length: u64,
    /// Present for arrays.
    pub array: Option<ArrayInfo>,
    /// Where the bytes are.
    pub location: Location,
}

/// What an array entry says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayInfo {
    /// Element type.
    pub dtype: DType,
    /// Shape of the whole field.
    pub shape: Vec<u64>,
    /// The box this entry holds; `None` for all of it.
    pub piece: Option<IndexBox>,
    /// Chunk extents the box is cut by; `None` for a single block.
    pub chunk: Option<Vec<u64>>,
    /// Value of elements nobody wrote.
    pub fill: Option<Vec<u8>>,
    /// Extremes and missing elements of the box.
    pub summary: Option<Summary>,
}

/// Where an entry's bytes are.
#[derive(Debug, Clone, PartialEq)]
pub enum Location {
    /// Nowhere yet: the field was created and waits for pieces.
    None,
    /// Blocks in a file of the run's writer.
    Blocks {
        /// 0 for the writer's log, else the number of its data log.
        file: u32,
        /// Offset of the first block.
        offset: u64,
        /// Raw length of all blocks but the last (opaque bytes only).
        size: u64,
        /// The blocks, or where they are listed.
        blocks: Blocks,
    },
    /// A range of a file that the store does not own.
    External {
        /// Where the file is.
        url: String,
        /// First byte.
        offset: u64,
        /// How the bytes are laid out in it.
        layout: String,
        /// CRC-32C of the range.
        crc: u32,
        /// Size of the file when it was taken.
        size: u64,
        /// Change time of the file when it was taken, nanoseconds since 1970.
        mtime: i64,
    },
    /// In the entry itself.
    Inline {
        /// The bytes.
        data: Vec<u8>,
        /// Their CRC-32C.
        crc: u32,
    },
}

/// The blocks of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocks {
    /// Listed in the entry.
    Inline(Vec<Block>),
    /// Listed in a table in the same file.
    Table {
        /// Offset of the table.
        offset: u64,
        /// Bytes of the table.
        length: u64,
        /// CRC-32C of the table.
        crc: u32,
    },
}

impl Entry {
    /// The box of an array entry, in the field's index space.
    pub fn index_box(&self) -> Result<Option<IndexBox>> {
        let Some(array) = &self.array else { return Ok(None) };
        array.piece.clone().map_or_else(|| IndexBox::whole(&array.shape), Ok).map(Some)
    }

    /// How the raw bytes are cut into blocks.
    pub fn layout(&self, size: u64) -> Result<Layout> {
        match &self.array {
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
        self.location.encode(self.array.is_some(), out);
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
        let array = if flags & ARRAY != 0 { Some(ArrayInfo::decode(&mut cursor, flags)?) } else { None };
        let mut entry = Entry {
            commit,
            ordinal,
            generation: flags & GENERATION != 0,
            length,
            array,
            location: Location::None,
        };
        entry.location = entry.decode_location(&mut cursor)?;
        if !cursor.is_empty() {
            return Err(cursor.fail("an entry is longer than its parts"));
        }
        entry.check_length()?;
        Ok(entry)
    }

    fn check_length(&self) -> Result<()> {
        let expected = match (&self.location, &self.array) {
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

    fn decode_location(&self, cursor: &mut Cursor<'_>) -> Result<Location> {
        let tag = cursor.u8()?;
        Ok(match tag {
            0 => Location::None,
            1 | 2 => {
                let file =
                    u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a file number is too large"))?;
                let (offset, size) = (cursor.varint()?, cursor.varint()?);
                let blocks = if tag == 1 {
                    let count = self.layout(size).and_then(|layout| layout.count()).map_err(wrong)?;
                    Blocks::Inline(read_blocks(cursor, count, self.array.is_some())?)
                } else {
                    Blocks::Table { offset: cursor.varint()?, length: cursor.varint()?, crc: cursor.u32()? }
                };
                Location::Blocks { file, offset, size, blocks }
            }
            3 => Location::External {
                url: cursor.text()?.to_owned(),
                offset: cursor.varint()?,
                layout: cursor.text()?.to_owned(),
                crc: cursor.u32()?,
                size: cursor.u64()?,
                mtime: cursor.i64()?,
            },
            4 => Location::Inline { data: cursor.bytes()?.to_vec(), crc: cursor.u32()? },
            _ => return Err(cursor.fail("an entry has an unknown kind of location")),
        })
    }
}

/// What stored bytes say wrongly is damage, whatever it is in a caller's argument.
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

impl Location {
    /// Moves blocks by `base` bytes, and to another file where one is given.
    pub fn shift(&mut self, to: Option<u32>, base: u64) {
        if let Location::Blocks { file, offset, blocks, .. } = self {
            *file = to.unwrap_or(*file);
            *offset += base;
            if let Blocks::Table { offset, .. } = blocks {
                *offset += base;
            }
        }
    }

    fn encode(&self, arrays: bool, out: &mut Vec<u8>) {
        match self {
            Location::None => out.push(0),
            Location::Blocks { file, offset, size, blocks } => {
                out.push(if matches!(blocks, Blocks::Inline(_)) { 1 } else { 2 });
                out.put_varint(u64::from(*file));
                out.put_varint(*offset);
                out.put_varint(*size);
                match blocks {
                    Blocks::Inline(blocks) => {
                        debug_assert!(blocks.len() <= INLINE_BLOCKS);
                        put_blocks(blocks, arrays, out);
                    }
                    Blocks::Table { offset, length, crc } => {
                        out.put_varint(*offset);
                        out.put_varint(*length);
                        out.put_u32(*crc);
                    }
                }
            }
            Location::External { url, offset, layout, crc, size, mtime } => {
                out.push(3);
                out.put_bytes(url.as_bytes());
                out.put_varint(*offset);
                out.put_bytes(layout.as_bytes());
                out.put_u32(*crc);
                out.put_u64(*size);
                out.put_i64(*mtime);
            }
            Location::Inline { data, crc } => {
                out.push(4);
                out.put_bytes(data);
                out.put_u32(*crc);
            }
        }
    }
}

/// How the raw bytes of an entry are cut into blocks.
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
    /// Number of blocks. Bytes of length 0 have none, nor have arrays without elements.
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
            Layout::Chunks(grid, item) => fieldstone_core::geometry::element_count(grid.shape())?
                .checked_mul(*item)
                .ok_or_else(|| Error::corrupt("an array exceeds 64 bits")),
        }
    }
}
