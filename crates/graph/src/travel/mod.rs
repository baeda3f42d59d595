//! Traversals: from vertices along relations, step by step, with tests on both.
//!
//! A [`Travel`] describes the walk; [`Travel::plan`] checks it against the types of a state; a walk returns a
//! [`Travelled`], which a caller holds as a [`Traversal`].
//!
//! ```text
//! travel ── plan ──▶ TravelPlan: the start, the hops, the repeated part
//!                      │
//!        walk: sets of vertices, hop by hop ──▶ sets
//!        wide: the same for large sets without tests, over numbers of segments
//!        paths: whole paths, one after the other
//! ```
//!
//! Invariants:
//! * a walk reads one state: later puts do not show;
//! * each hop's set is distinct; a vertex may be in the sets of several hops;
//! * by cause, the distinct items are pairs of a vertex and a time, so that the walk takes every path that
//!   times allow;
//! * both ways of walking sets give the same result.
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

/// The description of a walk.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Travel {
    /// The stamp whose state every hop sees.
    pub at: Option<u64>,
    /// Whether times count: then a hop takes only relations that can have influenced the next.
    pub causal: bool,
    /// Whether a job and its processes count as the job.
    pub jobs: bool,
    /// Maximum number of results.
    pub limit: Option<usize>,
    /// The steps, in order. The first is a start.
    pub steps: Vec<TravelStep>,
}

/// One step of a traversal.
#[derive(Debug, Clone, PartialEq)]
pub enum TravelStep {
    /// The vertices where it starts; later in the list, those of the set that pass the test.
    Vertices(VertexTest),
    /// To the far ends of relations of these types, named from the near end; of all types if the list is
    /// empty.
    Edges {
        /// The types.
        kinds: Vec<String>,
        /// Versions between these stamps, both included; `None`: the valid ones.
        versions: Option<(u64, u64)>,
    },
    /// The relations of the last hop have a property that passes.
    EdgeProperty(String, Test),
    /// The vertices of the set have a property that passes.
    VertexProperty(String, Test),
    /// The traversal returns those vertices of the set from which the walk reaches its end.
    Return,
    /// Repeats all hops since the start until they reach nothing new, up to a number of rounds.
    Repeat(Option<u32>),
    /// The traversal returns whole paths instead of vertices.
    FullPaths,
}
