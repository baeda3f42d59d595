//! The engine as a follower of the store's logs: how long to wait for it, and the questions that it asks about
//! fields.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_journal::Session;
use fieldstone_journal::feed::{Commit, Feed};
use fieldstone_journal::follow::{self, Applied, Followed, Following, Pace};
use fieldstone_journal::follower::Wait;

use super::connection::{Connections, Patience};
use super::open_store::OpenStore;
use crate::engine::Index;
use crate::follower::IndexFollower;

/// Makes engines follow the logs of a store.
#[derive(Debug)]
pub struct EngineFollower {
    pub store: Arc<OpenStore>,
    pub connections: Arc<Connections>,
}

/// Counts of the records read for a rebuilt engine.
#[derive(Debug)]
pub struct Replayed {
    pub applied: Applied,
    pub attributes: u64,
}

impl EngineFollower {
    fn follower<'a>(
        &'a self,
        index: &'a mut Index,
        patience: Patience,
        user: u32,
    ) -> IndexFollower<'a, &'a mut Index> {
        let insist = Box::new(move |index: &mut Index, begin: &mut dyn FnMut(&mut Index) -> Result<bool>| {
            self.connections.insist(index, patience, begin)
        });
        IndexFollower::with(index, self.store.journal.schema().now(), user, insist)
            .of_process(self.store.own_writer())
    }

    fn following(&self, patience: Patience, newest: bool) -> Following<'_> {
        let wait = if patience == Patience::None { Wait::No } else { Wait::Yes };
        let pace = Pace::usual(&*self.store.env.clock);
        // In tests each commit is a transaction, so that other processes, which look now and then, get their
        // turn.
        #[cfg(test)]
        let pace = Pace { time: 1, rest: 2_000_000, ..pace };
        Following { wait, newest, pace }
    }

    /// Brings an engine up to a feed. `newest`: no newer feed is available.
    pub fn follow(
        &self,
        index: &mut Index,
        feed: &Feed,
        newest: bool,
        patience: Patience,
    ) -> Result<Followed> {
        let how = self.following(patience, newest);
        let follower = &mut self.follower(index, patience, self.store.env.identity.uid());
        follow::follow(follower, feed, &*self.store.fields.standing(feed), &how)
    }

    /// Begins a read with the prepared content of a transaction and unflushed records overlaid on the tables;
    /// `false` if there is none of either, and then no read has begun.
    pub fn overlay(
        &self,
        index: &mut Index,
        feed: &Feed,
        session: &Session,
        own: &[Commit],
        patience: Patience,
    ) -> Result<bool> {
        let follower = &mut self.follower(index, patience, self.store.user(session));
        follow::overlay(follower, feed, &*self.store.fields.standing(feed), session.transaction(), own)
    }

    /// Builds an engine's tables again from the first commit on.
    pub fn replay(&self, index: &mut Index, feed: &Feed) -> Result<Replayed> {
        let mut follower = self.follower(index, Patience::Full, self.store.env.identity.uid());
        let how = self.following(Patience::Full, false);
        let (mut followed, applied) =
            follow::rebuild(&mut follower, feed, &*self.store.fields.standing(feed), &how)?;
        let mut feed = feed.clone();
        while followed == Followed::Behind {
            // Other processes that know of more commits continued in the meantime.
            let (later, newest) = self.store.newer(&feed)?;
            let how = self.following(Patience::Full, newest);
            followed = follow::follow(&mut follower, &later, &*self.store.fields.standing(&later), &how)?;
            feed = later;
        }
        Ok(Replayed { applied, attributes: follower.attributes() })
    }
}
