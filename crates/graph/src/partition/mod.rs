//! Which slot has which relation of a vertex.
//!
//! A vertex is at home in one slot, by its place. Its relations, seen from it, begin there as one partition; a
//! [`Partitioner`] says how partitions split when they grow, and to which slot the split-off half goes. Every relation
//! is placed twice, once for each of its ends.
//!
//! | partitioner | a partition of more than `threshold` relations | a relation v to u |
//! |---|---|---|
//! | `edge-cut` | stays | with v |
//! | `vertex-cut` | all are split from the beginning | by a hash of both |
//! | `giga+` | splits by the bits of a hash of u | anywhere |
//! | `dido` | splits by the offset between the homes of v and u | on the way to the home of u |
//!
//! Invariants:
//! * where a relation is follows from which partitions of its vertex are split, and from nothing else;
//! * a partition that splits keeps one part where it is: what is moved goes once down the tree, never back;
//! * a partition is split when more than `threshold` relations passed through it, in whatever order they came.
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

/// Whether partitions split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Splitting {
    /// Never: all relations of a vertex are at its home.
    Never,
    /// All are, before anything is put.
    Always,
    /// When they hold more than this many relations.
    Beyond(u32),
}

/// How relations are placed.
pub trait Partitioner: Debug + Send + Sync {
    /// How many slots there are.
    fn slots(&self) -> SlotNumber;

    /// Whether partitions split.
    fn splitting(&self) -> Splitting;

    /// The turns from the root of v's tree to the partition where a relation to u ends up: one bit for each, the first
    /// the lowest; 1 leads away from where the partition was.
    fn path(&self, v: VertexPlace, u: VertexPlace) -> u32;

    /// Which slot a partition is in, counted from the vertex's home: by the level of the split that made it, unless a
    /// partitioner numbers them otherwise.
    fn label(&self, partition: Partition) -> u32 {
        partition.turns()
    }

    /// The slot where a vertex is at home, and where its relations begin.
    fn home(&self, v: VertexPlace) -> SlotNumber {
        ((u128::from((v.0 >> 64) as u64) * u128::from(self.slots())) >> 64) as SlotNumber
    }

    /// The slot of a partition of v.
    fn slot(&self, v: VertexPlace, partition: Partition) -> SlotNumber {
        let slots = u32::from(self.slots());
        ((u32::from(self.home(v)) + self.label(partition)) % slots) as SlotNumber
    }

    /// What a partition gives away when it splits; `None` where there is no slot for it.
    fn given_away(&self, partition: Partition) -> Option<Partition> {
        let right = partition.right()?;
        (self.label(right) < u32::from(self.slots())).then_some(right)
    }

    /// The partition of v in which a relation to u is, of those that stand below `top`.
    fn leaf_below(&self, top: Partition, path: u32, is_split: &dyn Fn(Partition) -> bool) -> Partition {
        let mut at = top;
        while is_split(at) && self.given_away(at).is_some() {
            at = at.turn(path);
        }
        at
    }

    /// The partition of v in which a relation to u is.
    fn leaf(&self, v: VertexPlace, u: VertexPlace, splits: &Splits) -> Partition {
        let split = |partition| self.is_split(splits, partition);
        match self.splitting() {
            Splitting::Never => Partition::ROOT,
            _ => self.leaf_below(Partition::ROOT, self.path(v, u), &split),
        }
    }

    /// The slot in which a relation from v to u is, seen from v.
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

    /// The slots that have relations of v, its home first, each once.
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

    /// Whether a slot that has, or had, a relation from v to u still shows it: not when a partition of its own gave it
    /// away, and that is finished.
    fn shows(&self, slot: SlotNumber, v: VertexPlace, u: VertexPlace, finished: &Splits) -> bool {
        let path = self.path(v, u);
        let leaf = self.leaf_below(self.top(v, slot), path, &|partition| finished.has(partition));
        self.slot(v, leaf) == slot
    }

    /// The partition of v that a slot had first, of those that are or may be in it.
    fn top(&self, v: VertexPlace, slot: SlotNumber) -> Partition {
        let slots = u32::from(self.slots());
        let label = (u32::from(slot) + slots - u32::from(self.home(v))) % slots;
        self.top_of_label(label)
    }

    /// The same by the slot's distance from the vertex's home: what [`label`](Self::label) is of, back.
    fn top_of_label(&self, label: u32) -> Partition {
        schemes::low_top(label)
    }
}

/// The partitioner that a view is made with.
pub fn partitioner(partitioning: &Partitioning) -> Arc<dyn Partitioner> {
    let Partitioning { slots, scheme, threshold, labels } = *partitioning;
    match scheme {
        PartitionScheme::EdgeCut => Arc::new(schemes::EdgeCut { slots }),
        PartitionScheme::VertexCut => Arc::new(schemes::VertexCut { slots }),
        PartitionScheme::Giga => Arc::new(schemes::Giga { slots, threshold }),
        PartitionScheme::Dido => Arc::new(schemes::Dido { slots, threshold, labels }),
    }
}
