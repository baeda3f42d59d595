//! A view that is cut into slots, as the graph sees it.
//!
//! [`Slots`] are parts of one view that hold its segments between them; whoever runs them (threads here, servers later)
//! implements it. The graph hands them rows, asks what they hold, writes that to disk and has them walk traversals.
//!
//! Invariants:
//! * what all slots hold together is the view, but that a relation may stand in two of them while a partition splits;
//! * all that slots hold is in the logs: the view of slots that are lost is made from the list on disk and the logs behind it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::manifest::SplitVertex;
use fieldstone_format::graph_segment::partitioning::Partitioning;

use crate::hashing::PlaceMap;
use crate::partition::{Partitioner, SlotNumber, Splits};
use crate::segment::{KeepHalves, Rows, Segment};
use crate::state::GraphState;
use crate::travel::{TravelPlan, Travelled};

/// How the hops of a traversal follow one another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Engine {
    /// Step by step; a slot that waits for others reads ahead until the next step begins.
    #[default]
    Sync,
    /// Step by step.
    Plain,
    /// Each vertex goes on when it is reached.
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

/// Splits as lists on disk and messages say them.
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

/// The splits that such rows say.
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

/// The splits that all slots know, each vertex once: what is known of it, and what is finished wherever it is.
pub fn all_splits(shelves: &[ShelfContent]) -> BTreeMap<VertexPlace, VertexSplitting> {
    let mut all: BTreeMap<VertexPlace, VertexSplitting> = BTreeMap::new();
    for (vertex, own) in shelves.iter().flat_map(|shelf| shelf.splits.iter()) {
        let known = all.entry(*vertex).or_default();
        known.known.merge(&own.known);
        known.finished.merge(&own.finished);
    }
    all
}

/// All slots of a view. A slot that is lost is Unavailable.
pub trait Slots: Debug + Send + Sync {
    /// How the view is cut.
    fn partitioning(&self) -> Partitioning;

    /// Whether all slots serve.
    fn serve(&self) -> bool;

    /// Puts rows where they belong. Splits that this brings about go on behind it.
    fn insert(&self, rows: &Rows) -> Result<()>;

    /// Waits until nothing is being split.
    fn settle(&self) -> Result<()>;

    /// The segments of all slots.
    fn segments(&self) -> Result<Vec<Arc<Segment>>>;

    /// The content of each slot, by number.
    fn contents(&self) -> Result<Vec<ShelfContent>>;

    /// The same at one moment, in which no traversal begins: it stays as it is until it is thawed.
    fn freeze(&self) -> Result<Vec<ShelfContent>>;

    /// Takes what was written to disk, the segments of each slot, in place of what was frozen; `None`: nothing was written.
    fn thaw(&self, saved: Option<Vec<Vec<Arc<Segment>>>>) -> Result<()>;

    /// Begins a traversal in all slots: what is put from here on does not show. `state`: what they have together, with what
    /// lies over it; `over`: the segments that do, and that no slot has.
    fn begin(
        self: Arc<Self>,
        state: &Arc<GraphState>,
        over: &[Arc<Segment>],
        plan: TravelPlan,
        engine: Engine,
    ) -> Result<Box<dyn BegunTravel>>;
}

/// A traversal that has begun.
pub trait BegunTravel: Debug {
    /// Walks it.
    fn run(self: Box<Self>) -> Result<Travelled>;
}

/// Starts slots.
pub trait StartSlots: Debug + Send + Sync {
    /// Slots that hold this.
    fn start(
        &self,
        partitioning: Partitioning,
        contents: Vec<ShelfContent>,
        env: &Env,
    ) -> Result<Arc<dyn Slots>>;
}

/// The relations that a slot keeps of those it had: not what it has given away, once that is finished.
#[derive(Debug)]
pub struct KeepsOwn {
    /// How relations are placed.
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
