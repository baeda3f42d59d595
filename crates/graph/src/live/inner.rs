//! The state that all calls of a graph share, and the part of it that each process has.
//!
//! | part of a process | its one job |
//! |---|---|
//! | `buffer` | rows that the journal does not have yet |
//! | `follower_cache` | the follower: opened, built again, written to disk |
//! | `saving` | when it is written, and the thread that does it |
//! | `own` | rows of a session over the follower |
//! | `stamps` | stamps above all that were read or assigned |
//! | `types` | types of relations that were looked up |
//!
//! Invariants:
//! * after a fork the child has a follower and a buffer of its own;
//! * no answer holds rows that a session lost to a failure: rows wait here until the journal takes them, and
//!   the journal says whether it still wants them;
//! * while it holds the lock of the follower or of a buffer, this module calls the journal only for functions
//!   that call nothing else.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use fieldstone_core::env::Env;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::graph::Archive;
use fieldstone_journal::feed::Feed;
use fieldstone_journal::follow::Followed;
use fieldstone_journal::fork::PerProcess;
use fieldstone_journal::instant::{Instant, ReadOwn};
use fieldstone_journal::participant::{Buffered, FlushParticipant};
use fieldstone_journal::session::Limits;
use fieldstone_journal::{Journal, Session};

use super::GraphPort;
use super::buffer::RowBuffer;
use super::follower_cache::{FollowerCache, FollowerPlace, follow};
use super::own::OwnRows;
use super::saving::Saving;
use super::stamps::Stamps;
use super::types::KnownTypes;
use crate::folder::MergeOlder;
use crate::follower::{GraphFollower, dump};
use crate::reports::{Check, Stats};
use crate::slot::StartSlots;
use crate::state::GraphState;

/// A function of a follower: its state, and the content of the logs at that moment.
type Taking<'a, T> = &'a dyn Fn(&GraphFollower, &Arc<GraphState>, &Feed) -> Result<T>;

/// How often a read follows logs that grow during the read.
const ROUNDS: usize = 64;
/// Bytes of segments in memory after which a read waits for the segments that are being written.
const FULL: u64 = 128 << 20;
/// Maximum bytes of a segment that is merged while the logs are followed: this takes some seconds, and a
/// reader may wait for it.
const LARGEST: u64 = 512 << 20;
/// Maximum bytes of a segment that a rebuild merges.
const WHOLE: u64 = 1 << 30;
/// Bytes of segments in memory from which on they are written to disk at the end, so that others find them
/// there.
const SAVE_AT_END: u64 = 256 << 10;
/// Maximum number of differences that are reported.
const NOTES: usize = 100;

/// The graph itself; [`Graph`](super::Graph) is a handle to it.
#[derive(Debug)]
pub struct GraphInner {
    pub journal: Arc<Journal>,
    port: Arc<dyn GraphPort>,
    pub(super) env: Env,
    place: Arc<FollowerPlace>,
    pub(super) me: Weak<GraphInner>,
    process: PerProcess<ProcessState>,
}

/// The state of one process.
#[derive(Debug)]
pub(super) struct ProcessState {
    /// By session.
    pub buffers: Buffered<RowBuffer>,
    pub followers: FollowerCache,
    pub saving: Saving,
    pub own: OwnRows,
    pub stamps: Stamps,
    pub types: KnownTypes,
}

impl ProcessState {
    fn new(env: &Env, place: &Arc<FollowerPlace>) -> ProcessState {
        ProcessState {
            buffers: Buffered::default(),
            followers: FollowerCache::new(place.clone()),
            saving: Saving::default(),
            own: OwnRows::default(),
            stamps: Stamps::new(env.clock.clone()),
            types: KnownTypes::default(),
        }
    }
}

impl GraphInner {
    pub fn new(
        port: Arc<dyn GraphPort>,
        journal: Arc<Journal>,
        chosen: Option<PathBuf>,
        slots: Arc<dyn StartSlots>,
    ) -> Arc<GraphInner> {
        let env = journal.env().clone();
        let place = Arc::new(FollowerPlace::new(journal.clone(), chosen, slots));
        let process = PerProcess::new(env.identity.clone(), ProcessState::new(&env, &place));
        let new = |me: &Weak<GraphInner>| GraphInner { journal, port, env, place, me: me.clone(), process };
        let inner = Arc::new_cyclic(new);
        // Not before it exists: a flush forgets participants that are gone.
        inner.port.join_graph(inner.me.clone());
        inner
    }

    pub(super) fn process(&self) -> &ProcessState {
        self.process.get(|| {
            self.port.join_graph(self.me.clone());
            ProcessState::new(&self.env, &self.place)
        })
    }

    /// Reports a change to the store.
    pub fn changed(&self, session: &Session) -> Result<()> {
        self.port.changed(session)
    }

    /// The limits of a session, for a read of many steps.
    pub fn limits(&self, session: &Session) -> Limits {
        session.limits(&self.env.clock)
    }

    /// The user of a session.
    pub fn user(&self, session: &Session) -> u32 {
        session.user(&*self.env.identity)
    }

    /// The name of a user.
    pub fn user_name(&self, user: u32) -> String {
        self.env.identity.user_name(user)
    }

    /// The number of a user.
    pub fn user_number(&self, name: &str) -> Option<u32> {
        self.env.identity.user_number(name)
    }

    /// A stamp above all that were read or assigned.
    pub fn stamp(&self) -> u64 {
        self.process().stamps.next()
    }

    /// A state that knows the type of a relation: puts look at the logs once for each name.
    pub fn types(&self, session: &Session, kind: &str) -> Result<Arc<GraphState>> {
        let types = &self.process().types;
        if session.transaction().is_some() {
            return self.state(session);
        }
        if let Some(known) = types.get(kind) {
            return Ok(known);
        }
        let state = self.state(session)?;
        types.keep(kind, &state);
        Ok(state)
    }

    /// Follows the logs and returns their state, with the unflushed rows of this session and the content of
    /// its transaction.
    pub fn state(&self, session: &Session) -> Result<Arc<GraphState>> {
        self.with_state(session, &|_, state| Ok(state.clone()))
    }

    /// The same, with a function that runs before anything else can be put.
    pub(super) fn with_state<T>(
        &self,
        session: &Session,
        take: &dyn Fn(&GraphFollower, &Arc<GraphState>) -> Result<T>,
    ) -> Result<T> {
        self.with_moment(session, &|follower, state, _| take(follower, state))
    }

    /// The same, with a function that also gets the content of the logs at that moment.
    pub(super) fn with_moment<T>(&self, session: &Session, take: Taking<'_, T>) -> Result<T> {
        let outside = &session.within(None);
        let process = self.process();
        if process.followers.in_memory() >= FULL {
            process.saving.join();
        }
        let (mut newest, mut reopened) = (false, false);
        for _ in 0..ROUNDS {
            session.check(&*self.env.clock)?;
            self.hand_over(outside);
            if session.transaction().is_some() {
                self.hand_over(session);
            }
            // Do not miss rows that another thread flushes at this moment: then try once more.
            let Some(seen) = Instant::now(&self.journal, session, ReadOwn::Later)? else { continue };
            let (feed, pending) = (seen.feed, seen.pending);
            let mut slot = process.followers.lock();
            let follower = process.followers.opened(&mut slot, &feed)?;
            let followed = match follow(follower, &feed, newest, &*self.env.clock) {
                Err(_) if !reopened && follower.lost_slots() => {
                    // A follower that is dropped here has nothing that is not on disk and in the logs.
                    (*slot, reopened) = (None, true);
                    continue;
                }
                outcome => outcome?,
            };
            if followed == Followed::Behind {
                drop(slot);
                self.journal.looks().refresh()?;
                newest = self.journal.looks().feed()?.heads() == feed.heads();
                continue;
            }
            process.stamps.note(follower.state().most());
            process.stamps.note(feed.snapshot().newest_stamp());
            let shown = process.own.over(follower, (&self.journal, session, self.user(session)), pending)?;
            let save = process.saving.is_due(follower.applied().in_memory(), self.env.clock.monotonic());
            let taken = shown.map(|shown| take(follower, &shown, &feed)).transpose();
            drop(slot);
            if save {
                self.save_beside();
            }
            if let Some(taken) = taken? {
                return Ok(taken);
            }
        }
        Err(Error::unavailable("the logs move faster than the graph follows").with_hint("try again"))
    }

    /// Reads a state. If a segment is damaged, builds the follower again from the logs, once.
    pub fn reading<T>(
        &self,
        session: &Session,
        read: impl Fn(&Arc<GraphState>, &mut Limits) -> Result<T>,
    ) -> Result<T> {
        self.journal.check_there()?;
        let limits = &mut self.limits(session);
        match read(&self.state(session)?, limits) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.remake()?;
                read(&self.state(session)?, limits)
            }
            outcome => outcome,
        }
    }

    /// Forgets the follower, on disk too.
    pub(super) fn remake(&self) -> Result<()> {
        let ProcessState { followers, saving, own, types, .. } = self.process();
        saving.join();
        let remade = followers.remake();
        own.clear();
        types.forget();
        remade
    }

    pub fn rebuild(&self) -> Result<Stats> {
        self.remake()?;
        drop(self.state(&Session::default())?);
        self.save_whole();
        self.stats()
    }

    /// Writes the follower to disk, in as few segments as possible.
    pub(super) fn save_whole(&self) {
        self.process().saving.join();
        self.process().followers.save(MergeOlder::UpTo(WHOLE));
    }

    pub fn verify(&self) -> Result<Check> {
        let feed = self.journal.looks().feed()?;
        let mut from_scratch = GraphFollower::new();
        follow(&mut from_scratch, &feed, true, &*self.env.clock)?;
        let expected = dump(&from_scratch.state())?;
        let mut check = Check { damaged: from_scratch.applied().damaged.clone(), ..Check::default() };
        let followers = &self.process().followers;
        let mut slot = followers.lock();
        let follower = followers.opened(&mut slot, &feed)?;
        // Others may write at the same time: both show the moment of the feed, or the follower shows a later one.
        if follow(follower, &feed, false, &*self.env.clock)? == Followed::Behind {
            return Err(Error::unavailable("other processes wrote while the graph was being verified")
                .with_hint("try again"));
        }
        let found = match dump(&follower.state()) {
            // An unreadable follower says nothing wrong; the next read builds it again.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                check.different.push(format!("the index cannot be read: {}", error.message()));
                return Ok(check);
            }
            outcome => outcome?,
        };
        let (expected, found): (BTreeSet<&str>, BTreeSet<&str>) =
            (expected.lines().collect(), found.lines().collect());
        check.lines = expected.len() as u64;
        let lacking = expected.difference(&found).map(|line| format!("missing from the index: {line}"));
        let added = found.difference(&expected).map(|line| format!("only in the index: {line}"));
        check.different = lacking.chain(added).take(NOTES).collect();
        Ok(check)
    }

    /// Writes segments to disk on a thread of its own, unless one is already running.
    fn save_beside(&self) {
        let Some(inner) = self.place.folder().and_then(|_| self.me.upgrade()) else { return };
        self.process().saving.start(move || inner.process().followers.save(MergeOlder::Tiers(LARGEST)));
    }

    pub fn stats(&self) -> Result<Stats> {
        self.journal.check_there()?;
        let state = self.state(&Session::default())?;
        let mut stats = Stats { problems: state.vocabulary().conflicts().to_vec(), ..Stats::default() };
        for segment in state.segments() {
            stats.segments += 1;
            stats.vertices += segment.summary.vertices;
            stats.relations += segment.summary.relations;
            stats.bytes += segment.bytes;
        }
        let follower = self.process().followers.lock();
        let archives: BTreeSet<&Archive> = state.archives().map(|row| &row.archive).collect();
        stats.archives = archives.into_iter().cloned().collect();
        stats
            .problems
            .extend(follower.iter().flat_map(|follower| follower.applied().damaged.iter().cloned()));
        Ok(stats)
    }
}

impl FlushParticipant for GraphInner {
    fn hand_over(&self, session: &Session) {
        self.process().buffers.hand_over(self.journal.unflushed(), session);
    }

    fn discarded(&self, session: &Session) {
        self.process().buffers.discard(session);
        self.process().own.forget(session);
    }

    fn flushed(&self, session: &Session) {
        self.process().own.forget(session);
    }

    fn closed(&self) {
        let ProcessState { followers, saving, own, .. } = self.process();
        own.clear();
        saving.join();
        let cut = followers.lock().as_ref().is_some_and(|follower| follower.partitioning().slots > 1);
        // Save a follower that was cut into slots, so that the next process that opens the store need not cut it
        // again.
        let least = if self.place.is_chosen() || cut { 1 } else { SAVE_AT_END };
        if followers.in_memory() >= least {
            followers.save(MergeOlder::Tiers(LARGEST));
        }
    }
}
