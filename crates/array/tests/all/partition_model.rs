//! Random meshes, and the expected partitions of them, computed edge by edge.

use std::collections::BTreeSet;

use fieldstone_array::distributed::partition::{Partition, PartitionKey};
use fieldstone_core::env::sim::Random;

/// A mesh with its vector, and the cuts of its shares.
#[derive(Debug, Clone)]
pub struct Mesh {
    pub ranks: usize,
    pub nodes: u64,
    pub base: u64,
    /// Ends with the caller's numbers.
    pub first: Vec<i64>,
    pub second: Vec<i64>,
    pub vector: Vec<i64>,
    pub edge_cuts: Vec<usize>,
    pub node_cuts: Vec<usize>,
}

/// Cuts `length` into this number of shares, some of them empty.
pub fn cuts(random: &mut Random, length: u64, ranks: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (1..ranks).map(|_| random.below(length + 1) as usize).collect();
    cuts.extend([0, length as usize]);
    cuts.sort_unstable();
    cuts
}

impl Mesh {
    pub fn random(random: &mut Random) -> Mesh {
        let ranks = 1 + random.below(16) as usize;
        let nodes = [0, 1, 40, 900, 50_000][random.below(5) as usize];
        let edges = if nodes == 0 { 0 } else { [0, 1, 60, 3000][random.below(4) as usize] };
        let base = random.below(2);
        // Some meshes have short edges, so that parts have few ghosts; self loops and duplicates occur by chance.
        let reach = [3, nodes.max(1)][random.below(2) as usize];
        let mut ends = || {
            let first = random.below(nodes);
            (first, (first + random.below(reach)) % nodes)
        };
        let (first, second): (Vec<u64>, Vec<u64>) = (0..edges).map(|_| ends()).unzip();
        let outside = |list: Vec<u64>| list.into_iter().map(|node| (node + base) as i64).collect();
        // Not every rank needs to have nodes.
        let used = 1 + random.below(ranks as u64);
        let clumps = 1 + random.below(30);
        let vector = (0..nodes).map(|node| (node / clumps * 7 % used) as i64).collect();
        let (edge_cuts, node_cuts) = (cuts(random, edges, ranks), cuts(random, nodes, ranks));
        let (first, second) = (outside(first), outside(second));
        Mesh { ranks, nodes, base, first, second, vector, edge_cuts, node_cuts }
    }

    pub fn edges_of(&self, rank: usize) -> std::ops::Range<usize> {
        self.edge_cuts[rank]..self.edge_cuts[rank + 1]
    }

    pub fn nodes_of(&self, rank: usize) -> std::ops::Range<usize> {
        self.node_cuts[rank]..self.node_cuts[rank + 1]
    }

    /// Ends of an edge, counted from 0.
    pub fn ends(&self, edge: usize) -> (i64, i64) {
        (self.first[edge] - self.base as i64, self.second[edge] - self.base as i64)
    }

    /// The part of `rank` under this vector.
    pub fn part(&self, vector: &[i64], rank: usize) -> PartModel {
        let is_own = |node: i64| vector[node as usize] == rank as i64;
        let owned: Vec<i64> = (0..self.nodes as i64).filter(|node| is_own(*node)).collect();
        let all = 0..self.first.len();
        let with_first: Vec<usize> = all.clone().filter(|edge| is_own(self.ends(*edge).0)).collect();
        let others = all.filter(|edge| !is_own(self.ends(*edge).0) && is_own(self.ends(*edge).1));
        let edges: Vec<usize> = with_first.iter().copied().chain(others).collect();
        let touched = edges.iter().flat_map(|edge| [self.ends(*edge).0, self.ends(*edge).1]);
        let ghosts: BTreeSet<i64> = touched.filter(|node| !is_own(*node)).collect();
        let nodes: Vec<i64> = owned.iter().chain(&ghosts).copied().collect();
        let place = |node: i64| match is_own(node) {
            true => owned.binary_search(&node).unwrap() as u32,
            false => (owned.len() + ghosts.range(..node).count()) as u32,
        };
        let ends = edges.iter().map(|edge| [place(self.ends(*edge).0), place(self.ends(*edge).1)]).collect();
        PartModel {
            owned: owned.len(),
            owned_edges: with_first.len(),
            ghost_ranks: ghosts.iter().map(|node| vector[*node as usize] as u32).collect(),
            nodes,
            edges: edges.into_iter().map(|edge| edge as i64).collect(),
            ends,
        }
    }
}

/// All results of a partition on one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartModel {
    pub nodes: Vec<i64>,
    pub owned: usize,
    pub ghost_ranks: Vec<u32>,
    pub edges: Vec<i64>,
    pub owned_edges: usize,
    pub ends: Vec<[u32; 2]>,
}

impl PartModel {
    pub fn of(part: &Partition) -> PartModel {
        PartModel {
            nodes: part.nodes().to_vec(),
            owned: part.owned(),
            ghost_ranks: part.ghost_ranks().to_vec(),
            edges: part.edges().to_vec(),
            owned_edges: part.owned_edges(),
            ends: part.ends().to_vec(),
        }
    }
}

/// Checks the parts of all ranks, and returns the key, which is equal on all of them.
pub fn all_parts(parts: &[(PartModel, PartitionKey)]) -> PartitionKey {
    assert!(parts.iter().all(|(_, key)| *key == parts[0].1));
    parts[0].1
}
