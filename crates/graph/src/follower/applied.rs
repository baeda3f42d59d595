//! The applied part of the follower, and how it gets to disk: as a list of segments with a mark for each living log.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::graph_segment::manifest::Manifest;
use fieldstone_journal::feed::Commit;
use fieldstone_journal::follower::Marks;

use crate::folder::{MergeOlder, SavedSlots, SegmentFolder, SlotSegments};
use crate::partition::partitioner;
use crate::segment::{KeepHalves, Segment};
use crate::slot::{KeepsOwn, ShelfContent, Slots, all_splits, split_rows, split_table};

/// The content of the follower between its transactions.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    /// Segments of final content, slot by slot, the older first in each.
    pub segments: Vec<Arc<Segment>>,
    /// The slots, if there are several.
    pub(super) slots: Option<Arc<dyn Slots>>,
    /// How far the logs are applied.
    pub marks: Marks,
    /// Commits of transactions whose state may still change.
    pub prepared: Vec<Arc<Commit>>,
    /// Transactions with rows in segments, each with a digest of its decisions.
    pub decided: HashMap<Id, Vec<u8>>,
    /// Grows by one with each transaction of the follower.
    pub revision: u64,
    /// Records that cannot be read, each with its log.
    pub damaged: Vec<String>,
    /// The number of the list on disk with which it began; 0 for none.
    pub saved: u64,
}

impl Applied {
    /// The description of it in a list on disk, without the segments.
    fn list(&self) -> Manifest {
        let prepared = self.prepared.iter().map(|commit| (commit.writer, commit.sequence));
        let mut manifest = Manifest {
            marks: self.marks.logs.iter().map(|(log, sequence)| (*log, *sequence)).collect(),
            taken: self.marks.taken.clone(),
            prepared: prepared.collect(),
            decided: self.decided.iter().map(|(id, print)| (*id, print.clone())).collect(),
            ..Manifest::default()
        };
        manifest.marks.sort_unstable();
        manifest.decided.sort_unstable();
        manifest
    }

    /// Bytes of segments that are in memory.
    pub fn in_memory(&self) -> u64 {
        self.segments.iter().filter(|segment| segment.is_in_memory()).map(|segment| segment.bytes).sum()
    }

    /// Replaces the content by the present content of the slots.
    pub(super) fn take_slots(&mut self) -> Result<()> {
        if let Some(slots) = &self.slots {
            self.segments = slots.segments()?;
        }
        Ok(())
    }
}

/// The applied content, to be written to disk.
#[derive(Debug)]
pub struct Frozen {
    pub(super) applied: Applied,
    /// The content of each slot; its segments stay unchanged.
    shelves: Vec<ShelfContent>,
}

impl Frozen {
    pub(super) fn of(applied: Applied) -> Result<Frozen> {
        let shelves = match &applied.slots {
            Some(slots) => slots.freeze()?,
            None => vec![ShelfContent { segments: applied.segments.clone(), ..ShelfContent::default() }],
        };
        Ok(Frozen { applied, shelves })
    }

    /// The number of the list on disk with which it began.
    pub fn began_with(&self) -> u64 {
        self.applied.saved
    }

    /// Writes segments in memory to disk; `None` if another process does so or did.
    pub fn save(&self, folder: &SegmentFolder, older: MergeOlder) -> Result<Option<SavedSlots>> {
        let mut list = self.applied.list();
        let mut keeps = Vec::new();
        if let Some(slots) = &self.applied.slots {
            list.partitioning = slots.partitioning();
            list.splits = split_rows(&all_splits(&self.shelves));
            let partitioner = partitioner(&list.partitioning);
            keeps.extend((0..).zip(&self.shelves).map(|(slot, shelf)| KeepsOwn {
                partitioner: partitioner.clone(),
                slot,
                splits: shelf.splits.clone(),
            }));
        }
        let keep = |i: usize| keeps.get(i).map(|keep| keep as &dyn KeepHalves);
        let slots: Vec<SlotSegments<'_>> = self
            .shelves
            .iter()
            .enumerate()
            .map(|(i, shelf)| SlotSegments { segments: &shelf.segments, keep: keep(i) })
            .collect();
        folder.save(&slots, list, self.applied.saved, older)
    }
}

/// Writes segments in memory to disk, unless another process is doing so.
pub(super) fn spill(applied: Applied, folder: &SegmentFolder) -> Result<Applied> {
    let frozen = Frozen::of(applied)?;
    let saved = frozen.save(folder, MergeOlder::None).unwrap_or(None);
    let Frozen { mut applied, .. } = frozen;
    let segments = saved.as_ref().map(|saved| saved.segments.clone());
    if let Some(slots) = &applied.slots {
        slots.thaw(segments)?;
    } else if let Some(segments) = segments {
        applied.segments = segments.into_iter().flatten().collect();
    }
    applied.take_slots()?;
    applied.saved = saved.map_or(applied.saved, |saved| saved.manifest.revision);
    Ok(applied)
}

/// The segments and splits of each slot, according to a list.
pub(super) fn shelved(manifest: &Manifest, segments: &[Arc<Segment>]) -> Vec<ShelfContent> {
    let splits = Arc::new(split_table(&manifest.splits));
    let slots = usize::from(manifest.partitioning.slots);
    let mut contents = vec![ShelfContent { segments: Vec::new(), splits }; slots];
    for (live, segment) in manifest.segments.iter().zip(segments) {
        if let Some(content) = contents.get_mut(usize::from(live.slot)) {
            content.segments.push(segment.clone());
        }
    }
    contents
}
