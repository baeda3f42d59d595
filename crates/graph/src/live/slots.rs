//! The graph of a follower that may be cut into slots: the cutting, and traversals, which the slots walk.
//!
//! A slot that no longer serves has nothing that is not on disk or in the logs: the follower is dropped, the next
//! read opens it, and a traversal starts again, once.

use std::sync::{Arc, Weak};

use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::graph_segment::partitioning::{Partitioning, SLOTS_MAX};
use fieldstone_journal::Session;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::session::Limits;

use super::follower_cache::follow;
use super::inner::GraphInner;
use crate::follower::GraphFollower;
use crate::reports::Partitions;
use crate::segment::Segment;
use crate::slot::{BegunTravel, Engine, Slots};
use crate::state::GraphState;
use crate::travel::{Travel, TravelPlan, Travelled, WalkAgain, travel as walk_plan};

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
    limits: Limits,
}

impl WalkAgain for SeenMoment {
    fn again(&self) -> Result<Travelled> {
        let gone = || Error::corrupt("the graph's index is damaged, and its store is closed");
        let inner = self.inner.upgrade().ok_or_else(gone)?;
        // Later readers get the follower that is built from the logs, too.
        inner.remake()?;
        // The session's own rows are in no log, so a follower that was built from the logs lacks them.
        let base = self.base(&inner)?;
        let state = match self.own.is_empty() {
            true => base,
            false => Arc::new(base.with(self.own.iter().cloned())),
        };
        let plan = self.travel.plan(state.vocabulary())?;
        walk_plan(state, plan, &*inner.env.clock, self.limits.clone())
    }
}

impl SeenMoment {
    /// The content of the logs at that moment: the follower, if nobody has flushed since and it has a single
    /// slot; otherwise built in memory.
    fn base(&self, inner: &GraphInner) -> Result<Arc<GraphState>> {
        let whole = |follower: &GraphFollower, state: &Arc<GraphState>| match follower.in_slots(state) {
            None => Ok(Some(follower.state())),
            Some(_) => Ok(None),
        };
        let follower = inner.with_state(&Session::default(), &whole)?;
        // Equal heads of the logs mean that nobody has flushed since: this is the content that was seen.
        if let (Some(state), true) = (follower, inner.journal.looks().feed()?.heads() == self.feed.heads()) {
            return Ok(state);
        }
        // The feed still ends where the traversal began, so a follower that follows it gets no later content.
        let mut follower = GraphFollower::new();
        follow(&mut follower, &self.feed, true, &*inner.env.clock)?;
        Ok(follower.state())
    }
}

impl GraphInner {
    /// Walks the graph step by step, in its slots if it has several.
    pub fn travel(&self, travel: &Travel, engine: Engine, session: &Session) -> Result<Travelled> {
        self.journal.check_there()?;
        let limits = || self.limits(session);
        let begin = |follower: &GraphFollower, state: &Arc<GraphState>, feed: &Feed| {
            let plan = travel.plan(state.vocabulary())?;
            // Plan, feed and own rows are taken while the follower is locked, so that all of them are of one
            // moment.
            let (feed, own) = (feed.clone(), self.process().own.segments(session, state));
            let (inner, travel) = (self.me.clone(), travel.clone());
            let seen = SeenMoment { inner, travel, feed, own, limits: limits() };
            let begun = match follower.in_slots(state) {
                None => Begun::InOnePiece(state.clone(), plan),
                Some((slots, over)) => {
                    let walk = slots.clone().begin(state, over, plan, engine, limits())?;
                    Begun::InSlots(slots.clone(), walk)
                }
            };
            Ok((begun, seen))
        };
        let mut again = true;
        loop {
            let mut slots = None;
            let outcome = self.with_moment(session, &begin).and_then(|(begun, seen)| {
                let travelled = match begun {
                    Begun::InOnePiece(state, plan) => walk_plan(state, plan, &*self.env.clock, limits()),
                    Begun::InSlots(of, walk) => {
                        slots = Some(of);
                        walk.run()
                    }
                }?;
                Ok(travelled.with_again(Arc::new(seen)))
            });
            match outcome {
                // A damaged follower is built from the logs. A lost slot leaves sound files behind, from which
                // the follower is opened. Each is tried once: a second failure is not the fault of the follower.
                Err(error) if again && error.kind() == ErrorKind::Corrupt => self.remake()?,
                Err(_) if again && self.process().followers.has_lost_slots() => self.reopen(),
                outcome => return outcome,
            }
            again = false;
        }
    }

    /// Drops the follower: the next read makes it from the list on disk and the newer part of the logs.
    fn reopen(&self) {
        let process = self.process();
        // A save in the background still works with the old follower.
        process.saving.join();
        process.followers.let_go();
        process.own.clear();
    }

    /// Builds the follower again, cut into slots in another way, and writes it to disk.
    pub fn partition(&self, partitioning: Partitioning) -> Result<Partitions> {
        if partitioning.slots == 0 || partitioning.slots > SLOTS_MAX || partitioning.threshold == 0 {
            return Err(Error::invalid(format!(
                "{} slots with a threshold of {} are not possible",
                partitioning.slots, partitioning.threshold
            ))
            .with_hint(format!("take 1 to {SLOTS_MAX} slots and a threshold of at least 1")));
        }
        // Before the follower is built again, which takes its slots from this setting.
        self.process().followers.cut_as(partitioning);
        self.remake()?;
        // Builds the follower now, so that the next reader need not wait for it.
        drop(self.state(&Session::default())?);
        self.settle()?;
        self.save_whole();
        self.partitions()
    }

    /// Waits until no partition is being split.
    fn settle(&self) -> Result<()> {
        let slots = self.with_state(&Session::default(), &|follower, state| {
            Ok(follower.in_slots(state).map(|(slots, _)| slots.clone()))
        })?;
        slots.map_or(Ok(()), |slots| slots.settle())
    }

    /// The slots of the follower, and the content of each.
    pub fn partitions(&self) -> Result<Partitions> {
        self.with_state(&Session::default(), &|follower, state| Partitions::of(follower, state))
    }
}
