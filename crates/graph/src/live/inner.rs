//! What a graph has in common for all its calls, and what each process has of it.
//!
//! Invariants:
//! * after a fork the child has a view and a buffer of its own;
//! * a stamp that is given away is above every stamp that this process has read or given away before;
//! * what a session lost to a failure is in no answer: rows wait here until the journal takes them, and it says
//!   whether it still wants them;
//! * of the journal nothing is called with the lock of the view or of a buffer held but what calls nobody.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fieldstone_core::env::Env;
use fieldstone_core::request::Request;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::graph::{Record, RelationRow, VertexRow};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::Journal;
use fieldstone_journal::feed::{Commit, Feed};
use fieldstone_journal::follow::{self, Followed, Following, Pace};
use fieldstone_journal::fork::PerProcess;
use fieldstone_journal::medium::is_believed;
use fieldstone_journal::participant::FlushParticipant;
use fieldstone_journal::view::{HeldField, Holds, Wait};
use fieldstone_journal::writer::PendingCursor;

use super::GraphPort;
use crate::segment::Segment;
use crate::state::GraphState;
use crate::view::{GraphView, merge_young};

/// How often a read follows logs that move on under it.
const ROUNDS: usize = 64;
/// Nanoseconds for which types that were read are taken for what they are.
const TYPES_HOLD: u64 = 1_000_000_000;
/// Sessions whose own rows are kept ready to be read.
const SESSIONS: usize = 64;

/// The graph itself; [`Graph`](super::Graph) is a handle on it.
#[derive(Debug)]
pub struct GraphInner {
    pub journal: Arc<Journal>,
    port: Arc<dyn GraphPort>,
    env: Env,
    me: Weak<GraphInner>,
    process: PerProcess<ProcessState>,
}

/// What one process has.
#[derive(Debug)]
struct ProcessState {
    buffers: Mutex<HashMap<Option<Id>, Buffer>>,
    view: Mutex<GraphView>,
    /// What of each session lies over the view.
    own: Mutex<HashMap<Option<Id>, Own>>,
    /// The greatest stamp that was given away or read.
    last: AtomicU64,
    /// The types as they were known last, and when, by the monotonic clock.
    types: Mutex<Option<(u64, Arc<GraphState>)>>,
}

/// Rows of a session that the journal does not have yet.
#[derive(Debug, Default)]
struct Buffer {
    /// How often the session had lost something when they came.
    losses: u64,
    vertices: Vec<VertexRow>,
    relations: Vec<RelationRow>,
}

/// What lies over the view for a session.
#[derive(Debug)]
struct Own {
    base: Arc<GraphState>,
    all: PendingCursor,
    transaction: PendingCursor,
    segments: Vec<Arc<Segment>>,
    shown: Arc<GraphState>,
}

/// What there is in the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments of the view.
    pub segments: u64,
    /// Vertices that they name, each segment by itself.
    pub vertices: u64,
    /// Versions of relations, each segment by itself.
    pub relations: u64,
    /// Bytes of the segments.
    pub bytes: u64,
    /// Declarations that count for nothing, and records that cannot be read.
    pub problems: Vec<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The graph asks for no fields.
struct NoFields;

impl Holds for NoFields {
    fn fields(
        &self,
        _: &Request,
        _: Option<Id>,
        _: &mut dyn FnMut(&HeldField) -> Result<bool>,
    ) -> Result<()> {
        Ok(())
    }
}

impl ProcessState {
    fn new() -> ProcessState {
        ProcessState {
            buffers: Mutex::default(),
            view: Mutex::default(),
            own: Mutex::default(),
            last: AtomicU64::new(0),
            types: Mutex::default(),
        }
    }
}

impl GraphInner {
    pub fn new(port: Arc<dyn GraphPort>, journal: Arc<Journal>) -> Arc<GraphInner> {
        let env = journal.env().clone();
        let identity = env.identity.clone();
        let inner = Arc::new_cyclic(|me: &Weak<GraphInner>| {
            let process = PerProcess::new(identity, ProcessState::new());
            GraphInner { journal, port, env, me: me.clone(), process }
        });
        // Not before it lives: who flushes meanwhile forgets those who do not.
        inner.port.join_graph(inner.me.clone());
        inner
    }

    fn process(&self) -> &ProcessState {
        self.process.get(|| {
            self.port.join_graph(self.me.clone());
            ProcessState::new()
        })
    }

    /// Who puts things here.
    pub fn user(&self) -> u32 {
        self.env.identity.uid()
    }

    /// The name of a user.
    pub fn user_name(&self, user: u32) -> String {
        self.env.identity.user_name(user)
    }

    /// The clock, nanoseconds since 1970.
    pub fn clock(&self) -> i64 {
        self.env.clock.now()
    }

    /// A stamp above all that were read or given away.
    pub fn stamp(&self) -> u64 {
        let now = u64::try_from(self.clock()).unwrap_or(0);
        let next = |last: u64| now.max(last.saturating_add(1));
        let last = &self.process().last;
        let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        // It always succeeds: the closure always gives one.
        next(before.unwrap_or_default())
    }

    /// Whether a stamp is one that others follow.
    pub fn is_believed(&self, stamp: u64) -> bool {
        is_believed(stamp, self.clock())
    }

    /// Notes a stamp that was read: what is put from here on is above it.
    pub fn note_stamp(&self, stamp: u64) {
        if self.is_believed(stamp) {
            self.process().last.fetch_max(stamp, Ordering::Relaxed);
        }
    }

    /// Takes rows for the next commit of a session.
    pub fn buffer(&self, session: Option<Id>, vertices: Vec<VertexRow>, relations: Vec<RelationRow>) {
        let rows = (vertices.len() + relations.len()) as u64;
        let losses = self.journal.keep(rows, session);
        let mut buffers = lock(&self.process().buffers);
        let buffer = buffers.entry(session).or_default();
        if buffer.losses != losses {
            let before = std::mem::replace(buffer, Buffer { losses, ..Buffer::default() });
            give(&self.journal, session, before);
        }
        buffer.vertices.extend(vertices);
        buffer.relations.extend(relations);
    }

    /// A state whose types are not older than a second: a put does not look at the logs for them.
    pub fn types(&self, session: Option<Id>) -> Result<Arc<GraphState>> {
        let now = self.env.clock.monotonic();
        if session.is_none()
            && let Some((then, known)) = &*lock(&self.process().types)
            && now.saturating_sub(*then) < TYPES_HOLD
        {
            return Ok(known.clone());
        }
        let state = self.state(session)?;
        if session.is_none() {
            *lock(&self.process().types) = Some((now, state.clone()));
        }
        Ok(state)
    }

    /// Types were declared here: they are looked at anew.
    pub fn forget_types(&self) {
        *lock(&self.process().types) = None;
    }

    /// Follows the logs and gives what they say, with what this process has not flushed and what a transaction holds.
    pub fn state(&self, session: Option<Id>) -> Result<Arc<GraphState>> {
        let none = PendingCursor::default();
        let of_session = || session.map_or(none, |_| self.journal.pending_cursor(session));
        let mut newest = false;
        for _ in 0..ROUNDS {
            self.hand_over(None);
            if session.is_some() {
                self.hand_over(session);
            }
            let (all, transaction) = (self.journal.pending_cursor(None), of_session());
            let feed = self.journal.feed()?;
            // What another thread flushes meanwhile must not be missed: then once more.
            if !self.journal.pending_cursor(None).continues(all) || !of_session().continues(transaction) {
                continue;
            }
            let mut view = lock(&self.process().view);
            if self.follow(&mut view, &feed, newest)? == Followed::Behind {
                drop(view);
                self.journal.refresh()?;
                newest = self.journal.feed()?.heads() == feed.heads();
                continue;
            }
            self.note_stamp(view.state().most());
            feed.snapshot().logs.iter().for_each(|log| self.note_stamp(log.record.stamp));
            if let Some(shown) = self.with_own(&view, session, all, transaction)? {
                return Ok(shown);
            }
        }
        Err(Error::unavailable("the logs move faster than the graph follows").with_hint("try again"))
    }

    fn follow(&self, view: &mut GraphView, feed: &Feed, newest: bool) -> Result<Followed> {
        let pace = Pace::usual(&*self.env.clock);
        follow::follow(view, feed, &NoFields, &Following { wait: Wait::Yes, newest, pace })
    }

    /// The view with what is not flushed; `None` where some of that was flushed meanwhile.
    fn with_own(
        &self,
        view: &GraphView,
        session: Option<Id>,
        all: PendingCursor,
        transaction: PendingCursor,
    ) -> Result<Option<Arc<GraphState>>> {
        let base = view.state();
        if all.records + transaction.records == 0 && session.is_none() {
            return Ok(Some(base));
        }
        let mut sessions = lock(&self.process().own);
        let known = sessions.remove(&session).filter(|own| {
            Arc::ptr_eq(&own.base, &base) && all.continues(own.all) && transaction.continues(own.transaction)
        });
        let mut own = match known {
            Some(own) => own,
            None => {
                let prepared = view.prepared(session)?;
                let none = PendingCursor::default();
                let segments = Vec::from_iter(prepared);
                let shown = Arc::new(base.with(segments.iter().cloned()));
                Own { base, all: none, transaction: none, segments, shown }
            }
        };
        let from = [(None, own.all, all), (session, own.transaction, transaction)];
        let mut commits = Vec::new();
        for (session, from, to) in from {
            if to.records <= from.records {
                continue;
            }
            let pending = self.journal.pending_behind(session, from);
            if !pending.continues || !pending.end.continues(to) {
                return Ok(None);
            }
            let mut records = pending.records;
            records.truncate(to.records - from.records);
            commits.push(self.own_commit(records, from.records as u64));
        }
        if let Some(segment) = GraphView::segment_of(&commits)? {
            own.segments.push(Arc::new(segment));
            merge_young(&mut own.segments)?;
            own.shown = Arc::new(own.base.with(own.segments.iter().cloned()));
        }
        (own.all, own.transaction) = (all, transaction);
        let shown = own.shown.clone();
        if sessions.len() >= SESSIONS {
            sessions.clear();
        }
        sessions.insert(session, own);
        Ok(Some(shown))
    }

    /// What is not flushed yet as a commit, newer than all; `before`: how many records of the session stood before.
    fn own_commit(&self, side: Vec<SideRecord>, before: u64) -> Commit {
        let (owner, stamp) = (self.user(), u64::MAX / 2 + before);
        Commit { writer: Id::NONE, owner, sequence: 1, stamp, time: 0, transaction: None, side }
    }

    pub fn stats(&self) -> Result<Stats> {
        let state = self.state(None)?;
        let mut stats = Stats { problems: state.vocabulary().conflicts().to_vec(), ..Stats::default() };
        for segment in state.segments() {
            stats.segments += 1;
            stats.vertices += segment.summary.vertices;
            stats.relations += segment.summary.relations;
            stats.bytes += segment.bytes;
        }
        stats.problems.extend(lock(&self.process().view).held().damaged.iter().cloned());
        Ok(stats)
    }
}

/// Gives rows to the journal, unless it counted them as lost.
fn give(journal: &Journal, session: Option<Id>, buffer: Buffer) {
    let Buffer { losses, vertices, relations } = buffer;
    let rows = (vertices.len() + relations.len()) as u64;
    if rows > 0 {
        journal.take_kept(Record::encode_rows(&vertices, &relations), rows, losses, session);
    }
}

impl FlushParticipant for GraphInner {
    fn hand_over(&self, session: Option<Id>) {
        // Applied until the journal has them: who flushes meanwhile waits for them.
        let mut buffers = lock(&self.process().buffers);
        if let Some(buffer) = buffers.remove(&session) {
            give(&self.journal, session, buffer);
        }
    }

    fn discarded(&self, session: Option<Id>) {
        drop(lock(&self.process().buffers).remove(&session));
        drop(lock(&self.process().own).remove(&session));
    }

    fn flushed(&self, session: Option<Id>) {
        drop(lock(&self.process().own).remove(&session));
    }

    fn closed(&self) {
        lock(&self.process().own).clear();
    }
}
