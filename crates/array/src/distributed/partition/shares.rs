//! Division of lists over the ranks: contiguous shares in rank order, of any lengths or balanced.

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};

use super::STEP;

/// The begins of contiguous shares, in rank order, and the end of the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Starts(Vec<u64>);

impl Starts {
    /// Collective: computes them from the lengths of the ranks' shares.
    pub fn new(team: &Team, own: Result<u64>) -> Result<Starts> {
        let lengths = team.allgather(STEP, own.map(|own| own.to_le_bytes().to_vec()))?;
        let mut starts = vec![0u64];
        for length in &lengths {
            let length = length.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let last = starts.last().copied().unwrap_or(0);
            starts.push(last.saturating_add(length));
        }
        // The sum is the same on every rank, so all fail alike.
        match starts.last() {
            Some(total) if *total < 1 << 62 => Ok(Starts(starts)),
            _ => Err(Code::TooLarge.error("shares have 2^62 elements or more in total")),
        }
    }

    pub fn total(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    /// The range of a rank's share.
    pub fn of(&self, rank: usize) -> std::ops::Range<u64> {
        self.0[rank]..self.0[rank + 1]
    }

    /// The length of the largest share.
    pub fn largest(&self) -> u64 {
        self.0.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }
}

/// The nodes of a rank in the cut of `array_split`.
pub(super) fn block_range(nodes: u64, ranks: usize, rank: usize) -> std::ops::Range<u64> {
    let (ranks, rank) = (ranks as u64, rank as u64);
    let start = |rank: u64| nodes / ranks * rank + rank.min(nodes % ranks);
    start(rank)..start(rank + 1)
}

/// The error for an entry that is not a rank.
pub(super) fn no_rank(node: u64, value: impl std::fmt::Display, ranks: usize) -> Error {
    Code::Value
        .error(format!("the vector's entry of node {node} is {value}, but ranks are 0 to {}", ranks - 1))
        .with_hint("partition the mesh into as many parts as there are ranks")
}
