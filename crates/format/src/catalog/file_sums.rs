//! Checksums, block by block, of a file that the store owns and whose format has no place for checksums.
//!
//! ```text
//! sums = size: varint  block: varint  n x u32
//! ```
//! where n is the number of blocks of `block` bytes in `size` bytes; the last block may be shorter. n is at
//! most [`ROWS_MAX`].

use fieldstone_core::Result;
use fieldstone_core::catalog::FileSums;

use super::ROWS_MAX;
use crate::bytes::{Cursor, Put};

/// Block size of the checksums of a file of `size` bytes: 1 MiB, or the least power of two with which all checksums fit
/// one record.
pub fn sums_block(size: u64) -> u64 {
    (size.div_ceil(ROWS_MAX as u64)).next_power_of_two().max(1 << 20)
}

/// Encodes checksums to send them to other ranks.
pub fn encode_sums(sums: &FileSums) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_file_sums(&mut bytes, sums);
    bytes
}

/// Decodes the bytes of [`encode_sums`].
pub fn decode_sums(bytes: &[u8]) -> Result<FileSums> {
    read_file_sums(&mut Cursor::new(bytes))
}

/// The first rule that checksums break, if any.
pub(super) fn check_file_sums(sums: &FileSums) -> std::result::Result<(), &'static str> {
    let FileSums { size, block, sums } = sums;
    match () {
        () if i64::try_from(*size).is_err() || *block == 0 => Err("impossible size of a file or block"),
        () if sums.len() > ROWS_MAX => Err("more checksums than a record may have"),
        () if size.div_ceil(*block) != sums.len() as u64 => {
            Err("the number of checksums does not match the blocks")
        }
        () => Ok(()),
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
        return Err(cursor.fail("checksums have an impossible number of blocks"));
    }
    let sums = (0..blocks).map(|_| cursor.u32()).collect::<Result<Vec<u32>>>()?;
    Ok(FileSums { size, block, sums: sums.into() })
}
