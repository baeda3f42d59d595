//! Sends each edge once, to the ranks of its ends (the method `direct`).
//!
//! In a round, each rank reads a piece of its share, finds the ranks of its ends, and sends every edge to the one or
//! two of them. There are as many rounds as the largest share needs.

use std::marker::PhantomData;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Error, Result};

use super::number_set::NumberCollector;
use super::picked::{PartLists, Picked};
use super::source::EdgePiece;
use super::vector::{LocalRanks, NodeRanks};
use super::{FEWEST, STEP, Shares};
use fieldstone_format::partition::words::Word;

/// Bytes of the buffer for each edge. On its way an edge takes 64: as read, sorted, sent and received; with half of
/// the buffer, pieces stay in memory that is in use already.
const EDGE: u64 = 128;

/// Collective: the edges that this rank received, and the terms of its share for the mesh's checksum.
pub(super) fn distribute<W: Word>(
    team: &Team,
    shares: Shares<'_>,
    vector: &NodeRanks<'_>,
    buffer: u64,
) -> Result<(Picked, u128)> {
    let Shares { source, starts, numbering } = shares;
    let own = starts.of(team.rank()).count() as u64;
    let each = (buffer / EDGE).clamp(FEWEST, 1 << 31);
    let (mut picked, mut sum, mut outcome) = (Picked::new(team.size()), 0u128, Ok(()));
    let (mut memory, mut lists) = (EdgePiece::default(), PartLists::new(vector.ranks));
    for round in 0..starts.largest().div_ceil(each) {
        let at = round.saturating_mul(each).min(own);
        let count = each.min(own - at) as usize;
        let piece = outcome.and_then(|()| std::mem::take(&mut memory).read(source, at, count, numbering));
        let parts = parts::<W>(team, vector, piece.as_ref(), &mut lists)?;
        let came = team.alltoallv(STEP, parts)?;
        let piece = piece?;
        sum = sum.wrapping_add(piece.sum());
        memory = piece;
        let mut take = came.into_iter().enumerate();
        outcome = take.try_for_each(|(source, part)| picked.take::<W>(source, part));
    }
    team.agree(STEP, outcome)?;
    Ok((picked, sum))
}

/// The parts for each rank. Collective if it must query the ranks of nodes: then an earlier error is raised on all,
/// otherwise it is returned as the inner result.
fn parts<W: Word>(
    team: &Team,
    vector: &NodeRanks<'_>,
    piece: std::result::Result<&EdgePiece, &Error>,
    lists: &mut PartLists,
) -> Result<Result<Vec<Vec<u8>>>> {
    if vector.is_local() {
        return Ok(piece.map_err(Error::replicate).map(|piece| {
            vector.with_local(SortOut::<W> { piece, lists, word: PhantomData }).unwrap_or_default()
        }));
    }
    let set = piece.map_err(Error::replicate).map(|piece| {
        let mut ends = NumberCollector::new(vector.nodes, 2 * piece.first.len() as u64);
        for (first, second) in piece.ends() {
            ends.insert(first);
            ends.insert(second);
        }
        ends.finish()
    });
    let ranks = vector.of_set(team, set.as_ref().map_err(Error::replicate))?;
    let (set, piece) = (set?, piece.map_err(Error::replicate)?);
    // Every end is in the set.
    let rank_of = |node: u64| set.index(node).and_then(|at| ranks.get(at)).copied().unwrap_or(0);
    Ok(Ok(lists.sort_out::<W>(piece, rank_of)))
}

/// [`PartLists::sort_out`] by ranks that are known locally.
struct SortOut<'a, W> {
    piece: &'a EdgePiece,
    lists: &'a mut PartLists,
    word: PhantomData<W>,
}

impl<W: Word> LocalRanks<Vec<Vec<u8>>> for SortOut<'_, W> {
    fn call(self, rank_of: impl Fn(u64) -> u32) -> Vec<Vec<u8>> {
        self.lists.sort_out::<W>(self.piece, rank_of)
    }
}
