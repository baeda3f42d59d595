//! The graph of a view that may be cut into slots: the cutting, and traversals, which the slots walk.
//!
//! A slot that no longer serves has nothing that is not on disk or in the logs: the view is dropped, the next
//! read opens it, and a traversal starts again, once.

use std::sync::{Arc, Weak};

use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::graph_segment::partitioning::{Partitioning, SLOTS_MAX};
use fieldstone_journal::Session;

use fieldstone_journal::feed::Feed;

use super::inner::GraphInner;
use super::view_cache::follow;
use crate::reports::Partitions;
use crate::segment::Segment;
use crate::slot::{BegunTravel, Engine, Slots};
use crate::state::GraphState;
use crate::travel::{Travel, TravelPlan, Travelled, WalkAgain, travel as walk_plan};
use crate::view::GraphView;

/// A traversal that has begun: it does not see later puts.
enum Begun {
    InOnePiece(Arc<GraphState>, TravelPlan),
    InSlots(Arc<dyn Slots>, Box<dyn BegunTravel>),
}

/// The content that a traversal saw: the logs, and unflushed rows over them.
#[derive(Debug)]
struct SeenMoment {
    inner: Weak<GraphInner>,
    travel: Travel,
    feed: Feed,
    own: Vec<Arc<Segment>>,
}

impl WalkAgain for SeenMoment {
    fn again(&self) -> Result<Travelled> {
        let gone = || Error::corrupt("the graph's view is damaged, and its store is closed");
        let inner = self.inner.upgrade().ok_or_else(gone)?;
        // Later readers get the view that is built from the logs, too.
        inner.remake()?;
        let base = self.base(&inner)?;
        let state = match self.own.is_empty() {
            true => base,
            false => Arc::new(base.with(self.own.iter().cloned())),
        };
        let plan = self.travel.plan(state.vocabulary())?;
        walk_plan(state, plan, &*inner.env.clock)
    }
}

impl SeenMoment {
    /// The content of the logs at that moment: the view, if nobody has flushed since and it has a single
    /// slot; otherwise built in memory.
    fn base(&self, inner: &GraphInner) -> Result<Arc<GraphState>> {
        let whole = |view: &GraphView, state: &Arc<GraphState>| match view.in_slots(state) {
            None => Ok(Some(view.state())),
            Some(_) => Ok(None),
        };
        let view = inner.with_state(&Session::default(), &whole)?;
        if let (Some(state), true) = (view, inner.journal.looks().feed()?.heads() == self.feed.heads()) {
            return Ok(state);
        }
        let mut view = GraphView::new();
        follow(&mut view, &self.feed, true, &*inner.env.clock)?;
        Ok(view.state())
    }
}

impl GraphInner {
    /// Walks the graph step by step, in its slots if it has several.
    pub fn travel(&self, travel: &Travel, engine: Engine, session: &Session) -> Result<Travelled> {
        self.journal.check_there()?;
        let begin = |view: &GraphView, state: &Arc<GraphState>, feed: &Feed| {
            let plan = travel.plan(state.vocabulary())?;
            let (feed, own) = (feed.clone(), self.process().own.segments(session, state));
            let seen = SeenMoment { inner: self.me.clone(), travel: travel.clone(), feed, own };
            let begun = match view.in_slots(state) {
                None => Begun::InOnePiece(state.clone(), plan),
                Some((slots, over)) => {
                    Begun::InSlots(slots.clone(), slots.clone().begin(state, over, plan, engine)?)
                }
            };
            Ok((begun, seen))
        };
        let mut again = true;
        loop {
            let mut slots = None;
            let outcome = self.with_moment(session, &begin).and_then(|(begun, seen)| {
                let travelled = match begun {
                    Begun::InOnePiece(state, plan) => walk_plan(state, plan, &*self.env.clock),
                    Begun::InSlots(of, walk) => {
                        slots = Some(of);
                        walk.run()
                    }
                }?;
                Ok(travelled.with_again(Arc::new(seen)))
            });
            match outcome {
                Err(error) if again && error.kind() == ErrorKind::Corrupt => self.remake()?,
                Err(_) if again && self.process().views.has_lost_slots() => self.reopen(),
                outcome => return outcome,
            }
            again = false;
        }
    }

    /// Drops the view: the next read makes it from the list on disk and the newer part of the logs.
    fn reopen(&self) {
        let process = self.process();
        process.saving.join();
        process.views.let_go();
        process.own.clear();
    }

    /// Builds the view again, cut into slots in another way, and writes it to disk.
    pub fn partition(&self, partitioning: Partitioning) -> Result<Partitions> {
        if partitioning.slots == 0 || partitioning.slots > SLOTS_MAX || partitioning.threshold == 0 {
            return Err(Error::invalid(format!(
                "{} slots with a threshold of {} are not possible",
                partitioning.slots, partitioning.threshold
            ))
            .with_hint(format!("take 1 to {SLOTS_MAX} slots and a threshold of at least 1")));
        }
        self.process().views.cut_as(partitioning);
        self.remake()?;
        drop(self.state(&Session::default())?);
        self.settle()?;
        self.save_whole();
        self.partitions()
    }

    /// Waits until no partition is being split.
    fn settle(&self) -> Result<()> {
        let slots = self.with_state(&Session::default(), &|view, state| {
            Ok(view.in_slots(state).map(|(slots, _)| slots.clone()))
        })?;
        slots.map_or(Ok(()), |slots| slots.settle())
    }

    /// The slots of the view, and the content of each.
    pub fn partitions(&self) -> Result<Partitions> {
        self.with_state(&Session::default(), &|view, state| Partitions::of(view, state))
    }
}
