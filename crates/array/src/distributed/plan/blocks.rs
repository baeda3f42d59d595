//! Blocks of an array, and which ranks own them.
//!
//! A block is 65,536 elements in C order: 64 KiB to 1 MiB, what a checksum is taken of. Owners have equal ranges of whole
//! blocks, one behind the other; what an element's number lacks within its block takes two bytes.

use std::ops::Range;

/// Elements of a block.
pub const BLOCK: u64 = 1 << 16;

/// Blocks of an array, cut among owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    elements: u64,
    owners: usize,
    ranks: usize,
}

impl Ownership {
    /// The blocks of so many elements, owned by some of the ranks, which are spread evenly over all.
    pub fn new(elements: u64, owners: usize, ranks: usize) -> Ownership {
        let blocks = elements.div_ceil(BLOCK).max(1);
        Ownership { elements, owners: owners.clamp(1, ranks).min(blocks as usize), ranks }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.elements.div_ceil(BLOCK)
    }

    /// How many owners there are.
    pub fn owners(&self) -> usize {
        self.owners
    }

    /// The rank that is an owner.
    pub fn rank(&self, owner: usize) -> usize {
        owner * self.ranks / self.owners
    }

    /// The owner that a rank is.
    pub fn owner_of_rank(&self, rank: usize) -> Option<usize> {
        (0..self.owners).find(|owner| self.rank(*owner) == rank)
    }

    /// The blocks of an owner.
    pub fn range(&self, owner: usize) -> Range<u64> {
        let (each, more) = (self.blocks() / self.owners as u64, self.blocks() % self.owners as u64);
        let begin = |owner: u64| owner * each + owner.min(more);
        begin(owner as u64)..begin(owner as u64 + 1)
    }

    /// Blocks of the largest range.
    pub fn longest(&self) -> u64 {
        self.blocks().div_ceil(self.owners as u64)
    }

    /// Elements of some blocks.
    pub fn elements_of(&self, blocks: &Range<u64>) -> Range<u64> {
        (blocks.start * BLOCK).min(self.elements)..(blocks.end * BLOCK).min(self.elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_whole_blocks_that_differ_by_one() {
        for elements in [0, 1, BLOCK, BLOCK + 1, 10 * BLOCK - 1] {
            for ranks in 1..9 {
                for owners in 1..=ranks {
                    let ownership = Ownership::new(elements, owners, ranks);
                    let ranges: Vec<Range<u64>> =
                        (0..ownership.owners()).map(|i| ownership.range(i)).collect();
                    assert_eq!(ranges[0].start, 0);
                    assert_eq!(ranges.last().unwrap().end, ownership.blocks());
                    assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
                    let lens: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
                    assert!(lens.iter().max().unwrap() - lens.iter().min().unwrap() <= 1);
                    assert_eq!(lens.iter().max().unwrap(), &ownership.longest());
                    let own = (0..ranks).filter_map(|rank| ownership.owner_of_rank(rank));
                    assert_eq!(own.collect::<Vec<_>>(), (0..ownership.owners()).collect::<Vec<_>>());
                }
            }
        }
    }
}
