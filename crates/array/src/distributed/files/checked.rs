//! Reads a slab whose checksums are known, and never returns unchecked bytes.
//!
//! A [`CheckedFile`] is a layer between the code that moves elements and the file. It reads whole blocks, compares
//! the CRC-32C of each with the stored one, and passes on the requested bytes. Blocks that a read covers
//! completely go directly to their destination; the last block that was read in part is cached for neighbouring reads
//!
//!
//! Invariants:
//! * bytes of a block are returned only after all of that block was checked; a read that fails leaves zeros;
//! * bytes outside the slab have no checksums and are refused;
//! * it takes memory for one block in addition to the caller's, and in a collective read a window of [`WINDOW`]
//!   bytes, or one block if that is more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::env::comm::{CommReader, Team, TeamReader};
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Error, Result};

use super::image::Extent;

/// Bytes of blocks that a rank reads in one round of a collective read.
const WINDOW: u64 = 4 << 20;
const STEP: &str = "check";

/// A block that was read in part.
#[derive(Debug, Default)]
struct LastBlock {
    /// Its number, if there is such a block.
    number: Option<u64>,
    bytes: Vec<u8>,
}

/// A file in which one slab is read and checked. See the module's documentation.
#[derive(Debug)]
pub struct CheckedFile {
    below: Arc<dyn CommReader>,
    team: Team,
    /// The file's name, for messages.
    name: String,
    slab: Extent,
    /// Size of a block in bytes.
    block: u64,
    sums: Arc<[u32]>,
    last: Mutex<LastBlock>,
    read: AtomicU64,
}

impl CheckedFile {
    /// Adds a layer to the file named `name` that checks a slab against the checksums of its blocks of `block` bytes;
    /// returns the file, and the layer.
    ///
    /// Errors: `Corrupt` if the number of checksums is not that of the blocks.
    pub fn over(
        file: &TeamReader,
        name: &str,
        slab: Extent,
        block: u64,
        sums: Arc<[u32]>,
    ) -> Result<(TeamReader, Arc<CheckedFile>)> {
        let block = block.max(1);
        let ends = slab.offset.checked_add(slab.len).is_some_and(|end| end <= i64::MAX as u64);
        if slab.len.div_ceil(block) != sums.len() as u64 || !ends {
            return Err(Code::Checksum
                .error(format!(
                    "{name}: {} checksums for {} bytes from {} on, in blocks of {block}",
                    sums.len(),
                    slab.len,
                    slab.offset
                ))
                .with_hint("the record of this array is damaged: verify the store"));
        }
        let (below, team, name) = (file.below(), file.team().clone(), name.to_owned());
        let (last, read) = (Mutex::default(), AtomicU64::new(0));
        let checked = Arc::new(CheckedFile { below, team, name, slab, block, sums, last, read });
        Ok((file.over(checked.clone()), checked))
    }

    /// The number of bytes read from the file.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn last(&self) -> MutexGuard<'_, LastBlock> {
        self.last.lock()
    }

    /// The begin of a block in the slab, and its length.
    fn extent(&self, block: u64) -> (u64, usize) {
        let at = block * self.block;
        (at, self.block.min(self.slab.len - at) as usize)
    }

    /// The offset in the slab of `len` bytes from `offset` on.
    fn within(&self, offset: u64, len: usize) -> Result<u64> {
        let at = offset.checked_sub(self.slab.offset);
        let is_within = |at: &u64| at.checked_add(len as u64).is_some_and(|end| end <= self.slab.len);
        at.filter(is_within).ok_or_else(|| {
            Error::internal(format!(
                "{}: {len} bytes are read from {offset} on, but checksums are known for {} from {} on",
                self.name, self.slab.len, self.slab.offset
            ))
        })
    }

    /// Compares blocks from `first` on, with content `bytes`, with their checksums.
    fn check(&self, first: u64, bytes: &[u8]) -> Result<()> {
        for (number, bytes) in (first..).zip(bytes.chunks(self.block as usize)) {
            let known = self.sums.get(number as usize).copied();
            let found = crc32c::crc32c(bytes);
            if known != Some(found) {
                let offset = self.slab.offset + number * self.block;
                return Err(Code::Checksum
                    .error(format!(
                        "{}: the {} bytes from {offset} on have the checksum {found:08x}, but {:08x} was \
                         stored",
                        self.name,
                        bytes.len(),
                        known.unwrap_or(0)
                    ))
                    .with_hint(
                        "the file was changed or is damaged: get another copy of it, or write the step again",
                    ));
            }
        }
        Ok(())
    }

    /// Reads whole blocks from `first` on, and checks them.
    fn fetch(&self, first: u64, into: &mut [u8]) -> Result<()> {
        let offset = self.slab.offset + first * self.block;
        let n = self.below.read_at(into, offset)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        if n < into.len() {
            return Err(self.ends_at(offset + n as u64));
        }
        self.check(first, into)
    }

    fn ends_at(&self, end: u64) -> Error {
        Code::Truncated
            .error(format!(
                "{} ends at byte {end}, but {} bytes from {} on were written to it",
                self.name, self.slab.len, self.slab.offset
            ))
            .with_hint("the file was cut: get another copy of it, or write the step again")
    }

    /// Fills `into` from byte `at` of the slab.
    fn fill(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            let here = at + done as u64;
            let (number, within) = (here / self.block, (here % self.block) as usize);
            let (_, len) = self.extent(number);
            if within == 0 && into.len() - done >= len {
                // Blocks that are needed whole are read directly to their destination.
                let end = if at + into.len() as u64 == self.slab.len {
                    into.len()
                } else {
                    done + (into.len() - done) / self.block as usize * self.block as usize
                };
                self.fetch(number, &mut into[done..end])?;
                done = end;
                continue;
            }
            let mut last = self.last();
            if last.number != Some(number) {
                last.number = None;
                last.bytes.resize(len, 0);
                self.fetch(number, &mut last.bytes)?;
                last.number = Some(number);
            }
            let take = (len - within).min(into.len() - done);
            into[done..done + take].copy_from_slice(&last.bytes[within..within + take]);
            done += take;
        }
        Ok(())
    }

    /// The blocks that the parts touch, ascending, each once.
    fn touched(&self, parts: &[(u64, &mut [u8])]) -> Result<Vec<u64>> {
        let mut blocks: Vec<u64> = Vec::new();
        for (offset, part) in parts {
            let at = self.within(*offset, part.len())?;
            if part.is_empty() {
                continue;
            }
            let (first, end) = (at / self.block, (at + part.len() as u64 - 1) / self.block + 1);
            let first = blocks.last().map_or(first, |last| first.max(last + 1));
            blocks.extend(first..end);
        }
        Ok(blocks)
    }

    /// This rank's part in one round: reads some blocks together with the other ranks, and copies the requested
    /// bytes.
    fn round(&self, blocks: &[u64], bytes: &mut Vec<u8>, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        let total: usize = blocks.iter().map(|block| self.extent(*block).1).sum();
        bytes.resize(total, 0);
        let (mut wanted, mut rest) = (Vec::with_capacity(blocks.len()), &mut bytes[..]);
        for block in blocks {
            let (at, len) = self.extent(*block);
            let (own, behind) = rest.split_at_mut(len);
            wanted.push((self.slab.offset + at, own));
            rest = behind;
        }
        self.below.read_all(&mut wanted)?;
        self.read.fetch_add(total as u64, Ordering::Relaxed);
        for (block, (_, bytes)) in blocks.iter().zip(&wanted) {
            self.check(*block, bytes)?;
        }
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return Ok(()) };
        let (begin, end) =
            (self.slab.offset + first * self.block, self.slab.offset + (last + 1) * self.block);
        let reached = parts.partition_point(|(offset, part)| offset + part.len() as u64 <= begin);
        for (offset, part) in parts.iter_mut().skip(reached).take_while(|(offset, _)| *offset < end) {
            let (from, to) = (*offset - self.slab.offset, *offset - self.slab.offset + part.len() as u64);
            let first = blocks.partition_point(|block| (block + 1) * self.block <= from);
            for (block, (_, bytes)) in blocks.iter().zip(&wanted).skip(first) {
                let at = block * self.block;
                if at >= to {
                    break;
                }
                let (begin, end) = (from.max(at), to.min(at + bytes.len() as u64));
                part[(begin - from) as usize..(end - from) as usize]
                    .copy_from_slice(&bytes[(begin - at) as usize..(end - at) as usize]);
            }
        }
        Ok(())
    }
}

impl CommReader for CheckedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let outcome = self.within(offset, buffer.len()).and_then(|at| self.fill(at, buffer));
        if outcome.is_err() {
            buffer.fill(0);
        }
        outcome.map(|()| buffer.len())
    }

    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        let touched = self.touched(parts);
        let blocks = touched.as_deref().unwrap_or_default();
        let each = (WINDOW / self.block).max(1) as usize;
        let rounds = blocks.len().div_ceil(each) as u64;
        let most = self.team.max(STEP, Ok(vec![rounds]))?.first().copied().unwrap_or(0);
        let mut outcome = touched.as_ref().map(drop).map_err(Error::replicate);
        let mut bytes = Vec::new();
        // A rank that failed takes part with nothing, because the others wait for it.
        let mut windows = blocks.chunks(each);
        for _ in 0..most {
            let window = windows.next().filter(|_| outcome.is_ok()).unwrap_or_default();
            outcome = outcome.and(self.round(window, &mut bytes, parts));
        }
        if outcome.is_err() {
            parts.iter_mut().for_each(|(_, part)| part.fill(0));
        }
        outcome
    }

    fn len(&self) -> Result<u64> {
        self.below.len()
    }
}
