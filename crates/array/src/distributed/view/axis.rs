//! Which indices of one dimension a rank holds.

use fieldstone_core::{Code, Result};

/// Indices of one dimension that a rank holds: equal blocks at equal distances, of which the last may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AxisIndices {
    /// First index.
    pub start: u64,
    /// How many indices in all.
    pub count: u64,
    /// Indices that follow one another.
    pub block: u64,
    /// From the begin of a block to that of the next.
    pub period: u64,
    /// Elements of the buffer before the first one, and behind the last.
    pub halo: (u64, u64),
}

impl AxisIndices {
    /// `count` indices from `start` on.
    pub fn box_of(start: u64, count: u64, halo: (u64, u64)) -> AxisIndices {
        AxisIndices { start, count, block: count.max(1), period: count.max(1), halo }
    }

    /// Every `stride`-th index.
    pub fn strided(start: u64, count: u64, stride: u64) -> AxisIndices {
        AxisIndices { start, count, block: 1, period: stride, halo: (0, 0) }
    }

    /// The part of `len` indices that the `i`-th of `ranks` has in a balanced cut.
    pub fn balanced(len: u64, i: u64, ranks: u64, halo: (u64, u64)) -> AxisIndices {
        let (each, more) = (len / ranks, len % ranks);
        let start = i * each + i.min(more);
        AxisIndices::box_of(start, each + u64::from(i < more), halo)
    }

    /// The blocks of `len` indices that the `i`-th of `ranks` has when they are dealt out in turn.
    pub fn cyclic(len: u64, i: u64, ranks: u64, block: u64) -> Result<AxisIndices> {
        let beyond = || Code::TooLarge.error(format!("blocks of {block} for {ranks} ranks"));
        let period = block.checked_mul(ranks).ok_or_else(beyond)?;
        let start = i.checked_mul(block).ok_or_else(beyond)?;
        let (whole, rest) = (len / period, len % period);
        let count = whole * block + rest.saturating_sub(start).min(block);
        Ok(AxisIndices { start: start.min(len), count, block, period, halo: (0, 0) })
    }

    /// Elements of the buffer.
    pub fn width(&self) -> u64 {
        self.count + self.halo.0 + self.halo.1
    }

    /// The `i`-th index that it holds.
    pub fn index(&self, i: u64) -> u64 {
        self.start + i / self.block * self.period + i % self.block
    }

    /// How many indices follow one another from the `i`-th on.
    pub fn run(&self, i: u64) -> u64 {
        (self.block - i % self.block).min(self.count - i)
    }

    /// The indices with the halo, as far as they lie within `len`; the halo that is left is outside.
    pub fn with_halo(&self, len: u64) -> AxisIndices {
        let before = self.halo.0.min(self.start);
        let end = self.start + self.count;
        let behind = self.halo.1.min(len.saturating_sub(end));
        let halo = (self.halo.0 - before, self.halo.1 - behind);
        AxisIndices::box_of(self.start - before, self.count + before + behind, halo)
    }
}
