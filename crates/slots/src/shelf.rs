//! The shelf of a slot: its segments, and the split partitions of its vertices.
//!
//! Only the slot itself reads and writes it. Other ends ask by messages, whose answers name segments by their
//! numbers in [`SharedSegments`]. The first segments may be frozen while they are written to disk.

use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_graph::segment::{Segment, merge_young};
use fieldstone_graph::slot::{ShelfContent, SplitTable, VertexSplitting};

use crate::storage::SharedSegments;

/// The shelf of a slot; see the module's description.
#[derive(Debug)]
pub struct SlotShelf {
    content: ShelfContent,
    /// Number of segments that are being written to disk.
    frozen: usize,
    storage: Arc<SharedSegments>,
    /// Segments in earlier answers, with their numbers.
    named: Vec<(u64, Arc<Segment>)>,
}

impl SlotShelf {
    /// A shelf with this content.
    pub fn new(content: ShelfContent, storage: Arc<SharedSegments>) -> SlotShelf {
        SlotShelf { content, frozen: 0, storage, named: Vec::new() }
    }

    /// Its content.
    pub fn content(&self) -> &ShelfContent {
        &self.content
    }

    /// The splits.
    pub fn splits(&self) -> &Arc<SplitTable> {
        &self.content.splits
    }

    /// Changes the known splits of a vertex.
    pub fn split<T>(&mut self, vertex: VertexPlace, change: impl FnOnce(&mut VertexSplitting) -> T) -> T {
        // A traversal that holds the table keeps its old state.
        change(Arc::make_mut(&mut self.content.splits).entry(vertex).or_default())
    }

    /// Adds a segment, and merges young segments.
    pub fn add(&mut self, segment: Arc<Segment>) -> Result<()> {
        let segments = &mut self.content.segments;
        let mut young = segments[self.frozen..].to_vec();
        young.push(segment);
        merge_young(&mut young)?;
        segments.truncate(self.frozen);
        segments.append(&mut young);
        Ok(())
    }

    /// Freezes the present content until [`thaw`](Self::thaw).
    pub fn freeze(&mut self) {
        self.frozen = self.content.segments.len();
    }

    /// Replaces the frozen content by the content written to disk; `None`: nothing was written.
    ///
    /// Errors: `Unavailable` if the storage does not have it.
    pub fn thaw(&mut self, saved: Option<&[u64]>) -> Result<()> {
        let frozen = std::mem::take(&mut self.frozen);
        if let Some(saved) = saved {
            let segments = stored(&self.storage, saved)?;
            self.content.segments.splice(..frozen, segments);
        }
        Ok(())
    }

    /// The numbers of its segments, which stay in the storage as long as answers name them.
    pub fn names(&mut self) -> Vec<u64> {
        let mut before = std::mem::take(&mut self.named);
        for segment in &self.content.segments {
            let known = before.iter().position(|(_, known)| Arc::ptr_eq(known, segment));
            self.named.push(match known {
                Some(known) => before.swap_remove(known),
                None => (self.storage.put(segment.clone()), segment.clone()),
            });
        }
        before.iter().for_each(|(number, _)| self.storage.forget(*number));
        self.named.iter().map(|(number, _)| *number).collect()
    }
}

/// The segments that a message names.
///
/// Errors: `Unavailable` if the storage does not have one.
pub fn stored(storage: &SharedSegments, numbers: &[u64]) -> Result<Vec<Arc<Segment>>> {
    let gone = || Error::unavailable("a segment of the graph's index is gone").with_hint("ask again");
    numbers.iter().map(|number| storage.get(*number).ok_or_else(gone)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_graph::segment::{Rows, build};

    #[test]
    fn what_is_frozen_stays_until_it_is_thawed_and_names_lead_to_what_is_there() {
        let storage = Arc::new(SharedSegments::default());
        let segment = || Arc::new(build(&Rows::default()).unwrap());
        let mut shelf = SlotShelf::new(ShelfContent::default(), storage.clone());
        let (first, written) = (segment(), segment());
        shelf.add(first.clone()).unwrap();
        let names = shelf.names();
        assert!(Arc::ptr_eq(&stored(&storage, &names).unwrap()[0], &first));
        assert_eq!(shelf.names(), names, "a segment keeps its number");
        shelf.freeze();
        shelf.add(segment()).unwrap();
        assert!(Arc::ptr_eq(&shelf.content().segments[0], &first));
        shelf.thaw(Some(&[storage.put(written.clone())])).unwrap();
        assert!(Arc::ptr_eq(&shelf.content().segments[0], &written));
        assert_eq!(shelf.names().len(), 2);
        assert!(stored(&storage, &names).is_err(), "replaced segments are forgotten");
        assert!(shelf.thaw(Some(&names)).is_err());
    }
}
