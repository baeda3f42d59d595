//! Decides which slot has which relation of a vertex.
//!
//! Each vertex has a home slot, determined by its place. Its relations, seen from it, begin there as one
//! partition. A [`Partitioner`] decides how partitions split when they grow, and to which slot the split-off
//! half goes. Every relation is placed twice, once for each of its ends.
//!
//! | partitioner | a partition of more than `threshold` relations | a relation v to u |
//! |---|---|---|
//! | `edge-cut` | stays | with v |
//! | `vertex-cut` | all are split from the beginning | by a hash of both |
//! | `giga+` | splits by the bits of a hash of u | anywhere |
//! | `dido` | splits by the offset between the homes of v and u | on the way to the home of u |
//!
//! Invariants:
//! * the place of a relation depends only on which partitions of its vertex are split;
//! * a partition that splits keeps one part in its place; moved relations go down the tree once, never back;
//! * a partition is split when more than `threshold` relations passed through it, in any order.
//!
//! ```
//! use fieldstone_format::graph_segment::{VertexPlace, partitioning::Partitioning};
//! use fieldstone_graph::partition::{Splits, partitioner};
//!
//! let dido = partitioner(&Partitioning { slots: 8, ..Partitioning::default() });
//! let [v, u] = ["a", "b"].map(|id| VertexPlace::named("file", id));
//! assert_eq!(dido.slot_of(v, u, &Splits::default()), dido.home(v));
//! ```
//!
//! Source: GraphMeta (TPDS 30 (7), 2019), section 4; GIGA+ (FAST 2011).

mod schemes;
mod tree;

use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning};

pub use tree::{Partition, Splits};

/// The number of a slot.
pub type SlotNumber = u16;

/// When partitions split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Splitting {
    /// Never: all relations of a vertex stay at its home.
    Never,
    /// All split, before anything is put.
    Always,
    /// Once they hold more than this many relations.
    Beyond(u32),
}

/// The placement of relations.
pub trait Partitioner: Debug + Send + Sync {
    /// The number of slots.
    fn slots(&self) -> SlotNumber;

    /// When partitions split.
    fn splitting(&self) -> Splitting;

    /// The turns from the root of v's tree to the partition of a relation to u: one bit for each, the first
    /// the lowest; 1 leads to the half that is given away.
    fn path(&self, v: VertexPlace, u: VertexPlace) -> u32;

    /// The slot of a partition, counted from the vertex's home: by the level of the split that made it,
    /// unless a partitioner numbers them differently.
    fn label(&self, partition: Partition) -> u32 {
        partition.turns()
    }

    /// The home slot of a vertex, where its relations begin.
    fn home(&self, v: VertexPlace) -> SlotNumber {
        ((u128::from((v.0 >> 64) as u64) * u128::from(self.slots())) >> 64) as SlotNumber
    }

    /// The slot of a partition of v.
    fn slot(&self, v: VertexPlace, partition: Partition) -> SlotNumber {
        let slots = u32::from(self.slots());
        ((u32::from(self.home(v)) + self.label(partition)) % slots) as SlotNumber
    }

    /// The partition that a partition gives away when it splits; `None` if there is no slot for it.
    fn given_away(&self, partition: Partition) -> Option<Partition> {
        let right = partition.right()?;
        (self.label(right) < u32::from(self.slots())).then_some(right)
    }

    /// The partition of v that has a relation to u, among those below `top`.
    fn leaf_below(&self, top: Partition, path: u32, is_split: &dyn Fn(Partition) -> bool) -> Partition {
        let mut at = top;
        while is_split(at) && self.given_away(at).is_some() {
            at = at.turn(path);
        }
        at
    }

    /// The partition of v that has a relation to u.
    fn leaf(&self, v: VertexPlace, u: VertexPlace, splits: &Splits) -> Partition {
        let split = |partition| self.is_split(splits, partition);
        match self.splitting() {
            Splitting::Never => Partition::ROOT,
            _ => self.leaf_below(Partition::ROOT, self.path(v, u), &split),
        }
    }

    /// The slot that has a relation from v to u, seen from v.
    fn slot_of(&self, v: VertexPlace, u: VertexPlace, splits: &Splits) -> SlotNumber {
        self.slot(v, self.leaf(v, u, splits))
    }

    /// Whether a partition is split.
    fn is_split(&self, splits: &Splits, partition: Partition) -> bool {
        match self.splitting() {
            Splitting::Never => false,
            Splitting::Always => true,
            Splitting::Beyond(_) => splits.has(partition),
        }
    }

    /// The distinct slots that have relations of v, its home first.
    fn slots_of(&self, v: VertexPlace, splits: &Splits) -> Vec<SlotNumber> {
        let home = self.home(v);
        let mut slots = vec![home];
        if self.splitting() == Splitting::Always {
            slots.extend((0..self.slots()).filter(|slot| *slot != home));
        } else if self.splitting() != Splitting::Never {
            slots.extend(splits.partitions().filter_map(|p| Some(self.slot(v, self.given_away(p)?))));
        }
        slots
    }

    /// Whether a slot that has, or had, a relation from v to u still shows it. It does not once a partition
    /// of its own has given the relation away and finished.
    fn shows(&self, slot: SlotNumber, v: VertexPlace, u: VertexPlace, finished: &Splits) -> bool {
        let path = self.path(v, u);
        let leaf = self.leaf_below(self.top(v, slot), path, &|partition| finished.has(partition));
        self.slot(v, leaf) == slot
    }

    /// The first partition of v in a slot, among those that are or may be in it.
    fn top(&self, v: VertexPlace, slot: SlotNumber) -> Partition {
        let slots = u32::from(self.slots());
        let label = (u32::from(slot) + slots - u32::from(self.home(v))) % slots;
        self.top_of_label(label)
    }

    /// The same by the slot's distance from the vertex's home: the inverse of [`label`](Self::label).
    fn top_of_label(&self, label: u32) -> Partition {
        schemes::low_top(label)
    }
}

/// The partitioner of an index.
pub fn partitioner(partitioning: &Partitioning) -> Arc<dyn Partitioner> {
    let Partitioning { slots, scheme, threshold, labels } = *partitioning;
    match scheme {
        PartitionScheme::EdgeCut => Arc::new(schemes::EdgeCut { slots }),
        PartitionScheme::VertexCut => Arc::new(schemes::VertexCut { slots }),
        PartitionScheme::Giga => Arc::new(schemes::Giga { slots, threshold }),
        PartitionScheme::Dido => Arc::new(schemes::Dido { slots, threshold, labels }),
    }
}
