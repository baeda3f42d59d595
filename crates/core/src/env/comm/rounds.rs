//! Moves parts of a file in rounds: an MPI communicator moves a bounded number of bytes in one call, and all ranks
//! must make the same number of calls.

use super::{Comm, Reduce};
use crate::Result;

/// Some bytes of one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The part's index in the list.
    pub part: usize,
    /// First byte in the part.
    pub begin: usize,
    /// The byte after the last.
    pub end: usize,
}

/// Divides parts of these lengths into rounds of at most `bytes` bytes and `pieces` pieces, each at least 1. Omits
/// empty parts.
pub fn rounds(lengths: impl Iterator<Item = usize>, bytes: usize, pieces: usize) -> Vec<Vec<Piece>> {
    let mut rounds: Vec<Vec<Piece>> = Vec::new();
    let mut room = 0;
    for (part, length) in lengths.enumerate() {
        let mut begin = 0;
        while begin < length {
            if room == 0 || rounds.last().is_none_or(|round| round.len() >= pieces) {
                rounds.push(Vec::new());
                room = bytes.max(1);
            }
            let end = length.min(begin.saturating_add(room));
            if let Some(round) = rounds.last_mut() {
                round.push(Piece { part, begin, end });
            }
            room -= end - begin;
            begin = end;
        }
    }
    rounds
}

/// Calls `act` for each of this rank's rounds, then with nothing until the rank with most rounds is done. Also passes
/// whether any rank has several pieces in the round. Collective. A rank that failed in one round takes part in the
/// others with nothing, and returns its first error.
pub fn in_rounds(
    comm: &dyn Comm,
    own: &[Vec<Piece>],
    mut act: impl FnMut(&[Piece], bool) -> Result<()>,
) -> Result<()> {
    let most = own.iter().map(Vec::len).max().unwrap_or(0);
    let mut agreed = [own.len() as u64, most as u64];
    comm.allreduce(Reduce::Max, &mut agreed)?;
    let mut outcome = Ok(());
    for n in 0..agreed[0] {
        let round = usize::try_from(n).ok().and_then(|n| own.get(n)).map_or(&[][..], Vec::as_slice);
        let done = act(if outcome.is_ok() { round } else { &[] }, agreed[1] > 1);
        outcome = outcome.and(done);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_hold_every_byte_once_within_both_bounds() {
        for (bytes, pieces) in [(1, 1), (3, 2), (5, 100), (1000, 1), (1000, 1000)] {
            let lengths = [4, 0, 7, 1, 1, 12];
            let rounds = rounds(lengths.into_iter(), bytes, pieces);
            let mut at = [0; 6];
            for round in &rounds {
                assert!(!round.is_empty() && round.len() <= pieces);
                assert!(round.iter().map(|piece| piece.end - piece.begin).sum::<usize>() <= bytes);
                for piece in round {
                    assert_eq!(piece.begin, at[piece.part], "in order and without a gap");
                    at[piece.part] = piece.end;
                }
            }
            assert_eq!(at, lengths);
        }
        assert!(rounds([0, 0].into_iter(), 5, 5).is_empty());
    }
}
