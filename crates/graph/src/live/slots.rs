//! The graph of a view that may be cut into slots: how it is cut, and traversals, which slots walk.
//!
//! A slot that does not serve any more has nothing that is not on disk or in the logs: the view is let go of, the next
//! read opens it, and a traversal begins again, once.

use std::sync::Arc;

use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::graph_segment::partitioning::{Partitioning, SLOTS_MAX};

use super::inner::{GraphInner, WHOLE, lock};
use super::partitions::Partitions;
use crate::folder::MergeOlder;
use crate::slot::travels::{self, SlotTravel};
use crate::slot::{Engine, SlotCluster};
use crate::state::GraphState;
use crate::travel::{Travel, TravelPlan, Travelled, travel as walk_plan};
use crate::view::{GraphView, SlotHost};

/// A traversal that has begun: it sees nothing that is put from here on.
enum Begun {
    InOnePiece(Arc<GraphState>, TravelPlan),
    InSlots(Arc<SlotCluster>, SlotTravel),
}

impl GraphInner {
    /// How a view is cut that is made anew: as it was, or as the one on disk is.
    pub(super) fn host(&self) -> SlotHost {
        let known = *lock(&self.process().partitioning);
        let partitioning = known.or_else(|| self.folder()?.partitioning()).unwrap_or_default();
        let (clock, options) = (self.env.clock.clone(), self.options.clone());
        SlotHost { partitioning, clock, options }
    }

    pub(super) fn keep_partitioning(&self, partitioning: Partitioning) {
        *lock(&self.process().partitioning) = Some(partitioning);
    }

    /// Walks the graph step by step, in its slots where it has several.
    pub fn travel(&self, travel: &Travel, engine: Engine, session: Option<Id>) -> Result<Travelled> {
        self.journal.check_there()?;
        let begin = |view: &GraphView, state: &Arc<GraphState>| {
            let plan = travel.plan(state.vocabulary())?;
            Ok(match view.in_slots(state) {
                None => Begun::InOnePiece(state.clone(), plan),
                Some((slots, over)) => {
                    Begun::InSlots(slots.clone(), travels::begin(slots, state, over, plan, engine)?)
                }
            })
        };
        let mut again = true;
        loop {
            let mut slots = None;
            let outcome = self.with_state(session, &begin).and_then(|begun| match begun {
                Begun::InOnePiece(state, plan) => walk_plan(state, plan, &*self.env.clock),
                Begun::InSlots(of, walk) => {
                    slots = Some(of);
                    walk.run()
                }
            });
            match outcome {
                Err(error) if again && error.kind() == ErrorKind::Corrupt => self.remake()?,
                Err(_) if again && self.lost_slots() => self.reopen(),
                outcome => return outcome,
            }
            again = false;
        }
    }

    /// Whether a slot of the view does not serve any more.
    fn lost_slots(&self) -> bool {
        lock(&self.process().view).as_ref().is_some_and(GraphView::lost_slots)
    }

    /// Lets go of the view: the next read makes it from the list on disk and what the logs have behind it.
    fn reopen(&self) {
        self.join_saving();
        *lock(&self.process().view) = None;
        lock(&self.process().own).clear();
    }

    /// Makes the view anew, cut into slots in another way, and writes it to disk.
    pub fn partition(&self, partitioning: Partitioning) -> Result<Partitions> {
        if partitioning.slots == 0 || partitioning.slots > SLOTS_MAX || partitioning.threshold == 0 {
            return Err(Error::invalid(format!(
                "{} slots and a threshold of {}",
                partitioning.slots, partitioning.threshold
            ))
            .with_hint(format!("take 1 to {SLOTS_MAX} slots, and a threshold of 1 at least")));
        }
        self.keep_partitioning(partitioning);
        self.remake()?;
        drop(self.state(None)?);
        self.settle()?;
        self.join_saving();
        self.save(MergeOlder::UpTo(WHOLE));
        self.partitions()
    }

    /// Waits until no partition is being split.
    fn settle(&self) -> Result<()> {
        let slots =
            self.with_state(None, &|view, state| Ok(view.in_slots(state).map(|(slots, _)| slots.clone())))?;
        slots.map_or(Ok(()), |slots| slots.settle())
    }

    /// How the view is cut into slots, and what each has.
    pub fn partitions(&self) -> Result<Partitions> {
        self.with_state(None, &|view, state| Partitions::of(view, state))
    }
}
