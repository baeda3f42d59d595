//! Checksums of meshes and vectors that do not depend on their division into shares.
//!
//! Each element is hashed together with its position (xxh3, 128 bits), and the hashes are summed. So every
//! rank sums the elements that it has, in any order, and the sums of all ranks are added.

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Step, Team};
pub use fieldstone_format::partition::ContentSum;
use xxhash_rust::xxh3::xxh3_128;

/// Takes the place of the position in the term of the counts.
const COUNTS: u64 = u64::MAX;

/// The term of an edge: its global number and its ends, counted from 0.
#[inline]
pub(super) fn edge(number: u64, first: u64, second: u64) -> u128 {
    term([number, first, second])
}

/// The term of a node's rank, for the checksum of a vector.
#[inline]
pub(super) fn node_rank(node: u64, rank: u32) -> u128 {
    term([node, u64::from(rank)])
}

/// The term of a node's coordinates, for the checksum of a vector computed from them.
pub(super) fn coordinates(node: u64, bits: [u64; 3]) -> u128 {
    term([node, bits[0], bits[1], bits[2]])
}

#[inline]
fn term<const N: usize>(words: [u64; N]) -> u128 {
    let mut bytes = [[0; 8]; N];
    bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    xxh3_128(bytes.as_flattened())
}

/// Collective: the sum of all ranks' terms, with their counts.
pub(super) fn total(team: &Team, step: impl Into<Step>, own: u128, counts: [u64; 2]) -> Result<ContentSum> {
    let step = step.into();
    // Halves of 64 bits cannot be added without carries, so use quarters with spare bits.
    let quarters = (0..4).map(|n| (own >> (32 * n)) as u64 & 0xffff_ffff).collect();
    let sums = team.total(step, Ok(quarters))?;
    let sum = sums.iter().rev().fold(0u128, |sum, quarter| (sum << 32).wrapping_add(u128::from(*quarter)));
    Ok(ContentSum(sum.wrapping_add(term([COUNTS, counts[0], counts[1]]))))
}
