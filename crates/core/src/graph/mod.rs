//! Values of a graph, as calls take and return them: names of vertices, declared types, many relations of one put, the
//! division into slots and counts of their work.
//!
//! Nothing here has an order of bytes: the crate `fieldstone-format` encodes these values in records and messages.
//!
//! ```
//! use fieldstone_core::graph::VertexName;
//! assert_eq!(VertexName::new("file", "/data/a.nc").to_string(), "file:/data/a.nc");
//! ```

mod batch;
mod slots;
mod types;

use std::fmt;
use std::sync::Arc;

pub use batch::{PropValue, RelationBatch, TextColumn};
pub use slots::{Address, PartitionScheme, Partitioning, SLOTS_MAX, SlotLabels, SlotStep, THRESHOLD};
pub use types::{EdgeType, TypeDecl, VertexType};

/// A vertex's type and id, which name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexName {
    /// The type, such as `file`.
    pub kind: Arc<str>,
    /// The id in the type: for a user the uid, for a file the full path.
    pub id: Arc<str>,
}

impl VertexName {
    /// The vertex of this type and id.
    pub fn new(kind: &str, id: &str) -> VertexName {
        VertexName { kind: kind.into(), id: id.into() }
    }
}

impl fmt::Display for VertexName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

/// The destination of versions that moved to another store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Archive {
    /// Reads at this stamp and later do not see the moved versions.
    pub before: u64,
    /// The store that has them.
    pub url: Arc<str>,
}
