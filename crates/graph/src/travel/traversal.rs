//! A traversal as a caller holds it. Its vertices and paths may be in a walk of this process, or in a store
//! at the far end of a connection.
//!
//! Invariant: a source belongs to one moment; its answers do not change while it lives.

use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::graph::VertexName;

use super::figures::{SlotFigures, StepFigures};
use super::paths::Path;
use super::travelled::Travelled;
use crate::read::Vertex;

/// Paths, one at a time.
pub type PathStream = Box<dyn Iterator<Item = Result<Path>> + Send>;

/// The facts of a traversal that are known when it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct TraversalSummary {
    /// The number of vertices in each set: those that `rtn` returns, in order, and the last.
    pub sets: Vec<usize>,
    /// Whether the result is whole paths.
    pub has_paths: bool,
    /// Whether sets were cut off at the limit.
    pub truncated: bool,
    /// Maximum number of paths, or of vertices in a set.
    pub limit: usize,
    /// The work of each hop.
    pub figures: Vec<StepFigures>,
    /// The work of each slot, if slots walked.
    pub slots: Option<SlotFigures>,
}

/// The source of a traversal's vertices and paths.
pub trait TraversalSource: Send + Sync + Debug {
    /// See [`Traversal::names`].
    fn names(&self, set: usize, from: usize, most: usize) -> Result<Vec<VertexName>>;

    /// See [`Traversal::vertex`].
    fn vertex(&self, name: &VertexName) -> Result<Vertex>;

    /// See [`Traversal::paths`].
    fn paths(&self) -> Option<PathStream>;
}

/// A traversal: its summary, and its vertices and paths on demand. Clones share them.
#[derive(Debug, Clone)]
pub struct Traversal {
    summary: Arc<TraversalSummary>,
    source: Arc<dyn TraversalSource>,
}

impl Traversal {
    /// The traversal with this source.
    pub fn new(summary: TraversalSummary, source: Arc<dyn TraversalSource>) -> Traversal {
        Traversal { summary: Arc::new(summary), source }
    }

    /// Counts, limits and figures.
    pub fn summary(&self) -> &TraversalSummary {
        &self.summary
    }

    /// Names of the vertices of a set, `most` of them from the i-th on; none after the last.
    pub fn names(&self, set: usize, from: usize, most: usize) -> Result<Vec<VertexName>> {
        self.source.names(set, from, most)
    }

    /// A vertex at the moment of the request; a vertex that did not exist is shown as deleted.
    pub fn vertex(&self, name: &VertexName) -> Result<Vertex> {
        self.source.vertex(name)
    }

    /// The paths, from the first on; none if the result is vertices.
    pub fn paths(&self) -> Option<PathStream> {
        self.summary.has_paths.then(|| self.source.paths()).flatten()
    }
}

impl TraversalSource for Travelled {
    fn names(&self, set: usize, from: usize, most: usize) -> Result<Vec<VertexName>> {
        self.names(set, from, most)
    }

    fn vertex(&self, name: &VertexName) -> Result<Vertex> {
        self.vertex(name)
    }

    fn paths(&self) -> Option<PathStream> {
        self.paths().map(|mut paths| -> PathStream {
            Box::new(std::iter::from_fn(move || paths.next_path().transpose()))
        })
    }
}

impl From<Travelled> for Traversal {
    fn from(travelled: Travelled) -> Traversal {
        let summary = TraversalSummary {
            sets: travelled.sets(),
            has_paths: travelled.has_paths(),
            truncated: travelled.truncated(),
            limit: travelled.limit(),
            figures: travelled.figures().to_vec(),
            slots: travelled.slots().cloned(),
        };
        Traversal::new(summary, Arc::new(travelled))
    }
}
