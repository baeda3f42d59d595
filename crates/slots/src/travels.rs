//! A traversal of an index that is divided into slots: the client begins it, slots walk it, and their results
//! are combined.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_graph::find;
use fieldstone_graph::segment::Segment;
use fieldstone_graph::slot::{BegunTravel, Engine};
use fieldstone_graph::state::GraphState;
use fieldstone_graph::travel::{TravelPlan, Travelled};
use fieldstone_journal::session::Limits;

use crate::cluster::{BegunWalk, SlotCluster};

/// A traversal that has begun; it does not see later puts.
#[derive(Debug)]
pub struct SlotTravel {
    walk: BegunWalk,
    state: Arc<GraphState>,
    plan: Arc<TravelPlan>,
    starts: Vec<(VertexPlace, VertexName)>,
    limits: Limits,
}

/// Begins a traversal in all slots. `state` is their combined content with the overlay; `over` are the
/// overlay's segments, which no slot has. `limits` end the walk early, and the reads of its paths.
pub fn begin(
    cluster: &Arc<SlotCluster>,
    state: &Arc<GraphState>,
    over: &[Arc<Segment>],
    plan: TravelPlan,
    engine: Engine,
    mut limits: Limits,
) -> Result<SlotTravel> {
    let found = find::starts(state, &plan.start, plan.at, plan.causal, &mut limits)?;
    let mut starts = Vec::with_capacity(found.len());
    for place in found {
        limits.step()?;
        starts.push((place, state.name(place)?));
    }
    let walk = cluster.begin_walk(&plan, engine, over, limits.clone())?;
    Ok(SlotTravel { walk, state: state.clone(), plan: Arc::new(plan), starts, limits })
}

impl BegunTravel for SlotTravel {
    fn run(self: Box<Self>) -> Result<Travelled> {
        SlotTravel::run(*self)
    }
}

impl SlotTravel {
    /// Walks it.
    pub fn run(mut self) -> Result<Travelled> {
        let walked = self.walk.walk(&self.plan, &self.starts)?;
        let figures = (walked.steps, walked.figures);
        Travelled::of_slots(self.state, self.plan, walked.nodes, &walked.links, figures, self.limits)
    }
}
