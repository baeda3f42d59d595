//! What a graph has in common for all its calls, and what each process has of it.
//!
//! Invariants:
//! * after a fork the child has a view and a buffer of its own;
//! * a stamp that is given away is above every stamp that this process has read or given away before;
//! * what a session lost to a failure is in no answer: rows wait here until the journal takes them, and it says
//!   whether it still wants them;
//! * of the journal nothing is called with the lock of the view or of a buffer held but what calls nobody.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use fieldstone_core::sync::Mutex;

use fieldstone_core::env::Env;
use fieldstone_core::env::real::trusted_folder;
use fieldstone_core::request::Request;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::graph::{Archive, Record, RelationRow, VertexRow};
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_format::log::SideRecord;
use fieldstone_journal::Journal;
use fieldstone_journal::beside::Beside;
use fieldstone_journal::feed::{Commit, Feed, OWN_LOG};
use fieldstone_journal::follow::{self, Followed, Following, Pace};
use fieldstone_journal::fork::PerProcess;
use fieldstone_journal::instant::{Cursors, Instant, OwnPart, OwnRecords, ReadOwn};
use fieldstone_journal::medium::{clock_stamp, is_believed};
use fieldstone_journal::participant::{Buffered, FlushParticipant, Growing};
use fieldstone_journal::view::{HeldField, Holds, Wait};

use super::GraphPort;
use crate::folder::{MergeOlder, SegmentFolder};
use crate::segment::{PageCache, Segment, merge_young};
use crate::slot::StartSlots;
use crate::state::GraphState;
use crate::view::{GraphView, dump};
use fieldstone_journal::Session;
use fieldstone_journal::session::SessionKey;

/// What is taken of a view: its state, and what the logs held then.
type Taking<'a, T> = &'a dyn Fn(&GraphView, &Arc<GraphState>, &Feed) -> Result<T>;

/// How often a read follows logs that move on under it.
const ROUNDS: usize = 64;
/// Bytes of segments in memory after which they are written to disk, when they have been there for some time.
const SAVE: u64 = 8 << 20;
/// How long that is, nanoseconds: of what comes in a flood, much is written at once.
const SETTLED: u64 = 1_000_000_000;
/// Bytes after which they are written whenever they came.
const FLOOD: u64 = 64 << 20;
/// Bytes of segments in memory after which a read waits for those that are being written.
const FULL: u64 = 128 << 20;
/// Bytes of records that are applied at once: as rows and segments they take several times as much.
const STEP: usize = 16 << 20;
/// Bytes of a segment that is made of others while the logs are followed: so many take some seconds, and a reader may wait
/// for them.
const LARGEST: u64 = 512 << 20;
/// Bytes of a segment that a rebuild makes of others.
pub(super) const WHOLE: u64 = 1 << 30;
/// The same at the end, when others are to find it there.
const SAVE_AT_END: u64 = 256 << 10;
/// Bytes of pages of segments that a process keeps.
const CACHE: usize = 128 << 20;
/// Most differences that are reported.
const NOTES: usize = 100;
/// Name of the folder in the store's.
const FOLDER: &str = "graph";
/// Sessions whose own rows are kept ready to be read.
const SESSIONS: usize = 64;

/// The graph itself; [`Graph`](super::Graph) is a handle on it.
#[derive(Debug)]
pub struct GraphInner {
    pub journal: Arc<Journal>,
    port: Arc<dyn GraphPort>,
    pub(super) env: Env,
    pub(super) starter: Arc<dyn StartSlots>,
    /// The folder for segments that the caller chose.
    chosen: Option<PathBuf>,
    /// Where segments are written, once the store is there and they can stand somewhere.
    folder: OnceLock<Arc<SegmentFolder>>,
    pub(super) me: Weak<GraphInner>,
    process: PerProcess<ProcessState>,
}

/// What one process has.
#[derive(Debug)]
pub(super) struct ProcessState {
    buffers: Buffered<RowBuffer>,
    /// `None` before the first read.
    pub(super) view: Mutex<Option<GraphView>>,
    /// The thread that writes segments to disk.
    saving: Beside,
    /// What of each session lies over the view.
    pub(super) own: Mutex<HashMap<SessionKey, Own>>,
    /// The greatest stamp that was given away or read.
    last: AtomicU64,
    /// The state that was asked for types last.
    types: Mutex<Option<Arc<GraphState>>>,
    /// When more than a little was in memory first, by the clock that never goes back; 0 where it is not.
    waits_since: AtomicU64,
    /// Types of relations that were looked for and that nobody had declared.
    kinds: Mutex<HashSet<String>>,
    /// How the view is cut into slots, once that is known.
    pub(super) partitioning: Mutex<Option<Partitioning>>,
}

/// Rows of a session that the journal does not have yet.
#[derive(Debug, Default)]
struct RowBuffer {
    vertices: Vec<VertexRow>,
    relations: Vec<RelationRow>,
}

impl Growing for RowBuffer {
    fn rows(&self) -> u64 {
        (self.vertices.len() + self.relations.len()) as u64
    }

    fn into_records(self) -> Vec<SideRecord> {
        Record::encode_rows(&self.vertices, &self.relations)
    }
}

/// What lies over the view for a session.
#[derive(Debug)]
pub(super) struct Own {
    base: Arc<GraphState>,
    pending: Cursors,
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
    /// Where versions were moved to.
    pub archives: Vec<Archive>,
}

/// What [`Graph::verify`](super::Graph::verify) found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Lines that were compared.
    pub lines: u64,
    /// Where the view says otherwise than the logs. At most 100.
    pub different: Vec<String>,
    /// Records that cannot be read, each with its log; the rest is readable.
    pub damaged: Vec<String>,
}

impl Check {
    /// Whether the view says what the logs say, and all of it could be read.
    pub fn ok(&self) -> bool {
        self.different.is_empty() && self.damaged.is_empty()
    }
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
            buffers: Buffered::default(),
            view: Mutex::default(),
            saving: Beside::default(),
            own: Mutex::default(),
            last: AtomicU64::new(0),
            types: Mutex::default(),
            waits_since: AtomicU64::new(0),
            kinds: Mutex::default(),
            partitioning: Mutex::default(),
        }
    }
}

impl GraphInner {
    pub fn new(
        port: Arc<dyn GraphPort>,
        journal: Arc<Journal>,
        chosen: Option<PathBuf>,
        starter: Arc<dyn StartSlots>,
    ) -> Arc<GraphInner> {
        let env = journal.env().clone();
        let identity = env.identity.clone();
        let inner = Arc::new_cyclic(|me: &Weak<GraphInner>| {
            let process = PerProcess::new(identity, ProcessState::new());
            let (folder, me) = (OnceLock::new(), me.clone());
            GraphInner { journal, port, env, starter, chosen, folder, me, process }
        });
        // Not before it lives: who flushes meanwhile forgets those who do not.
        inner.port.join_graph(inner.me.clone());
        inner
    }

    pub(super) fn process(&self) -> &ProcessState {
        self.process.get(|| {
            self.port.join_graph(self.me.clone());
            ProcessState::new()
        })
    }

    /// Where segments are written; `None`: they stay in memory.
    pub(super) fn folder(&self) -> Option<Arc<SegmentFolder>> {
        if let Some(known) = self.folder.get() {
            return Some(known.clone());
        }
        let path = self.chosen.clone().or_else(|| own_folder(&self.journal))?;
        let (store, cache) = (self.journal.home().id, PageCache::new(CACHE));
        let folder = Arc::new(SegmentFolder::new(self.env.clone(), path, store, cache));
        Some(self.folder.get_or_init(|| folder).clone())
    }

    /// Something was put.
    pub fn changed(&self, session: &Session) -> Result<()> {
        self.port.changed(session)
    }

    /// The user who puts things in a session.
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

    /// The clock, nanoseconds since 1970.
    pub fn clock(&self) -> i64 {
        self.env.clock.now()
    }

    /// A stamp above all that were read or given away.
    pub fn stamp(&self) -> u64 {
        self.stamps(1).0
    }

    /// The first of so many stamps above all that were read or given away, and the clock.
    pub fn stamps(&self, count: u64) -> (u64, i64) {
        let clock = self.clock();
        let now = clock_stamp(clock);
        let first = |last: u64| now.max(last.saturating_add(1));
        let next = |last: u64| first(last).saturating_add(count.saturating_sub(1));
        let last = &self.process().last;
        let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        // It always succeeds: the closure always gives one.
        (first(before.unwrap_or_default()), clock)
    }

    /// Whether a stamp is one that others follow.
    pub fn is_believed(&self, stamp: u64) -> bool {
        // Rows put here are for hosts whose clocks are right, also where this one's is a century off.
        is_believed(stamp, clock_stamp(self.clock()).cast_signed())
    }

    /// Notes a stamp that was read: what is put from here on is above it.
    pub fn note_stamp(&self, stamp: u64) {
        if self.is_believed(stamp) {
            self.process().last.fetch_max(stamp, Ordering::Relaxed);
        }
    }

    /// Takes rows for the next commit of a session.
    pub fn buffer(&self, session: &Session, vertices: Vec<VertexRow>, relations: Vec<RelationRow>) {
        let rows = (vertices.len() + relations.len()) as u64;
        self.process().buffers.put(&self.journal, session, rows, |own| {
            own.vertices.extend(vertices);
            own.relations.extend(relations);
            None
        });
    }

    /// Gives records of so many rows to the next commit of a session, behind what waits for it here.
    pub fn give_records(&self, session: &Session, rows: u64, records: Vec<SideRecord>) {
        self.process().buffers.pass(&self.journal, session, rows, records);
    }

    /// A state that says what a relation's type is: a put looks at the logs for each name once.
    pub fn types(&self, session: &Session, kind: &str) -> Result<Arc<GraphState>> {
        if session.transaction().is_none()
            && let Some(known) = &*self.process().types.lock()
            && self.knows_type(known, kind)
        {
            return Ok(known.clone());
        }
        let state = self.state(session)?;
        if session.transaction().is_none() {
            self.process().kinds.lock().insert(kind.to_owned());
            *self.process().types.lock() = Some(state.clone());
        }
        Ok(state)
    }

    /// Whether a state says what a type is: it is declared there, or nobody had declared it when it was looked for.
    pub fn knows_type(&self, state: &GraphState, kind: &str) -> bool {
        let vocabulary = state.vocabulary();
        vocabulary.edge(kind).is_some() || self.process().kinds.lock().contains(kind)
    }

    /// Types were declared here: they are looked at anew.
    pub fn forget_types(&self) {
        *self.process().types.lock() = None;
        self.process().kinds.lock().clear();
    }

    /// Follows the logs and gives what they say, with what this process has not flushed and what a transaction holds.
    pub fn state(&self, session: &Session) -> Result<Arc<GraphState>> {
        self.with_state(session, &|_, state| Ok(state.clone()))
    }

    /// The same for who takes something of it before anything else is put.
    pub(super) fn with_state<T>(
        &self,
        session: &Session,
        take: &dyn Fn(&GraphView, &Arc<GraphState>) -> Result<T>,
    ) -> Result<T> {
        self.with_moment(session, &|view, state, _| take(view, state))
    }

    /// The same for who also keeps what the logs held then.
    pub(super) fn with_moment<T>(&self, session: &Session, take: Taking<'_, T>) -> Result<T> {
        let outside = &session.within(None);
        if self.process().view.lock().as_ref().is_some_and(|view| view.applied().in_memory() >= FULL) {
            self.join_saving();
        }
        let (mut newest, mut reopened) = (false, false);
        for _ in 0..ROUNDS {
            session.check(&*self.env.clock)?;
            self.hand_over(outside);
            if session.transaction().is_some() {
                self.hand_over(session);
            }
            // What another thread flushes meanwhile must not be missed: then once more.
            let Some(seen) = Instant::now(&self.journal, session, ReadOwn::Later)? else { continue };
            let (feed, pending) = (seen.feed, seen.pending);
            let mut slot = self.process().view.lock();
            let view = self.opened(&mut slot, &feed)?;
            let followed = match self.follow(view, &feed, newest) {
                Err(_) if !reopened && view.lost_slots() => {
                    // Whoever is lost has nothing that is not on disk and in the logs.
                    (*slot, reopened) = (None, true);
                    continue;
                }
                outcome => outcome?,
            };
            if followed == Followed::Behind {
                drop(slot);
                self.journal.refresh()?;
                newest = self.journal.feed()?.heads() == feed.heads();
                continue;
            }
            self.note_stamp(view.state().most());
            feed.snapshot().logs.iter().for_each(|log| self.note_stamp(log.record.stamp));
            let shown = self.with_own(view, session, pending)?;
            let save = self.is_due(view.applied().in_memory());
            let taken = shown.map(|shown| take(view, &shown, &feed)).transpose();
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

    /// The view, opened where it is not.
    fn opened<'a>(&self, slot: &'a mut Option<GraphView>, feed: &Feed) -> Result<&'a mut GraphView> {
        let view = match slot.take() {
            Some(view) => view,
            None => {
                let view = GraphView::open(self.folder(), self.host(), feed)?;
                self.keep_partitioning(view.partitioning());
                view
            }
        };
        Ok(slot.insert(view))
    }

    /// Segments of a state that lie over the view for a session: what is not flushed.
    pub(super) fn own_segments(&self, session: &Session, state: &Arc<GraphState>) -> Vec<Arc<Segment>> {
        let sessions = self.process().own.lock();
        let own = sessions.get(&session.key()).filter(|own| Arc::ptr_eq(&own.shown, state));
        own.map_or_else(Vec::new, |own| own.segments.clone())
    }

    pub(super) fn follow(&self, view: &mut GraphView, feed: &Feed, newest: bool) -> Result<Followed> {
        let pace = Pace { bytes: STEP, ..Pace::usual(&*self.env.clock) };
        follow::follow(view, feed, &NoFields, &Following { wait: Wait::Yes, newest, pace })
    }

    /// Reads a state. Where a segment turns out to be damaged, the view is made anew from the logs, once.
    pub fn reading<T>(&self, session: &Session, read: impl Fn(&Arc<GraphState>) -> Result<T>) -> Result<T> {
        self.journal.check_there()?;
        match read(&self.state(session)?) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.remake()?;
                read(&self.state(session)?)
            }
            outcome => outcome,
        }
    }

    /// Forgets the view, on disk too.
    pub(super) fn remake(&self) -> Result<()> {
        self.join_saving();
        let host = self.host();
        self.keep_partitioning(host.partitioning);
        let mut slot = self.process().view.lock();
        // What cannot be removed is found to be damaged again, and then it is the error of that read.
        let removed = self.folder().map_or(Ok(()), |folder| folder.forget());
        // The old slots stop before new ones write in their place.
        *slot = None;
        *slot = Some(GraphView::empty(self.folder(), host)?);
        self.process().own.lock().clear();
        *self.process().types.lock() = None;
        removed
    }

    pub fn rebuild(&self) -> Result<Stats> {
        self.remake()?;
        drop(self.state(&Session::default())?);
        self.join_saving();
        self.save(MergeOlder::UpTo(WHOLE));
        self.stats()
    }

    pub fn verify(&self) -> Result<Check> {
        let feed = self.journal.feed()?;
        let mut anew = GraphView::new();
        self.follow(&mut anew, &feed, true)?;
        let expected = dump(&anew.state())?;
        let mut check = Check { damaged: anew.applied().damaged.clone(), ..Check::default() };
        let mut slot = self.process().view.lock();
        let view = self.opened(&mut slot, &feed)?;
        // Others may write meanwhile: both show the moment of the feed, or the view a later one.
        if self.follow(view, &feed, false)? == Followed::Behind {
            return Err(Error::unavailable("others write while the graph is verified").with_hint("try again"));
        }
        let found = match dump(&view.state()) {
            // What cannot be read says nothing wrong; the next read of it makes the view anew.
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                check.different.push(format!("the view cannot be read: {}", error.message()));
                return Ok(check);
            }
            outcome => outcome?,
        };
        let (expected, found): (BTreeSet<&str>, BTreeSet<&str>) =
            (expected.lines().collect(), found.lines().collect());
        check.lines = expected.len() as u64;
        let lacking = expected.difference(&found).map(|line| format!("the view lacks: {line}"));
        let added = found.difference(&expected).map(|line| format!("only the view has: {line}"));
        check.different = lacking.chain(added).take(NOTES).collect();
        Ok(check)
    }

    /// Whether so many bytes in memory are to be written to disk by now.
    fn is_due(&self, in_memory: u64) -> bool {
        let since = &self.process().waits_since;
        if in_memory < SAVE {
            since.store(0, Ordering::Relaxed);
            return false;
        }
        let now = self.env.clock.monotonic().max(1);
        let first = since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        in_memory >= FLOOD || first.is_err_and(|first| now.saturating_sub(first) >= SETTLED)
    }

    /// Writes segments to disk on a thread of its own, unless one is at it.
    fn save_beside(&self) {
        let Some(inner) = self.folder().and_then(|_| self.me.upgrade()) else { return };
        // Where no thread can be started, they stay in memory.
        let work = move || inner.save(MergeOlder::Tiers(LARGEST));
        let _ = self.process().saving.start("graph-save", work);
    }

    pub(super) fn join_saving(&self) {
        self.process().saving.join();
    }

    /// Writes segments to disk. Where that fails they stay in memory: nobody needs them there.
    pub(super) fn save(&self, older: MergeOlder) {
        let Some(folder) = self.folder() else { return };
        let frozen = self.process().view.lock().as_mut().map(GraphView::freeze);
        let Some(Ok(frozen)) = frozen else { return };
        let saved = frozen.save(&folder, older).unwrap_or(None);
        let done = saved.is_some();
        let mut slot = self.process().view.lock();
        if let Some(view) = slot.as_mut() {
            view.install(&frozen, saved);
            if !done && folder.number() > frozen.began_with() {
                // Another process has written more: the next read begins there.
                *slot = None;
            }
        }
    }

    /// The view with what is not flushed; `None` where some of that was flushed meanwhile.
    fn with_own(
        &self,
        view: &GraphView,
        session: &Session,
        pending: Cursors,
    ) -> Result<Option<Arc<GraphState>>> {
        let base = view.state();
        if pending.records() == 0 && session.transaction().is_none() {
            return Ok(Some(base));
        }
        let mut sessions = self.process().own.lock();
        let holds = |own: &Own| Arc::ptr_eq(&own.base, &base) && pending.continues(own.pending);
        let known = sessions.remove(&session.key()).filter(holds);
        let mut own = match known {
            Some(own) => own,
            None => {
                let prepared = view.prepared(session.transaction())?;
                let segments = Vec::from_iter(prepared);
                let shown = Arc::new(base.with(segments.iter().cloned()));
                Own { base, pending: Cursors::default(), segments, shown }
            }
        };
        let Some(more) = OwnRecords::between(&self.journal, own.pending, pending, session) else {
            return Ok(None);
        };
        let commits: Vec<Commit> =
            more.parts.into_iter().map(|part| self.own_commit(session, part)).collect();
        if let Some(segment) = GraphView::segment_of(&commits)? {
            own.segments.push(Arc::new(segment));
            merge_young(&mut own.segments)?;
            own.shown = Arc::new(own.base.with(own.segments.iter().cloned()));
        }
        own.pending = pending;
        let shown = own.shown.clone();
        if sessions.len() >= SESSIONS {
            sessions.clear();
        }
        sessions.insert(session.key(), own);
        Ok(Some(shown))
    }

    /// Records that are not flushed as a commit, newer than all.
    fn own_commit(&self, session: &Session, part: OwnPart) -> Commit {
        let (owner, stamp) = (self.user(session), u64::MAX / 2 + part.before as u64);
        Commit { writer: OWN_LOG, owner, sequence: 1, stamp, time: 0, transaction: None, side: part.records }
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
        let view = self.process().view.lock();
        let archives: BTreeSet<&Archive> = state.archives().map(|row| &row.archive).collect();
        stats.archives = archives.into_iter().cloned().collect();
        stats.problems.extend(view.iter().flat_map(|view| view.applied().damaged.iter().cloned()));
        Ok(stats)
    }
}

/// The folder for the segments of a store; `None` for a store in memory or at an older version.
fn own_folder(journal: &Journal) -> Option<PathBuf> {
    let home = journal.home();
    let store = home.folder.as_ref().filter(|_| !home.pinned)?;
    // Nothing is made before the store is there.
    let there = journal.env().disk.stat(store).is_ok();
    let id = home.id.to_string();
    there.then(|| trusted_folder::for_view(store, FOLDER, &[&id, FOLDER], home.env.identity.uid()))?
}

impl FlushParticipant for GraphInner {
    fn hand_over(&self, session: &Session) {
        self.process().buffers.hand_over(&self.journal, session);
    }

    fn discarded(&self, session: &Session) {
        self.process().buffers.discard(session);
        drop(self.process().own.lock().remove(&session.key()));
    }

    fn flushed(&self, session: &Session) {
        drop(self.process().own.lock().remove(&session.key()));
    }

    fn closed(&self) {
        self.process().own.lock().clear();
        self.join_saving();
        let view = self.process().view.lock();
        let cut = view.as_ref().is_some_and(|view| view.partitioning().slots > 1);
        // What is cut into slots is not cut again by whoever opens the store next.
        let least = if self.chosen.is_some() || cut { 1 } else { SAVE_AT_END };
        if view.as_ref().is_some_and(|view| view.applied().in_memory() >= least) {
            drop(view);
            self.save(MergeOlder::Tiers(LARGEST));
        }
    }
}
