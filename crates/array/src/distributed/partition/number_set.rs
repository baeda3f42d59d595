//! Sets of node or edge numbers in which each number has an index, in ascending order.
//!
//! A set that fills much of its range has a bit for each number, and the index of a number is the count of bits
//! before it; a sparse set is a sorted list. So numbers are put in order without comparisons, and memory depends on
//! what a rank holds, not on the mesh.
//!
//! Invariants: numbers are below the limit; [`index`](NumberSet::index) counts from 0 in ascending order.

/// Bits are used if there are at most this many for each expected number: 8 bytes each.
const SPARSEST: u64 = 32;
/// A smaller number of bits is used in any case.
const SMALL: u64 = 1 << 15;
/// A list is used above this number of bits.
const LARGEST: u64 = 1 << 40;

/// Collects numbers in any order, each any number of times.
#[derive(Debug)]
pub(super) enum NumberCollector {
    Bits(Vec<BitWord>),
    /// The numbers, and the length at which duplicates are removed.
    List(Vec<u64>, usize),
}

/// 64 bits of a set, and the count of bits before them: together, so that a look-up takes one memory access.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BitWord {
    bits: u64,
    before: u64,
}

impl NumberCollector {
    /// Makes a collector of numbers below `limit`, of which about `expected` will come.
    pub fn new(limit: u64, expected: u64) -> NumberCollector {
        match limit <= expected.saturating_mul(SPARSEST).clamp(SMALL, LARGEST) {
            true => NumberCollector::Bits(vec![BitWord::default(); limit.div_ceil(64) as usize]),
            false => NumberCollector::List(Vec::new(), 1 << 12),
        }
    }

    /// Adds a number.
    #[inline]
    pub fn insert(&mut self, number: u64) {
        match self {
            NumberCollector::Bits(words) => words[(number >> 6) as usize].bits |= 1 << (number & 63),
            NumberCollector::List(list, compact_at) => {
                list.push(number);
                if list.len() >= *compact_at {
                    list.sort_unstable();
                    list.dedup();
                    *compact_at = (list.len() * 2).max(1 << 12);
                }
            }
        }
    }

    /// The set of all numbers added.
    pub fn finish(self) -> NumberSet {
        match self {
            NumberCollector::Bits(mut words) => {
                let mut count = 0;
                for word in &mut words {
                    word.before = count;
                    count += u64::from(word.bits.count_ones());
                }
                NumberSet(SetKind::Bits(words, count as usize))
            }
            NumberCollector::List(mut list, _) => {
                list.sort_unstable();
                list.dedup();
                NumberSet(SetKind::List(list))
            }
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct NumberSet(SetKind);

#[derive(Debug)]
enum SetKind {
    /// The bits, and the count of numbers.
    Bits(Vec<BitWord>, usize),
    Range(std::ops::Range<u64>),
    List(Vec<u64>),
}

impl NumberSet {
    /// The set of consecutive numbers.
    pub fn range(range: std::ops::Range<u64>) -> NumberSet {
        NumberSet(SetKind::Range(range))
    }

    /// The size of the set.
    pub fn len(&self) -> usize {
        match &self.0 {
            SetKind::Bits(_, count) => *count,
            SetKind::Range(range) => range.end.saturating_sub(range.start) as usize,
            SetKind::List(list) => list.len(),
        }
    }

    /// The index of a number in the set.
    #[inline]
    pub fn index(&self, number: u64) -> Option<usize> {
        match &self.0 {
            SetKind::Bits(words, _) => {
                let (word, bit) = (words.get((number >> 6) as usize)?, 1u64 << (number & 63));
                let before = word.before as usize + (word.bits & (bit - 1)).count_ones() as usize;
                (word.bits & bit != 0).then_some(before)
            }
            SetKind::Range(range) => range.contains(&number).then(|| (number - range.start) as usize),
            SetKind::List(list) => list.binary_search(&number).ok(),
        }
    }

    /// Whether a number is in the set.
    #[inline]
    pub fn contains(&self, number: u64) -> bool {
        match &self.0 {
            SetKind::Bits(words, _) => {
                words.get((number >> 6) as usize).is_some_and(|word| word.bits >> (number & 63) & 1 != 0)
            }
            SetKind::Range(range) => range.contains(&number),
            SetKind::List(list) => list.binary_search(&number).is_ok(),
        }
    }

    /// Whether the set has a number between these two, both included.
    pub fn any_within(&self, first: u64, last: u64) -> bool {
        match &self.0 {
            SetKind::Bits(words, count) => {
                // The count of numbers below this one.
                let below = |number: u64| match words.get((number >> 6) as usize) {
                    Some(word) => {
                        word.before + u64::from((word.bits & ((1 << (number & 63)) - 1)).count_ones())
                    }
                    None => *count as u64,
                };
                below(first) < below(last.saturating_add(1))
            }
            SetKind::Range(range) => first < range.end && last >= range.start && range.start < range.end,
            SetKind::List(list) => list.get(list.partition_point(|n| *n < first)).is_some_and(|n| *n <= last),
        }
    }

    /// Passes the numbers to `act`, ascending.
    pub fn for_each(&self, mut act: impl FnMut(u64)) {
        match &self.0 {
            SetKind::Bits(words, _) => {
                for (at, word) in words.iter().enumerate() {
                    let mut bits = word.bits;
                    while bits != 0 {
                        act(at as u64 * 64 + u64::from(bits.trailing_zeros()));
                        bits &= bits - 1;
                    }
                }
            }
            SetKind::Range(range) => range.clone().for_each(act),
            SetKind::List(list) => list.iter().copied().for_each(act),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_either_kind_knows_the_places_of_its_numbers() {
        for (limit, step) in [(1000, 3), (40_000, 7), (1 << 40, 1 << 31), (70_000, 20_000)] {
            let numbers: Vec<u64> = (0..limit).step_by(step).collect();
            for expected in [0, numbers.len() as u64, limit] {
                if expected > 1 << 20 {
                    continue;
                }
                let mut collector = NumberCollector::new(limit, expected);
                numbers.iter().rev().chain(&numbers).for_each(|number| collector.insert(*number));
                let set = collector.finish();
                let mut back = Vec::new();
                set.for_each(|number| back.push(number));
                assert!(back == numbers && set.len() == numbers.len());
                for (index, number) in numbers.iter().enumerate() {
                    assert_eq!(set.index(*number), Some(index));
                    assert!(set.contains(*number) && set.any_within(*number, *number));
                    assert!(set.index(number + 1).is_none() && !set.contains(number + 1));
                    assert!(!set.any_within(number + 1, number + step as u64 - 1));
                    assert!(set.any_within(number.saturating_sub(1), number + 1));
                }
            }
        }
        let set = NumberSet::range(5..9);
        assert_eq!((set.len(), set.index(5), set.index(8), set.index(9)), (4, Some(0), Some(3), None));
        assert!(set.any_within(0, 5) && !set.any_within(0, 4) && !set.any_within(9, 99));
        assert!(!NumberSet::range(5..5).any_within(0, 9));
    }
}
