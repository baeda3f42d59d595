//! What a traversal gives: sets of vertices, or whole ways; what it cost.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Clock;
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::walk::{WalkLink, WalkNode};
use fieldstone_format::graph_segment::VertexPlace;

use super::expand::{Expander, shown};
use super::figures::{SlotFigures, StepFigures};
use super::paths::Paths;
use super::plan::TravelPlan;
use super::walk::{Reached, walk};
use super::wide;
use crate::find;
use crate::frame::Frame;
use crate::read::Vertex;
use crate::state::GraphState;

/// Vertices that are read one by one before a walk without tests goes over to numbers of segments.
const FEW: u64 = 256;

/// A set of vertices.
#[derive(Debug, Clone)]
enum VertexSet {
    Places(Vec<VertexPlace>),
    Numbers(Arc<Frame>, Vec<u32>),
}

impl VertexSet {
    fn len(&self) -> usize {
        match self {
            VertexSet::Places(places) => places.len(),
            VertexSet::Numbers(_, numbers) => numbers.len(),
        }
    }

    fn place(&self, i: usize) -> Result<VertexPlace> {
        match self {
            VertexSet::Places(places) => Ok(places[i]),
            VertexSet::Numbers(frame, numbers) => frame.place(numbers[i]),
        }
    }

    fn truncate(&mut self, len: usize) -> bool {
        let cut = self.len() > len;
        match self {
            VertexSet::Places(places) => places.truncate(len),
            VertexSet::Numbers(_, numbers) => numbers.truncate(len),
        }
        cut
    }
}

/// What a traversal gave. It holds the state that was walked: what is put later does not show.
#[derive(Debug, Clone)]
pub struct Travelled {
    state: Arc<GraphState>,
    plan: Arc<TravelPlan>,
    sets: Vec<VertexSet>,
    ways: Option<(Expander, Arc<Reached>)>,
    figures: Vec<StepFigures>,
    slots: Option<SlotFigures>,
    truncated: bool,
}

/// Walks a plan over a state.
pub fn travel(state: Arc<GraphState>, plan: TravelPlan, clock: &dyn Clock) -> Result<Travelled> {
    travel_within(state, plan, clock, FEW)
}

/// The same; a walk without tests goes over to numbers of segments after so many vertices.
pub fn travel_within(
    state: Arc<GraphState>,
    plan: TravelPlan,
    clock: &dyn Clock,
    few: u64,
) -> Result<Travelled> {
    let starts = find::starts(&state, &plan.start, plan.at, plan.causal)?;
    let plan = Arc::new(plan);
    let mut expander = Expander::new(state.clone(), plan.clone());
    let mut travelled = Travelled::empty(state, plan);
    let plan = travelled.plan.clone();
    let most = if plan.is_plain() { few } else { u64::MAX };
    match walk(&mut expander, &starts, clock, most)? {
        None => {
            let frame = travelled.state.frame()?;
            let (numbers, figures) = wide::walk(&frame, &travelled.state, &plan, &starts, clock)?;
            travelled.sets.push(VertexSet::Numbers(frame, numbers));
            travelled.figures = figures;
        }
        Some(reached) => travelled.take(expander, reached),
    }
    travelled.cut();
    Ok(travelled)
}

impl Travelled {
    /// What slots gave, read against the state that they had.
    pub(crate) fn of_slots(
        state: Arc<GraphState>,
        plan: Arc<TravelPlan>,
        nodes: Vec<WalkNode>,
        links: &[WalkLink],
        figures: (Vec<StepFigures>, SlotFigures),
    ) -> Result<Travelled> {
        let mut expander = Expander::new(state.clone(), plan.clone());
        let reached = Reached::of_slots(&mut expander, nodes, links, figures.0)?;
        let mut travelled = Travelled::empty(state, plan);
        travelled.slots = Some(figures.1);
        travelled.take(expander, reached);
        travelled.cut();
        Ok(travelled)
    }

    fn empty(state: Arc<GraphState>, plan: Arc<TravelPlan>) -> Travelled {
        let (sets, figures, slots) = Default::default();
        Travelled { state, plan, sets, ways: None, figures, slots, truncated: false }
    }

    fn take(&mut self, expander: Expander, mut reached: Reached) {
        let plan = self.plan.clone();
        self.figures = std::mem::take(&mut reached.figures);
        if plan.paths {
            self.ways = Some((expander, Arc::new(reached)));
            return;
        }
        let last = plan.hops.len();
        for i in (0..=last).filter(|i| *i == last || plan.set(*i).returned) {
            let numbers = reached.set(i, &plan);
            let mut places: Vec<VertexPlace> = numbers.iter().map(|n| expander.place(*n)).collect();
            places.sort_unstable();
            self.sets.push(VertexSet::Places(places));
        }
    }

    fn cut(&mut self) {
        for set in &mut self.sets {
            self.truncated |= set.truncate(self.plan.limit);
        }
    }

    /// What each slot did, where slots walked.
    pub fn slots(&self) -> Option<&SlotFigures> {
        self.slots.as_ref()
    }
}
impl Travelled {
    /// Whether whole ways are given.
    pub fn has_paths(&self) -> bool {
        self.ways.is_some()
    }

    /// How many vertices each set has: those that `rtn` returns, in order, and the last.
    pub fn sets(&self) -> Vec<usize> {
        self.sets.iter().map(VertexSet::len).collect()
    }

    /// Whether sets were cut off at the limit.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// What each hop did.
    pub fn figures(&self) -> &[StepFigures] {
        &self.figures
    }

    /// Ways, at most, or vertices of a set.
    pub fn limit(&self) -> usize {
        self.plan.limit
    }

    /// Names of the vertices of a set, from the i-th on, at most so many; none behind the last.
    pub fn names(&self, set: usize, from: usize, most: usize) -> Result<Vec<VertexName>> {
        let Some(set) = self.sets.get(set) else { return Ok(Vec::new()) };
        let end = from.saturating_add(most).min(set.len());
        (from..end).map(|i| self.state.name(set.place(i)?)).collect()
    }

    /// A vertex as it was at the moment that was asked about; what is not there is shown as deleted.
    pub fn vertex(&self, name: &VertexName) -> Result<Vertex> {
        shown(&self.state, name, self.plan.at)
    }

    /// The ways, from the first on; none where vertices are given.
    pub fn paths(&self) -> Option<Paths> {
        self.ways.as_ref().map(|(expander, reached)| Paths::new(expander.clone(), reached.clone()))
    }
}
