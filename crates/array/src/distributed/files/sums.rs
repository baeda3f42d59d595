//! Checksums of written data: the writers compute the CRC-32C of each block of a slab.
//!
//! A block has 65,536 elements. A [`SummedFile`] is a layer between the code that moves elements and the file;
//! it computes the checksum of each piece that it sees inside a block, and rank 0 joins adjacent pieces. A block that
//! was written in another way (in many small pieces, or twice) is read back.

use std::sync::Arc;

use fieldstone_core::env::comm::layer::FileLayer;
use fieldstone_core::env::comm::{CommFile, Team, TeamFile};
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Error, Result};

use super::image::Extent;
pub use crate::distributed::blocks::BLOCK;
use crate::distributed::blocks::PIECES;

const STEP: &str = "sums";

/// Bytes of a slab, inside one block, and their checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SummedPiece {
    at: u64,
    len: u64,
    sum: u32,
}

#[derive(Debug, Default)]
struct Pieces {
    list: Vec<SummedPiece>,
    /// Whether there were too many pieces.
    lost: bool,
}

/// A file that computes the checksums of one slab as it is written.
#[derive(Debug)]
pub struct SummedFile {
    below: Arc<dyn CommFile>,
    slab: Extent,
    /// Size of a block in bytes.
    block: u64,
    pieces: Mutex<Pieces>,
}

impl FileLayer for SummedFile {
    fn below(&self) -> &dyn CommFile {
        &*self.below
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.below.write_at(data, offset)?;
        self.note(data, offset);
        Ok(())
    }

    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        self.below.write_all(parts)?;
        parts.iter().for_each(|(offset, data)| self.note(data, *offset));
        Ok(())
    }
}

impl SummedFile {
    /// Adds a layer to the file that checksums a slab of elements of `size` bytes; returns the file, and the layer.
    pub fn over(file: &TeamFile, slab: Extent, size: u64) -> (TeamFile, Arc<SummedFile>) {
        SummedFile::by_blocks(file, slab, BLOCK * size.max(1))
    }

    /// As [`over`](Self::over), in blocks of `block` bytes.
    pub fn by_blocks(file: &TeamFile, slab: Extent, block: u64) -> (TeamFile, Arc<SummedFile>) {
        let below = file.below();
        let summed = Arc::new(SummedFile { below, slab, block, pieces: Mutex::default() });
        (file.over(summed.clone()), summed)
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock()
    }

    fn blocks(&self) -> u64 {
        self.slab.len.div_ceil(self.block)
    }

    fn note(&self, data: &[u8], offset: u64) {
        let mut pieces = self.pieces();
        let mut done = 0;
        while done < data.len() && !pieces.lost {
            let Some(at) = (offset + done as u64).checked_sub(self.slab.offset) else { return };
            if at >= self.slab.len {
                return;
            }
            let len = (self.block - at % self.block).min(self.slab.len - at).min((data.len() - done) as u64);
            let part = &data[done..done + len as usize];
            match pieces.list.last_mut() {
                Some(last) if last.at + last.len == at && at % self.block != 0 => {
                    (last.sum, last.len) = (crc32c::crc32c_append(last.sum, part), last.len + len);
                }
                _ => pieces.list.push(SummedPiece { at, len, sum: crc32c::crc32c(part) }),
            }
            pieces.lost = pieces.list.len() as u64 > PIECES * (self.blocks() + 16);
            done += len as usize;
        }
    }

    /// This rank's pieces, packed for rank 0: their number, then the position, length and checksum of each.
    fn packed(&self) -> Vec<u8> {
        let pieces = self.pieces();
        let list = if pieces.lost { &[] } else { &pieces.list[..] };
        let count = if pieces.lost { LOST } else { list.len() as u64 };
        let words = list.iter().flat_map(|piece| [piece.at, piece.len, u64::from(piece.sum)]);
        std::iter::once(count).chain(words).flat_map(u64::to_le_bytes).collect()
    }

    /// The checksum of each block whose pieces are adjacent and complete.
    fn join(&self, pieces: &[SummedPiece]) -> Vec<Option<u32>> {
        let mut rest = pieces.iter().peekable();
        let of_block = |block: u64| {
            let end = ((block + 1) * self.block).min(self.slab.len);
            let (mut at, mut sum, mut whole) = (block * self.block, 0, true);
            while let Some(piece) = rest.next_if(|piece| piece.at < end) {
                whole &= piece.at == at;
                sum = if at == block * self.block { piece.sum } else { joined(sum, piece) };
                at = piece.at + piece.len;
            }
            (whole && at == end).then_some(sum)
        };
        (0..self.blocks()).map(of_block).collect()
    }

    /// Collective: reads the slab, which begins at `begin`, and checksums it; each rank takes some consecutive
    /// blocks.
    fn read_back(&self, file: &TeamFile, begin: u64) -> Result<Vec<u32>> {
        let team = file.team();
        file.visibility_barrier(STEP, Ok(()))?;
        let (rank, size) = (team.rank() as u64, team.size() as u64);
        let cut = |rank: u64| (u128::from(self.blocks()) * u128::from(rank) / u128::from(size)) as u64;
        let mut bytes = vec![0; self.block.min(self.slab.len) as usize];
        let mut sums = Vec::new();
        let mut read = || -> Result<()> {
            for block in cut(rank)..cut(rank + 1) {
                let at = block * self.block;
                let part = &mut bytes[..self.block.min(self.slab.len - at) as usize];
                if file.read_at(part, begin + at)? < part.len() {
                    return Err(Error::corrupt("the file ends inside the data written to it"));
                }
                sums.extend(crc32c::crc32c(part).to_le_bytes());
            }
            Ok(())
        };
        let outcome = read();
        let all = team.gather(STEP, 0, outcome.map(|()| sums))?;
        Ok(all.iter().flat_map(|sums| sums.as_chunks().0).map(|sum| u32::from_le_bytes(*sum)).collect())
    }
}

/// Collective: for each slab, the checksums of all blocks, on rank 0; nothing on other ranks. Data without complete
/// checksums are read back from the given offset, because the slab may have moved since it was written.
pub fn collect(team: &Team, slabs: &[(Arc<SummedFile>, TeamFile, u64)]) -> Result<Vec<Vec<u32>>> {
    if slabs.is_empty() {
        return Ok(Vec::new());
    }
    let own = slabs.iter().flat_map(|(summed, ..)| summed.packed()).collect();
    let all = team.gather(STEP, 0, Ok(own))?;
    let joined = match team.rank() {
        0 => join_all(&all, slabs),
        _ => Ok(vec![None; slabs.len()]),
    };
    // Rank 0 announces the slabs with missing checksums.
    let missing = joined.as_ref().map_err(Error::replicate).map(|joined| {
        let mut words = vec![0u64; slabs.len().div_ceil(64)];
        let lacks = joined.iter().enumerate().filter(|(_, sums)| sums.is_none() && team.rank() == 0);
        lacks.for_each(|(slab, _)| words[slab / 64] |= 1 << (slab % 64));
        words
    });
    let missing = team.max(STEP, missing)?;
    let mut sums = Vec::with_capacity(slabs.len());
    for (slab, ((summed, file, at), joined)) in slabs.iter().zip(joined?).enumerate() {
        sums.push(match missing[slab / 64] >> (slab % 64) & 1 {
            0 => joined.unwrap_or_default(),
            _ => summed.read_back(file, *at)?,
        });
    }
    Ok(sums)
}

/// On rank 0: the checksums of each slab, `None` for slabs that must be read back.
fn join_all(all: &[Vec<u8>], slabs: &[(Arc<SummedFile>, TeamFile, u64)]) -> Result<Vec<Option<Vec<u32>>>> {
    let mut rests: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
    let mut joined = Vec::with_capacity(slabs.len());
    for (summed, ..) in slabs {
        let (mut pieces, mut lost) = (Vec::new(), false);
        for rest in &mut rests {
            lost |= SummedPiece::unpack(rest, &mut pieces)
                .ok_or_else(|| Error::internal("checksums came from a rank in another form"))?;
        }
        pieces.sort_unstable();
        let sums: Option<Vec<u32>> = summed.join(&pieces).into_iter().collect();
        joined.push(sums.filter(|_| !lost));
    }
    Ok(joined)
}

/// Takes the place of the number of pieces for a rank that lost some.
const LOST: u64 = u64::MAX;

impl SummedPiece {
    /// Takes the pieces of one slab from the front of a rank's message; returns whether the rank lost some. `None` if
    /// the bytes are not valid.
    fn unpack(bytes: &mut &[u8], pieces: &mut Vec<SummedPiece>) -> Option<bool> {
        let mut word = || {
            let (word, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(u64::from_le_bytes(*word))
        };
        let count = word()?;
        if count == LOST {
            return Some(true);
        }
        for _ in 0..count {
            let (at, len, sum) = (word()?, word()?, word()? as u32);
            pieces.push(SummedPiece { at, len, sum });
        }
        Some(false)
    }
}

/// The checksum of some bytes followed by a piece: the result of `crc32c_combine`, which takes a hundred times as
/// long.
fn joined(sum: u32, piece: &SummedPiece) -> u32 {
    times(zeros(piece.len), sum) ^ piece.sum
}

/// The polynomial of CRC-32C, with the coefficient of x^0 in the highest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;
/// x to the power of 8, 16, 32, ..., modulo the polynomial: the factors for 1, 2, 4, ... zero bytes.
const POWERS: [u32; 64] = {
    // x^8 is the first.
    let mut powers = [1 << 23; 64];
    let mut n = 1;
    while n < 64 {
        powers[n] = times(powers[n - 1], powers[n - 1]);
        n += 1;
    }
    powers
};

/// The factor by which this number of appended zero bytes multiplies a checksum.
fn zeros(bytes: u64) -> u32 {
    let set = (0..64).filter(|n| bytes >> n & 1 == 1);
    set.fold(1 << 31, |product, n| times(POWERS[n], product))
}

/// The product of two polynomials, modulo that of CRC-32C.
const fn times(a: u32, mut b: u32) -> u32 {
    let (mut product, mut bit) = (0, 1u32 << 31);
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 == 0 { b >> 1 } else { b >> 1 ^ POLYNOMIAL };
        bit >>= 1;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::{SummedPiece, joined};

    #[test]
    fn checksums_that_are_joined_are_those_of_all_bytes() {
        let bytes: Vec<u8> = (0..1_100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for (first, len) in [(0, 1), (1, 0), (1, 1), (7, 2048), (65_537, 999_999), (1000, 1 << 20)] {
            let (a, b) = (&bytes[..first], &bytes[first..first + len]);
            let piece = SummedPiece { at: first as u64, len: len as u64, sum: crc32c::crc32c(b) };
            let sum = joined(crc32c::crc32c(a), &piece);
            assert_eq!(sum, crc32c::crc32c(&bytes[..first + len]), "{first} and {len} bytes");
            assert_eq!(sum, crc32c::crc32c_combine(crc32c::crc32c(a), piece.sum, len));
        }
    }
}
