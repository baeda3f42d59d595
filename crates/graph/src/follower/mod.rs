//! The graph as a follower of the logs.
//!
//! The content of commits becomes rows, and at the end of a transaction of the follower a segment in memory.
//! Young segments are merged, so that there are few. A state that was handed out stays as it is.
//!
//! | a commit | its rows are |
//! |---|---|
//! | outside of transactions, or in one that is visible as a whole | in segments, for good |
//! | in a transaction that is visible in part, or may be taken back | in a segment of their own, built again at each decision |
//! | in an undecided transaction | kept as they came; visible to sessions of the transaction |
//! | in an aborted transaction | nowhere |
//!
//! If the decision on a transaction that was visible as a whole changes, everything is applied again.

mod applied;
mod draft;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::graph::is_graph;
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_format::log::kinds;
use fieldstone_format::version::TakeoverName;
use fieldstone_journal::feed::{Commit, EntryChange, Feed, TransactionState};
use fieldstone_journal::follower::{Again, FieldLookup, Follower, Marks, Wait};

use crate::folder::{SavedSlots, SegmentFolder};
use crate::segment::{CommitOrder, Rows, Segment, build, merge_young};
use crate::slot::{ShelfContent, Slots, StartSlots};
use crate::state::GraphState;

pub use applied::{Applied, Frozen};
use applied::{shelved, spill};
use draft::{Draft, build_beside};

/// Maximum number of notes on damage.
const NOTES: usize = 100;
/// Bytes in memory from which on segments are written to disk while more is applied.
const SPILL: u64 = 64 << 20;

/// The slots of a follower, and how they run.
#[derive(Debug, Clone)]
pub struct SlotHost {
    /// The settings by which it is cut, if no list on disk has any.
    pub partitioning: Partitioning,
    /// The environment of the slots.
    pub env: Env,
    /// The starter of the slots.
    pub starter: Arc<dyn StartSlots>,
}

impl SlotHost {
    /// Starts slots with this content; `None` if the follower is not to be cut.
    fn start(&self, contents: Vec<ShelfContent>) -> Result<Option<Arc<dyn Slots>>> {
        if self.partitioning.slots == 1 {
            return Ok(None);
        }
        self.starter.start(self.partitioning, contents, &self.env).map(Some)
    }
}

/// All slots, and the segments of a state that are over their content.
type SlotsUnder<'a> = (&'a Arc<dyn Slots>, &'a [Arc<Segment>]);

/// The follower. See the module.
#[derive(Debug, Default)]
pub struct GraphFollower {
    applied: Applied,
    state: Arc<GraphState>,
    draft: Option<Draft>,
    states: HashMap<Id, TransactionState>,
    /// The feed that is followed.
    feed: Option<Feed>,
    overlaid: Option<Arc<GraphState>>,
    folder: Option<Arc<SegmentFolder>>,
    host: Option<SlotHost>,
    /// These segments, the first of the applied ones, are being written to disk: they must not change.
    frozen: Vec<Arc<Segment>>,
}

/// The effect of the decisions on a commit.
enum Fate {
    /// Its rows are visible for good.
    Holds(CommitKnown),
    /// It may change; visible for now, or not.
    Open(Option<CommitKnown>),
    /// It will never be visible.
    Gone,
}

impl GraphFollower {
    /// A follower with nothing applied.
    pub fn new() -> GraphFollower {
        GraphFollower::default()
    }

    /// The follower in a folder, if a feed knows its logs as far; an empty one if there is none.
    pub fn open(folder: Option<Arc<SegmentFolder>>, host: SlotHost, feed: &Feed) -> Result<GraphFollower> {
        let loaded = folder.as_ref().and_then(|folder| folder.load());
        let Some((manifest, segments)) = loaded else { return GraphFollower::empty(folder, host) };
        let host = SlotHost { partitioning: manifest.partitioning, ..host };
        let contents = shelved(&manifest, &segments);
        let slots = host.start(contents)?;
        let mut follower = GraphFollower { folder, host: Some(host), ..GraphFollower::default() };
        follower.applied = Applied {
            segments,
            slots,
            marks: Marks { logs: manifest.marks.into_iter().collect(), taken: manifest.taken },
            decided: manifest.decided.into_iter().collect(),
            saved: manifest.revision,
            ..Applied::default()
        };
        for (log, sequence) in manifest.prepared {
            // Every process skips a commit that cannot be read.
            let commit =
                feed.commits(log, sequence.saturating_sub(1)).ok().and_then(|mut found| found.next());
            let same = |commit: &Commit| commit.sequence == sequence;
            follower.applied.prepared.extend(commit.and_then(Result::ok).filter(same).map(Arc::new));
        }
        // Slots and marks are as the list says; prepared commits become visible with the first decisions.
        follower.state = Arc::new(GraphState::of(follower.applied.segments.clone()));
        Ok(follower)
    }

    /// An empty follower, which writes into a folder whatever it holds now.
    pub fn empty(folder: Option<Arc<SegmentFolder>>, host: SlotHost) -> Result<GraphFollower> {
        let saved = folder.as_ref().map_or(0, |folder| folder.number());
        let slots = host.start(Vec::new())?;
        let applied = Applied { saved, slots, ..Applied::default() };
        Ok(GraphFollower { folder, applied, host: Some(host), ..GraphFollower::default() })
    }

    /// The slots, if there are several, and the segments of a state that no slot has, which are over the
    /// others.
    pub fn in_slots<'a>(&'a self, state: &'a GraphState) -> Option<SlotsUnder<'a>> {
        let slots = self.applied.slots.as_ref()?;
        Some((slots, state.segments().get(self.applied.segments.len()..).unwrap_or_default()))
    }

    /// Whether a slot no longer serves.
    pub fn lost_slots(&self) -> bool {
        self.applied.slots.as_ref().is_some_and(|slots| !slots.serve())
    }

    /// The settings by which it is cut into slots.
    pub fn partitioning(&self) -> Partitioning {
        self.host.as_ref().map(|host| host.partitioning).unwrap_or_default()
    }

    /// The applied content, to be written to disk; its segments stay unchanged until
    /// [`install`](Self::install).
    ///
    /// Errors: `Unavailable` if a slot is lost.
    pub fn freeze(&mut self) -> Result<Frozen> {
        let frozen = Frozen::of(self.applied.clone())?;
        self.frozen = self.applied.segments.clone();
        Ok(frozen)
    }

    /// Replaces frozen content by the segments on disk; `None`: nothing was written.
    pub fn install(&mut self, from: &Frozen, saved: Option<SavedSlots>) {
        let frozen = std::mem::take(&mut self.frozen);
        if let Some(slots) = &from.applied.slots {
            // The next read finds that a slot is lost.
            let segments = saved.as_ref().map(|saved| saved.segments.clone());
            if slots.thaw(segments).is_err() {
                return;
            }
        }
        let Some(SavedSlots { manifest, segments }) = saved else { return };
        let same = match (&self.applied.slots, &from.applied.slots) {
            (Some(own), Some(slots)) => Arc::ptr_eq(own, slots),
            (None, None) => {
                // Everything may have been applied again in the meantime: then these are other segments.
                let first = self.applied.segments.get(..frozen.len()).unwrap_or_default();
                first.len() == frozen.len() && first.iter().zip(&frozen).all(|(a, b)| Arc::ptr_eq(a, b))
            }
            _ => false,
        };
        if !same {
            return;
        }
        // With slots, `take_slots` reads their new segments.
        if self.applied.slots.is_none() {
            self.applied.segments.splice(..frozen.len(), segments.into_iter().flatten());
        }
        if self.applied.take_slots().is_err() {
            return;
        }
        self.applied.saved = manifest.revision;
        // This succeeds, because it was built before from the same commits.
        if let Ok(state) = self.visible(&self.applied) {
            self.state = Arc::new(state);
        }
    }

    /// The state that a reader sees now.
    pub fn state(&self) -> Arc<GraphState> {
        self.overlaid.as_ref().unwrap_or(&self.state).clone()
    }

    /// The applied content.
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// The content of commits, whatever their decisions; `None` if they have none for the graph.
    pub fn segment_of(commits: &[Commit]) -> Result<Option<Segment>> {
        let mut rows = Rows::default();
        commits.iter().for_each(|commit| add(&mut rows, commit, own(commit, u64::MAX), &mut Vec::new()));
        if rows.is_empty() { Ok(None) } else { build(&rows).map(Some) }
    }

    /// The prepared content of a transaction that is not visible to all.
    pub fn prepared(&self, transaction: Option<Id>) -> Result<Option<Arc<Segment>>> {
        let named = |commit: &&Arc<Commit>| transaction.is_some() && commit.transaction == transaction;
        let hidden = |commit: &&Arc<Commit>| !matches!(self.fate(commit), Fate::Open(Some(_)));
        let commits = self.applied.prepared.iter().filter(named).filter(hidden);
        let commits: Vec<Commit> = commits.map(|commit| (**commit).clone()).collect();
        Ok(GraphFollower::segment_of(&commits)?.map(Arc::new))
    }

    fn fate(&self, commit: &Commit) -> Fate {
        let Some(transaction) = commit.transaction else {
            // A forgotten decision made it visible later.
            return Fate::Holds(own(commit, commit.order.map_or(commit.stamp, |(stamp, _)| stamp)));
        };
        let Some(state) = self.states.get(&transaction) else { return Fate::Open(None) };
        let since = state.visible(kinds::RELATION, commit.writer, commit.sequence);
        let visible = since.map(|order| own(commit, order.0));
        // Visible and final: its rows can go into segments for good.
        match visible {
            Some(known) if state.is_whole() => Fate::Holds(known),
            None if !state.is_open_for(commit.writer, commit.sequence) => Fate::Gone,
            visible => Fate::Open(visible),
        }
    }

    /// The commit's transaction with a digest of its decisions.
    fn print(&self, commit: &Commit) -> Option<(Id, Vec<u8>)> {
        let id = commit.transaction?;
        Some((id, self.states.get(&id)?.print()))
    }

    fn draft(&mut self) -> &mut Draft {
        self.draft.get_or_insert_with(Draft::default)
    }

    fn take(&mut self, commit: &Arc<Commit>) {
        match self.fate(commit) {
            Fate::Gone => {
                // If the decision changes after all, everything is applied again.
                let print = self.print(commit);
                self.draft().applied.decided.extend(print);
            }
            Fate::Open(_) => self.draft().applied.prepared.push(commit.clone()),
            Fate::Holds(known) => {
                let print = self.print(commit);
                let draft = self.draft();
                draft.applied.decided.extend(print);
                let mut damaged = std::mem::take(&mut draft.applied.damaged);
                add(draft.rows(), commit, known, &mut damaged);
                draft.applied.damaged = damaged;
            }
        }
    }

    /// The segments of the applied content, with those that are visible for now.
    fn visible(&self, applied: &Applied) -> Result<GraphState> {
        let mut rows = Rows::default();
        for commit in &applied.prepared {
            if let Fate::Open(Some(known)) = self.fate(commit) {
                add(&mut rows, commit, known, &mut Vec::new());
            }
        }
        let state = GraphState::of(applied.segments.clone());
        if rows.is_empty() { Ok(state) } else { Ok(state.with([Arc::new(build(&rows)?)])) }
    }
}

/// The time when a commit, visible since a stamp, became known. Undecided commits are newer than all others.
fn own(commit: &Commit, since: u64) -> CommitKnown {
    CommitKnown { since, stamp: commit.stamp }
}

/// Adds the records of a commit; notes a record that cannot be read and adds the others.
fn add(rows: &mut Rows, commit: &Commit, known: CommitKnown, damaged: &mut Vec<String>) {
    let source = CommitOrder { known, user: commit.owner };
    rows.begin(source);
    for (i, side) in commit.side.iter().enumerate().filter(|(_, side)| is_graph(side)) {
        if let Err(error) = rows.add(source, side) {
            let later = if error.kind() == ErrorKind::Corrupt { "" } else { " of a later release" };
            let Commit { writer, sequence, .. } = commit;
            let note = format!("log {writer}, commit {sequence}, record {i}{later}: {}", error.message());
            if damaged.len() < NOTES && !damaged.contains(&note) {
                damaged.push(note);
            }
        }
    }
}

impl Follower for GraphFollower {
    fn wants_entries(&self) -> bool {
        false
    }

    fn marks(&mut self) -> Result<Marks> {
        Ok(self.draft.as_ref().map_or(&self.applied, |draft| &draft.applied).marks.clone())
    }

    fn attend(&mut self, feed: &Feed) {
        self.feed = Some(feed.clone());
    }

    fn leave(&mut self) {
        self.feed = None;
    }

    fn begin(&mut self, _: Wait) -> Result<bool> {
        self.draft = Some(Draft { applied: self.applied.clone(), rows: Vec::new() });
        Ok(true)
    }

    fn decide(&mut self, states: &[TransactionState]) -> Result<Again> {
        self.states = states.iter().map(|state| (state.transaction, state.clone())).collect();
        let (states, feed) = (&self.states, self.feed.clone());
        let forgets = |id: Id| feed.as_ref().is_some_and(|feed| feed.forgets(id));
        let changed =
            // A digest of an older decision: rows in segments cannot be taken out one by one.
            |(id, print): (&Id, &Vec<u8>)| states.get(id).is_none_or(|state| state.print() != *print);
        let draft = self.draft.get_or_insert_with(Draft::default);
        draft.applied.decided.retain(|id, _| states.contains_key(id) || !forgets(*id));
        let missed = |commit: &Arc<Commit>| commit.transaction.is_some_and(forgets);
        if draft.applied.decided.iter().any(changed) || draft.applied.prepared.iter().any(missed) {
            return Ok(Again::Everything);
        }
        // Decisions may have settled some of them.
        for commit in std::mem::take(&mut draft.applied.prepared) {
            self.take(&commit);
        }
        Ok(Again::Entries(Vec::new(), Vec::new()))
    }

    fn entries(&mut self, _: &mut dyn Iterator<Item = Result<EntryChange>>) -> Result<u64> {
        Ok(0)
    }

    fn commit(&mut self, commit: &Commit) -> Result<()> {
        let mark = self.draft().applied.marks.of(commit.writer);
        // A commit at or below the mark was applied before.
        if commit.sequence > mark && commit.side.iter().any(is_graph) {
            self.take(&Arc::new(commit.clone()));
        }
        Ok(())
    }

    fn mark(&mut self, log: Id, sequence: u64) -> Result<()> {
        self.draft().applied.marks.logs.insert(log, sequence);
        Ok(())
    }

    fn take(&mut self, newest: &[TakeoverName], logs: &[Id]) -> Result<()> {
        self.draft().applied.marks.take(newest, logs);
        Ok(())
    }

    fn ask(&mut self, _: &dyn FieldLookup, _: Option<Id>) -> Result<()> {
        Ok(())
    }

    fn revision(&mut self) -> Result<u64> {
        Ok(self.applied.revision)
    }

    fn end(&mut self) -> Result<()> {
        let Some(Draft { mut applied, rows }) = self.draft.take() else { return Ok(()) };
        // Segments that are being written stay unchanged, unless everything is built again.
        let frozen = self.frozen.len().min(applied.segments.len());
        // A long replay does not fit into memory. If it cannot be written, it has to.
        let full = self.frozen.is_empty() && applied.in_memory() > SPILL;
        let folder = self.folder.as_deref().filter(|_| full);
        if let Some(slots) = applied.slots.clone() {
            rows.iter().try_for_each(|part| slots.insert(part))?;
            applied.take_slots()?;
            if let Some(folder) = folder {
                applied = spill(applied, folder)?;
            }
        } else {
            let (before, built) = build_beside(applied, &rows, folder)?;
            applied = before;
            // Frozen segments keep their places, because `install` replaces them by position.
            let mut young = applied.segments.split_off(frozen);
            for segment in built {
                young.push(Arc::new(segment));
                merge_young(&mut young)?;
            }
            applied.segments.append(&mut young);
        }
        applied.revision = applied.revision.wrapping_add(1);
        self.state = Arc::new(self.visible(&applied)?);
        self.applied = applied;
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        self.draft = None;
        self.overlaid = None;
        Ok(())
    }

    fn clear(&mut self) -> Result<()> {
        let slots = match &self.host {
            Some(host) => host.start(Vec::new())?,
            None => None,
        };
        let draft = self.draft();
        // The counters go on, so that no reader mistakes the rebuilt follower for the old one.
        let Applied { revision, saved, .. } = draft.applied;
        let applied = Applied { revision, saved, slots, ..Applied::default() };
        *draft = Draft { applied, rows: Vec::new() };
        Ok(())
    }

    fn overlay(&mut self, transaction: Option<Id>, own: &[Commit]) -> Result<bool> {
        if transaction.is_none() && own.is_empty() {
            return Ok(false);
        }
        let segments = [self.prepared(transaction)?, GraphFollower::segment_of(own)?.map(Arc::new)];
        self.overlaid = Some(Arc::new(self.state.with(segments.into_iter().flatten())));
        Ok(true)
    }

    fn dump(&mut self) -> Result<String> {
        dump(&self.state())
    }
}

/// The content of a state, a line for each vertex and for each end of a relation.
pub fn dump(state: &GraphState) -> Result<String> {
    let mut places: BTreeSet<VertexPlace> = BTreeSet::new();
    for segment in state.segments() {
        for number in 0..segment.vertices() {
            places.insert(segment.place(number)?);
        }
    }
    let mut lines = Vec::with_capacity(places.len());
    let mut reader = state.reader();
    for place in places {
        let name = state.name(place)?;
        let mut line = name.to_string();
        for v in state.vertex_versions(place)? {
            // Writing to a String does not fail.
            let _ = write!(line, " {}:{}:{}:{}", v.stamp, v.time, v.user, v.deleted);
            if let Some(url) = state.vertex_archived_in(&v) {
                let _ = write!(line, ":archived in {url}");
            }
            let _ = write!(line, ":{:?}:{:?}", v.fixed.map(|fixed| fixed.pairs()), v.props.pairs()?);
        }
        lines.push(line);
        for edge in state.edges(place, &|_, _| true)? {
            let kind = state.vocabulary().name(&edge.direction.kind, edge.direction.reverse);
            let mut line = format!("{name} {kind} {}", state.name(edge.far)?);
            for version in &edge.versions {
                let ended = state.ended(version, [place, edge.far], u64::MAX)?;
                let _ = write!(line, " {}:{:?}:{ended:?}", version.stamp, version.until);
                let _ = write!(line, ":{}:{}:{}", version.user, version.deleted, version.replaces);
                if let Some(url) = state.archived_in(version) {
                    let _ = write!(line, ":archived in {url}");
                }
                if !edge.direction.reverse {
                    // Only the source has the row.
                    let (time, props) = reader.row(place, &edge, version)?;
                    let _ = write!(line, ":{time}:{:?}", props.pairs()?);
                }
            }
            lines.push(line);
        }
    }
    lines.sort_unstable();
    let archives: BTreeSet<String> =
        state.archives().map(|row| format!("archived: {:?} {}", row.archive, row.user)).collect();
    lines.extend(archives);
    lines.extend(state.vocabulary().conflicts().iter().map(|why| format!("conflict: {why}")));
    let mut text = lines.join("\n");
    text.push('\n');
    Ok(text)
}
