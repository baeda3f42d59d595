//! Elements to the owners of their blocks, and back, in rounds.
//!
//! A round takes some blocks of each owner. Ranks send what they have of them in the order of the plan; the owner puts
//! each element in its place, compares those that several have, and hands the blocks on, in the file's byte order, with a
//! checksum each. Reading goes the other way.

use std::ops::Range;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};

use super::blocks::BLOCK;
use super::{Direction, TransferPlan};
use crate::distributed::buffer::{Element, Strides};
use crate::distributed::view::Whole;

/// The checksum (CRC-32C) of a block, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockSum {
    /// The block.
    pub block: u64,
    /// Its checksum, of the bytes in the file.
    pub sum: u32,
}

/// What a rank writes.
#[derive(Debug, Clone, Copy)]
pub struct SourceBuffer<'a> {
    /// Memory that holds the elements.
    pub bytes: &'a [u8],
    /// Where in it they are.
    pub strides: &'a Strides,
    /// What stands where nobody writes: an element in the file's byte order. Zeros where it is absent.
    pub fill: Option<&'a [u8]>,
}

/// Where a rank reads to.
#[derive(Debug)]
pub struct TargetBuffer<'a> {
    /// Memory that takes the elements.
    pub bytes: &'a mut [u8],
    /// Where in it they belong.
    pub strides: &'a Strides,
}

/// Writes some blocks that follow one another: their first element, and their bytes.
pub type WriteBlocks<'a> = dyn FnMut(u64, &[u8]) -> Result<()> + 'a;
/// Reads some blocks that follow one another, and checks them.
pub type ReadBlocks<'a> = dyn FnMut(u64, &mut [u8]) -> Result<()> + 'a;

impl TransferPlan {
    fn check_buffer(&self, direction: Direction, strides: &Strides) -> Result<()> {
        let given = strides.shape().iter().product::<u64>();
        if self.direction != direction {
            return Err(Error::internal("a plan for the other direction"));
        }
        match given == self.buffer {
            true => Ok(()),
            false => {
                let (needed, shape) = (self.buffer, strides.shape());
                Err(Code::ShapeMismatch
                    .error(format!("a buffer of shape {shape:?} for a view of {needed} elements")))
            }
        }
    }

    /// Collective: sends the elements of all ranks to the owners, who hand blocks to `write`. Gives the checksums of the
    /// own blocks. A round takes `buffer` bytes of a rank, and of an owner.
    pub fn write(
        &self,
        team: &Team,
        source: Result<SourceBuffer<'_>>,
        buffer: u64,
        write: &mut WriteBlocks<'_>,
    ) -> Result<Vec<BlockSum>> {
        let source =
            source.and_then(|source| self.check_buffer(Direction::Write, source.strides).map(|()| source));
        let source = team.agree("write", source)?;
        let element = source.strides.element();
        let window = self.agreed_window(team, element, Ok(buffer))?;
        let mut sums = Vec::new();
        let mut outcome = Ok(());
        let mut blocks = Vec::new();
        for round in 0..self.ownership.longest().div_ceil(window) {
            let parts = std::mem::replace(&mut outcome, Ok(())).map(|()| {
                let mut parts = vec![Vec::new(); team.size()];
                for owner in 0..self.ownership.owners() {
                    parts[self.ownership.rank(owner)] =
                        self.pack(&source, &self.window(owner, round, window));
                }
                parts
            });
            let messages = team.alltoallv("write", parts)?;
            let Some(owner) = self.ownership.owner_of_rank(team.rank()) else { continue };
            let own = self.window(owner, round, window);
            if own.is_empty() {
                continue;
            }
            outcome = self.place(&own, element, source.fill, &messages, &mut blocks);
            drop(messages);
            let bytes = BLOCK as usize * element.size();
            let summed = (own.start..).zip(blocks.chunks(bytes));
            sums.extend(summed.map(|(block, bytes)| BlockSum { block, sum: crc32c::crc32c(bytes) }));
            outcome = outcome.and_then(|()| write(own.start * BLOCK, &blocks));
        }
        team.agree("write", outcome.map(|()| sums))
    }

    /// The own elements of some blocks, in the file's byte order.
    fn pack(&self, source: &SourceBuffer<'_>, blocks: &Range<u64>) -> Vec<u8> {
        let entries = self.own.entries_in(blocks);
        let element = source.strides.element();
        let mut bytes = Vec::with_capacity(self.own.elements(entries.clone()) as usize * element.size());
        for i in entries {
            source.strides.copy_out(source.bytes, self.own.local(i), self.own.entry(i).1, &mut bytes);
        }
        element.swap(&mut bytes);
        bytes
    }

    /// Puts what ranks have sent of some blocks into `blocks`.
    fn place(
        &self,
        own: &Range<u64>,
        element: Element,
        fill: Option<&[u8]>,
        messages: &[Vec<u8>],
        blocks: &mut Vec<u8>,
    ) -> Result<()> {
        let size = element.size();
        let elements = self.ownership.elements_of(own);
        let bytes = (elements.end - elements.start) as usize * size;
        blocks.clear();
        blocks.resize(bytes, 0);
        let from = self.absent.partition_point(|(block, _)| *block < own.start);
        for (block, _) in self.absent[from..].iter().take_while(|(block, _)| *block < own.end) {
            let at = (block - own.start) as usize * BLOCK as usize * size;
            let end = (at + BLOCK as usize * size).min(bytes);
            if let Some(fill) = fill.filter(|fill| fill.len() == size) {
                blocks[at..end].chunks_mut(size).for_each(|element| element.copy_from_slice(fill));
            }
        }
        let mut taken = SharedElements::new(self, own);
        for (rank, (entries, message)) in self.ranks.iter().zip(messages).enumerate() {
            let mut rest = message.as_slice();
            if rest.len() as u64 != entries.elements(entries.entries_in(own)) * size as u64 {
                return Err(Error::internal(format!("rank {rank} sent other elements than its plan says")));
            }
            for (block, listed) in entries.blocks_in(own) {
                let first = (block - own.start) * BLOCK;
                let mut shared = taken.of(block);
                for i in listed {
                    let (offset, len) = entries.entry(i);
                    let at = (first + offset) as usize * size;
                    let Some(sent) = rest.split_off(..len as usize * size) else { break };
                    let place = &mut blocks[at..at + sent.len()];
                    if let Some(shared) = &mut shared {
                        for (k, (old, new)) in place.chunks(size).zip(sent.chunks(size)).enumerate() {
                            let at = offset as usize + k;
                            if shared[at] != 0 && old != new {
                                let element = block * BLOCK + at as u64;
                                return Err(differ(&self.whole, element, shared[at] - 1, rank));
                            }
                            shared[at] = rank as u32 + 1;
                        }
                    }
                    place.copy_from_slice(sent);
                }
            }
        }
        Ok(())
    }

    /// Collective: owners have `read` fill blocks, and send all ranks their elements. Only blocks are read of which
    /// somebody has elements.
    pub fn read(
        &self,
        team: &Team,
        target: Result<TargetBuffer<'_>>,
        buffer: u64,
        read: &mut ReadBlocks<'_>,
    ) -> Result<()> {
        let target =
            target.and_then(|target| self.check_buffer(Direction::Read, target.strides).map(|()| target));
        let target = team.agree("read", target)?;
        let element = target.strides.element();
        let window = self.agreed_window(team, element, Ok(buffer))?;
        for round in 0..self.ownership.longest().div_ceil(window) {
            let mut parts = Ok(vec![Vec::new(); team.size()]);
            if let Some(owner) = self.ownership.owner_of_rank(team.rank()) {
                parts = self.collect(&self.window(owner, round, window), element, read);
            }
            let mut messages = team.alltoallv("read", parts)?;
            for owner in 0..self.ownership.owners() {
                let bytes = &mut messages[self.ownership.rank(owner)];
                element.swap(bytes);
                let mut rest = bytes.as_slice();
                for i in self.own.entries_in(&self.window(owner, round, window)) {
                    let (local, len) = (self.own.local(i), self.own.entry(i).1);
                    let Some(sent) = rest.split_off(..len as usize * element.size()) else { break };
                    target.strides.copy_in(target.bytes, local, len, sent);
                }
            }
        }
        team.agree("read", Ok(()))
    }

    /// Reads some of the own blocks, and gives what each rank has of them.
    fn collect(&self, own: &Range<u64>, element: Element, read: &mut ReadBlocks<'_>) -> Result<Vec<Vec<u8>>> {
        let size = element.size();
        let needed = |block: u64| {
            let one = block..block + 1;
            self.ranks.iter().any(|entries| !entries.entries_in(&one).is_empty())
        };
        let wanted: Vec<bool> = own.clone().map(needed).collect();
        let elements = self.ownership.elements_of(own);
        let mut blocks = vec![0; (elements.end - elements.start) as usize * size];
        let mut begin = 0;
        for part in wanted.chunk_by(|a, b| a == b) {
            let span = own.start + begin..own.start + begin + part.len() as u64;
            begin += part.len() as u64;
            if part[0] {
                let span = self.ownership.elements_of(&span);
                let bytes = (span.start - elements.start) as usize * size
                    ..(span.end - elements.start) as usize * size;
                read(span.start, &mut blocks[bytes])?;
            }
        }
        let pack = |entries: &super::BlockEntries| {
            let mut part = Vec::with_capacity(entries.elements(entries.entries_in(own)) as usize * size);
            for (block, listed) in entries.blocks_in(own) {
                let first = (block - own.start) * BLOCK;
                for i in listed {
                    let (offset, len) = entries.entry(i);
                    let at = (first + offset) as usize * size;
                    part.extend_from_slice(&blocks[at..at + len as usize * size]);
                }
            }
            part
        };
        Ok(self.ranks.iter().map(pack).collect())
    }
}

/// Who gave each element of blocks that several ranks write: the rank and 1, or 0.
struct SharedElements<'a> {
    shared: &'a [u64],
    given: Vec<Box<[u32]>>,
}

impl<'a> SharedElements<'a> {
    fn new(plan: &'a TransferPlan, own: &Range<u64>) -> SharedElements<'a> {
        let from = |block: u64| plan.shared.partition_point(|shared| *shared < block);
        let shared = &plan.shared[from(own.start)..from(own.end)];
        let given = shared.iter().map(|_| vec![0; BLOCK as usize].into_boxed_slice()).collect();
        SharedElements { shared, given }
    }

    fn of(&mut self, block: u64) -> Option<&mut [u32]> {
        self.shared.binary_search(&block).ok().map(|i| &mut *self.given[i])
    }
}

fn differ(whole: &Whole, element: u64, first: u32, second: usize) -> Error {
    let mut left = element;
    let mut index: Vec<u64> = whole.shape().iter().rev().map(|len| (left % len, left /= len).0).collect();
    index.reverse();
    let ranks = match first as usize == second {
        true => format!("rank {second} writes it twice"),
        false => format!("ranks {first} and {second} write it"),
    };
    Code::PiecesDiffer
        .error(format!("element {index:?} would have two values: {ranks}"))
        .with_hint("let one rank own it: `owned` says how many entries of a map are written")
}
