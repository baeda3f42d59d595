//! Partitions without a file: nodes are put in the order of a Hilbert curve, and the curve is cut into equal shares.
//!
//! Coordinates are scaled to the box of all nodes, equally in every direction, and divided into cells: 2^32 in each
//! direction in two dimensions, 2^21 in three. A node's key is the number of its cell along the curve (Skilling's
//! transformation). The ranks then search for the keys at which to cut, each counting its own nodes, so that no
//! coordinates are sent. Nodes of one cell are ordered by number.
//!
//! Invariant: rank r gets as many nodes as numpy's `array_split` gives it, whatever the coordinates.

use std::cmp::Ordering;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::partition::ContentSum;

use super::shares::{Starts, block_range};
use super::{STEP, checksum};

/// The coordinates of the nodes in a rank's share: an array for each dimension, or one array with the coordinates of
/// each node together.
#[derive(Debug, Clone, Copy)]
pub enum Coordinates<'a> {
    /// x, y, and in three dimensions z.
    Arrays(&'a [&'a [f64]]),
    /// The coordinates of each node together.
    Points {
        /// All nodes' coordinates.
        values: &'a [f64],
        /// Number of coordinates of a node: 2 or 3.
        dims: usize,
    },
}

impl Coordinates<'_> {
    /// Number of dimensions; 0 if a rank passes no arrays.
    fn dims(&self) -> usize {
        match self {
            Coordinates::Arrays(arrays) => arrays.len(),
            Coordinates::Points { dims, .. } => *dims,
        }
    }

    /// Number of nodes in the share.
    pub(super) fn count(&self) -> Result<u64> {
        let dims = self.dims();
        if !(2..=3).contains(&dims) {
            return Err(Code::Shape
                .error(format!("`hilbert` cannot use coordinates of {dims} dimensions"))
                .with_hint("give two or three coordinates of each node"));
        }
        let uneven = |message: String| {
            Code::ShapeMismatch.error(message).with_hint("give all coordinates of each node")
        };
        match self {
            Coordinates::Arrays(arrays) => match arrays.iter().find(|array| array.len() != arrays[0].len()) {
                Some(other) => Err(uneven(format!(
                    "there are {} x coordinates, but {} of another",
                    arrays[0].len(),
                    other.len()
                ))),
                None => Ok(arrays[0].len() as u64),
            },
            Coordinates::Points { values, .. } if values.len() % dims != 0 => {
                Err(uneven(format!("{} numbers do not form coordinates of {dims} dimensions", values.len())))
            }
            Coordinates::Points { values, .. } => Ok((values.len() / dims) as u64),
        }
    }

    fn get(&self, node: usize, dim: usize) -> f64 {
        match self {
            Coordinates::Arrays(arrays) => arrays[dim][node],
            Coordinates::Points { values, dims } => values[node * dims + dim],
        }
    }
}

/// An integer with the order of the float.
fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

fn of_ordered(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits ^ 1 << 63 } else { !bits })
}

/// Collective: checks coordinates, and returns their checksum combined with the number of ranks.
pub(super) fn checksum(team: &Team, coordinates: &Coordinates<'_>, starts: &Starts) -> Result<ContentSum> {
    let (begin, dims) = (starts.of(team.rank()).start, coordinates.dims());
    let mut sum = 0u128;
    let mut scan = || -> Result<Vec<u64>> {
        for node in 0..starts.of(team.rank()).count() {
            let mut bits = [0; 3];
            for (dim, bits) in bits.iter_mut().enumerate().take(dims) {
                let value = coordinates.get(node, dim);
                if !value.is_finite() {
                    return Err(Code::Value
                        .error(format!("coordinate {dim} of node {} is {value}", begin + node as u64))
                        .with_hint("coordinates are finite numbers"));
                }
                *bits = value.to_bits();
            }
            sum = sum.wrapping_add(checksum::coordinates(begin + node as u64, bits));
        }
        Ok(vec![dims as u64, !(dims as u64)])
    };
    let scanned = scan();
    let agreed = team.max(STEP, scanned)?;
    if agreed[0] != !agreed[1] {
        return Err(Code::Shape
            .error(format!(
                "coordinates have {} dimensions on one rank, but {} on another",
                agreed[0], !agreed[1]
            ))
            .with_hint("give all nodes the same number of coordinates"));
    }
    // A sum over coordinates must not look like one over ranks, so its second count exceeds any number of ranks.
    checksum::total(team, STEP, sum, [starts.total(), u64::MAX - team.size() as u64])
}

/// Collective: the rank of each node in this rank's share; the coordinates were checked before.
pub(super) fn split(team: &Team, coordinates: &Coordinates<'_>, starts: &Starts) -> Result<Vec<u32>> {
    let (nodes, dims, mut bounds) = (starts.total(), coordinates.dims(), vec![0u64; 6]);
    let count = starts.of(team.rank()).count();
    for node in 0..count {
        for dim in 0..dims {
            let value = ordered(coordinates.get(node, dim));
            bounds[dim] = bounds[dim].max(value);
            bounds[3 + dim] = bounds[3 + dim].max(!value);
        }
    }
    let bounds = team.max(STEP, Ok(bounds))?;
    // `!value` turns the minimum into a maximum, so that one reduction finds both ends of the box.
    let low: Vec<f64> = (0..dims).map(|dim| of_ordered(!bounds[3 + dim])).collect();
    let widest = (0..dims).map(|dim| of_ordered(bounds[dim]) / 2.0 - low[dim] / 2.0).fold(0.0, f64::max);
    let bits = if dims == 2 { 32 } else { 21 };
    let cells = (1u64 << bits) as f64;
    // Halves, so that the difference of two finite numbers is finite.
    let cell = |node: usize, dim: usize| match widest > 0.0 {
        true => {
            let at = (coordinates.get(node, dim) / 2.0 - low[dim] / 2.0) / widest;
            ((at * cells) as u64).min((1 << bits) - 1)
        }
        false => 0,
    };
    let mut order: Vec<(u64, u32)> = Vec::new();
    let keyed = u32::try_from(count).map_err(|_| too_many(count)).map(|count| {
        order = (0..count)
            .map(|node| {
                let mut axes = [0; 3];
                (0..dims).for_each(|dim| axes[dim] = cell(node as usize, dim));
                (key(&mut axes[..dims], bits), node)
            })
            .collect();
        order.sort_unstable();
    });
    team.agree(STEP, keyed)?;
    let cuts = cuts(team, &order, nodes)?;
    // Nodes in the order of the curve: those from a cut on belong to the next rank.
    let mut own = vec![0u32; count];
    let mut rank = 0;
    for (place, (_, node)) in order.iter().enumerate() {
        while rank < cuts.len() && place >= cuts[rank] {
            rank += 1;
        }
        own[*node as usize] = rank as u32;
    }
    Ok(own)
}

fn too_many(count: usize) -> Error {
    Code::TooLarge
        .error(format!("a share of {count} nodes is too large for `hilbert`, which takes 2^32 on each rank"))
        .with_hint("spread the coordinates over more ranks")
}

/// The number of a cell along the curve (J. Skilling, Programming the Hilbert curve, 2004).
fn key(axes: &mut [u64], bits: u32) -> u64 {
    let last = axes.len() - 1;
    // Undo the rotations and reflections of the curve, from the coarsest level to the finest.
    for bit in (1..bits).rev() {
        let (bit, low) = (1u64 << bit, (1u64 << bit) - 1);
        for dim in 0..axes.len() {
            if axes[dim] & bit != 0 {
                axes[0] ^= low;
            } else {
                let swapped = (axes[0] ^ axes[dim]) & low;
                axes[0] ^= swapped;
                axes[dim] ^= swapped;
            }
        }
    }
    // Gray-encode the result; then interleave the bits of the axes.
    for dim in 1..axes.len() {
        axes[dim] ^= axes[dim - 1];
    }
    let mut flips = 0;
    for bit in (1..bits).rev() {
        if axes[last] >> bit & 1 != 0 {
            flips ^= (1u64 << bit) - 1;
        }
    }
    axes.iter_mut().for_each(|axis| *axis ^= flips);
    (0..bits).rev().fold(0, |key, bit| axes.iter().fold(key, |key, axis| key << 1 | (axis >> bit & 1)))
}

/// The search for one cut: the key of its first node is at least `low` and at most `high`.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// Number of nodes before the cut.
    target: u64,
    low: u64,
    high: u64,
}

/// Collective: the positions in this rank's order at which the shares of ranks 1, 2, ... begin.
///
/// All searches run together: in a round, each halves its range of keys, and the counts of all ranks are added.
fn cuts(team: &Team, order: &[(u64, u32)], nodes: u64) -> Result<Vec<usize>> {
    let ranks = team.size();
    let mut searches: Vec<Search> = (1..ranks)
        .map(|rank| Search { target: block_range(nodes, ranks, rank).start, low: 0, high: u64::MAX })
        .collect();
    let below = |key: u64| order.partition_point(|(other, _)| *other < key);
    let upto = |key: u64| order.partition_point(|(other, _)| *other <= key);
    // The cut is at the smallest key up to which there are more nodes than the target.
    while searches.iter().any(|search| search.low < search.high) {
        let open = |search: &&Search| search.low < search.high;
        let middle = |search: &Search| search.low + (search.high - search.low) / 2;
        let counts = searches.iter().filter(open).map(|search| upto(middle(search)) as u64).collect();
        let counts = team.total(STEP, Ok(counts))?;
        let open = searches.iter_mut().filter(|search| search.low < search.high);
        for (search, count) in open.zip(counts) {
            let middle = middle(search);
            match count.cmp(&search.target) {
                Ordering::Greater => search.high = middle,
                Ordering::Less => search.low = middle + 1,
                // All nodes up to here are counted, and later keys need no search.
                Ordering::Equal => (search.low, search.high) = (middle + 1, middle + 1),
            }
        }
    }
    // Of the nodes with that key, those of lower ranks come first.
    let own = |search: &Search| [below(search.low) as u64, (upto(search.low) - below(search.low)) as u64];
    let counts = team.sums(STEP, Ok(searches.iter().flat_map(own).collect()))?;
    let place = |(at, search): (usize, &Search)| {
        let [first, equal] = own(search);
        let missing = search.target.saturating_sub(counts.total[2 * at]);
        (first + missing.saturating_sub(counts.before[2 * at + 1]).min(equal)) as usize
    };
    Ok(searches.iter().enumerate().map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_along_the_curve_are_neighbours_in_space() {
        for (dims, bits) in [(2, 4), (3, 3)] {
            let side = 1u64 << bits;
            let mut cells: Vec<(u64, Vec<u64>)> = (0..side.pow(dims))
                .map(|cell| {
                    let axes: Vec<u64> = (0..dims).map(|dim| cell / side.pow(dim) % side).collect();
                    (key(&mut axes.clone(), bits), axes)
                })
                .collect();
            cells.sort();
            for (at, pair) in cells.windows(2).enumerate() {
                assert_eq!(pair[0].0, at as u64, "keys count the cells");
                let apart: u64 = pair[0].1.iter().zip(&pair[1].1).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(apart, 1, "{pair:?}");
            }
        }
        for pair in [-1e300, -2.5, -0.0, 0.0, 1e-300, 7.0, f64::MAX].windows(2) {
            assert!(ordered(pair[0]) <= ordered(pair[1]) && of_ordered(ordered(pair[0])) == pair[0]);
        }
    }
}
