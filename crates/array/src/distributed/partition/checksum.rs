//! Checksums of meshes and vectors that do not depend on how shares are cut.
//!
//! Each element is hashed together with its position (xxh3, 128 bits), and the hashes are summed. So every rank sums
//! what it happens to have, in any order, and the sums of all ranks are added.

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Step, Team};
pub use fieldstone_format::partition::ContentSum;
use xxhash_rust::xxh3::xxh3_128;

/// In the place of the position in the term of the counts.
const COUNTS: u64 = u64::MAX;

/// What an edge adds: its global number and its ends, counted from 0.
#[inline]
pub(super) fn edge(number: u64, first: u64, second: u64) -> u128 {
    term([number, first, second])
}

/// What a node's rank adds to the checksum of a vector.
#[inline]
pub(super) fn node_rank(node: u64, rank: u32) -> u128 {
    term([node, u64::from(rank)])
}

/// What a node's coordinates add to the checksum of a vector that is made from them.
pub(super) fn coordinates(node: u64, bits: [u64; 3]) -> u128 {
    term([node, bits[0], bits[1], bits[2]])
}

#[inline]
fn term<const N: usize>(words: [u64; N]) -> u128 {
    let mut bytes = [[0; 8]; N];
    bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    xxh3_128(bytes.as_flattened())
}

/// Collective: the sum of all ranks' terms with the counts that belong to it.
pub(super) fn total(team: &Team, step: impl Into<Step>, own: u128, counts: [u64; 2]) -> Result<ContentSum> {
    let step = step.into();
    // Halves of 64 bits cannot be added without carries: quarters with room for them.
    let quarters = (0..4).map(|n| (own >> (32 * n)) as u64 & 0xffff_ffff).collect();
    let sums = team.total(step, Ok(quarters))?;
    let sum = sums.iter().rev().fold(0u128, |sum, quarter| (sum << 32).wrapping_add(u128::from(*quarter)));
    Ok(ContentSum(sum.wrapping_add(term([COUNTS, counts[0], counts[1]]))))
}
