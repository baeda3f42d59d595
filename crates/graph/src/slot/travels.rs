//! A traversal of a view that is cut into slots: who asks begins it, slots walk it, and what they found is put together.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::rows::PlacedRows;
use fieldstone_format::graph_segment::VertexPlace;

use super::client::Engine;
use super::cluster::{BegunWalk, SlotCluster};
use super::placed::{RowsFor, relation_rows, vertex_rows};
use crate::find;
use crate::partition::{Partitioner, Splits};
use crate::segment::Segment;
use crate::state::GraphState;
use crate::travel::{TravelPlan, Travelled};

/// A traversal that has begun: what is put from here on does not show.
#[derive(Debug)]
pub struct SlotTravel {
    walk: BegunWalk,
    state: Arc<GraphState>,
    plan: Arc<TravelPlan>,
    starts: Vec<(VertexPlace, VertexName)>,
}

/// Begins a traversal in all slots. `state`: what they have together, with what lies over it; `over`: the segments that
/// do, and that no slot has.
pub fn begin(
    cluster: &Arc<SlotCluster>,
    state: &Arc<GraphState>,
    over: &[Arc<Segment>],
    plan: TravelPlan,
    engine: Engine,
) -> Result<SlotTravel> {
    let found = find::starts(state, &plan.start, plan.at, plan.causal)?;
    let mut starts = Vec::with_capacity(found.len());
    for place in found {
        starts.push((place, state.name(place)?));
    }
    let walk = cluster.begin(&plan, engine, |partitioner, splits| placed(partitioner, splits, over))?;
    Ok(SlotTravel { walk, state: state.clone(), plan: Arc::new(plan), starts })
}

impl SlotTravel {
    /// Walks it.
    pub fn run(mut self) -> Result<Travelled> {
        let walked = self.walk.walk(&self.plan, &self.starts)?;
        let figures = (walked.steps, walked.figures);
        Travelled::of_slots(self.state, self.plan, walked.nodes, &walked.links, figures)
    }
}

/// What segments hold as rows for each slot.
fn placed(
    partitioner: &dyn Partitioner,
    splits: &dyn Fn(VertexPlace) -> Splits,
    segments: &[Arc<Segment>],
) -> Result<Vec<PlacedRows>> {
    if segments.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows: Vec<RowsFor> = (0..partitioner.slots()).map(|_| RowsFor::default()).collect();
    for segment in segments {
        let alone = GraphState::of(vec![segment.clone()]);
        let mut reader = alone.reader();
        for number in 0..segment.vertices() {
            let (place, name) = (segment.place(number)?, segment.name(number)?);
            let of_vertex = splits(place);
            for (commit, row) in vertex_rows(&alone, &name)? {
                match row.version.deleted {
                    true => rows.iter_mut().for_each(|slot| slot.vertex(commit.clone(), row.clone())),
                    false => rows[usize::from(partitioner.home(place))].vertex(commit, row),
                }
            }
            for edge in alone.edges(place, &|_, _| true)? {
                let slot = usize::from(partitioner.slot_of(place, edge.far, &of_vertex));
                for (commit, row, ends) in relation_rows(&mut reader, (&name, place), &edge)? {
                    rows[slot].relation(commit, row, ends);
                }
            }
        }
    }
    Ok(rows.into_iter().map(RowsFor::finish).collect())
}
