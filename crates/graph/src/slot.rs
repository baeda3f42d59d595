//! The graph's interface to an index that is cut into slots.
//!
//! [`Slots`] are the parts of one index, which together hold its segments; the code that runs them (threads
//! here, servers later) implements the trait. The graph hands rows to them, asks for their content, writes
//! that to disk and makes them walk traversals.
//!
//! Invariants:
//! * together, the slots hold exactly the index, except that two of them may have a relation while a partition
//!   splits;
//! * everything in the slots is in the logs: if slots are lost, the index is made from the list on disk and
//!   the newer part of the logs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::manifest::SplitVertex;
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_journal::session::Limits;

use crate::hashing::PlaceMap;
use crate::partition::{Partitioner, SlotNumber, Splits};
use crate::segment::{KeepHalves, Rows, Segment};
use crate::state::GraphState;
use crate::travel::{TravelPlan, Travelled};

/// The order in which the hops of a traversal run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Engine {
    /// Step by step; a slot that waits for others reads ahead for the next step.
    #[default]
    Sync,
    /// Step by step.
    Plain,
    /// Each vertex continues as soon as it is reached.
    Async,
}

impl Engine {
    /// All of them, in the order of their numbers in messages.
    pub const ALL: [Engine; 3] = [Engine::Sync, Engine::Plain, Engine::Async];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Sync => "sync",
            Engine::Plain => "plain",
            Engine::Async => "async",
        }
    }
}

/// The split partitions of a vertex, as one slot knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VertexSplitting {
    /// All known split partitions.
    pub known: Splits,
    /// Those of this slot whose given-away relations are all in their new places.
    pub finished: Splits,
}

/// Vertices with split partitions.
pub type SplitTable = PlaceMap<VertexSplitting>;

/// Splits in the form of lists on disk and of messages.
pub fn split_rows<'a>(
    splits: impl IntoIterator<Item = (&'a VertexPlace, &'a VertexSplitting)>,
) -> Vec<SplitVertex> {
    let row = |(vertex, of): (&VertexPlace, &VertexSplitting)| SplitVertex {
        vertex: vertex.0,
        split: of.known.numbers(),
        finished: of.finished.numbers(),
    };
    splits.into_iter().map(row).collect()
}

/// The splits in such rows.
pub fn split_table(rows: &[SplitVertex]) -> SplitTable {
    let splitting = |row: &SplitVertex| {
        let [known, finished] = [&row.split, &row.finished].map(|numbers| Splits::of_numbers(numbers));
        (VertexPlace(row.vertex), VertexSplitting { known, finished })
    };
    rows.iter().map(splitting).collect()
}

/// The content of a slot at one moment.
#[derive(Debug, Clone, Default)]
pub struct ShelfContent {
    /// The segments, the older first.
    pub segments: Vec<Arc<Segment>>,
    /// The splits.
    pub splits: Arc<SplitTable>,
}

/// The splits that all slots know, merged for each vertex: the known ones, and those that are finished in
/// some slot.
pub fn all_splits(shelves: &[ShelfContent]) -> BTreeMap<VertexPlace, VertexSplitting> {
    let mut all: BTreeMap<VertexPlace, VertexSplitting> = BTreeMap::new();
    for (vertex, own) in shelves.iter().flat_map(|shelf| shelf.splits.iter()) {
        let known = all.entry(*vertex).or_default();
        known.known.merge(&own.known);
        known.finished.merge(&own.finished);
    }
    all
}

/// All slots of an index. If a slot is lost, calls are Unavailable.
pub trait Slots: Debug + Send + Sync {
    /// The settings by which the index is cut.
    fn partitioning(&self) -> Partitioning;

    /// Whether all slots still serve.
    fn serve(&self) -> bool;

    /// Puts rows into their slots. Splits that this causes continue afterwards.
    fn insert(&self, rows: &Rows) -> Result<()>;

    /// Waits until no partition is being split.
    fn settle(&self) -> Result<()>;

    /// The segments of all slots.
    fn segments(&self) -> Result<Vec<Arc<Segment>>>;

    /// The content of each slot, by number.
    fn contents(&self) -> Result<Vec<ShelfContent>>;

    /// The content of each slot at one moment at which no traversal begins; it stays unchanged until it is
    /// thawed.
    fn freeze(&self) -> Result<Vec<ShelfContent>>;

    /// Replaces the frozen content by the segments of each slot that were written to disk; `None`: nothing
    /// was written.
    fn thaw(&self, saved: Option<Vec<Vec<Arc<Segment>>>>) -> Result<()>;

    /// Begins a traversal in all slots, which does not see later puts. `state`: the content of all slots,
    /// with the segments over it; `over`: those segments, which no slot has. `limits` end it early, and the
    /// reads of its paths.
    fn begin(
        self: Arc<Self>,
        state: &Arc<GraphState>,
        over: &[Arc<Segment>],
        plan: TravelPlan,
        engine: Engine,
        limits: Limits,
    ) -> Result<Box<dyn BegunTravel>>;
}

/// A traversal that has begun.
pub trait BegunTravel: Debug {
    /// Runs it.
    fn run(self: Box<Self>) -> Result<Travelled>;
}

/// Starts slots.
pub trait StartSlots: Debug + Send + Sync {
    /// Starts slots with this content.
    fn start(
        &self,
        partitioning: Partitioning,
        contents: Vec<ShelfContent>,
        env: &Env,
    ) -> Result<Arc<dyn Slots>>;
}

/// The relations that a slot keeps: not those that it has given away, once that is finished.
#[derive(Debug)]
pub struct KeepsOwn {
    /// The placement of relations.
    pub partitioner: Arc<dyn Partitioner>,
    /// The slot.
    pub slot: SlotNumber,
    /// Its splits.
    pub splits: Arc<SplitTable>,
}

impl KeepHalves for KeepsOwn {
    fn leaves_out(&self, near: VertexPlace) -> bool {
        self.splits.get(&near).is_some_and(|splitting| !splitting.finished.is_empty())
    }

    fn keeps(&self, near: VertexPlace, far: VertexPlace) -> bool {
        let Some(VertexSplitting { finished, .. }) = self.splits.get(&near) else { return true };
        self.partitioner.shows(self.slot, near, far, finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::{Partition, partitioner};

    #[test]
    fn a_slot_keeps_what_it_gave_away_until_all_of_it_is_there() {
        let partitioner = partitioner(&Partitioning { slots: 8, threshold: 1, ..Partitioning::default() });
        let near = VertexPlace::named("file", "a");
        let root: Splits = [Partition::ROOT].into_iter().collect();
        let keeps = |finished: Splits| {
            let splitting = VertexSplitting { known: root.clone(), finished };
            let (partitioner, slot) = (partitioner.clone(), partitioner.home(near));
            let splits = Arc::new(SplitTable::from_iter([(near, splitting)]));
            let keeps = KeepsOwn { partitioner, slot, splits };
            let far = |n: u32| VertexPlace::named("file", &n.to_string());
            (keeps.leaves_out(near), (0..99).filter(|n| keeps.keeps(near, far(*n))).count())
        };
        assert_eq!(keeps(Splits::default()), (false, 99));
        let (leaves_out, kept) = keeps(root.clone());
        assert!(leaves_out && (1..99).contains(&kept), "{kept}");
    }

    #[test]
    fn splits_come_back_from_their_rows() {
        let root: Splits = [Partition::ROOT].into_iter().collect();
        let splitting = VertexSplitting { known: root, finished: Splits::default() };
        let table = SplitTable::from_iter([(VertexPlace(7), splitting)]);
        assert_eq!(split_table(&split_rows(&table)), table);
    }
}
