//! The plan of a traversal: its start, and the relations that each hop follows.
//!
//! Types have their stored names, each with the direction in which it is walked, so that a slot needs no
//! declarations.

use std::sync::Arc;

use fieldstone_core::value::Test;

use super::fields::fields;
use crate::graph::VertexName;

/// The plan of a traversal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WalkPlan {
    /// The moment that the traversal sees.
    pub at: u64,
    /// Whether the walk goes by cause.
    pub causal: bool,
    /// Whether a job and its processes count as the job.
    pub jobs: bool,
    /// Whether to record the links between vertices.
    pub linked: bool,
    /// Tests of the vertices at the start.
    pub starting: Vec<WalkTest>,
    /// The hops.
    pub hops: Vec<WalkHop>,
    /// How many of the first hops are repeated, and how often at most.
    pub repeat: Option<(u32, u32)>,
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WalkHop {
    /// It leads from each vertex to itself.
    pub stays: bool,
    /// Types of relations, each with whether it is walked from its target; empty for all.
    pub directions: Vec<(Arc<str>, bool)>,
    /// Versions between these stamps.
    pub versions: Option<(u64, u64)>,
    /// Tests of the relations' properties.
    pub edges: Vec<(String, Test)>,
    /// Tests of the vertices at the far end.
    pub tests: Vec<WalkTest>,
}

/// A test of a vertex.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WalkTest {
    /// One of these.
    pub named: Option<Vec<VertexName>>,
    /// Of this type.
    pub kind: Option<String>,
    /// Properties must pass these tests.
    pub tests: Vec<(String, Test)>,
    /// A version between these stamps must pass.
    pub versions: Option<(u64, u64)>,
}

fields!(WalkPlan { at, causal, jobs, linked, starting, hops, repeat });
fields!(WalkHop { stays, directions, versions, edges, tests });
fields!(WalkTest { named, kind, tests, versions });
