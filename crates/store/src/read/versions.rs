//! The entries under one key: the visible generation, and those that it hides.

use std::cmp::Reverse;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Uncovered, element_count, uncovered};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::entry::{Entry, EntryId, Location};
use fieldstone_format::keys::key_text;
use fieldstone_format::origin::{EntryOrigin, OriginAttempt};
use fieldstone_format::owner::Owner;

use fieldstone_journal::entry_source::{EntryCommit, Moved, Place};

use super::ranges::slab;
use crate::snapshot::{KeyWipes, Order, Snapshot, Wiped, origin_at};

/// Most missing boxes that a message names.
const MISSING_NAMED: usize = 4;

/// An entry, with the commit it came by.
#[derive(Debug, Clone)]
pub struct Part {
    /// Number of its source in the snapshot.
    pub source: u32,
    /// Its place in the source.
    pub place: Place,
    /// Its commit. Of moved entries, the time is that of the commit that they were moved from.
    pub commit: EntryCommit,
    /// The writer whose files hold its bytes, or the takeover that does.
    pub holder: Id,
    /// Its place among all versions.
    pub order: Order,
    /// When the attempt it is of began; `None` where its writer named none.
    pub attempt: Option<Order>,
    /// The word of wipes on it; among the versions of a key a wiped one only says which attempt is the newest.
    pub wiped: Wiped,
    /// The entry.
    pub entry: Entry,
}

impl Part {
    /// An entry of a source, visible or not; its order is that of its own commit.
    pub fn decode(snapshot: &Snapshot, source: usize, place: Place, value: &[u8]) -> Result<Part> {
        let entry = Entry::decode(value)?;
        let (commit, holder) = (snapshot.commit_at(source, entry.commit)?, snapshot.holder(source, &entry)?);
        Part::of(snapshot, (source, place), entry, (commit, holder))
    }

    fn of(
        snapshot: &Snapshot,
        (source, place): (usize, Place),
        entry: Entry,
        (mut commit, holder): (EntryCommit, Id),
    ) -> Result<Part> {
        snapshot.check_version(source, &entry)?;
        let (mut order, mut attempt) = ((commit.stamp, commit.writer), commit.attempt);
        if let Some(moved) = commit.moved {
            commit.time = moved.time;
            (order, attempt) = (moved.order, moved.attempt);
        }
        if let Location::AttemptTombstone(tombstone) = &entry.location {
            attempt = Some((tombstone.began, tombstone.writer));
        }
        Ok(Part { source: source as u32, place, commit, holder, order, attempt, wiped: Wiped::No, entry })
    }

    /// Extents of the chunks that an array is cut by; of one whose blocks are ranges of its bytes, boxes that
    /// touch few of them. `None` for a single chunk.
    pub fn chunk(&self) -> Option<Vec<u64>> {
        let array = self.entry.array.as_ref()?;
        match &self.entry.location {
            Location::Grown(grown) if grown.size > 0 => slab(&array.shape, array.dtype, grown.size),
            _ => array.chunk.clone(),
        }
    }

    /// Whether every element of its box was written.
    pub fn covers_its_box(&self) -> bool {
        self.entry.location != Location::None && self.entry.location.holes() == 0
    }

    /// Whether it starts a generation that hides all older parts for good, given the newest attempt up to it: one of a
    /// straggler of an older attempt hides nothing.
    pub fn is_generation_since(&self, began: Option<Order>) -> bool {
        self.entry.generation && (self.attempt.is_none() || self.attempt == began)
    }

    /// Whether it names an attempt and makes no field.
    fn is_attempt_tombstone(&self) -> bool {
        self.entry.is_attempt_tombstone() || self.wiped == Wiped::Yes
    }

    /// The commit that wrote it first, of whichever store, and its stamp.
    pub fn written_by(&self, snapshot: &Snapshot) -> (CommitId, u64) {
        let EntryCommit { writer, sequence, stamp, .. } = self.commit;
        match self.commit.moved {
            Some(Moved { store, sequence, order: (stamp, log), .. }) => {
                (CommitId { store, log, sequence }, stamp)
            }
            None => {
                (CommitId { store: snapshot.store_of(self.source as usize), log: writer, sequence }, stamp)
            }
        }
    }

    /// The origin that its bytes get in a store to which they are moved.
    pub fn origin(&self, snapshot: &Snapshot) -> Result<EntryOrigin> {
        if let Some(origin) = origin_at(snapshot, self.source as usize, self.entry.commit)? {
            return Ok(origin);
        }
        let EntryCommit { writer, user, sequence, time, attempt, .. } = self.commit;
        let name = attempt.and_then(|_| snapshot.attempt_name(writer));
        let attempt = attempt.zip(name);
        Ok(EntryOrigin {
            store: snapshot.store_of(self.source as usize),
            writer,
            sequence,
            stamp: self.order.0,
            time,
            owner: Some(Owner::User(user)),
            attempt: attempt.map(|((began, writer), name)| OriginAttempt { name, began, writer }),
        })
    }

    /// Its name within the store.
    pub fn id(&self) -> EntryId {
        EntryId { writer: self.commit.writer, sequence: self.commit.sequence, ordinal: self.entry.ordinal }
    }
}

/// The commit of the entry that was collected last, and the holder of its bytes: neighbours mostly share both.
#[derive(Debug, Default)]
pub struct LastCommit {
    /// The entry's source, and the numbers of its commit and its holder there.
    at: Option<(usize, u64, Option<u64>)>,
    /// Its commit, the place of that in the order, and the holder.
    found: Option<(EntryCommit, Option<Order>, Id)>,
}

impl LastCommit {
    fn of(
        &mut self,
        snapshot: &Snapshot,
        source: usize,
        entry: &Entry,
        own: Option<Id>,
    ) -> Result<(EntryCommit, Option<Order>, Id)> {
        let at = Some((source, entry.commit, entry.holder));
        if let Some(found) = self.found.filter(|_| self.at == at) {
            return Ok(found);
        }
        let commit = snapshot.commit_at(source, entry.commit)?;
        let found = (commit, snapshot.order(&commit, own), snapshot.holder(source, entry)?);
        (self.at, self.found) = (at, Some(found));
        Ok(found)
    }
}

/// Everything visible under one key, newest first; the first `live` parts are the visible generation. If the newest
/// is a removal, `live` is 0 and there is no field.
#[derive(Debug, Clone)]
pub struct KeyVersions {
    /// The encoded key.
    pub key: Vec<u8>,
    /// Parts, newest first; removals that count are among them, behind what is newer.
    pub parts: Vec<Part>,
    /// How many of them make the field.
    pub live: usize,
}

impl KeyVersions {
    /// Sorts the entries found under a key; `None` if nothing is visible. A removed field is present, with `live` 0.
    pub fn new(key: &[u8], mut parts: Vec<Part>) -> Option<KeyVersions> {
        if parts.len() > 1 {
            parts.sort_by(|a, b| {
                // Entries of one transaction share their order: among them the commits' own stamps count.
                let rank =
                    |p: &Part| (p.order, p.commit.stamp, p.commit.writer, p.commit.sequence, p.entry.ordinal);
                rank(b).cmp(&rank(a))
            });
        }
        hide_aged(&mut parts);
        drop_void_removals(&mut parts);
        let newest = newest_attempt(&parts);
        set_older_attempts_behind(&mut parts, newest);
        // An attempt tombstone names the attempt of the newest entry, and makes no field.
        parts.retain(|part| !part.is_attempt_tombstone());
        if parts.is_empty() {
            return None;
        }
        let live = generation(&parts, newest);
        Some(KeyVersions { key: key.to_vec(), parts, live })
    }

    /// Goes back to the generation that the visible one hides; `false` where there is none.
    pub fn go_back(&mut self) -> bool {
        self.parts.drain(..self.live);
        let removed = self.parts.iter().take_while(|part| part.entry.is_removal()).count();
        self.parts.drain(..removed);
        self.live = generation(&self.parts, newest_attempt(&self.parts));
        self.live > 0
    }

    /// Whether the visible generation follows a removal.
    pub fn is_over_removal(&self) -> bool {
        self.parts.get(self.live).is_some_and(|part| part.entry.is_removal())
    }

    /// How many parts are hidden.
    pub fn hidden(&self) -> usize {
        self.parts[self.live..].iter().filter(|part| !part.entry.is_removal()).count()
    }

    /// Adds an entry of a source if it is visible; `wipes` are those that select its key. `last` is of this snapshot and `own`.
    pub fn collect(
        snapshot: &Snapshot,
        (source, place): (usize, Place),
        value: &[u8],
        (own, wipes): (Option<Id>, &KeyWipes),
        last: &mut LastCommit,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let entry = Entry::decode(value)?;
        let (commit, order, holder) = last.of(snapshot, source, &entry, own)?;
        let wiped = match order {
            // Of moved entries, what their commit is here counts.
            Some(order) if !wipes.is_empty() => wipes.say_of(snapshot, &commit, order),
            _ => Wiped::No,
        };
        let mut part = Part::of(snapshot, (source, place), entry, (commit, holder))?;
        let Some(order) = order.filter(|_| !snapshot.gives_up(&part.commit, holder, &part.entry)) else {
            return Ok(());
        };
        // Of an attempt, it still hides what stragglers of older ones flush.
        if wiped == Wiped::Yes && (part.attempt.is_none() || part.commit.moved.is_some()) {
            return Ok(());
        }
        part.order = part.commit.moved.map_or(order, |moved| moved.order);
        part.wiped = wiped;
        parts.push(part);
        Ok(())
    }

    /// The parts that make the field, newest first.
    pub fn live(&self) -> &[Part] {
        &self.parts[..self.live]
    }

    /// The newest part.
    pub fn newest(&self) -> &Part {
        &self.parts[0]
    }

    /// Element type and shape of an array; `None` for opaque bytes. Conflict where pieces disagree.
    pub fn array(&self) -> Result<Option<(DType, &[u64])>> {
        let live = self.live();
        let Some(first) = &live[0].entry.array else { return Ok(None) };
        for part in &live[1..] {
            let agrees =
                part.entry.array.as_ref().is_some_and(|a| (a.dtype, &a.shape) == (first.dtype, &first.shape));
            if !agrees {
                return Err(self.disagreement(&live[0], part));
            }
        }
        Ok(Some((first.dtype, &first.shape)))
    }

    fn disagreement(&self, a: &Part, b: &Part) -> Error {
        let say = |part: &Part| match &part.entry.array {
            Some(array) => format!("writer {} says {} {:?}", part.commit.writer, array.dtype, array.shape),
            None => format!("writer {} wrote opaque bytes", part.commit.writer),
        };
        Code::PiecesDiffer
            .error(format!("the pieces of {} disagree: {}, {}", self.name(), say(a), say(b)))
            .with_hint("archive the whole field again, or create_field, to start a new generation")
    }

    /// Raw bytes of the field.
    pub fn nbytes(&self) -> Result<u64> {
        match self.array()? {
            Some((dtype, shape)) => fieldstone_core::geometry::element_count(shape)?
                .checked_mul(dtype.size() as u64)
                .ok_or_else(|| Error::corrupt("an array exceeds 64 bits")),
            None => Ok(self.newest().entry.length),
        }
    }

    /// Boxes that no piece covers. Of an array with elements that nobody wrote, nobody knows which they are:
    /// it covers nothing.
    pub fn missing(&self, limit: usize) -> Result<Uncovered> {
        let Some((_, shape)) = self.array()? else { return uncovered(&[], &[IndexBox::whole(&[])?], 1) };
        let boxes = self
            .live()
            .iter()
            .filter(|part| part.covers_its_box())
            .filter_map(|part| part.entry.index_box().transpose())
            .collect::<Result<Vec<IndexBox>>>()?;
        uncovered(shape, &boxes, limit)
    }

    /// How many elements of an array in a file of the store nobody wrote, whatever lies upon it.
    pub fn holes(&self) -> u64 {
        self.live().iter().map(|part| part.entry.location.holes()).max().unwrap_or(0)
    }

    /// Whether it was archived whole: whatever lies upon it, every element is there.
    pub fn is_whole(&self) -> bool {
        let oldest = &self.live()[self.live - 1].entry;
        oldest.generation && oldest.location != Location::None && oldest.location.holes() == 0
    }

    /// Whether every element is there.
    pub fn is_complete(&self) -> Result<bool> {
        Ok(self.is_whole() || self.missing(1)?.is_complete())
    }

    /// NotFound with the missing boxes' names, unless every element is there.
    pub fn check_complete(&self) -> Result<()> {
        if self.is_complete()? {
            return Ok(());
        }
        let holes = self.holes();
        if holes > 0 {
            let all = self.array()?.map_or(Ok(0), |(_, shape)| element_count(shape))?;
            return Err(Code::FieldIncomplete
                .error(format!(
                    "{} is incomplete: nobody has written {holes} of its {all} elements",
                    self.name()
                ))
                .with_hint("retrieve with strict=False reads missing elements as the fill value"));
        }
        let missing = self.missing(MISSING_NAMED)?;
        let mut names: Vec<String> = missing.boxes.iter().map(|b| format!("[{b}]")).collect();
        if missing.truncated {
            names.push("…".into());
        }
        Err(Code::FieldIncomplete
            .error(format!("{} is incomplete: nobody has written {}", self.name(), names.join(", ")))
            .with_hint("retrieve with strict=False fills what is missing"))
    }

    /// The key as text.
    pub fn name(&self) -> String {
        key_text(&self.key)
    }
}

/// Hides generations of which every entry is old enough for a wipe with an age: an array that has young pieces stays.
fn hide_aged(parts: &mut [Part]) {
    if !parts.iter().any(|part| part.wiped == Wiped::Unsure) {
        return;
    }
    for generation in parts.split_inclusive_mut(|part| part.entry.generation) {
        let stays =
            generation.iter().any(|part| part.wiped == Wiped::No && !part.entry.is_attempt_tombstone());
        let said = if stays { Wiped::No } else { Wiped::Yes };
        generation.iter_mut().filter(|part| part.wiped == Wiped::Unsure).for_each(|part| part.wiped = said);
    }
}

/// The attempt that began last.
fn newest_attempt(parts: &[Part]) -> Option<Order> {
    parts.iter().filter_map(|part| part.attempt).max()
}

/// The newest attempt hides everything from older ones, however late they flushed it. Values of writers without an
/// attempt keep their place next to the newest, but what a generation hid stays behind it: a purge may have dropped it.
fn set_older_attempts_behind(parts: &mut Vec<Part>, newest: Option<Order>) {
    let Some(newest) = newest.filter(|_| parts.len() > 1) else { return };
    let places = attempt_places(parts.iter().rev(), newest);
    let mut placed: Vec<(Order, Part)> = places.into_iter().rev().zip(parts.drain(..)).collect();
    placed.sort_by_key(|(place, _)| Reverse(*place));
    parts.extend(placed.into_iter().map(|(_, part)| part));
}

/// The attempts next to which parts stand, given from the oldest on: their own; of parts without one, the newest, or that of
/// the generation that hid them.
pub fn attempt_places<'a>(oldest_first: impl Iterator<Item = &'a Part>, newest: Order) -> Vec<Order> {
    let (mut places, mut began, mut plain) = (Vec::new(), None, Vec::new());
    for (number, part) in oldest_first.enumerate() {
        began = began.max(part.attempt);
        match part.attempt {
            None => plain.push(number),
            // Those that come later are of this attempt or of a newer one: the first says how far behind.
            Some(attempt) if part.is_generation_since(began) && !part.is_attempt_tombstone() => {
                plain.drain(..).for_each(|number: usize| places[number] = attempt);
            }
            Some(_) => {}
        }
        places.push(part.attempt.unwrap_or(newest));
    }
    places
}

/// How many parts, the newest first, make the newest generation, which is of one attempt, the newest; 0 where it is a
/// removal.
fn generation(parts: &[Part], newest: Option<Order>) -> usize {
    let older = |part: &Part| part.attempt.is_some() && part.attempt != newest;
    let parts = &parts[..parts.iter().position(older).unwrap_or(parts.len())];
    match parts.iter().position(|part| part.entry.generation) {
        Some(i) if parts[i].entry.is_removal() => i,
        Some(i) => i + 1,
        None => parts.len(),
    }
}

/// Drops removals that name another entry than the one they would hide, and those that hide nothing (F-7).
fn drop_void_removals(parts: &mut Vec<Part>) {
    if !parts.iter().any(|part| part.entry.is_removal()) {
        return;
    }
    // From the oldest on: what is kept so far, and not hidden by a newer attempt, is what a removal finds.
    let mut kept: Vec<Part> = Vec::with_capacity(parts.len());
    let (mut found, mut attempt) = (None, None);
    for part in parts.drain(..).rev() {
        let removal = match &part.entry.location {
            Location::Removed { only } if part.wiped != Wiped::Yes => Some(*only),
            _ => None,
        };
        match (removal, found) {
            (Some(_), None) => continue,
            (Some(Some(only)), Some(found)) if found != only => continue,
            _ => {}
        }
        attempt = attempt.max(part.attempt);
        if removal.is_none()
            && !part.is_attempt_tombstone()
            && (part.attempt.is_none() || part.attempt == attempt)
        {
            found = Some(part.id());
        }
        kept.push(part);
    }
    kept.reverse();
    *parts = kept;
}
