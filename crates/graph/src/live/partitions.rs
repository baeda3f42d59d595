//! The slots of a follower, and the content of each.

use fieldstone_core::Result;

use crate::follower::GraphFollower;
use crate::reports::{Partitions, SlotContent};
use crate::segment::Segment;
use crate::slot::{ShelfContent, all_splits};
use crate::state::GraphState;

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
    /// The slots of a follower with this state.
    pub(super) fn of(follower: &GraphFollower, state: &GraphState) -> Result<Partitions> {
        let partitioning = follower.partitioning();
        let Some((slots, _)) = follower.in_slots(state) else {
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
