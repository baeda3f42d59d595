//! The walk of a purge: all entries of a snapshot in the order of their keys, and which of them go (takeovers.md, 10).
//!
//! A [`Judge`], who knows the rules of hiding, decides about the entries under one key. This module protects keys from him:
//! those of other users and of losses, those that cannot be read, and all of them during a hold.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use fieldstone_core::value::moment_text;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::entry::Entry;
use fieldstone_format::location::AttemptTombstone;
use fieldstone_format::log::SideRecord;
use fieldstone_format::{Id, keys, log};

use crate::entry_source::{EntryCursor, EntryHeap, EntrySource, Place};
use crate::snapshot::{Snapshot, longest_hold};

/// An entry under a key, as a purge meets it.
#[derive(Debug)]
pub struct MetEntry {
    /// Number of its source in the snapshot.
    pub source: usize,
    /// Its place there.
    pub place: Place,
    /// Its value.
    pub value: Vec<u8>,
    /// Whether the new takeover holds what is left of its source. Others stay where they are.
    pub is_input: bool,
}

/// The fate of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Stays,
    /// It goes.
    Goes,
    /// It leaves the mark of its attempt (R64).
    Leaves(Box<AttemptTombstone>),
}

/// Decides which entries a purge drops.
pub trait Judge {
    /// The snapshot of which entries are shown from now on, and its logs that have ended: their last commits are confirmed.
    fn look(&mut self, snapshot: &Arc<Snapshot>, ended: HashSet<Id>) -> Result<()>;

    /// Decides about all entries under a key; `verdicts` has one for each, and says that all stay. Verdicts on entries
    /// outside of the inputs do not count. The same entries have the same verdicts.
    fn judge(&mut self, key: &[u8], entries: &[MetEntry], verdicts: &mut [Verdict]) -> Result<()>;

    /// Whether the bytes of an entry can be read, and match their checksums (R19).
    fn is_sound(&mut self, key: &[u8], entry: &MetEntry) -> Result<bool>;

    /// The eraser of an erasure (R36); `None` for a purge, which gives back room alone.
    fn eraser(&mut self) -> Option<&mut dyn Eraser> {
        None
    }
}

/// Decides what an erasure takes besides entries.
pub trait Eraser {
    /// Whether something of a dataset, by its encoded first level, may have been dropped that is to be erased: files may hold
    /// bytes of it that no entry names any more.
    fn is_wanted(&mut self, dataset: &[u8]) -> Result<bool>;

    /// The side records of a commit without what is erased; `None` if all stay.
    fn records(&mut self, commit: &SideCommit, records: &[SideRecord]) -> Result<Option<ErasedSide>>;
}

/// Side records of which rows were erased.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErasedSide {
    /// All records of the commit.
    pub records: Vec<SideRecord>,
    /// The number of these rows.
    pub rows: u64,
    /// The datasets that they speak of, as encoded first levels: older versions are not whole there any more.
    pub datasets: BTreeSet<Vec<u8>>,
}

/// A commit with side records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SideCommit {
    /// Its log.
    pub writer: Id,
    /// Its number there.
    pub sequence: u64,
    /// The transaction under which it is prepared, unless that is forgotten.
    pub transaction: Option<Id>,
}

/// The datasets in which nothing may go.
#[derive(Debug)]
struct Protection<'a> {
    snapshot: &'a Snapshot,
    user: u32,
    /// Whether everything is protected.
    all: bool,
    /// The dataset that was asked for last, and whether it is protected.
    last: Option<(Vec<u8>, bool)>,
}

impl Protection<'_> {
    /// Whether nothing in a dataset may go: it is another user's, or an open loss may concern it (R20).
    fn protects(&mut self, dataset: &[u8]) -> bool {
        if self.all {
            return true;
        }
        if let Some((last, is_protected)) = &self.last
            && last == dataset
        {
            return *is_protected;
        }
        let is_protected =
            !self.snapshot.owners.may_count(dataset, self.user) || self.snapshot.loss(dataset).is_some();
        self.last = Some((dataset.to_vec(), is_protected));
        is_protected
    }
}

/// The reason why a purge of a user's logs drops nothing at all; `None` if it may.
pub fn protection(snapshot: &Snapshot, user: u32, now: i64) -> Option<String> {
    if let Some(held) = longest_hold(snapshot, now) {
        let (hold, until) = (&held.hold, moment_text(held.hold.expires));
        let why = if hold.why.is_empty() { String::new() } else { format!(": {}", hold.why) };
        return Some(format!("the hold {:?} keeps everything until {until}{why}", hold.name));
    }
    let is_of_others = |file: &str| {
        let writer = file.rsplit('/').next().and_then(log::parse_file_name);
        writer.and_then(|writer| snapshot.user_of(writer)).is_some_and(|of| of != user)
    };
    let problems = snapshot.problems.iter().chain(&snapshot.taken.problems);
    let damage = problems.filter(|problem| problem.damage).find(|problem| !is_of_others(&problem.file));
    damage.map(|problem| format!("{}: {}", problem.file, problem.why))
}

/// A walk over all entries of a snapshot.
pub struct PurgeWalk<'a> {
    judge: &'a mut dyn Judge,
    protection: Protection<'a>,
    /// By source, whether it is an input.
    inputs: Vec<bool>,
    heap: EntryHeap,
    /// Keys before this one may have entries that cannot be read; `None`: no key.
    unread: Option<Unread>,
    /// Inputs that cannot be read whole.
    pub damaged: Vec<usize>,
    /// The key that the walk is at, its entries, and what becomes of them.
    pub key: Vec<u8>,
    pub entries: Vec<MetEntry>,
    pub verdicts: Vec<Verdict>,
}

/// Keys that a damaged block may hold: up to a key, or all that follow.
#[derive(Debug, PartialEq, Eq)]
enum Unread {
    Before(Vec<u8>),
    All,
}

impl Unread {
    fn holds(&self, key: &[u8]) -> bool {
        match self {
            Unread::Before(end) => key < &end[..],
            Unread::All => true,
        }
    }

    fn with(self, other: Unread) -> Unread {
        match (self, other) {
            (Unread::Before(a), Unread::Before(b)) if a.cmp(&b) == Ordering::Less => Unread::Before(b),
            (Unread::Before(a), Unread::Before(_)) => Unread::Before(a),
            _ => Unread::All,
        }
    }
}

impl<'a> PurgeWalk<'a> {
    /// A walk that has not begun; `inputs`: by source, whether it is an input.
    pub fn new(
        snapshot: &'a Snapshot,
        (user, now): (u32, i64),
        inputs: Vec<bool>,
        judge: &'a mut dyn Judge,
    ) -> Result<PurgeWalk<'a>> {
        let all = protection(snapshot, user, now).is_some();
        let protection = Protection { snapshot, user, all, last: None };
        let mut walk = PurgeWalk {
            judge,
            protection,
            inputs,
            heap: EntryHeap::default(),
            unread: None,
            damaged: Vec::new(),
            key: Vec::new(),
            entries: Vec::new(),
            verdicts: Vec::new(),
        };
        let mut cursors = Vec::with_capacity(snapshot.sources.len());
        for (index, source) in snapshot.sources.iter().enumerate() {
            let mut cursor = EntryCursor::tolerant(source, index);
            let more = walk.moved(&mut cursor, EntryCursor::advance)?;
            if more {
                cursors.push(cursor);
            }
        }
        walk.heap = EntryHeap::new(cursors);
        Ok(walk)
    }

    /// Moves a cursor on, and notes what cannot be read.
    fn moved(
        &mut self,
        cursor: &mut EntryCursor,
        go: impl FnOnce(&mut EntryCursor) -> Result<bool>,
    ) -> Result<bool> {
        let more = match go(cursor) {
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                self.note_unread(cursor.index, Unread::All);
                return Ok(false);
            }
            more => more?,
        };
        if !cursor.take_damage().is_empty() {
            let end = if more { Unread::Before(cursor.key().to_vec()) } else { Unread::All };
            self.note_unread(cursor.index, end);
        }
        Ok(more)
    }

    fn note_unread(&mut self, source: usize, unread: Unread) {
        if self.inputs[source] {
            self.damaged.push(source);
        }
        self.unread = Some(match self.unread.take() {
            Some(known) => known.with(unread),
            None => unread,
        });
    }

    /// Whether all entries were met: nothing was damaged, lost, or closed to this user.
    pub fn is_whole(&self) -> bool {
        let snapshot = self.protection.snapshot;
        let problems = snapshot.problems.iter().chain(&snapshot.taken.problems);
        let is_missing = problems.filter(|problem| problem.damage || problem.skipped).count() > 0;
        !is_missing && self.unread.is_none() && snapshot.losses.is_empty() && !self.protection.all
    }

    /// The eraser, if this is an erasure.
    pub fn eraser(&mut self) -> Option<&mut dyn Eraser> {
        self.judge.eraser()
    }

    /// Whether the bytes of an entry of this key are as they were written.
    pub fn is_sound(&mut self, entry: usize) -> Result<bool> {
        self.judge.is_sound(&self.key, &self.entries[entry])
    }

    /// Goes to the next key; `false` behind the last one.
    pub fn next_key(&mut self) -> Result<bool> {
        let Some(first) = self.heap.first() else { return Ok(false) };
        self.key.clear();
        self.key.extend_from_slice(first.key());
        // Damage behind this key concerns those that follow.
        let is_unread = self.unread.as_ref().is_some_and(|unread| unread.holds(&self.key));
        self.entries.clear();
        loop {
            let mut heap = std::mem::take(&mut self.heap);
            let Some(cursor) = heap.first_mut().filter(|cursor| cursor.key() == self.key) else {
                self.heap = heap;
                break;
            };
            let source = cursor.index;
            let is_input = self.inputs[source];
            self.entries.push(MetEntry {
                source,
                place: cursor.place(),
                value: cursor.value().to_vec(),
                is_input,
            });
            let more = self.moved(cursor, EntryCursor::advance);
            heap.settle(matches!(more, Ok(true)));
            self.heap = heap;
            more?;
        }
        self.verdicts.clear();
        self.verdicts.resize(self.entries.len(), Verdict::Stays);
        let dataset = &self.key[..keys::level_ends(&self.key)?[0]];
        let is_unread = is_unread || self.unread.as_ref().is_some_and(|unread| unread.holds(&self.key));
        if !is_unread
            && self.entries.iter().any(|entry| entry.is_input)
            && !self.protection.protects(dataset)
            && all_count(self.protection.snapshot, dataset, &self.entries)?
        {
            self.judge.judge(&self.key, &self.entries, &mut self.verdicts)?;
        }
        Ok(true)
    }
}

/// Whether all entries of a key count. If some do not, because their users had handed the dataset over or were not its owners
/// yet, the others only seem to be hidden: nothing goes.
fn all_count(snapshot: &Snapshot, dataset: &[u8], entries: &[MetEntry]) -> Result<bool> {
    if snapshot.hand_overs.is_empty() {
        return Ok(true);
    }
    for entry in entries {
        let stamp = || Ok(snapshot.commit_at(entry.source, Entry::decode(&entry.value)?.commit)?.stamp);
        if !snapshot.owners.counts(dataset, snapshot.user_of_source(entry.source), stamp)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// By source of a snapshot, whether it is one of these logs (by their number in the snapshot) or takeovers (by number, of a
/// user).
pub fn inputs_of(
    snapshot: &Snapshot,
    user: u32,
    is_log: impl Fn(Id) -> bool,
    is_takeover: impl Fn(u64) -> bool,
) -> Vec<bool> {
    let is_input = |source: &EntrySource| match source {
        EntrySource::Segment(segment, log) => {
            snapshot.logs[*log as usize].uid == user && is_log(segment.writer)
        }
        EntrySource::Takeover(takeover) => takeover.user == user && is_takeover(takeover.number()),
    };
    snapshot.sources.iter().map(is_input).collect()
}

/// An entry that leaves nothing but the mark of its attempt.
pub fn marked(entry: &Entry, mark: Box<AttemptTombstone>) -> Entry {
    Entry {
        commit: entry.commit,
        ordinal: entry.ordinal,
        generation: false,
        length: 0,
        array: None,
        location: fieldstone_format::location::Location::AttemptTombstone(mark),
        holder: None,
    }
}
