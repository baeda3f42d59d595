//! Traversals: from vertices along relations, step by step, with tests on both.
//!
//! A [`Travel`] says what is walked; [`Travel::plan`] checks it against the types of a state; a walk gives a
//! [`Travelled`], which a caller holds as a [`Traversal`].
//!
//! ```text
//! travel ── plan ──▶ TravelPlan: where it starts, hops, what is repeated
//!                      │
//!        walk: sets of vertices, hop by hop ──▶ sets
//!        wide: the same for large sets without tests, over numbers of segments
//!        paths: whole ways, one after the other
//! ```
//!
//! Invariants:
//! * a walk reads one state: nothing that is put later shows;
//! * each hop's set is distinct; a vertex may be in the sets of several hops;
//! * by cause, what is distinct is a vertex and a time, so that every way that times allow is taken;
//! * both ways of walking sets give the same.
//!
//! Source: GraphMeta (TPDS 30 (7), 2019), GTravel: `v`, `e`, `va`, `ea`, `rtn`, `repeat`, `return_fp`.

pub mod expand;
mod figures;
mod paths;
pub mod plan;
mod travelled;
mod traversal;
mod walk;
mod wide;

use fieldstone_core::value::Test;

pub use crate::find::VertexTest;
pub use figures::{SlotFigures, StepFigures};
pub use paths::{Path, Paths};
pub use plan::TravelPlan;
pub(crate) use travelled::WalkAgain;
pub use travelled::{Travelled, travel, travel_within};
pub use traversal::{PathStream, Traversal, TraversalSource, TraversalSummary};

/// What is walked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Travel {
    /// How it was at this stamp, at every hop.
    pub at: Option<u64>,
    /// Whether times count: a hop takes only what can have had a part in the next.
    pub causal: bool,
    /// Whether a job and its processes count as the job.
    pub jobs: bool,
    /// Results, at most.
    pub limit: Option<usize>,
    /// What is done, one after the other. The first is a start.
    pub steps: Vec<TravelStep>,
}

/// One step of a traversal.
#[derive(Debug, Clone, PartialEq)]
pub enum TravelStep {
    /// The vertices where it starts; later, those of the set that are such.
    Vertices(VertexTest),
    /// To the far ends of relations of these types, as the near end calls them; of all, where none is named.
    Edges {
        /// The types.
        kinds: Vec<String>,
        /// Versions between these stamps, both included; `None`: those that hold.
        versions: Option<(u64, u64)>,
    },
    /// The relations of the last hop have a property that passes.
    EdgeProperty(String, Test),
    /// The vertices of the set have a property that passes.
    VertexProperty(String, Test),
    /// The vertices of the set are returned, those from which the walk reaches its end.
    Return,
    /// All hops since the start are repeated until they bring nothing new, at most so many times.
    Repeat(Option<u32>),
    /// Whole ways are given, and not vertices.
    FullPaths,
}
