//! Reads complete parts: each rank its own, from beginning to end.

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Error, Result};
use fieldstone_format::partition::words::words;
use fieldstone_format::partition::{ContentSum, ENTRY, HistoryKind, PartEntry};

use super::super::picked::zeros;
use super::super::{Partition, PartitionKey, PartitionSource};
use super::{KeptFile, PIECE, damaged, of_another, read_alone};

/// Collective: this rank's part, as an earlier run with as many ranks completed it.
///
/// Errors: `NotFound` if there is no such file; `Conflict` for one of another mesh, vector or number of ranks;
/// `Corrupt` for a damaged one. All ranks raise the same.
pub fn read_parts(team: &Team, path: &Path, mesh: ContentSum, vector: ContentSum) -> Result<Partition> {
    read_alone(team, path, |file| {
        let part = read(file, team, (mesh, vector))?;
        Ok(Partition { read: file.read, ..part })
    })
}

fn read(file: &mut KeptFile<'_>, team: &Team, (mesh, vector): (ContentSum, ContentSum)) -> Result<Partition> {
    let (rank, ranks) = (team.rank() as u64, team.size());
    let header = file.header(HistoryKind::Parts, mesh)?;
    if header.parts as usize != ranks {
        return Err(of_another("number of ranks", header.parts, ranks));
    }
    if header.vector != vector {
        return Err(of_another("vector", header.vector, vector));
    }
    let mut entry = [0; ENTRY];
    file.read(&mut entry, header.entry(rank))?;
    let entry = PartEntry::decode(&header, &entry, rank)?;
    let mut column = KeptColumn { file, at: entry.offset, sum: 0, bytes: Vec::new() };
    let (owned, ghosts) = (entry.owned as usize, entry.ghosts as usize);
    let (count, node_width, edge_width) = (owned + ghosts, header.node_width(), header.edge_width());
    let mut is_sound = true;
    let mut nodes = zeros(count);
    column.numbers(count, node_width, Arc::get_mut(&mut nodes).unwrap_or_default())?;
    let mut ghost_ranks = Vec::with_capacity(ghosts);
    column.read(ghosts, 4, |bytes| ghost_ranks.extend(words::<u32>(bytes).map(|rank| rank as u32)))?;
    let mut edges = zeros(entry.edges as usize);
    column.numbers(edges.len(), edge_width, Arc::get_mut(&mut edges).unwrap_or_default())?;
    let mut ends = Vec::with_capacity(edges.len());
    column.read(edges.len(), 8, |bytes| {
        let pairs = bytes.as_chunks::<8>().0.iter().map(|pair| {
            let [a, b, c, d, e, f, g, h] = *pair;
            [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])]
        });
        is_sound &= pairs.clone().all(|[a, b]| (a as usize) < count && (b as usize) < count);
        ends.extend(pairs);
    })?;
    if column.sum != entry.sum {
        return Err(
            damaged(entry.length(&header), entry.offset).context(format_args!("the part of rank {rank}"))
        );
    }
    let owned_edges = entry.owned_edges as usize;
    is_sound &= ascends(&nodes[..owned], header.nodes) && ascends(&nodes[owned..], header.nodes);
    is_sound &= ascends(&edges[..owned_edges], header.edges) && ascends(&edges[owned_edges..], header.edges);
    is_sound &= ghost_ranks.iter().all(|rank| (*rank as usize) < ranks);
    if !is_sound {
        return Err(Error::corrupt(format!("the part of rank {rank} contradicts itself")));
    }
    let (nodes_of_mesh, edges_of_mesh) = (header.nodes, header.edges);
    let key = PartitionKey { mesh, vector, nodes: nodes_of_mesh, edges: edges_of_mesh, ranks: header.parts };
    Ok(Partition {
        key,
        source: PartitionSource::Parts,
        nodes,
        owned,
        ghost_ranks,
        edges,
        owned_edges,
        ends,
        plan: Default::default(),
        read: 0,
    })
}

/// Whether numbers ascend and are below `limit`.
fn ascends(list: &[i64], limit: u64) -> bool {
    let last = list.last().is_none_or(|last| (*last as u64) < limit);
    last && list.first().is_none_or(|first| *first >= 0) && list.is_sorted_by(|a, b| a < b)
}

/// Consecutive columns, read in pieces and checksummed.
struct KeptColumn<'a, 'b> {
    file: &'a mut KeptFile<'b>,
    at: u64,
    sum: u32,
    bytes: Vec<u8>,
}

impl KeptColumn<'_, '_> {
    fn read(&mut self, count: usize, width: usize, mut act: impl FnMut(&[u8])) -> Result<()> {
        let mut left = count * width;
        while left > 0 {
            self.bytes.resize(left.min(PIECE), 0);
            self.file.read(&mut self.bytes, self.at)?;
            self.sum = crc32c::crc32c_append(self.sum, &self.bytes);
            act(&self.bytes);
            self.at += self.bytes.len() as u64;
            left -= self.bytes.len();
        }
        Ok(())
    }

    fn numbers(&mut self, count: usize, width: u64, into: &mut [i64]) -> Result<()> {
        let mut at = 0;
        self.read(count, width as usize, |bytes| {
            let into = &mut into[at..][..bytes.len() / width as usize];
            at += into.len();
            match width {
                4 => {
                    into.iter_mut().zip(words::<u32>(bytes)).for_each(|(into, number)| *into = number as i64)
                }
                _ => {
                    into.iter_mut().zip(words::<u64>(bytes)).for_each(|(into, number)| *into = number as i64)
                }
            }
        })
    }
}
