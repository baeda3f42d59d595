//! Walking all segments and takeovers of a snapshot in key order, key by key, skipping what a request cannot match.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::env::Identity;
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::schema::Selection;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::{level_ends, level_values};
use fieldstone_journal::entry_source::{EntryCursor, EntryHeap};
use fieldstone_journal::session::Limits;

use super::matcher::{Match, Matcher};
use super::versions::{KeyVersions, LastCommit, Part};
use crate::files::Files;
use crate::snapshot::{KeyWipes, Loss, Overlay, Owners, Snapshot, entry_counts, unhidden};

/// A merge of all sources of entries. Memory: one block per segment, one per level of a takeover's table.
#[derive(Debug)]
pub struct Scan {
    snapshot: Arc<Snapshot>,
    matcher: Matcher,
    own: Option<Id>,
    limits: Limits,
    heap: EntryHeap,
    key: Vec<u8>,
    prefix: Vec<u8>,
    /// Index blocks that could not be read. The rest comes first, then these as an error.
    damage: Vec<Error>,
    /// Whether to give also keys whose field was removed.
    removed: bool,
    /// Whether logs that lost commits are skipped.
    lenient: bool,
    /// Owners of the datasets that were passed, where logs lost commits.
    users: BTreeSet<u32>,
    /// The source of the same commits, where a file is gone; none once it says that no takeover has them.
    files: Option<Arc<Files>>,
    /// All keys before this one were given or passed.
    done: Vec<u8>,
    wiped: WipedPrefix,
    last: LastCommit,
    heeded: Option<Heeded>,
    /// Whether hides do not concern it.
    unhidden: bool,
}

/// The locks that a walk heeds.
#[derive(Debug)]
struct Heeded {
    kind: LockKind,
    /// Whether a locked dataset is an error; otherwise the walk passes it.
    strict: bool,
    identity: Arc<dyn Identity>,
    /// The first level of the dataset that the walk is at, which is not locked.
    free: Vec<u8>,
}

/// The wipes that select the keys with the first two levels that the walk is at.
#[derive(Debug, Default)]
struct WipedPrefix {
    prefix: Vec<u8>,
    wipes: KeyWipes,
    /// By source, how many first levels of these keys it may pass.
    levels: HashMap<usize, Option<usize>>,
}

impl WipedPrefix {
    /// Moves on to a key.
    fn enter(&mut self, snapshot: &Snapshot, key: &[u8]) -> Result<()> {
        if self.prefix.is_empty() || !key.starts_with(&self.prefix) {
            self.prefix = key[..level_ends(key)?[1]].to_vec();
            self.wipes = snapshot.wipes.of_key(key)?;
            self.levels.clear();
        }
        Ok(())
    }

    /// The keys of a source with the current first levels that wipes hide: those that begin so.
    fn hidden(&mut self, snapshot: &Snapshot, source: usize) -> Result<Option<&[u8]>> {
        let wipes = &self.wipes;
        let levels = self.levels.entry(source).or_insert_with(|| wipes.levels_hidden(snapshot, source));
        let Some(levels) = *levels else { return Ok(None) };
        let end = if levels < 2 { first_levels(&self.prefix, levels)? } else { self.prefix.len() };
        Ok(Some(&self.prefix[..end]))
    }
}

/// The end of that many levels of a key, at most one.
fn first_levels(key: &[u8], levels: usize) -> Result<usize> {
    let mut rest = key;
    for _ in 0..levels {
        level_values(&mut rest, &mut Vec::new())?;
    }
    Ok(key.len() - rest.len())
}

impl Scan {
    /// A walk over what `selection` matches.
    pub fn new(snapshot: Arc<Snapshot>, selection: Selection, own: Option<Id>) -> Result<Scan> {
        Scan::over(snapshot, selection, own, |_| true)
    }

    /// The same of some sources alone: of a key it gives what stands there.
    pub fn over(
        snapshot: Arc<Snapshot>,
        selection: Selection,
        own: Option<Id>,
        walked: impl Fn(usize) -> bool,
    ) -> Result<Scan> {
        let (heap, damage) = cursors(&snapshot, walked)?;
        let matcher = Matcher::new(selection);
        Ok(Scan {
            snapshot,
            matcher,
            own,
            limits: Limits::default(),
            heap,
            key: Vec::new(),
            prefix: Vec::new(),
            damage,
            removed: false,
            lenient: false,
            users: BTreeSet::new(),
            files: None,
            done: Vec::new(),
            wiped: WipedPrefix::default(),
            last: LastCommit::default(),
            heeded: None,
            unhidden: false,
        })
    }

    /// A walk over what an overlay selects, where the request matches the keys under which it appears. It gives each field under
    /// the key that it was archived by.
    pub fn through(
        snapshot: &Arc<Snapshot>,
        selection: Selection,
        overlay: &Arc<Overlay>,
        own: Option<Id>,
    ) -> Result<Scan> {
        let matcher = Matcher::through(selection.clone(), overlay.clone());
        Ok(Scan { matcher, ..Scan::new(snapshot.clone(), selection, own)? })
    }

    /// A walk that hides do not concern; wipes do.
    pub fn unhidden(snapshot: &Arc<Snapshot>, selection: Selection) -> Result<Scan> {
        Ok(Scan { unhidden: true, ..Scan::new(unhidden(snapshot), selection, None)? })
    }

    /// The same walk, which heeds locks: a dataset where one forbids this is Denied, or passed.
    pub fn heeding(mut self, kind: LockKind, strict: bool, identity: &Arc<dyn Identity>) -> Scan {
        self.heeded = Some(Heeded { kind, strict, identity: identity.clone(), free: Vec::new() });
        self
    }

    /// The same walk, within the limits of a session.
    pub fn within(mut self, limits: Limits) -> Scan {
        self.limits = limits;
        self
    }

    /// The same walk, which goes on elsewhere if files go that a takeover has replaced.
    pub fn on(mut self, files: &Arc<Files>) -> Scan {
        self.files = Some(files.clone());
        self
    }

    /// The same walk, past keys whose field was removed, too.
    pub fn with_removed(mut self, removed: bool) -> Scan {
        self.removed = removed;
        self
    }

    /// The same walk; losses of logs are not an error at its end.
    pub fn lenient(mut self, lenient: bool) -> Scan {
        self.lenient = lenient;
        self
    }

    /// Losses of logs that may have held something for this walk. For logs of other users, only losses of the
    /// datasets' owners count.
    fn loss(&self) -> Option<Error> {
        let concerns = |loss: &&Loss| match self.snapshot.owners {
            Owners::One(_) => true,
            Owners::Many(..) => {
                self.users.iter().any(|owner| self.snapshot.hand_overs.may_count(loss.owner, *owner))
            }
        };
        self.snapshot.losses.iter().find(concerns).map(Loss::error)
    }

    /// The snapshot that is walked.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The request.
    pub fn selection(&self) -> &Selection {
        self.matcher.selection()
    }

    /// The request in its prepared form.
    pub fn matcher(&mut self) -> &mut Matcher {
        &mut self.matcher
    }

    /// The next key under which something is visible. Damage of the index, and commits that logs lost, are
    /// an error after the last key, so that everything readable comes first.
    pub fn next_key(&mut self) -> Result<Option<KeyVersions>> {
        loop {
            let found = self.step();
            let is_gone = |e: &Error| e.code() == Code::DataGone;
            if (self.damage.iter().any(is_gone) || found.as_ref().is_err_and(is_gone))
                && self.go_on_elsewhere()?
            {
                continue;
            }
            if let Ok(Some(versions)) = &found {
                self.done.clear();
                self.done.extend_from_slice(&versions.key);
                // No key begins with another one.
                self.done.push(0);
            }
            return found;
        }
    }

    /// Goes on in a snapshot of the same commits, if takeovers moved them; `false` if they are where they were.
    fn go_on_elsewhere(&mut self) -> Result<bool> {
        let Some(files) = self.files.clone() else { return Ok(false) };
        let Some(snapshot) = files.again(&self.snapshot)? else {
            self.files = None;
            return Ok(false);
        };
        let snapshot = if self.unhidden { unhidden(&snapshot) } else { snapshot };
        (self.heap, self.damage) = cursors(&snapshot, |_| true)?;
        (self.snapshot, self.wiped, self.last) = (snapshot, WipedPrefix::default(), LastCommit::default());
        let done = self.done.clone();
        self.seek(&done)?;
        Ok(true)
    }

    fn step(&mut self) -> Result<Option<KeyVersions>> {
        self.limits.step()?;
        while let Some(first) = self.heap.first() {
            match self.matcher.test(first.key())? {
                Match::Yes => {}
                Match::Seek(target) => {
                    self.seek(&target)?;
                    continue;
                }
            }
            if !self.snapshot.locks.is_empty() && self.pass_locked()? {
                continue;
            }
            if !self.snapshot.wipes.is_empty() && self.pass_wiped()? {
                continue;
            }
            let Some(first) = self.heap.first() else { break };
            self.key.clear();
            self.key.extend_from_slice(first.key());
            // Most keys have one: room for four would be too large for the allocator's fast lists.
            let mut parts: Vec<Part> = Vec::with_capacity(1);
            let dataset_end = match &self.snapshot.owners {
                Owners::One(_) => 0,
                Owners::Many(..) => level_ends(&self.key)?[0],
            };
            if !self.snapshot.losses.is_empty() {
                self.users.extend(self.snapshot.owner(&self.key[..dataset_end]));
            }
            while let Some(cursor) = self.heap.first_mut()
                && cursor.key() == self.key
            {
                let source = cursor.index;
                if entry_counts(&self.snapshot, &self.key[..dataset_end], cursor)? {
                    KeyVersions::collect(
                        &self.snapshot,
                        (source, cursor.place()),
                        cursor.value(),
                        (self.own, &self.wiped.wipes),
                        &mut self.last,
                        &mut parts,
                    )
                    .map_err(|e| e.context(fieldstone_format::keys::key_text(&self.key)))?;
                }
                let more = cursor.advance()?;
                self.restore_heap(more);
            }
            if let Some(versions) = KeyVersions::new(&self.key, parts)
                && (versions.live > 0 || self.removed)
            {
                return Ok(Some(versions));
            }
        }
        // F-10: all that can be read comes first, then the damage.
        let damage = self.damage.drain(..).next();
        match damage {
            Some(first) => Err(first),
            None if self.lenient => Ok(None),
            None => {
                self.lenient = true;
                self.loss().map_or(Ok(None), Err)
            }
        }
    }

    /// Moves the first cursor behind what wipes hide of its source, if its key is hidden with all of its neighbours.
    fn pass_wiped(&mut self) -> Result<bool> {
        let Some(first) = self.heap.first() else { return Ok(false) };
        self.wiped.enter(&self.snapshot, first.key())?;
        if self.wiped.wipes.is_empty() {
            return Ok(false);
        }
        let Some(hidden) = self.wiped.hidden(&self.snapshot, first.index)? else { return Ok(false) };
        // No key byte is 0xff where a level may begin, so this is behind all of them.
        let target = [hidden, &[0xff]].concat();
        let more = self.heap.first_mut().map_or(Ok(false), |first| first.seek(&target))?;
        self.restore_heap(more);
        Ok(true)
    }

    /// Passes the dataset of the first cursor, if a lock forbids it.
    fn pass_locked(&mut self) -> Result<bool> {
        let (Some(first), Some(heeded)) = (self.heap.first(), &self.heeded) else { return Ok(false) };
        let key = first.key();
        if !heeded.free.is_empty() && key.starts_with(&heeded.free) {
            return Ok(false);
        }
        let level = key[..level_ends(key)?[0]].to_vec();
        if self.is_locked(&level)? {
            self.skip_prefix(&level)?;
            return Ok(true);
        }
        if let Some(heeded) = &mut self.heeded {
            heeded.free = level;
        }
        Ok(false)
    }

    /// Whether a lock keeps a dataset, by its encoded first level, from this walk; Denied where that is an error.
    pub fn is_locked(&self, level: &[u8]) -> Result<bool> {
        let Some(heeded) = &self.heeded else { return Ok(false) };
        match self.snapshot.locks.against(heeded.kind, level, &self.snapshot)? {
            Some(lock) if heeded.strict => Err(lock.error(level, &*heeded.identity)),
            found => Ok(found.is_some()),
        }
    }

    /// Moves every cursor to `target` or behind it.
    fn seek(&mut self, target: &[u8]) -> Result<()> {
        while let Some(cursor) = self.heap.first_mut()
            && cursor.key() < target
        {
            let more = cursor.seek(target)?;
            self.restore_heap(more);
        }
        Ok(())
    }

    /// Passes the rest of the dataset or index whose encoded levels are `prefix`.
    pub fn skip_prefix(&mut self, prefix: &[u8]) -> Result<()> {
        self.prefix.clear();
        self.prefix.extend_from_slice(prefix);
        // No key byte is 0xff where a level may begin, so this is behind all keys with the prefix.
        self.prefix.push(0xff);
        let target = std::mem::take(&mut self.prefix);
        self.seek(&target)?;
        self.done.clone_from(&target);
        self.prefix = target;
        Ok(())
    }

    /// Passes all keys before one.
    pub fn skip_to(&mut self, key: &[u8]) -> Result<()> {
        self.seek(key)?;
        self.done = key.to_vec();
        Ok(())
    }

    /// Restores the heap after its first cursor moved, or drops it where it ended.
    fn restore_heap(&mut self, more: bool) {
        if let Some(cursor) = self.heap.first_mut() {
            self.damage.extend(cursor.take_damage());
        }
        self.heap.settle(more);
    }
}

/// Cursors before the first entries of sources, and what cannot be read there.
fn cursors(snapshot: &Snapshot, walked: impl Fn(usize) -> bool) -> Result<(EntryHeap, Vec<Error>)> {
    let (mut heap, mut damage) = (Vec::with_capacity(snapshot.sources.len()), Vec::new());
    let is_walked = |index: usize| walked(index) && !snapshot.wipes.hide_source(snapshot, index);
    for (index, source) in snapshot.sources.iter().enumerate().filter(|(index, _)| is_walked(*index)) {
        let mut cursor = EntryCursor::tolerant(source, index);
        match cursor.advance() {
            Ok(true) => heap.push(cursor),
            Ok(false) => damage.extend(cursor.take_damage()),
            Err(e) if e.kind() == ErrorKind::Corrupt => damage.push(e),
            Err(e) => return Err(e),
        }
    }
    Ok((EntryHeap::new(heap), damage))
}
