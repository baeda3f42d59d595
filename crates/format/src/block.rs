//! Blocks: the unit in which a field's bytes are compressed and checksummed, and the tables that list the
//! blocks of a field with many blocks.
//!
//! A block is stored compressed if and only if its stored length differs from its raw length; a block that
//! zstd does not shrink is stored raw. The checksum covers the stored bytes, so that a reader finds damage
//! before it decompresses anything.
//!
//! ```text
//! blocks = { stored: varint, crc: u32 [, summary ] }     as many as the layout cuts; see `entry`
//! summary = kind: u8 (0 none, 1 i64, 2 u64, 3 f64, 4 all missing)  [ min: 8, max: 8 ]  missing: varint
//! ```

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;

use fieldstone_core::geometry::{Scalar, Summary};
use fieldstone_core::{Code, Error, Result};
use zstd::bulk::{Compressor, Decompressor};

use crate::bytes::{Cursor, Put};
use crate::crc;

/// Largest raw length of a block of opaque bytes.
pub const OPAQUE_BLOCK: u64 = 1 << 20;
/// Block length of opaque fields that are longer than [`OPAQUE_BLOCK`].
pub const OPAQUE_SPLIT: u64 = 256 << 10;
/// Arrays up to this many bytes are one block; larger ones are cut into chunks of at most
/// [`ARRAY_CHUNK`] bytes.
pub const ARRAY_WHOLE: u64 = 1 << 20;
/// Target length of chunks of large arrays.
pub const ARRAY_CHUNK: u64 = 64 << 10;
/// An entry with more blocks than this keeps them in a table outside the index.
pub const INLINE_BLOCKS: usize = 8;

/// Highest ratio of raw bytes to stored bytes.
const MAX_RATIO: u64 = 32 << 10;

/// Stored length, checksum and summary of one block.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Bytes in the file.
    pub stored: u64,
    /// CRC-32C of the stored bytes.
    pub crc: u32,
    /// Extremes and missing elements, for blocks of arrays.
    pub summary: Option<Summary>,
}

/// Compresses with zstd at `level`, or keeps the bytes if that does not make them shorter.
pub fn pack(raw: &[u8], level: Option<i32>) -> Cow<'_, [u8]> {
    let Some(level) = level else { return Cow::Borrowed(raw) };
    match compress(raw, level) {
        Ok(packed) if packed.len() < raw.len() => Cow::Owned(packed),
        _ => Cow::Borrowed(raw),
    }
}

/// Checks a stored block and decompresses it into `out`, which has the raw length.
pub fn unpack(stored: &[u8], block: &Block, out: &mut [u8]) -> Result<()> {
    check(stored, block)?;
    unpack_checked(stored, out)
}

/// Compares a stored block with its checksum.
pub fn check(stored: &[u8], block: &Block) -> Result<()> {
    if stored.len() as u64 == block.stored && crc(stored) == block.crc {
        return Ok(());
    }
    Err(Code::Checksum.error("a block does not match its checksum"))
}

/// Refuses a raw length that no zstd frame of `stored` bytes can have, before the caller allocates it: four
/// bytes of a frame decompress to at most 128 KiB.
pub fn check_raw_len(stored: u64, raw: u64) -> Result<()> {
    if raw > stored.saturating_mul(MAX_RATIO) {
        return Err(Error::corrupt(format!("a block of {stored} bytes cannot hold {raw}")));
    }
    Ok(())
}

/// Decompresses a block whose checksum was already checked.
pub fn unpack_checked(stored: &[u8], out: &mut [u8]) -> Result<()> {
    if stored.len() == out.len() {
        out.copy_from_slice(stored);
        return Ok(());
    }
    match decompress(stored, out) {
        Ok(n) if n == out.len() => Ok(()),
        Ok(n) => Err(Error::corrupt(format!("a block holds {n} bytes instead of {}", out.len()))),
        Err(e) => Err(Error::corrupt("a block cannot be decompressed").with_source(e)),
    }
}

thread_local! {
    /// Kept for each thread, because making a decompressor takes longer than decompressing a small block.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    /// The same for compression, with the level that it was made for.
    static COMPRESSOR: RefCell<Option<(i32, Compressor<'static>)>> = const { RefCell::new(None) };
}

fn compress(raw: &[u8], level: i32) -> io::Result<Vec<u8>> {
    let with_own = COMPRESSOR.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        let own = match slot.take() {
            Some((made_for, own)) if made_for == level => own,
            _ => Compressor::new(level)?,
        };
        slot.insert((level, own)).1.compress(raw)
    });
    // An ending thread no longer has one.
    with_own.unwrap_or_else(|_| Compressor::new(level)?.compress(raw))
}

fn decompress(stored: &[u8], out: &mut [u8]) -> io::Result<usize> {
    let with_own = DECOMPRESSOR.try_with(|slot| {
        let mut slot = slot.borrow_mut();
        let own = match slot.take() {
            Some(own) => own,
            None => Decompressor::new()?,
        };
        slot.insert(own).decompress_to_buffer(stored, out)
    });
    // An ending thread no longer has one.
    with_own.unwrap_or_else(|_| Decompressor::new()?.decompress_to_buffer(stored, out))
}

/// Writes a list of blocks.
pub fn put_blocks(blocks: &[Block], arrays: bool, out: &mut Vec<u8>) {
    for block in blocks {
        out.put_varint(block.stored);
        out.put_u32(block.crc);
        if arrays {
            put_summary(block.summary.as_ref(), out);
        }
    }
}

/// Reads `count` blocks.
pub fn read_blocks(cursor: &mut Cursor<'_>, count: u64, arrays: bool) -> Result<Vec<Block>> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count.saturating_mul(5) > cursor.remaining() {
        return Err(cursor.fail("a field has more blocks than its table"));
    }
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let (stored, crc) = (cursor.varint()?, cursor.u32()?);
        let summary = if arrays { read_summary(cursor)? } else { None };
        blocks.push(Block { stored, crc, summary });
    }
    Ok(blocks)
}

/// Writes the summary of a block or a field.
pub fn put_summary(summary: Option<&Summary>, out: &mut Vec<u8>) {
    let Some(summary) = summary else {
        out.push(0);
        out.put_varint(0);
        return;
    };
    match (&summary.min, &summary.max) {
        (Some(Scalar::Int(a)), Some(Scalar::Int(b))) => {
            out.push(1);
            out.put_i64(*a);
            out.put_i64(*b);
        }
        (Some(Scalar::UInt(a)), Some(Scalar::UInt(b))) => {
            out.push(2);
            out.put_u64(*a);
            out.put_u64(*b);
        }
        (Some(Scalar::Float(a)), Some(Scalar::Float(b))) => {
            out.push(3);
            out.put_u64(a.to_bits());
            out.put_u64(b.to_bits());
        }
        // All elements are missing: no extremes.
        _ => out.push(4),
    }
    out.put_varint(summary.missing);
}

/// Reads a summary; `None` if the element type has none.
pub fn read_summary(cursor: &mut Cursor<'_>) -> Result<Option<Summary>> {
    let (min, max) = match cursor.u8()? {
        0 => {
            cursor.varint()?;
            return Ok(None);
        }
        1 => (Some(Scalar::Int(cursor.i64()?)), Some(Scalar::Int(cursor.i64()?))),
        2 => (Some(Scalar::UInt(cursor.u64()?)), Some(Scalar::UInt(cursor.u64()?))),
        3 => {
            let (a, b) = (f64::from_bits(cursor.u64()?), f64::from_bits(cursor.u64()?));
            (Some(Scalar::Float(a)), Some(Scalar::Float(b)))
        }
        4 => (None, None),
        _ => return Err(cursor.fail("a summary has an unknown kind")),
    };
    Ok(Some(Summary { min, max, missing: cursor.varint()? }))
}
