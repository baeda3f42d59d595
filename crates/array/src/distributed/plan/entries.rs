//! Elements by blocks: which of its elements a rank sends to an owner, and where they belong there.
//!
//! Sent once, when a plan is made:
//!
//! | part of a message | |
//! |---|---|
//! | form | `u8`: 0 elements, 1 runs |
//! | blocks | `u32` n, then n × { `u32` block within the owner's range, `u32` how many entries less 1 } |
//! | offsets | `u16` each, within the block |
//! | lengths | of runs: `u16` each, less 1 |
//!
//! All little-endian. Entries of a block stand in the order of the sender's buffer, in which elements are sent later.

use std::ops::Range;

use fieldstone_core::{Error, Result};

use super::blocks::BLOCK;
use crate::distributed::view::Run;

/// The entries of some blocks, sorted by them.
#[derive(Debug, Default)]
pub struct BlockEntries {
    /// Blocks that have entries, ascending, each with where its entries end.
    blocks: Vec<(u64, usize)>,
    offsets: Vec<u16>,
    /// Lengths of runs, less 1; empty where each entry is one element.
    lens: Vec<u16>,
    /// Where each begins in this rank's buffer, in elements; empty on the side of an owner.
    locals: Locals,
}

/// Numbers of elements in a buffer.
#[derive(Debug)]
enum Locals {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Default for Locals {
    fn default() -> Locals {
        Locals::Narrow(Vec::new())
    }
}

impl Locals {
    fn get(&self, i: usize) -> u64 {
        match self {
            Locals::Narrow(all) => u64::from(all[i]),
            Locals::Wide(all) => all[i],
        }
    }
}

/// A run that is cut where blocks begin.
fn cut(run: Run, mut each: impl FnMut(u64, u64, u64, u64)) {
    let mut done = 0;
    while done < run.len {
        let (block, offset) = ((run.global + done) / BLOCK, (run.global + done) % BLOCK);
        let len = (BLOCK - offset).min(run.len - done);
        each(block, offset, run.local + done, len);
        done += len;
    }
}

impl BlockEntries {
    /// The entries of runs that `give` gives, each time the same; of an array of so many blocks. `buffer` is how many
    /// elements the buffer has.
    pub fn of_runs(blocks: u64, buffer: u64, give: impl Fn(&mut dyn FnMut(Run))) -> BlockEntries {
        let (mut runs, mut elements) = (0u64, 0u64);
        give(&mut |run| cut(run, |_, _, _, len| (runs, elements) = (runs + 1, elements + len)));
        // An entry of a run takes two bytes more than one of an element.
        let by_runs = 2 * runs <= elements;
        let mut at = vec![0usize; blocks as usize + 1];
        give(&mut |run| {
            cut(run, |block, _, _, len| at[block as usize + 1] += if by_runs { 1 } else { len as usize });
        });
        (1..at.len()).for_each(|i| at[i] += at[i - 1]);
        let count = at.last().copied().unwrap_or(0);
        let ends = (0..blocks).filter(|block| at[*block as usize] < at[*block as usize + 1]);
        let listed: Vec<(u64, usize)> = ends.map(|block| (block, at[block as usize + 1])).collect();
        let mut offsets = vec![0u16; count];
        let mut lens = vec![0u16; if by_runs { count } else { 0 }];
        let mut narrow = vec![0u32; if buffer <= u64::from(u32::MAX) { count } else { 0 }];
        let mut wide = vec![0u64; count - narrow.len()];
        let mut put = |block: u64, offset: u64, local: u64, len: u64| {
            let i = at[block as usize];
            at[block as usize] += 1;
            offsets[i] = offset as u16;
            lens.get_mut(i).into_iter().for_each(|at| *at = (len - 1) as u16);
            match narrow.get_mut(i) {
                Some(at) => *at = local as u32,
                None => wide[i] = local,
            }
        };
        give(&mut |run| {
            cut(run, |block, offset, local, len| match by_runs {
                true => put(block, offset, local, len),
                false => (0..len).for_each(|i| put(block, offset + i, local + i, 1)),
            });
        });
        let locals = if wide.is_empty() { Locals::Narrow(narrow) } else { Locals::Wide(wide) };
        BlockEntries { blocks: listed, offsets, lens, locals }
    }

    /// The listed blocks that lie within a range, by their numbers in the list.
    fn listed(&self, range: &Range<u64>) -> Range<usize> {
        let from = |block: u64| self.blocks.partition_point(|(listed, _)| *listed < block);
        from(range.start)..from(range.end)
    }

    fn begin(&self, listed: usize) -> usize {
        listed.checked_sub(1).map_or(0, |before| self.blocks[before].1)
    }

    /// Each block of a range that has entries, with their numbers.
    pub fn blocks_in(&self, range: &Range<u64>) -> impl Iterator<Item = (u64, Range<usize>)> {
        self.listed(range).map(|listed| (self.blocks[listed].0, self.begin(listed)..self.blocks[listed].1))
    }

    /// The numbers of the entries of the blocks of a range.
    pub fn entries_in(&self, range: &Range<u64>) -> Range<usize> {
        let listed = self.listed(range);
        self.begin(listed.start)..self.begin(listed.end)
    }

    /// First element within its block, and how many there are.
    pub fn entry(&self, i: usize) -> (u64, u64) {
        (u64::from(self.offsets[i]), self.lens.get(i).map_or(1, |len| u64::from(*len) + 1))
    }

    /// First element in the buffer.
    pub fn local(&self, i: usize) -> u64 {
        self.locals.get(i)
    }

    /// How many elements some entries have.
    pub fn elements(&self, entries: Range<usize>) -> u64 {
        match self.lens.get(entries.clone()) {
            Some(lens) if !self.lens.is_empty() => lens.iter().map(|len| u64::from(*len) + 1).sum(),
            _ => entries.len() as u64,
        }
    }

    /// Bytes of memory that they take.
    pub fn memory(&self) -> u64 {
        let locals = match &self.locals {
            Locals::Narrow(all) => all.len() * 4,
            Locals::Wide(all) => all.len() * 8,
        };
        (self.blocks.len() * 16 + (self.offsets.len() + self.lens.len()) * 2 + locals) as u64
    }

    /// The message to the owner of a range of blocks; empty where it has no entries.
    pub fn message(&self, range: &Range<u64>) -> Vec<u8> {
        let entries = self.entries_in(range);
        if entries.is_empty() {
            return Vec::new();
        }
        let listed = self.listed(range);
        let parts = if self.lens.is_empty() { 2 } else { 4 };
        let mut bytes = Vec::with_capacity(5 + listed.len() * 8 + entries.len() * parts);
        bytes.push(u8::from(!self.lens.is_empty()));
        bytes.extend_from_slice(&(listed.len() as u32).to_le_bytes());
        for (block, own) in self.blocks_in(range) {
            bytes.extend_from_slice(&((block - range.start) as u32).to_le_bytes());
            bytes.extend_from_slice(&(own.len() as u32 - 1).to_le_bytes());
        }
        let mut put =
            |numbers: &[u16]| numbers.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
        put(&self.offsets[entries.clone()]);
        put(self.lens.get(entries).unwrap_or_default());
        bytes
    }

    /// What a message says, to the owner of a range of blocks of an array of so many elements.
    pub fn of_message(bytes: &[u8], range: &Range<u64>, elements: u64) -> Result<BlockEntries> {
        if bytes.is_empty() {
            return Ok(BlockEntries::default());
        }
        let wrong = || Error::internal("a message about a plan that no rank writes");
        let mut rest = bytes;
        let mut take = |n: usize| rest.split_off(..n).ok_or_else(wrong);
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |n, byte| n << 8 | u64::from(*byte));
        let (form, listed) = (number(take(1)?), number(take(4)?) as usize);
        let mut blocks = Vec::new();
        let mut count = 0usize;
        for pair in take(listed.checked_mul(8).ok_or_else(wrong)?)?.chunks(8) {
            let block = range.start + number(&pair[..4]);
            count += number(&pair[4..]) as usize + 1;
            if block >= range.end || blocks.last().is_some_and(|(last, _)| *last >= block) {
                return Err(wrong());
            }
            blocks.push((block, count));
        }
        let mut numbers = || -> Result<Vec<u16>> {
            let bytes = take(count.checked_mul(2).ok_or_else(wrong)?)?;
            Ok(bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect())
        };
        let offsets = numbers()?;
        let lens = if form == 1 { numbers()? } else { Vec::new() };
        let entries = BlockEntries { blocks, offsets, lens, locals: Locals::default() };
        for (block, own) in entries.blocks_in(range) {
            let room = BLOCK.min(elements - block * BLOCK);
            let fits = |i| {
                let (offset, len) = entries.entry(i);
                offset + len <= room
            };
            if !own.into_iter().all(fits) {
                return Err(wrong());
            }
        }
        if rest.is_empty() && form <= 1 { Ok(entries) } else { Err(wrong()) }
    }
}
