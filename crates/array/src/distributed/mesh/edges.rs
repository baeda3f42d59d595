//! The edges of a mesh, in shares of the ranks: its stored edges, or those of its faces and volumes.
//!
//! Each rank takes its share of faces and volumes and sends each edge once to the rank that has the lower of its
//! nodes; that rank sorts the edges and drops duplicates.
//!
//! Invariants: derived edges are distinct, in whatever direction faces run; they have their lower node first, and
//! ascend over all ranks; their order does not depend on the number of ranks; memory is that of a share.

use fieldstone_core::{Code, Result};

use super::rows::RowReader;
use super::{MeshArray, STEP};

/// Minimum number of edges to collect before duplicates are dropped.
const GATHERED: usize = 1 << 20;

/// This rank's edges; those of lower ranks come before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeShare {
    /// Number of edges on lower ranks.
    pub before: u64,
    /// Number of edges on all ranks.
    pub total: u64,
    /// The nodes of each edge of this rank, counted from 0.
    pub ends: Vec<[i64; 2]>,
}

/// The pairs of positions in a volume's row that an edge joins, by the volume's number of nodes.
fn volume_edges(nodes: usize) -> Option<&'static [[usize; 2]]> {
    match nodes {
        4 => Some(&[[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]]),
        5 => Some(&[[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [1, 4], [2, 4], [3, 4]]),
        6 => Some(&[[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [1, 4], [2, 5]]),
        8 => Some(&[
            [0, 1],
            [1, 2],
            [2, 3],
            [3, 0],
            [4, 5],
            [5, 6],
            [6, 7],
            [7, 4],
            [0, 4],
            [1, 5],
            [2, 6],
            [3, 7],
        ]),
        _ => None,
    }
}

/// Collective: this rank's share of the mesh's edges, else of those of its faces and volumes; none where it has
/// nodes alone.
///
/// Errors: `Invalid` for volumes whose edges their number of nodes does not say; `Corrupt` where the file is.
pub fn share(reader: &RowReader<'_>) -> Result<EdgeShare> {
    let mut ends: Vec<[i64; 2]> = Vec::new();
    if reader.head.counts[1] > 0 {
        let read = reader.for_each_row(MeshArray::Edges, |_, row| {
            ends.extend(row.first_chunk::<2>());
            Ok(())
        });
        reader.team.agree(STEP, read)?;
    } else {
        ends = derived(reader)?;
    }
    let sums = reader.team.sums(STEP, Ok(vec![ends.len() as u64]))?;
    Ok(EdgeShare { before: sums.before[0], total: sums.total[0], ends })
}

fn derived(reader: &RowReader<'_>) -> Result<Vec<[i64; 2]>> {
    match u32::try_from(reader.head.counts[0]) {
        Ok(_) => derived_as::<u64>(reader),
        Err(_) => derived_as::<u128>(reader),
    }
}

fn derived_as<K: EdgeKey>(reader: &RowReader<'_>) -> Result<Vec<[i64; 2]>> {
    let mut gathered = GatheredEdges::<K>::default();
    let faces = reader.for_each_row(MeshArray::Faces, |_, row| {
        (0..row.len()).for_each(|place| gathered.push(row[place], row[(place + 1) % row.len()]));
        Ok(())
    });
    let volumes = faces.and_then(|()| {
        reader.for_each_row(MeshArray::Volumes, |number, row| {
            let Some(edges) = volume_edges(row.len()) else {
                return Err(Code::Value
                    .error(format!(
                        "volume {number} has {} nodes, which do not determine its edges",
                        row.len()
                    ))
                    .with_hint("make the mesh with edges"));
            };
            edges.iter().for_each(|[a, b]| gathered.push(row[*a], row[*b]));
            Ok(())
        })
    });
    reader.team.agree(STEP, volumes)?;
    let keys = gathered.finish();
    let (nodes, size) = (reader.head.counts[0], reader.team.size());
    // Ranks have nodes that follow one another.
    let begin = |rank: usize| (u128::from(nodes) * rank as u128 / size as u128) as i64;
    let mut parts = Vec::with_capacity(size);
    for rank in 0..size {
        let from = keys.partition_point(|key| key.ends()[0] < begin(rank));
        let to = keys.partition_point(|key| key.ends()[0] < begin(rank + 1));
        let mut part = Vec::with_capacity((to - from) * K::BYTES);
        keys[from..to].iter().for_each(|key| key.put(&mut part));
        parts.push(part);
    }
    drop(keys);
    let parts = reader.team.alltoallv(STEP, Ok(parts))?;
    let mut keys: Vec<K> = parts.iter().flat_map(|part| part.chunks_exact(K::BYTES).map(K::read)).collect();
    drop(parts);
    // Each part is sorted, which this sort makes use of.
    keys.sort();
    keys.dedup();
    Ok(keys.into_iter().map(K::ends).collect())
}

/// An edge as a number: the lower node, then the higher one.
trait EdgeKey: Copy + Ord {
    /// Size of an edge in bytes.
    const BYTES: usize;
    fn of(low: i64, high: i64) -> Self;
    fn ends(self) -> [i64; 2];
    fn put(self, out: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Self;
}

impl EdgeKey for u64 {
    const BYTES: usize = 8;
    fn of(low: i64, high: i64) -> u64 {
        (low as u64) << 32 | high as u64
    }
    fn ends(self) -> [i64; 2] {
        [(self >> 32) as i64, i64::from(self as u32)]
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
    fn read(bytes: &[u8]) -> u64 {
        bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl EdgeKey for u128 {
    const BYTES: usize = 16;
    fn of(low: i64, high: i64) -> u128 {
        (low as u128) << 64 | high as u128
    }
    fn ends(self) -> [i64; 2] {
        [(self >> 64) as i64, self as u64 as i64]
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }
    fn read(bytes: &[u8]) -> u128 {
        bytes.first_chunk().map_or(0, |bytes| u128::from_le_bytes(*bytes))
    }
}

/// A set of edges, collected in about twice the memory of the result.
struct GatheredEdges<K> {
    /// Sorted edges without duplicates.
    sorted: Vec<K>,
    fresh: Vec<K>,
}

impl<K> Default for GatheredEdges<K> {
    fn default() -> GatheredEdges<K> {
        GatheredEdges { sorted: Vec::new(), fresh: Vec::new() }
    }
}

impl<K: EdgeKey> GatheredEdges<K> {
    fn push(&mut self, a: i64, b: i64) {
        if a != b {
            self.fresh.push(K::of(a.min(b), a.max(b)));
            if self.fresh.len() >= GATHERED.max(self.sorted.len() / 2) {
                self.merge();
            }
        }
    }

    fn merge(&mut self) {
        self.fresh.sort_unstable();
        self.fresh.dedup();
        let mut merged = Vec::with_capacity(self.sorted.len() + self.fresh.len());
        let (mut old, mut new) = (self.sorted.iter().copied().peekable(), self.fresh.drain(..).peekable());
        while let (Some(a), Some(b)) = (old.peek().copied(), new.peek().copied()) {
            merged.push(a.min(b));
            old.next_if(|key| *key <= b);
            new.next_if(|key| *key <= a);
        }
        merged.extend(old);
        merged.extend(new);
        self.sorted = merged;
    }

    fn finish(mut self) -> Vec<K> {
        self.merge();
        self.sorted
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fieldstone_core::env::sim::Random;

    use super::*;

    fn gathered<K: EdgeKey>(edges: &[[i64; 2]], every: usize) -> Vec<[i64; 2]> {
        let mut gathered = GatheredEdges::<K>::default();
        for (n, [a, b]) in edges.iter().enumerate() {
            gathered.push(*a, *b);
            if n % every == 0 {
                gathered.merge();
            }
        }
        let mut bytes = Vec::new();
        gathered.finish().into_iter().for_each(|key| key.put(&mut bytes));
        bytes.chunks(K::BYTES).map(|bytes| K::read(bytes).ends()).collect()
    }

    #[test]
    fn gathered_edges_are_sorted_and_each_there_once_whatever_merges_when() {
        let random = &mut Random::new(3);
        for every in [1, 7, 1000] {
            for top in [9, u64::from(u32::MAX)] {
                let mut edge = || [0, 1].map(|_| (top - random.below(9)) as i64);
                let edges: Vec<[i64; 2]> = (0..300).map(|_| edge()).collect();
                let proper = edges.iter().filter(|[a, b]| a != b).map(|[a, b]| [*a.min(b), *a.max(b)]);
                let expected: Vec<_> = proper.collect::<BTreeSet<_>>().into_iter().collect();
                assert_eq!(gathered::<u64>(&edges, every), expected);
                assert_eq!(gathered::<u128>(&edges, every), expected);
            }
        }
        let far = [[1i64 << 40, 5], [5, 1 << 40], [(1 << 40) + 1, 1 << 40]];
        assert_eq!(gathered::<u128>(&far, 1), [[5, 1 << 40], [1 << 40, (1 << 40) + 1]]);
    }
}
