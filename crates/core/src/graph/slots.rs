//! The division of a graph's index into slots, the names of their ends, and counts of their work.

use crate::id::Id;

/// Most slots.
pub const SLOTS_MAX: u16 = 1024;
/// Relations that a partition holds before it splits, by default: the paper's choice.
pub const THRESHOLD: u32 = 128;

/// The rule that places relations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PartitionScheme {
    /// Relations are in the slot of their vertex.
    EdgeCut,
    /// A hash of both ends chooses the slot.
    VertexCut,
    /// Partitions split by a hash of the far end.
    Giga,
    /// Partitions split towards the far end's home.
    #[default]
    Dido,
}

/// The numbering of slots in DIDO's tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlotLabels {
    /// In each level by the label of the splitting partition.
    #[default]
    Low,
    /// In each level from left to right, as in the paper's Fig. 6.
    Paper,
}

/// The division of an index into slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitioning {
    /// Number of slots.
    pub slots: u16,
    /// The rule.
    pub scheme: PartitionScheme,
    /// Relations that a partition holds before it splits.
    pub threshold: u32,
    /// The numbering of slots.
    pub labels: SlotLabels,
}

impl Default for Partitioning {
    fn default() -> Partitioning {
        let (scheme, labels) = Default::default();
        Partitioning { slots: 1, scheme, threshold: THRESHOLD, labels }
    }
}

impl PartitionScheme {
    /// All schemes.
    pub const ALL: [PartitionScheme; 4] =
        [PartitionScheme::EdgeCut, PartitionScheme::VertexCut, PartitionScheme::Giga, PartitionScheme::Dido];

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            PartitionScheme::EdgeCut => "edge-cut",
            PartitionScheme::VertexCut => "vertex-cut",
            PartitionScheme::Giga => "giga+",
            PartitionScheme::Dido => "dido",
        }
    }
}

impl SlotLabels {
    /// All numberings.
    pub const ALL: [SlotLabels; 2] = [SlotLabels::Low, SlotLabels::Paper];

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            SlotLabels::Low => "low",
            SlotLabels::Paper => "paper",
        }
    }
}

/// The name of an end of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// A slot of the graph's index, by its number.
    Slot(u16),
    /// A client.
    Client(Id),
}

/// Counts of a slot's work in one hop of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotStep {
    /// The hop.
    pub hop: u32,
    /// The round of the repeated part, from 1; 0 after it.
    pub round: u32,
    /// Vertices of the frontier whose home is this slot.
    pub frontier: u64,
    /// Vertices that were reached here for the first time.
    pub reached: u64,
    /// Relations read here.
    pub relations: u64,
    /// Vertices whose relations another slot had to read.
    pub requests: u64,
    /// Relations whose far end has its home in another slot.
    pub forwards: u64,
    /// Frames sent.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Nanoseconds spent on vertices: tests, names and versions.
    pub vertex_time: u64,
    /// Nanoseconds spent on relations.
    pub edge_time: u64,
    /// Nanoseconds spent on reading relations ahead of their step.
    pub prefetch_time: u64,
    /// Vertices whose relations were read ahead of their step.
    pub prefetched: u64,
}
