//! What a slot has: its segments, and the partitions of its vertices that are split.
//!
//! It stands for shared storage: the slot writes it, and whoever reads the view as a whole, or writes it to disk, reads
//! it. Segments in front, which are being written to disk, are left as they are meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_format::graph_segment::VertexPlace;

use crate::hashing::PlaceMap;
use crate::partition::Splits;
use crate::segment::{Segment, merge_young};

/// The partitions of a vertex that are split, as one slot knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VertexSplitting {
    /// All of them.
    pub known: Splits,
    /// Those of this slot of which all that they gave away is where it belongs.
    pub finished: Splits,
}

/// Vertices of which partitions are split.
pub type SplitTable = PlaceMap<VertexSplitting>;

/// What a slot has.
#[derive(Debug, Default)]
pub struct SlotShelf {
    inner: Mutex<Shelved>,
}

#[derive(Debug, Default)]
struct Shelved {
    segments: Vec<Arc<Segment>>,
    /// So many segments are being written to disk.
    frozen: usize,
    splits: Arc<SplitTable>,
}

/// What a shelf holds at one moment.
#[derive(Debug, Clone, Default)]
pub struct ShelfContent {
    /// The segments, the older first.
    pub segments: Vec<Arc<Segment>>,
    /// The splits.
    pub splits: Arc<SplitTable>,
}

impl SlotShelf {
    /// One that holds this.
    pub fn of(content: ShelfContent) -> SlotShelf {
        let ShelfContent { segments, splits } = content;
        SlotShelf { inner: Mutex::new(Shelved { segments, frozen: 0, splits }) }
    }

    fn lock(&self) -> MutexGuard<'_, Shelved> {
        self.inner.lock()
    }

    /// What it holds.
    pub fn content(&self) -> ShelfContent {
        let inner = self.lock();
        ShelfContent { segments: inner.segments.clone(), splits: inner.splits.clone() }
    }

    /// The splits.
    pub fn splits(&self) -> Arc<SplitTable> {
        self.lock().splits.clone()
    }

    /// Changes what is known of a vertex's splits.
    pub fn split<T>(&self, vertex: VertexPlace, change: impl FnOnce(&mut VertexSplitting) -> T) -> T {
        let mut inner = self.lock();
        // A traversal that has the table keeps it as it was.
        change(Arc::make_mut(&mut inner.splits).entry(vertex).or_default())
    }

    /// Adds a segment, and merges young ones. Only the slot itself calls it.
    pub fn add(&self, segment: Arc<Segment>) -> Result<()> {
        let mut young = {
            let inner = self.lock();
            inner.segments[inner.frozen.min(inner.segments.len())..].to_vec()
        };
        let before = young.len();
        young.push(segment.clone());
        merge_young(&mut young)?;
        let mut inner = self.lock();
        let keep = inner.segments.len() - before;
        if inner.frozen > keep {
            // They were frozen meanwhile.
            inner.segments.push(segment);
        } else {
            inner.segments.truncate(keep);
            inner.segments.append(&mut young);
        }
        Ok(())
    }

    /// Leaves what is there now as it is, until [`thaw`](Self::thaw).
    pub fn freeze(&self) -> ShelfContent {
        let mut inner = self.lock();
        inner.frozen = inner.segments.len();
        ShelfContent { segments: inner.segments.clone(), splits: inner.splits.clone() }
    }

    /// Takes what was written to disk in place of what was frozen; `None`: nothing was written.
    pub fn thaw(&self, saved: Option<Vec<Arc<Segment>>>) {
        let mut inner = self.lock();
        let frozen = std::mem::take(&mut inner.frozen).min(inner.segments.len());
        if let Some(saved) = saved {
            inner.segments.splice(..frozen, saved);
        }
    }
}

/// What all slots know of splits, each vertex once: what is known of it, and what is finished wherever it is.
pub fn all_splits(shelves: &[ShelfContent]) -> BTreeMap<VertexPlace, VertexSplitting> {
    let mut all: BTreeMap<VertexPlace, VertexSplitting> = BTreeMap::new();
    for (vertex, own) in shelves.iter().flat_map(|shelf| shelf.splits.iter()) {
        let known = all.entry(*vertex).or_default();
        known.known.merge(&own.known);
        known.finished.merge(&own.finished);
    }
    all
}
