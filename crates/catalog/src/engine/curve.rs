//! The curve key: one integer for a box, chosen so that boxes near each other in space are near each other in
//! attr. A query for a box then reads a few ranges of keys (Q-6). It needs no domain: any start from 0 to
//! `i64::MAX` fits.
//!
//! A box of rank r and greatest extent e has the level q, the least with `2^(q+2) >= e` for which every
//! `start >> q` fits into `56 / r` bits; its key is `q << 56 | Morton(start >> q)`. So a box of level q spans
//! at most five cells a dimension. (With cells half as large as the box, one in three boxes that were read
//! touched the requested box; with a quarter it is nearly one in two, for the same bytes.) Boxes without a
//! key (no box, a rank of 0 or above 8, a start below 0, a level above 47) have [`NO_CURVE`], and a query
//! must check them one by one.
//!
//! A 64-bit sum describes a set of boxes: bit q: a box of level q; bit 47 + r: a box of rank r; bit 63: one
//! without a key.
//!
//! ```
//! use fieldstone_catalog::engine::curve;
//! let (start, count) = ([100, 200, 300], [20, 20, 20]);
//! let key = curve::key(&start, &count);
//! let levels = curve::levels_of(&start, &count);
//! let ranges = curve::ranges(levels, 20, &[110, 210, 310], &[120, 220, 320]);
//! assert!(ranges.iter().any(|range| range.contains(&key)));
//! ```

use std::ops::RangeInclusive;

use super::NO_CURVE;

/// Bits of the Morton part.
const BITS: u32 = 56;
/// The highest level that has a key.
const TOP: u32 = 47;
/// The highest rank that has a key.
pub const MAX_RANK: usize = 8;
/// Bit of [`levels_of`] for boxes without a key.
pub const OUTSIDE: u64 = 1 << 63;
/// Upper limit, roughly, of the ranges of a level.
const BUDGET: usize = 128;
/// Cells that are visited one by one; a box with more is cut into larger parts.
const CELLS: u64 = 2_048;

/// Level of a box, if it has a key.
fn level(start: &[i64], count: &[i64]) -> Option<u32> {
    let rank = start.len();
    if rank == 0 || rank > MAX_RANK || start.iter().any(|&s| s < 0) {
        return None;
    }
    let bits = BITS / rank as u32;
    let extent = count.iter().copied().max().unwrap_or(1).max(1) as u64;
    let farthest = start.iter().copied().max().unwrap_or(0) as u64;
    let by_extent = (u64::BITS - (extent - 1).leading_zeros()).saturating_sub(2);
    let by_start = (u64::BITS - farthest.leading_zeros()).saturating_sub(bits);
    Some(by_extent.max(by_start)).filter(|&level| level <= TOP)
}

/// Puts the bits of a cell `rank` apart, the lowest at `at`.
fn spread(mut cell: u64, mut at: usize, rank: usize) -> u64 {
    let mut code = 0;
    while cell != 0 {
        code |= (cell & 1) << at;
        cell >>= 1;
        at += rank;
    }
    code
}

/// Interleaves the bits of cells, dimension 0 first.
fn morton(cells: impl Iterator<Item = u64>, rank: usize) -> u64 {
    cells.enumerate().fold(0, |code, (d, cell)| code | spread(cell, rank - 1 - d, rank))
}

/// The key of a box; [`NO_CURVE`] if it has none.
pub fn key(start: &[i64], count: &[i64]) -> i64 {
    match level(start, count) {
        Some(q) => compose(q, morton(start.iter().map(|&s| s as u64 >> q), start.len())),
        None => NO_CURVE,
    }
}

fn compose(level: u32, morton: u64) -> i64 {
    (u64::from(level) << BITS | morton) as i64
}

/// The bits that a box adds to the sum of its series.
pub fn levels_of(start: &[i64], count: &[i64]) -> u64 {
    level(start, count).map_or(OUTSIDE, |q| 1 << q | 1 << (TOP as usize + start.len()))
}

/// The same, from its key and rank.
pub fn levels_of_key(key: i64, rank: usize) -> u64 {
    match key {
        NO_CURVE => OUTSIDE,
        key => 1 << (key >> BITS) | 1 << (TOP as usize + rank),
    }
}

/// Ranks of the boxes that have keys.
pub fn ranks(levels: u64) -> impl Iterator<Item = usize> {
    (1..=MAX_RANK).filter(move |rank| levels >> (TOP as usize + rank) & 1 == 1)
}

/// Whether there are rows without a key: only the range `NO_CURVE..=NO_CURVE` finds them.
pub fn outside(levels: u64) -> bool {
    levels & OUTSIDE != 0
}

/// Ranges of keys, ascending and disjoint. They hold every box of the rank of `from` that has a key and
/// shares an element with the half-open box from `from` to `to`; they may hold other boxes too. `levels` and
/// `extent` describe the series. An empty box gives no range.
pub fn ranges(levels: u64, extent: i64, from: &[i64], to: &[i64]) -> Vec<RangeInclusive<i64>> {
    let mut found = Vec::new();
    for level in levels_in(levels) {
        if let Some((low, high)) = cells(level, extent, from, to) {
            found.extend(Cover::of(level, &low, &high).ranges(0));
        }
    }
    found
}

/// The levels of a sum, ascending.
pub fn levels_in(levels: u64) -> impl Iterator<Item = u32> {
    (0..=TOP).filter(move |level| levels >> level & 1 == 1)
}

/// Boxes of a level that share an element with a box start in these cells: the first and the last in each
/// dimension; `None` if there are none.
pub fn cells(level: u32, extent: i64, from: &[i64], to: &[i64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let rank = from.len();
    if rank == 0 || rank > MAX_RANK || from.iter().zip(to).any(|(a, b)| a >= b || *b <= 0) {
        return None;
    }
    let most = (1_u64 << (BITS / rank as u32)) - 1;
    let reach = extent.max(1).min(1 << (level + 2));
    let cell = |at: i64| (at.max(0) as u64 >> level).min(most);
    let low = from.iter().map(|&a| cell(a.saturating_sub(reach - 1))).collect();
    Some((low, to.iter().map(|&b| cell(b - 1)).collect()))
}

/// Ranges of Morton codes that hold all cells between two corners.
#[derive(Debug, Clone)]
pub struct Cover {
    level: u32,
    apart: Vec<(u64, u64)>,
    /// Gaps up to this size are closed at any cost, to limit the number of ranges.
    least: u64,
}

impl Cover {
    /// The cover of the cells from `low` to `high`, both included.
    pub fn of(level: u32, low: &[u64], high: &[u64]) -> Cover {
        let rank = low.len();
        let sides = |shift: u32| low.iter().zip(high).map(move |(a, b)| (b >> shift) - (a >> shift) + 1);
        // Parts of 2^shift cells a side, so that there are not too many of them.
        let many = |shift: u32| {
            sides(shift).try_fold(1_u64, |all, side| all.checked_mul(side).filter(|n| *n <= CELLS))
        };
        let shift = (0..BITS).find(|shift| many(*shift).is_some()).unwrap_or(BITS);
        let mut codes: Vec<u64> = vec![0];
        for d in 0..rank {
            let parts = (low[d] >> shift)..=(high[d] >> shift);
            let own: Vec<u64> = parts.map(|part| spread(part, rank - 1 - d, rank)).collect();
            codes = codes.iter().flat_map(|code| own.iter().map(move |part| code | part)).collect();
        }
        codes.sort_unstable();
        let width = shift * rank as u32;
        let mut apart: Vec<(u64, u64)> = Vec::new();
        for code in codes {
            let (a, b) = (code << width, (code << width) + ((1 << width) - 1));
            match apart.last_mut() {
                Some(last) if last.1 + 1 == a => last.1 = b,
                _ => apart.push((a, b)),
            }
        }
        let mut gaps: Vec<u64> = apart.windows(2).map(|two| two[1].0 - two[0].1 - 1).collect();
        gaps.sort_unstable();
        let least = gaps.len().checked_sub(BUDGET).and_then(|at| gaps.get(at)).copied().unwrap_or(0);
        Cover { level, apart, least }
    }

    /// The ranges, ascending; ranges with at most `widest` cells between them are merged.
    pub fn ranges(&self, widest: u64) -> impl Iterator<Item = RangeInclusive<i64>> {
        let mut rest = self.apart.iter().copied().peekable();
        let (level, widest) = (self.level, widest.max(self.least));
        std::iter::from_fn(move || {
            let (from, mut to) = rest.next()?;
            while let Some(next) = rest.next_if(|next| next.0 - to - 1 <= widest) {
                to = next.1;
            }
            Some(compose(level, from)..=compose(level, to))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn boxes(rank: usize) -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
        let start = prop_oneof![8 => 0..5_000_i64, 1 => 0..i64::MAX / 2, 1 => Just(0_i64)];
        let count = prop_oneof![6 => 1..300_i64, 2 => 1..3_i64, 1 => 1..i64::MAX / 2];
        (prop::collection::vec(start, rank), prop::collection::vec(count, rank))
    }

    fn overlap(a: &(Vec<i64>, Vec<i64>), b: &(Vec<i64>, Vec<i64>)) -> bool {
        (0..a.0.len()).all(|d| a.0[d] < b.0[d] + b.1[d] && b.0[d] < a.0[d] + a.1[d])
    }

    proptest! {
        #[test]
        fn every_overlapping_box_is_found(
            (stored, asked) in (1..=9_usize)
                .prop_flat_map(|rank| (prop::collection::vec(boxes(rank), 1..40), boxes(rank)))
        ) {
            let levels = stored.iter().fold(0, |sum, b| sum | levels_of(&b.0, &b.1));
            let extent = stored.iter().flat_map(|b| b.1.iter().copied()).max().unwrap_or(0);
            let end: Vec<i64> = asked.0.iter().zip(&asked.1).map(|(a, n)| a + n).collect();
            let ranges = ranges(levels, extent, &asked.0, &end);
            prop_assert!(ranges.windows(2).all(|w| w[0].end() < w[1].start()), "{ranges:?}");
            for one in &stored {
                let key = key(&one.0, &one.1);
                prop_assert_eq!(levels_of(&one.0, &one.1), levels_of_key(key, one.0.len()));
                if overlap(one, &asked) {
                    let found = key == NO_CURVE || ranges.iter().any(|range| range.contains(&key));
                    prop_assert!(found, "{one:?} of key {key:x} is not in {ranges:x?}");
                }
                prop_assert!(key != NO_CURVE || outside(levels));
            }
        }
    }

    /// The paper's chunks: how many keys are visited for each hit.
    #[test]
    fn ranges_are_few_and_narrow() {
        let chunk = 170;
        let stored: Vec<_> = (0..4_000_i64)
            .map(|i| (vec![i % 10 * chunk, i / 10 % 20 * chunk, i / 200 * chunk], vec![chunk; 3]))
            .collect();
        let levels = stored.iter().fold(0, |sum, b| sum | levels_of(&b.0, &b.1));
        let asked = (vec![680, 1360, 1360], vec![106, 212, 212]);
        let end: Vec<i64> = asked.0.iter().zip(&asked.1).map(|(a, n)| a + n).collect();
        let ranges = ranges(levels, chunk, &asked.0, &end);
        let hits = stored.iter().filter(|b| overlap(b, &asked)).count();
        let visited =
            stored.iter().filter(|b| ranges.iter().any(|range| range.contains(&key(&b.0, &b.1)))).count();
        assert!(ranges.len() <= BUDGET && hits > 0);
        assert!(visited <= 8 * hits, "{visited} looked at for {hits} hits in {} ranges", ranges.len());
    }

    #[test]
    fn what_has_no_key_says_so() {
        for (start, count) in [(vec![], vec![]), (vec![-1], vec![5]), (vec![0; 9], vec![1; 9])] {
            assert_eq!(key(&start, &count), NO_CURVE);
            assert_eq!(levels_of(&start, &count), OUTSIDE);
        }
        assert_eq!(key(&[0], &[i64::MAX]), NO_CURVE);
        assert_eq!(ranks(levels_of(&[0, 0], &[1, 1])).collect::<Vec<_>>(), [2]);
        assert!(ranges(u64::MAX, 9, &[5], &[5]).is_empty());
    }
}
