//! Rows of scattered nodes: each rank reads a share of the blocks, once, and sends rows to the ranks of their nodes.
//!
//! ```text
//! edge of a row = node  number  other end, with the highest bit where the node is the second end
//! ```

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Error, Result};
use fieldstone_format::partition::BlockEntry;
use fieldstone_format::partition::words::put_words;

use super::super::super::number_set::NumberCollector;
use super::super::super::shares::block_range;
use super::super::super::vector::NodeRanks;
use super::super::STEP;
use super::{KeptEdges, NumberedBlocks, RowEdge, blocks};
use fieldstone_format::partition::words::Word;

/// Collective: passes the edges of all rows of this rank's nodes to `put`. The inner result is this rank's own.
pub(super) fn exchange<W: Word, E: Word>(
    kept: &mut KeptEdges<'_, '_>,
    team: &Team,
    vector: &NodeRanks<'_>,
    mut put: impl FnMut(RowEdge),
) -> Result<Result<()>> {
    let header = kept.header;
    let range = block_range(header.entries, team.size(), team.rank());
    let own = blocks(kept.file, &header, range, |_| true);
    let groups = own.as_ref().map_err(Error::replicate).map(|own| vec![count_groups(kept, own)]);
    let rounds = team.max(STEP, groups)?[0];
    let (own, mut outcome) = (own?, Ok(()));
    let mut rest = &own[..];
    for _ in 0..rounds {
        let (now, later) = rest.split_at(kept.side_by_side(rest));
        rest = later;
        let parts = parts::<W, E>(kept, team, vector, (now, outcome))?;
        let came = team.alltoallv(STEP, parts)?;
        outcome = came.iter().try_for_each(|part| take::<W, E>(part, &mut put));
    }
    Ok(outcome)
}

fn count_groups(kept: &KeptEdges<'_, '_>, own: &NumberedBlocks) -> u64 {
    let (mut rest, mut count) = (&own[..], 0);
    while !rest.is_empty() {
        rest = &rest[kept.side_by_side(rest)..];
        count += 1;
    }
    count
}

/// The parts for each rank. Collective if it must query the ranks of nodes: then an earlier failure is raised on all,
/// otherwise it is returned as the inner result.
fn parts<W: Word, E: Word>(
    kept: &mut KeptEdges<'_, '_>,
    team: &Team,
    vector: &NodeRanks<'_>,
    (blocks, outcome): (&[(u64, BlockEntry)], Result<()>),
) -> Result<Result<Vec<Vec<u8>>>> {
    let rows: u64 = blocks.iter().map(|(_, block)| u64::from(block.rows)).sum();
    let mut nodes = NumberCollector::new(vector.nodes, rows);
    let mut edges = Vec::new();
    let read = outcome.and_then(|()| {
        kept.rows::<W, E>(blocks, |node, row| {
            nodes.insert(node);
            edges.extend(row);
        })
    });
    let nodes = nodes.finish();
    let ranks = vector.of_set(team, read.map(|()| &nodes));
    let ranks = match ranks {
        Err(error) if vector.is_local() => return Ok(Err(error)),
        ranks => ranks?,
    };
    let highest = 1 << (8 * W::WIDTH - 1);
    let mut parts = vec![Vec::new(); team.size()];
    for RowEdge { node, number, other, is_second } in edges {
        // Every row's node is in the set.
        let rank = nodes.index(node).and_then(|at| ranks.get(at)).copied().unwrap_or(0);
        let part = &mut parts[rank as usize];
        put_words(part, [node], W::WIDTH == 4);
        put_words(part, [number], E::WIDTH == 4);
        put_words(part, [if is_second { other | highest } else { other }], W::WIDTH == 4);
    }
    Ok(Ok(parts))
}

fn take<W: Word, E: Word>(part: &[u8], put: &mut impl FnMut(RowEdge)) -> Result<()> {
    let (each, highest) = (2 * W::WIDTH + E::WIDTH, 1 << (8 * W::WIDTH - 1));
    if !part.len().is_multiple_of(each) {
        return Err(Error::internal("another rank sent malformed rows"));
    }
    for edge in part.chunks_exact(each) {
        let (node, rest) = edge.split_at(W::WIDTH);
        let (number, other) = rest.split_at(E::WIDTH);
        let other = W::of(other);
        let (is_second, other) = (other & highest != 0, other & !highest);
        put(RowEdge { node: W::of(node), number: E::of(number), other, is_second });
    }
    Ok(())
}
