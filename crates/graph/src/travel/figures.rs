//! What the hops of a traversal cost.

use std::collections::BTreeMap;

use fieldstone_format::graph_message::walk::SlotStep;

/// What one hop of one round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepFigures {
    /// Which hop, from 0.
    pub hop: usize,
    /// The round of what is repeated, from 1; 0 behind it.
    pub round: u32,
    /// Vertices that it began with; by cause, with each of their times.
    pub frontier: u64,
    /// Those that it reached, and that no earlier round had.
    pub reached: u64,
    /// Vertices whose relations were read.
    pub vertices: u64,
    /// Relations that were read.
    pub relations: u64,
    /// How long it took.
    pub nanoseconds: u64,
}

/// What the slots of a partitioned view did.
///
/// Source: GraphMeta (TPDS 30 (7), 2019), section 6.4.2: StatComm and StatReads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotFigures {
    /// What each slot did in each hop of each round, by slot.
    pub steps: Vec<Vec<SlotStep>>,
}

impl SlotFigures {
    /// Requests: how often a slot other than a vertex's home was asked for relations of it.
    pub fn requests(&self) -> u64 {
        self.all().map(|step| step.requests).sum()
    }

    /// Relations that were read in another slot than the home of their far end.
    pub fn forwards(&self) -> u64 {
        self.all().map(|step| step.forwards).sum()
    }

    /// StatComm: messages between slots that a vertex or relation takes, requests and forwards.
    pub fn communication(&self) -> u64 {
        self.requests() + self.forwards()
    }

    /// StatReads: for each hop of each round what the busiest slot read, relations and vertices that are reached; the
    /// sum of it.
    pub fn reads(&self) -> u64 {
        let mut most: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for step in self.all() {
            let own = most.entry((step.round, step.hop)).or_default();
            *own = (*own).max(step.relations + step.reached);
        }
        most.values().sum()
    }

    /// Frames between slots, and their bytes.
    pub fn sent(&self) -> (u64, u64) {
        self.all().fold((0, 0), |(frames, bytes), step| (frames + step.frames, bytes + step.bytes))
    }

    fn all(&self) -> impl Iterator<Item = &SlotStep> {
        self.steps.iter().flatten()
    }
}
