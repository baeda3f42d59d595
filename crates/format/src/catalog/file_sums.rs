//! Checksums of a file that the store owns, block by block, where the format of the file has no place for them.
//!
//! ```text
//! sums = size: varint  block: varint  n x u32
//! ```
//! with n the number of blocks of `block` bytes that `size` bytes are, the last of which may be shorter; at most
//! [`ROWS_MAX`].

use std::sync::Arc;

use fieldstone_core::Result;

use super::ROWS_MAX;
use crate::bytes::{Cursor, Put};

/// Checksums of the blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSums {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of a block, but the last one.
    pub block: u64,
    /// CRC-32C of each block.
    pub sums: Arc<[u32]>,
}

impl FileSums {
    /// Bytes of a block in a file of `size` bytes: 1 MiB, or the power of two that is enough for all checksums to be in one
    /// record.
    pub fn block_of(size: u64) -> u64 {
        (size.div_ceil(ROWS_MAX as u64)).next_power_of_two().max(1 << 20)
    }

    /// As bytes, on their way to other ranks.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_file_sums(&mut bytes, self);
        bytes
    }

    /// What [`encode`](Self::encode) gave.
    pub fn decode(bytes: &[u8]) -> Result<FileSums> {
        read_file_sums(&mut Cursor::new(bytes))
    }

    /// In what it is none, if so.
    pub(super) fn check(&self) -> std::result::Result<(), &'static str> {
        let FileSums { size, block, sums } = self;
        match () {
            () if i64::try_from(*size).is_err() || *block == 0 => Err("a size or a block that no file has"),
            () if sums.len() > ROWS_MAX => Err("more checksums than a record may have"),
            () if size.div_ceil(*block) != sums.len() as u64 => Err("not a checksum for each block"),
            () => Ok(()),
        }
    }
}

pub(super) fn put_file_sums(out: &mut Vec<u8>, sums: &FileSums) {
    out.put_varint(sums.size);
    out.put_varint(sums.block);
    sums.sums.iter().for_each(|sum| out.put_u32(*sum));
}

pub(super) fn read_file_sums(cursor: &mut Cursor<'_>) -> Result<FileSums> {
    let (size, block) = (cursor.varint()?, cursor.varint()?);
    let is_sound = i64::try_from(size).is_ok() && block > 0;
    let blocks = if is_sound { size.div_ceil(block) } else { u64::MAX };
    if blocks > ROWS_MAX as u64 {
        return Err(cursor.fail("checksums of an impossible number of blocks"));
    }
    let sums = (0..blocks).map(|_| cursor.u32()).collect::<Result<Vec<u32>>>()?;
    Ok(FileSums { size, block, sums: sums.into() })
}
