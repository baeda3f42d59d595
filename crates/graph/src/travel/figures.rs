//! The costs of a traversal's hops.

use std::collections::BTreeMap;

use fieldstone_format::graph_message::walk::SlotStep;

/// The work of one hop in one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepFigures {
    /// The number of the hop, from 0.
    pub hop: usize,
    /// The round of the repeated part, from 1; 0 after it.
    pub round: u32,
    /// Vertices with which it began; by cause, with each of their times.
    pub frontier: u64,
    /// Vertices that it reached and that no earlier round had reached.
    pub reached: u64,
    /// Vertices whose relations were read.
    pub vertices: u64,
    /// Relations that were read.
    pub relations: u64,
    /// Its duration.
    pub nanoseconds: u64,
}

/// The work of the slots of a partitioned index.
///
/// Source: GraphMeta (TPDS 30 (7), 2019), section 6.4.2: StatComm and StatReads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotFigures {
    /// The work of each slot in each hop of each round, by slot.
    pub steps: Vec<Vec<SlotStep>>,
}

impl SlotFigures {
    /// Requests: how often a slot that is not a vertex's home was asked for relations of that vertex.
    pub fn requests(&self) -> u64 {
        self.all().map(|step| step.requests).sum()
    }

    /// Relations that were read in another slot than the home of their far end.
    pub fn forwards(&self) -> u64 {
        self.all().map(|step| step.forwards).sum()
    }

    /// StatComm: messages between slots for vertices and relations, that is, requests and forwards.
    pub fn communication(&self) -> u64 {
        self.requests() + self.forwards()
    }

    /// StatReads: the sum, over all hops of all rounds, of the relations and reached vertices that the
    /// busiest slot read.
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
