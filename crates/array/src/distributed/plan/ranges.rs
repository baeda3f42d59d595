//! The ranges of an array that owners have.
//!
//! An array is cut into blocks, and the blocks into as many ranges as there are owners: contiguous, aligned to
//! blocks, of equal numbers of blocks but for one. Owners are spread evenly over the ranks.
//!
//! Invariants: ranges ascend with the owners' ranks and cover the array; there are at most [`MOST_BLOCKS`] blocks.

/// Elements of a block at least: a page of eight-byte elements.
const BLOCK: u64 = 512;
/// Blocks at most; blocks grow with the array.
const MOST_BLOCKS: u64 = 1 << 16;

/// Who owns what. Counts are of units, which are groups of elements that always move together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ranges {
    /// Units of the whole array.
    pub units: u64,
    /// Units of a block are 2 to the power of this.
    pub shift: u32,
    /// How many blocks there are.
    pub blocks: u64,
    /// How many ranks own a range.
    pub owners: usize,
    /// How many ranks there are.
    pub ranks: usize,
}

impl Ranges {
    pub fn new(total: u64, unit: u64, owners: usize, ranks: usize) -> Ranges {
        let units = total / unit.max(1);
        let mut shift = (BLOCK / unit.max(1)).max(1).ilog2();
        while units >> shift >= MOST_BLOCKS {
            shift += 1;
        }
        Ranges { units, shift, blocks: units.div_ceil(1 << shift), owners, ranks }
    }

    /// Blocks of one owner.
    pub fn of_owner(&self, owner: usize) -> std::ops::Range<u64> {
        let cut = |owner: usize| (u128::from(self.blocks) * owner as u128 / self.owners as u128) as u64;
        cut(owner)..cut(owner + 1)
    }

    /// The rank of an owner.
    pub fn rank(&self, owner: usize) -> usize {
        owner * self.ranks / self.owners
    }

    /// The owner that a rank is.
    pub fn owner(&self, rank: usize) -> Option<usize> {
        let owner = (rank * self.owners).div_ceil(self.ranks);
        (owner < self.owners && self.rank(owner) == rank).then_some(owner)
    }

    /// First unit of a block, or the end of the array.
    pub fn unit(&self, block: u64) -> u64 {
        (block << self.shift).min(self.units)
    }

    /// The greatest number of blocks that an owner has.
    pub fn most_blocks(&self) -> u64 {
        self.blocks.div_ceil(self.owners as u64)
    }

    /// Blocks of the owner in round `round`, of rounds of `window` blocks.
    pub fn window(&self, owner: usize, round: u64, window: u64) -> std::ops::Range<u64> {
        let blocks = self.of_owner(owner);
        let begin = blocks.start.saturating_add(round.saturating_mul(window)).min(blocks.end);
        begin..begin.saturating_add(window).min(blocks.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_an_array_and_are_equal_but_for_a_block() {
        for (total, unit) in
            [(0, 1), (1, 1), (513, 1), (100_000, 1), (1 << 30, 1), (1 << 20, 1 << 12), (77, 7)]
        {
            for ranks in [1, 2, 3, 7, 64] {
                for owners in 1..=ranks {
                    let ranges = Ranges::new(total, unit, owners, ranks);
                    assert!(ranges.blocks <= MOST_BLOCKS);
                    let mut at = 0;
                    for owner in 0..owners {
                        let blocks = ranges.of_owner(owner);
                        assert_eq!(blocks.start, at);
                        let count = blocks.end - blocks.start;
                        assert!(count.abs_diff(ranges.blocks / owners as u64) <= 1);
                        assert!(count <= ranges.most_blocks());
                        assert_eq!(ranges.owner(ranges.rank(owner)), Some(owner));
                        at = blocks.end;
                    }
                    assert_eq!((at, ranges.unit(at)), (ranges.blocks, total / unit));
                    let owning = (0..ranks).filter(|rank| ranges.owner(*rank).is_some());
                    assert_eq!(owning.count(), owners);
                }
            }
        }
    }
}
