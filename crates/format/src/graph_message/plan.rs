//! What is walked: the start, and hop by hop what is taken.
//!
//! Types stand as they are stored, each with whether it is walked from the far end, so that a slot needs no
//! declarations.

use std::sync::Arc;

use fieldstone_core::value::Test;

use super::fields::fields;
use crate::graph::VertexName;

/// What is walked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WalkPlan {
    /// The moment that is asked about.
    pub at: u64,
    /// Whether times count.
    pub causal: bool,
    /// Whether a job and its processes count as the job.
    pub jobs: bool,
    /// Whether what led to what is to be noted.
    pub linked: bool,
    /// Tests of the vertices where it starts.
    pub starting: Vec<WalkTest>,
    /// The hops.
    pub hops: Vec<WalkHop>,
    /// The first so many hops are repeated, at most so many times.
    pub repeat: Option<(u32, u32)>,
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WalkHop {
    /// It leads from each vertex to itself.
    pub stays: bool,
    /// Types of relations, each with whether it is walked from its target; none: all.
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
    /// These properties pass.
    pub tests: Vec<(String, Test)>,
    /// A version between these stamps passes.
    pub versions: Option<(u64, u64)>,
}

fields!(WalkPlan { at, causal, jobs, linked, starting, hops, repeat });
fields!(WalkHop { stays, directions, versions, edges, tests });
fields!(WalkTest { named, kind, tests, versions });
