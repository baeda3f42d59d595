//! Tables: sorted rows of a key and a value in blocks that form a tree (takeovers.md, 2). A row is found by its key, or by
//! its number, counted from 0; either reads as many blocks as the tree is high.
//!
//! ```text
//! block ref = file: varint  offset: varint  stored: varint  crc: u32
//! block     = 00 body | 01 raw length: varint  body as one zstd frame
//! leaf      = { shared: varint  rest: bytes  value: bytes }
//! inner     = { block ref  rows: varint  shared: varint  rest: bytes }      the key of the child's first row
//! reference = rows: varint  height: u8  block ref  first key: bytes  last key: bytes
//! ```
//!
//! [`TableBuilder`] writes a table of any size with one open block for each level; [`TableCursor`] reads one the same way.
//! A [`BlockSink`] keeps its blocks, and a
//! [`BlockSource`] gives them.
//!
//! ```
//! use fieldstone_format::table::{MemoryBlocks, TableBuilder, TableCursor};
//!
//! let mut blocks = MemoryBlocks::default();
//! let mut builder = TableBuilder::new();
//! for number in 0..10_000u32 {
//!     builder.push(&number.to_be_bytes(), b"value", &mut blocks)?;
//! }
//! let table = builder.finish(&mut blocks)?.unwrap();
//! let mut cursor = TableCursor::new(&table, &blocks);
//! assert!(cursor.seek(&77u32.to_be_bytes())?);
//! assert_eq!((cursor.row(), cursor.value()), (77, &b"value"[..]));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod build;
mod read;

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};

pub use build::TableBuilder;
pub use read::{CheckedRows, TableCursor};

use crate::block::{check_raw_len, pack, unpack_checked};
use crate::bytes::{Cursor, Put};
use crate::crc;

/// Raw length at which a block is closed.
pub const BLOCK_TARGET: usize = 16 << 10;
/// Greatest height accepted.
pub const HEIGHT_MAX: u8 = 16;
/// Longest raw block accepted.
const BLOCK_MAX: usize = 1 << 30;
/// Level of zstd: blocks are read far more often than they are written.
const LEVEL: i32 = 3;

/// The position of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockRef {
    /// 0 for the file of the takeover, n for its data log n.
    pub file: u32,
    /// Offset of the first byte.
    pub offset: u64,
    /// Stored bytes.
    pub stored: u64,
    /// CRC-32C of the stored bytes.
    pub crc: u32,
}

impl BlockRef {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::from(self.file));
        out.put_varint(self.offset);
        out.put_varint(self.stored);
        out.put_u32(self.crc);
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<BlockRef> {
        let reference = BlockRef {
            file: u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a file number is too large"))?,
            offset: cursor.varint()?,
            stored: cursor.varint()?,
            crc: cursor.u32()?,
        };
        match reference.offset.checked_add(reference.stored) {
            Some(_) if reference.stored > 0 => Ok(reference),
            _ => Err(cursor.fail("a block has an impossible length")),
        }
    }

    /// Checks the stored bytes of the block, and unpacks its body.
    pub fn unpack(&self, stored: &[u8]) -> Result<Vec<u8>> {
        if stored.len() as u64 != self.stored || crc(stored) != self.crc {
            return Err(Code::Checksum.error("a block of a table does not match its checksum"));
        }
        let mut cursor = Cursor::new(stored);
        match cursor.u8()? {
            0 => Ok(stored[1..].to_vec()),
            1 => {
                let raw = cursor.size()?;
                if raw > BLOCK_MAX {
                    return Err(cursor.fail("a block has an impossible length"));
                }
                let packed = &stored[cursor.position()..];
                check_raw_len(packed.len() as u64, raw as u64)?;
                let mut body = vec![0; raw];
                unpack_checked(packed, &mut body)?;
                Ok(body)
            }
            _ => Err(cursor.fail("a block has an unknown form")),
        }
    }
}

/// The stored bytes of a block.
fn pack_block(body: &[u8]) -> Vec<u8> {
    let packed = pack(body, Some(LEVEL));
    let mut stored = Vec::with_capacity(packed.len() + 6);
    if packed.len() < body.len() {
        stored.push(1);
        stored.put_varint(body.len() as u64);
    } else {
        stored.push(0);
    }
    stored.extend_from_slice(&packed);
    stored
}

/// A table: its root, and what is known without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRef {
    /// Number of rows, at least one.
    pub rows: u64,
    /// Number of levels above the leaves.
    pub height: u8,
    /// The root.
    pub root: BlockRef,
    /// Key of the first row.
    pub first_key: Vec<u8>,
    /// Key of the last row.
    pub last_key: Vec<u8>,
}

impl TableRef {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.put_varint(self.rows);
        out.push(self.height);
        self.root.put(out);
        out.put_bytes(&self.first_key);
        out.put_bytes(&self.last_key);
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<TableRef> {
        let table = TableRef {
            rows: cursor.varint()?,
            height: cursor.u8()?,
            root: BlockRef::decode(cursor)?,
            first_key: cursor.bytes()?.to_vec(),
            last_key: cursor.bytes()?.to_vec(),
        };
        if table.rows == 0 || table.height > HEIGHT_MAX || table.first_key > table.last_key {
            return Err(cursor.fail("a table has an impossible form"));
        }
        Ok(table)
    }
}

/// Keeps the blocks of tables.
pub trait BlockSink {
    /// Takes the stored bytes of a block; returns where they are.
    fn put(&mut self, stored: &[u8]) -> Result<BlockRef>;
}

/// Gives the blocks of tables.
pub trait BlockSource {
    /// The body of the block, checked. May come from a cache.
    fn block(&self, reference: &BlockRef) -> Result<Arc<[u8]>>;
}

impl<S: BlockSource + ?Sized> BlockSource for &S {
    fn block(&self, reference: &BlockRef) -> Result<Arc<[u8]>> {
        (**self).block(reference)
    }
}

impl<S: BlockSource + ?Sized> BlockSource for Arc<S> {
    fn block(&self, reference: &BlockRef) -> Result<Arc<[u8]>> {
        (**self).block(reference)
    }
}

/// Blocks in memory, as one file.
#[derive(Debug, Default, Clone)]
pub struct MemoryBlocks {
    /// The bytes of all blocks.
    pub bytes: Vec<u8>,
}

impl BlockSink for MemoryBlocks {
    fn put(&mut self, stored: &[u8]) -> Result<BlockRef> {
        let offset = self.bytes.len() as u64;
        self.bytes.extend_from_slice(stored);
        Ok(BlockRef { file: 0, offset, stored: stored.len() as u64, crc: crc(stored) })
    }
}

impl BlockSource for MemoryBlocks {
    fn block(&self, reference: &BlockRef) -> Result<Arc<[u8]>> {
        let start = usize::try_from(reference.offset).ok();
        let end = start.and_then(|start| start.checked_add(usize::try_from(reference.stored).ok()?));
        let stored = start.zip(end).and_then(|(start, end)| self.bytes.get(start..end));
        let stored = stored.ok_or_else(|| Error::corrupt("a block lies outside its file"))?;
        Ok(reference.unpack(stored)?.into())
    }
}
