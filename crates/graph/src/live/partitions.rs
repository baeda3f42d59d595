//! How a view is cut into slots, and what each slot has.

use fieldstone_core::Result;
use fieldstone_format::graph_segment::partitioning::Partitioning;

use crate::segment::Segment;
use crate::slot::{ShelfContent, all_splits};
use crate::state::GraphState;
use crate::view::GraphView;

/// How a view is cut into slots. See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    /// How it is cut.
    pub partitioning: Partitioning,
    /// What each slot has, by number.
    pub slots: Vec<SlotContent>,
    /// Partitions of vertices that are split.
    pub splits: u64,
    /// Those of which not all that they gave away is known to be where it belongs.
    pub unfinished: u64,
}

/// What a slot has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotContent {
    /// Segments.
    pub segments: u64,
    /// Vertices that they name, each segment by itself.
    pub vertices: u64,
    /// Versions of relations that leave a vertex, each segment by itself.
    pub relations: u64,
    /// Bytes of the segments.
    pub bytes: u64,
}

impl SlotContent {
    fn of<'a>(segments: impl Iterator<Item = &'a Segment>) -> SlotContent {
        segments.fold(SlotContent::default(), |sum, segment| SlotContent {
            segments: sum.segments + 1,
            vertices: sum.vertices + segment.summary.vertices,
            relations: sum.relations + segment.summary.relations,
            bytes: sum.bytes + segment.bytes,
        })
    }
}

impl Partitions {
    /// Those of a view, of which this is the state.
    pub(super) fn of(view: &GraphView, state: &GraphState) -> Result<Partitions> {
        let partitioning = view.partitioning();
        let Some((slots, _)) = view.in_slots(state) else {
            let whole = SlotContent::of(state.segments().iter().map(|segment| &**segment));
            return Ok(Partitions { partitioning, slots: vec![whole], splits: 0, unfinished: 0 });
        };
        let contents = slots.contents()?;
        let (mut splits, mut unfinished) = (0, 0);
        for splitting in all_splits(&contents).values() {
            let open = splitting.known.partitions().filter(|partition| !splitting.finished.has(*partition));
            splits += splitting.known.len() as u64;
            unfinished += open.count() as u64;
        }
        let content = |shelf: &ShelfContent| SlotContent::of(shelf.segments.iter().map(|segment| &**segment));
        let slots = contents.iter().map(content).collect();
        Ok(Partitions { partitioning, slots, splits, unfinished })
    }
}
