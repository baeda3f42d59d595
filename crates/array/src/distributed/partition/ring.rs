//! Passes edges from rank to rank until all have seen them (the method `ring`, the paper's).
//!
//! A piece of each share goes round once before the next one starts. A rank takes the edges with an end among its own
//! nodes, so no rank needs the ranks of other nodes.

use fieldstone_core::Result;
use fieldstone_core::env::comm::Team;

use super::number_set::NumberSet;
use super::picked::{Picked, pick};
use super::source::EdgePiece;
use super::{FEWEST, STEP, Shares};
use fieldstone_format::partition::words::Word;

/// Bytes of the buffer for each edge: as read, as passed on, as received.
const EDGE: u64 = 48;

/// Collective: the edges that this rank took, and the terms of its share for the mesh's checksum.
pub(super) fn distribute<W: Word>(
    team: &Team,
    shares: Shares<'_>,
    owned: &NumberSet,
    buffer: u64,
) -> Result<(Picked, u128)> {
    let Shares { source, starts, numbering } = shares;
    let (rank, ranks) = (team.rank(), team.size());
    let own = starts.of(rank).count() as u64;
    let each = (buffer / EDGE).clamp(FEWEST, 1 << 31);
    let (mut picked, mut sum, mut outcome) = (Picked::new(ranks), 0u128, Ok(()));
    let mut piece = EdgePiece::default();
    for round in 0..starts.largest().div_ceil(each) {
        let at = round.saturating_mul(each);
        let count = each.min(own.saturating_sub(at)) as usize;
        piece = team.agree(STEP, outcome.and_then(|()| piece.read(source, at.min(own), count, numbering)))?;
        sum = sum.wrapping_add(piece.sum());
        let mut passing = vec![0; 2 * W::WIDTH * count];
        let (first, second) = passing.split_at_mut(W::WIDTH * count);
        let columns = first.chunks_exact_mut(W::WIDTH).zip(second.chunks_exact_mut(W::WIDTH));
        for ((first, second), ends) in columns.zip(piece.ends()) {
            W::put(ends.0, first);
            W::put(ends.1, second);
        }
        outcome = Ok(());
        for hop in 0..ranks {
            let origin = (rank + ranks - hop) % ranks;
            let (first, second) = passing.split_at(passing.len() / 2);
            let begin = starts.of(origin).start + at;
            let taken = picked.take::<W>(origin, pick::<W>(begin, first, second, owned));
            outcome = outcome.and(taken);
            if hop + 1 < ranks {
                let mut parts = vec![Vec::new(); ranks];
                parts[(rank + 1) % ranks] = passing;
                passing = team.alltoallv(STEP, Ok(parts))?.swap_remove((rank + ranks - 1) % ranks);
            }
        }
    }
    team.agree(STEP, outcome)?;
    Ok((picked, sum))
}
