//! The aggregators' ranges of an array.
//!
//! An array is cut into blocks, and the blocks into as many ranges as there are aggregators: contiguous, aligned to
//! blocks, with numbers of blocks that differ by at most one. Aggregators are spread evenly over the hosts, and over the
//! ranks of each. Each range is cut into buckets from its beginning: the units of a bucket are moved in one round.
//!
//! Invariants: ranges ascend with the aggregators' ranks and cover the array; there are at most [`MOST_BLOCKS`] blocks;
//! all buckets have the same number of blocks, a power of two, except the last ones of ranges, which have fewer or
//! none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Minimum number of elements in a block: a page of eight-byte elements.
const BLOCK: u64 = 512;
/// Maximum number of blocks; blocks grow with the array.
const MOST_BLOCKS: u64 = 1 << 16;

/// The aggregators of the array. Counts are in units: groups of elements that always move together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranges {
    /// Number of units in the whole array.
    pub units: u64,
    /// A block has 2 to the power of this units.
    pub shift: u32,
    /// Number of blocks.
    pub blocks: u64,
    /// A bucket has 2 to the power of this blocks.
    bucket: u32,
    /// The ranks that own a range, ascending.
    ranks: Arc<[u32]>,
}

impl Ranges {
    /// `hosts` has the hosts of all ranks, by number; `aggregators` is at most the number of ranks.
    pub fn new(total: u64, unit: u64, aggregators: usize, hosts: &[u32]) -> Ranges {
        let units = total / unit.max(1);
        let mut shift = (BLOCK / unit.max(1)).max(1).ilog2();
        while units >> shift >= MOST_BLOCKS {
            shift += 1;
        }
        let (blocks, ranks) = (units.div_ceil(1 << shift), spread(aggregators, hosts).into());
        Ranges { units, shift, blocks, bucket: 0, ranks }
    }

    /// The same with buckets of up to this number of units, or of one block if that is more.
    pub fn with_buckets(self, units: u64) -> Ranges {
        let most = self.most_blocks().next_power_of_two().ilog2();
        Ranges { bucket: (units >> self.shift).max(1).ilog2().min(most), ..self }
    }

    /// Number of ranks that own a range.
    pub fn aggregators(&self) -> usize {
        self.ranks.len()
    }

    /// The blocks of one aggregator.
    pub fn of_aggregator(&self, aggregator: usize) -> Range<u64> {
        let cut = |aggregator: usize| {
            (u128::from(self.blocks) * aggregator as u128 / self.ranks.len() as u128) as u64
        };
        cut(aggregator)..cut(aggregator + 1)
    }

    /// The aggregator number of a rank.
    pub fn aggregator(&self, rank: usize) -> Option<usize> {
        self.ranks.binary_search_by(|aggregator| (*aggregator as usize).cmp(&rank)).ok()
    }

    /// First unit of a block, or the end of the array.
    pub fn unit(&self, block: u64) -> u64 {
        (block << self.shift).min(self.units)
    }

    /// Maximum number of blocks of an aggregator.
    pub fn most_blocks(&self) -> u64 {
        self.blocks.div_ceil(self.ranks.len() as u64)
    }

    /// Number of units in the aggregator's range.
    pub fn range_units(&self, aggregator: usize) -> u64 {
        let range = self.of_aggregator(aggregator);
        self.unit(range.end) - self.unit(range.start)
    }

    /// Number of buckets in the longest range.
    pub fn buckets(&self) -> u64 {
        self.most_blocks().div_ceil(1 << self.bucket)
    }

    /// The bucket of a block, both counted from the beginning of a range.
    pub fn bucket_of(&self, block: u64) -> u64 {
        block >> self.bucket
    }

    /// A bucket has 2 to the power of this units.
    pub fn bucket_shift(&self) -> u32 {
        self.shift + self.bucket
    }

    /// The buckets of each range in round `round`, if a window has `window` buckets.
    pub fn window(&self, round: u64, window: u64) -> Range<u64> {
        let begin = round.saturating_mul(window).min(self.buckets());
        begin..begin.saturating_add(window).min(self.buckets())
    }

    /// The units in some buckets of the aggregator's range, counted from its beginning.
    pub fn units_in(&self, aggregator: usize, buckets: &Range<u64>) -> Range<u64> {
        let end = self.range_units(aggregator);
        (buckets.start << self.bucket_shift()).min(end)..(buckets.end << self.bucket_shift()).min(end)
    }
}

/// The ranks of this number of aggregators: hosts have equal shares as far as they have ranks, and each host's aggregators are
/// spread evenly over its ranks. Ascending.
fn spread(aggregators: usize, hosts: &[u32]) -> Vec<u32> {
    let mut of_host: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (rank, host) in (0..).zip(hosts) {
        of_host.entry(*host).or_default().push(rank);
    }
    let aggregators = aggregators.min(hosts.len());
    let filled = |level: usize| of_host.values().map(|ranks| ranks.len().min(level)).sum::<usize>();
    let level = (0..=aggregators).rev().find(|level| filled(*level) <= aggregators).unwrap_or(0);
    // The remainder goes to hosts that are far apart.
    let open = of_host.values().filter(|ranks| ranks.len() > level).count().max(1);
    let odd = aggregators - filled(level);
    let mut nth = 0;
    let mut share = |ranks: usize| {
        let extra = ranks > level && (nth + 1) * odd / open > nth * odd / open;
        nth += usize::from(ranks > level);
        ranks.min(level) + usize::from(extra)
    };
    let shares: Vec<(usize, &Vec<u32>)> = of_host.values().map(|ranks| (share(ranks.len()), ranks)).collect();
    let mut spread: Vec<u32> = shares
        .iter()
        .flat_map(|(share, ranks)| (0..*share).map(move |n| ranks[n * ranks.len() / share]))
        .collect();
    spread.sort_unstable();
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregators_are_spread_over_hosts_and_over_the_ranks_of_each() {
        let alike = [0; 8];
        assert_eq!(spread(4, &alike), [0, 2, 4, 6]);
        assert_eq!(spread(3, &alike), [0, 2, 5]);
        // Two hosts of four ranks, numbered in blocks and alternately.
        assert_eq!(spread(2, &[0, 0, 0, 0, 1, 1, 1, 1]), [0, 4]);
        assert_eq!(spread(4, &[0, 1, 0, 1, 0, 1, 0, 1]), [0, 1, 4, 5]);
        // A host with one rank has at most one aggregator.
        assert_eq!(spread(4, &[0, 1, 1, 1, 1, 1]), [0, 1, 2, 4]);
        for ranks in 1..40 {
            for hosts in 1..=ranks {
                let of: Vec<u32> = (0..ranks).map(|rank| (rank * rank + rank / 3) % hosts).collect();
                for aggregators in 1..=ranks as usize {
                    let found = spread(aggregators, &of);
                    assert!(
                        found.len() == aggregators && found.is_sorted_by(|a, b| a < b),
                        "{aggregators} {of:?}"
                    );
                    let count = |list: &mut dyn Iterator<Item = u32>| {
                        let mut counts = vec![0usize; hosts as usize];
                        list.for_each(|host| counts[host as usize] += 1);
                        counts
                    };
                    let share = count(&mut found.iter().map(|rank| of[*rank as usize]));
                    let room = count(&mut of.iter().copied());
                    let most = *share.iter().max().unwrap();
                    let is_fair = |(share, room): (&usize, &usize)| *share == *room || *share + 1 >= most;
                    assert!(share.iter().zip(&room).all(is_fair), "{aggregators} {of:?} {share:?}");
                }
            }
        }
    }

    #[test]
    fn ranges_cover_an_array_and_are_equal_but_for_a_block() {
        for (total, unit) in
            [(0, 1), (1, 1), (513, 1), (100_000, 1), (1 << 30, 1), (1 << 20, 1 << 12), (77, 7)]
        {
            for ranks in [1, 2, 3, 7, 64] {
                for aggregators in 1..=ranks {
                    let ranges = Ranges::new(total, unit, aggregators, &vec![0; ranks]);
                    assert!(ranges.blocks <= MOST_BLOCKS);
                    let ranges = ranges.with_buckets(1 << (total % 13));
                    let mut at = 0;
                    for aggregator in 0..aggregators {
                        let blocks = ranges.of_aggregator(aggregator);
                        assert_eq!(blocks.start, at);
                        let count = blocks.end - blocks.start;
                        assert!(count.abs_diff(ranges.blocks / aggregators as u64) <= 1);
                        assert!(count <= ranges.most_blocks());
                        assert_eq!(ranges.aggregator(ranges.ranks[aggregator] as usize), Some(aggregator));
                        at = blocks.end;
                        let mut unit = 0;
                        for bucket in 0..ranges.buckets() {
                            let units = ranges.units_in(aggregator, &(bucket..bucket + 1));
                            assert!(units.start == unit && units.end - unit <= 1 << ranges.bucket_shift());
                            unit = units.end;
                        }
                        assert_eq!(unit, ranges.range_units(aggregator));
                    }
                    assert_eq!((at, ranges.unit(at)), (ranges.blocks, total / unit));
                    let owning = (0..ranks).filter(|rank| ranges.aggregator(*rank).is_some());
                    assert_eq!(owning.count(), aggregators);
                }
            }
        }
    }
}
