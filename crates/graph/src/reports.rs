//! Reports of a graph's calls: plain data, whatever answers.

use fieldstone_format::graph::Archive;
use fieldstone_format::graph_segment::partitioning::Partitioning;

/// How a view is cut into slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    /// How it is cut.
    pub partitioning: Partitioning,
    /// The content of each slot, by number.
    pub slots: Vec<SlotContent>,
    /// Partitions of vertices that are split.
    pub splits: u64,
    /// Those of which not all that they gave away is known to be where it belongs.
    pub unfinished: u64,
}

/// The content of a slot.
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

/// The content of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments of the view.
    pub segments: u64,
    /// Vertices that they name, each segment by itself.
    pub vertices: u64,
    /// Versions of relations, each segment by itself.
    pub relations: u64,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Declarations that count for nothing, and records that cannot be read.
    pub problems: Vec<String>,
    /// Stores to which versions were moved.
    pub archives: Vec<Archive>,
}

/// The findings of [`verify`](crate::access::GraphAdmin::verify).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Lines that were compared.
    pub lines: u64,
    /// Lines in which the view differs from the logs. At most 100.
    pub different: Vec<String>,
    /// Records that cannot be read, each with its log; the rest is readable.
    pub damaged: Vec<String>,
}

impl Check {
    /// Whether the view says what the logs say, and all of it could be read.
    pub fn ok(&self) -> bool {
        self.different.is_empty() && self.damaged.is_empty()
    }
}
