//! Reports of a graph's calls, as plain data for every implementation.

use fieldstone_format::graph::Archive;
use fieldstone_format::graph_segment::partitioning::Partitioning;

/// The slots of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    /// The settings by which it is cut.
    pub partitioning: Partitioning,
    /// The content of each slot, by number.
    pub slots: Vec<SlotContent>,
    /// Partitions of vertices that are split.
    pub splits: u64,
    /// Those that are not known to have all given-away relations in their new places.
    pub unfinished: u64,
}

/// The content of a slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotContent {
    /// Segments.
    pub segments: u64,
    /// Vertices that they name, counted in each segment.
    pub vertices: u64,
    /// Versions of relations that leave a vertex, counted in each segment.
    pub relations: u64,
    /// Bytes of the segments.
    pub bytes: u64,
}

/// The content of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments of the index.
    pub segments: u64,
    /// Vertices that they name, counted in each segment.
    pub vertices: u64,
    /// Versions of relations, counted in each segment.
    pub relations: u64,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Declarations without effect, and records that cannot be read.
    pub problems: Vec<String>,
    /// Stores to which versions were moved.
    pub archives: Vec<Archive>,
}

/// The findings of [`verify`](crate::access::GraphAdmin::verify).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Lines that were compared.
    pub lines: u64,
    /// Lines that differ between the index and the logs. At most 100.
    pub different: Vec<String>,
    /// Records that cannot be read, each with its log. The other records are readable.
    pub damaged: Vec<String>,
}

impl Check {
    /// Whether the index agrees with the logs, and all logs could be read.
    pub fn ok(&self) -> bool {
        self.different.is_empty() && self.damaged.is_empty()
    }
}
