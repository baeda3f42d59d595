//! The result of a traversal: sets of vertices, or whole paths, and its costs.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use fieldstone_core::env::Clock;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::walk::{WalkLink, WalkNode};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use super::expand::{Expander, shown};
use super::figures::{SlotFigures, StepFigures};
use super::paths::{Paths, WalkOnce, WayParts};
use super::plan::TravelPlan;
use super::walk::{Reached, walk};
use super::wide;
use crate::find;
use crate::frame::Frame;
use crate::read::Vertex;
use crate::state::GraphState;

/// Number of vertices that a walk without tests reads one by one before it changes to numbers of segments.
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

/// Repeats a walk at the same moment if segments of its state are damaged.
pub(crate) trait WalkAgain: Send + Sync + std::fmt::Debug {
    /// The same traversal, over a state built from the logs.
    fn again(&self) -> Result<Travelled>;
}

/// Replaces a traversal that cannot be read any more.
#[derive(Debug)]
struct WalkedAgain {
    travelled: Travelled,
    /// Names of each set; names that could be read before keep their positions.
    names: Vec<Vec<VertexName>>,
}

/// The result of a traversal. It holds the state that was walked, so later puts do not show.
#[derive(Debug, Clone)]
pub struct Travelled {
    state: Arc<GraphState>,
    plan: Arc<TravelPlan>,
    sets: Vec<VertexSet>,
    ways: Option<WayParts>,
    figures: Vec<StepFigures>,
    slots: Option<SlotFigures>,
    truncated: bool,
    again: Option<Arc<dyn WalkAgain>>,
    walked_again: Arc<OnceLock<WalkedAgain>>,
}

/// Walks a plan over a state. The limits also end the reads of its paths.
pub fn travel(
    state: Arc<GraphState>,
    plan: TravelPlan,
    clock: &dyn Clock,
    limits: Limits,
) -> Result<Travelled> {
    travel_within(state, plan, clock, limits, FEW)
}

/// The same; a walk without tests changes to numbers of segments after this many vertices.
pub fn travel_within(
    state: Arc<GraphState>,
    plan: TravelPlan,
    clock: &dyn Clock,
    mut limits: Limits,
    few: u64,
) -> Result<Travelled> {
    let starts = find::starts(&state, &plan.start, plan.at, plan.causal, &mut limits)?;
    let plan = Arc::new(plan);
    let mut expander = Expander::new(state.clone(), plan.clone()).within(limits);
    let mut travelled = Travelled::empty(state, plan);
    let plan = travelled.plan.clone();
    // Only a walk without tests can change to numbers of segments.
    let most = if plan.is_plain() { few } else { u64::MAX };
    match walk(&mut expander, &starts, clock, most)? {
        None => {
            let frame = travelled.state.frame()?;
            let (numbers, figures) =
                wide::walk(&frame, &travelled.state, &plan, &starts, clock, &mut expander.limits)?;
            travelled.sets.push(VertexSet::Numbers(frame, numbers));
            travelled.figures = figures;
        }
        Some(reached) => travelled.take(expander, reached),
    }
    travelled.cut();
    Ok(travelled)
}

impl Travelled {
    /// The result that slots returned, read against their state.
    pub fn of_slots(
        state: Arc<GraphState>,
        plan: Arc<TravelPlan>,
        nodes: Vec<WalkNode>,
        links: &[WalkLink],
        figures: (Vec<StepFigures>, SlotFigures),
        limits: Limits,
    ) -> Result<Travelled> {
        let mut expander = Expander::new(state.clone(), plan.clone()).within(limits);
        let reached = Reached::of_slots(&mut expander, nodes, links, figures.0)?;
        let mut travelled = Travelled::empty(state, plan);
        travelled.slots = Some(figures.1);
        travelled.take(expander, reached);
        travelled.cut();
        Ok(travelled)
    }

    fn empty(state: Arc<GraphState>, plan: Arc<TravelPlan>) -> Travelled {
        let (sets, figures, slots, again, walked_again) = Default::default();
        Travelled { state, plan, sets, ways: None, figures, slots, truncated: false, again, walked_again }
    }

    /// Adds a way to repeat the walk if its result is damaged.
    pub(crate) fn with_again(self, again: Arc<dyn WalkAgain>) -> Travelled {
        Travelled { again: Some(again), ..self }
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
            // Places are hashes, so their order is stable whatever the segments.
            places.sort_unstable();
            self.sets.push(VertexSet::Places(places));
        }
    }

    fn cut(&mut self) {
        for set in &mut self.sets {
            self.truncated |= set.truncate(self.plan.limit);
        }
    }

    /// The work of each slot, if slots walked.
    pub fn slots(&self) -> Option<&SlotFigures> {
        self.slots.as_ref()
    }
}
impl Travelled {
    /// Whether the result is whole paths.
    pub fn has_paths(&self) -> bool {
        self.ways.is_some()
    }

    /// The number of vertices in each set: those that `rtn` returns, in order, and the last.
    pub fn sets(&self) -> Vec<usize> {
        self.sets.iter().map(VertexSet::len).collect()
    }

    /// Whether sets were cut off at the limit.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// The work of each hop.
    pub fn figures(&self) -> &[StepFigures] {
        &self.figures
    }

    /// Maximum number of paths, or of vertices in a set.
    pub fn limit(&self) -> usize {
        self.plan.limit
    }

    /// Names of the vertices of a set, at most `most` from the i-th on; none after the last.
    pub fn names(&self, set: usize, from: usize, most: usize) -> Result<Vec<VertexName>> {
        let Some(places) = self.sets.get(set) else { return Ok(Vec::new()) };
        let range = from..from.saturating_add(most).min(places.len());
        let read = match self.walked_again.get() {
            None => range.clone().map(|i| self.state.name(places.place(i)?)).collect(),
            Some(known) => Ok(known.of_set(set, range.clone())),
        };
        match read {
            Err(damage) if damage.kind() == ErrorKind::Corrupt => {
                Ok(self.walk_again(damage)?.of_set(set, range))
            }
            outcome => outcome,
        }
    }

    /// A vertex at the moment of the request; a vertex that did not exist is shown as deleted.
    pub fn vertex(&self, name: &VertexName) -> Result<Vertex> {
        let read = |state| shown(state, name, self.plan.at);
        match self.walked_again.get() {
            Some(known) => read(&known.travelled.state),
            None => match read(&self.state) {
                Err(damage) if damage.kind() == ErrorKind::Corrupt => {
                    read(&self.walk_again(damage)?.travelled.state)
                }
                outcome => outcome,
            },
        }
    }

    /// The same traversal over a readable state; if there is none, the error is the damage.
    fn walk_again(&self, damage: Error) -> Result<&WalkedAgain> {
        let Some(again) = &self.again else { return Err(damage) };
        let travelled = again.again()?;
        // Callers may have read some names already: these keep their positions in the repeated result.
        let names = self.sets.iter().zip(&travelled.sets).map(|(old, new)| {
            let new = (0..new.len()).map(|i| travelled.state.name(new.place(i)?)).collect::<Result<_>>()?;
            let old = (0..old.len()).map(|i| old.place(i).and_then(|place| self.state.name(place)));
            Ok(in_places(old.map(Result::ok).collect(), new))
        });
        let names: Option<Vec<Vec<VertexName>>> = names.collect::<Result<Vec<_>>>()?.into_iter().collect();
        match names {
            Some(names) => Ok(self.walked_again.get_or_init(|| WalkedAgain { travelled, names })),
            None => Err(damage),
        }
    }

    /// The paths, from the first on; none if the result is vertices.
    pub fn paths(&self) -> Option<Paths> {
        let (expander, reached) = self.ways.as_ref()?;
        let again = self.again.clone();
        let again = again.map(|again| -> WalkOnce { Box::new(move || Ok(again.again()?.ways)) });
        Some(Paths::new(expander.clone(), reached.clone(), again))
    }
}

impl WalkedAgain {
    fn of_set(&self, set: usize, range: Range<usize>) -> Vec<VertexName> {
        let names = self.names.get(set).map_or(&[][..], Vec::as_slice);
        names.get(range).unwrap_or_default().to_vec()
    }
}

/// Names of a set in their earlier order: those that could be read keep their positions. `None` if the sets
/// differ.
fn in_places(old: Vec<Option<VertexName>>, new: Vec<VertexName>) -> Option<Vec<VertexName>> {
    if old.len() != new.len() {
        return None;
    }
    let known: HashSet<VertexName> = old.iter().flatten().cloned().collect();
    let mut rest = new.into_iter().filter(|name| !known.contains(name));
    old.into_iter().map(|name| name.or_else(|| rest.next())).collect()
}
