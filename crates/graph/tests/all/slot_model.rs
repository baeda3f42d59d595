//! The places of relations and the costs of walks, computed directly from the rules: the paper's tree is
//! built level by level, a node splits once more than the threshold of a vertex's relations pass through it,
//! and a walk takes one step after the other over sets of vertices. The model shares nothing with the slots
//! except the places of vertices.
//!
//! Source: GraphMeta (TPDS 30 (7), 2019), sections 4 and 6.4.2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone_core::env::sim::Random;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning, SlotLabels};

/// A relation, seen from one of its ends: type, whether this end is the target, the other end.
pub type Half = (Arc<str>, bool, VertexPlace);

/// A node of the tree by which partitions split.
#[derive(Debug, Clone)]
struct Node {
    label: u32,
    /// Labels of the leaves below it, including its own.
    leaves: BTreeSet<u32>,
    /// The part that stays, and the one that goes to another slot.
    parts: Option<[usize; 2]>,
}

/// The tree of every vertex; labels are distances from the vertex's home. The root is the first node.
#[derive(Debug, Clone)]
struct Tree(Vec<Node>);

impl Tree {
    /// `label`: the label of the part that goes, from the node's label, its depth, and the number of labels
    /// given before.
    fn grown(slots: u32, label: impl Fn(u32, u32, u32) -> u32) -> Tree {
        let node = |label| Node { label, leaves: BTreeSet::new(), parts: None };
        let mut tree = Tree(vec![node(0)]);
        let (mut level, mut depth, mut given) = (vec![0], 0, 1);
        while !level.is_empty() {
            let mut next = Vec::new();
            for at in level {
                let right = label(tree.0[at].label, depth, given);
                given += 1;
                if right < slots {
                    let parts = [tree.0.len(), tree.0.len() + 1];
                    let stays = tree.0[at].label;
                    tree.0.extend([node(stays), node(right)]);
                    tree.0[at].parts = Some(parts);
                    next.extend(parts);
                }
            }
            (level, depth) = (next, depth + 1);
        }
        for at in (0..tree.0.len()).rev() {
            tree.0[at].leaves = match tree.0[at].parts {
                None => [tree.0[at].label].into(),
                Some([left, right]) => &tree.0[left].leaves | &tree.0[right].leaves,
            };
        }
        tree
    }

    /// As in Fig. 6: the part that goes gets the next free label, level by level, left to right.
    fn breadth_first(slots: u32) -> Tree {
        Tree::grown(slots, |_, _, given| given)
    }

    /// A part that goes at depth d gets the slot 2^d further on.
    fn by_levels(slots: u32) -> Tree {
        Tree::grown(slots, |label, depth, _| label + (1 << depth))
    }
}

/// The final place of every relation, after all splits have ended.
#[derive(Debug)]
pub struct Model {
    partitioning: Partitioning,
    /// For each vertex its relations, each with the slot where it is.
    pub halves: BTreeMap<VertexPlace, BTreeMap<Half, u32>>,
    /// For each vertex the split partitions: the turns to them, the first the lowest, after a leading 1.
    pub splits: BTreeMap<VertexPlace, BTreeSet<u32>>,
    /// For each vertex the slots of its partitions.
    asked: BTreeMap<VertexPlace, BTreeSet<u32>>,
}

/// The costs of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkCost {
    pub requests: u64,
    pub forwards: u64,
    pub reads: u64,
}

/// The finalizer of SplitMix64.
fn scattered(number: u64) -> u64 {
    Random::new(number).next_u64()
}

fn part_of(number: u64, slots: u32) -> u32 {
    ((u128::from(number) * u128::from(slots)) >> 64) as u32
}

impl Model {
    /// The model of these relations: type, source, target.
    pub fn of(partitioning: Partitioning, relations: &[(Arc<str>, VertexPlace, VertexPlace)]) -> Model {
        let mut of_vertices: BTreeMap<VertexPlace, BTreeSet<Half>> = BTreeMap::new();
        for (kind, source, target) in relations {
            of_vertices.entry(*source).or_default().insert((kind.clone(), false, *target));
            of_vertices.entry(*target).or_default().insert((kind.clone(), true, *source));
        }
        let (halves, splits, asked) = Default::default();
        let mut model = Model { partitioning, halves, splits, asked };
        let slots = u32::from(partitioning.slots);
        let tree = match (partitioning.scheme, partitioning.labels) {
            (PartitionScheme::Dido, SlotLabels::Paper) => Tree::breadth_first(slots),
            _ => Tree::by_levels(slots),
        };
        for (vertex, halves) in of_vertices {
            let home = model.home(vertex);
            match partitioning.scheme {
                PartitionScheme::EdgeCut => {
                    model.asked.insert(vertex, [home].into());
                    model.halves.insert(vertex, halves.into_iter().map(|half| (half, home)).collect());
                }
                PartitionScheme::VertexCut => {
                    let both = |far: VertexPlace| scattered(scattered(vertex.0 as u64) ^ far.0 as u64);
                    let slot = |half: &Half| (home + part_of(both(half.2), slots)) % slots;
                    let placed = halves.into_iter().map(|half| (half.clone(), slot(&half)));
                    model.asked.insert(vertex, (0..slots).collect());
                    model.halves.insert(vertex, placed.collect());
                }
                PartitionScheme::Giga | PartitionScheme::Dido => {
                    model.descend(&tree, (0, 0, 0), vertex, halves.into_iter().collect());
                }
            }
        }
        model
    }

    pub fn home(&self, vertex: VertexPlace) -> u32 {
        part_of((vertex.0 >> 64) as u64, self.partitioning.slots.into())
    }

    /// The leaf of the tree for a relation once everything is split.
    fn aim(&self, vertex: VertexPlace, far: VertexPlace) -> u32 {
        let slots = u32::from(self.partitioning.slots);
        match self.partitioning.scheme {
            PartitionScheme::Giga => part_of(scattered(far.0 as u64), slots),
            _ => (self.home(far) + slots - self.home(vertex)) % slots,
        }
    }

    fn descend(
        &mut self,
        tree: &Tree,
        (at, depth, turns): (usize, u32, u32),
        vertex: VertexPlace,
        halves: Vec<Half>,
    ) {
        let node = &tree.0[at];
        let Some([left, right]) =
            node.parts.filter(|_| halves.len() as u64 > self.partitioning.threshold.into())
        else {
            let slot = (self.home(vertex) + node.label) % u32::from(self.partitioning.slots);
            self.asked.entry(vertex).or_default().insert(slot);
            self.halves.entry(vertex).or_default().extend(halves.into_iter().map(|half| (half, slot)));
            return;
        };
        self.splits.entry(vertex).or_default().insert(1 << depth | turns);
        let (going, staying): (Vec<Half>, Vec<Half>) =
            halves.into_iter().partition(|half| tree.0[right].leaves.contains(&self.aim(vertex, half.2)));
        self.descend(tree, (left, depth + 1, turns), vertex, staying);
        self.descend(tree, (right, depth + 1, turns | 1 << depth), vertex, going);
    }

    /// Each slot's relations.
    pub fn slots(&self) -> Vec<BTreeSet<(VertexPlace, Half)>> {
        let mut all = vec![BTreeSet::new(); self.partitioning.slots.into()];
        for (vertex, halves) in &self.halves {
            for (half, slot) in halves {
                all[*slot as usize].insert((*vertex, half.clone()));
            }
        }
        all
    }

    /// A walk of this many steps along relations that `wanted` accepts.
    pub fn walk(&self, start: VertexPlace, steps: usize, wanted: impl Fn(&Half) -> bool) -> WalkCost {
        let mut cost = WalkCost { requests: 0, forwards: 0, reads: 0 };
        let mut frontier = BTreeSet::from([start]);
        for _ in 0..steps {
            let mut read = vec![0; self.partitioning.slots.into()];
            let mut reached = BTreeSet::new();
            for vertex in &frontier {
                let home = self.home(*vertex);
                cost.requests += self.asked[vertex].iter().filter(|slot| **slot != home).count() as u64;
                for (half, slot) in self.halves[vertex].iter().filter(|(half, _)| wanted(half)) {
                    read[*slot as usize] += 1;
                    cost.forwards += u64::from(*slot != self.home(half.2));
                    reached.insert(half.2);
                }
            }
            reached.iter().for_each(|far| read[self.home(*far) as usize] += 1);
            cost.reads += read.into_iter().max().unwrap_or(0);
            frontier = reached;
        }
        cost
    }
}
