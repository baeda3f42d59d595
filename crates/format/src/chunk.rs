//! Chunks for readers of Zarr 3: elements in C order, followed by the codecs `zstd` (or none) and `crc32c`.
//!
//! A stored block of an array, with its checksum, is such a chunk: codec `zstd` accepts any zstd frame, and
//! `crc32c` is the CRC-32C of all preceding bytes, little-endian. This module makes chunks of equal codecs
//! from elements that are not stored so: under `zstd` it writes a frame that holds the elements uncompressed
//! (RFC 8878, raw blocks), which costs one copy. The length of such a chunk is therefore known before the
//! chunk is made.
//!
//! ```
//! use fieldstone_format::chunk;
//!
//! let mut out = vec![0; chunk::length(5, true)];
//! chunk::encode(b"hello", true, &mut out);
//! let (frame, sum) = out.split_at(out.len() - 4);
//! assert_eq!(zstd::decode_all(frame)?, b"hello");
//! assert_eq!(sum, fieldstone_format::crc(frame).to_le_bytes());
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::crc;

/// Bytes of the checksum after a chunk.
pub const SUM: usize = 4;

/// The first bytes of a zstd frame.
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Descriptor of a frame that gives its content's length in 8 bytes and needs a window no larger than that.
const DESCRIPTOR: u8 = 0b1110_0000;
/// Bytes before the first block of a frame.
const HEADER: usize = 4 + 1 + 8;
/// Most bytes of a block.
const BLOCK: usize = 128 << 10;
/// Bytes of a block's header.
const BLOCK_HEADER: usize = 3;

/// Length of the chunk that [`encode`] makes from `raw` bytes.
pub fn length(raw: usize, packed: bool) -> usize {
    match packed {
        true => HEADER + raw.div_ceil(BLOCK).max(1) * BLOCK_HEADER + raw + SUM,
        false => raw + SUM,
    }
}

/// Writes `raw` as a chunk into `out`, which has its [`length`]; `packed` chunks are zstd frames.
pub fn encode(raw: &[u8], packed: bool, out: &mut [u8]) {
    let end = out.len() - SUM;
    match packed {
        true => frame(raw, &mut out[..end]),
        false => out[..end].copy_from_slice(raw),
    }
    sum(out);
}

/// Writes the checksum after the bytes of a chunk.
fn sum(out: &mut [u8]) {
    let (bytes, behind) = out.split_at_mut(out.len() - SUM);
    behind.copy_from_slice(&crc(bytes).to_le_bytes());
}

fn frame(raw: &[u8], out: &mut [u8]) {
    out[..4].copy_from_slice(&MAGIC);
    out[4] = DESCRIPTOR;
    out[5..HEADER].copy_from_slice(&(raw.len() as u64).to_le_bytes());
    let (mut rest, mut at) = (raw, HEADER);
    loop {
        let (block, behind) = rest.split_at(rest.len().min(BLOCK));
        let head = (block.len() as u32) << 3 | u32::from(behind.is_empty());
        out[at..at + BLOCK_HEADER].copy_from_slice(&head.to_le_bytes()[..BLOCK_HEADER]);
        at += BLOCK_HEADER;
        out[at..at + block.len()].copy_from_slice(block);
        at += block.len();
        if behind.is_empty() {
            return;
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_length_are_zstds() {
        for n in [0, 1, 2, 255, 256, 65_791, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 7] {
            let raw: Vec<u8> = (0..n).map(|i| ((i * i) >> 3) as u8).collect();
            let mut out = vec![0xee; length(n, true)];
            encode(&raw, true, &mut out);
            let (frame, behind) = out.split_at(out.len() - SUM);
            let mut found = vec![0; n];
            assert_eq!(zstd::bulk::decompress_to_buffer(frame, &mut found).unwrap(), n);
            assert_eq!(found, raw);
            assert_eq!(zstd::decode_all(frame).unwrap(), raw);
            assert_eq!(behind, crc(frame).to_le_bytes());
        }
    }

    #[test]
    fn a_plain_chunk_is_its_bytes_and_their_sum() {
        let mut out = vec![0; length(3, false)];
        encode(b"abc", false, &mut out);
        assert_eq!(&out[..3], b"abc");
        assert_eq!(out[3..], crc(b"abc").to_le_bytes());
    }
}
