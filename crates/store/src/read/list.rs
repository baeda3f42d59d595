//! Listing: a stream in key order that holds few blocks of each segment and takeover.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Identity;
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::schema::Selection;
use fieldstone_format::Id;
use fieldstone_format::entry::{ArrayInfo, Blocks, Location};
use fieldstone_format::keys::KeyDecoder;
use fieldstone_format::log::LogHeader;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_journal::entry_source::{EntryCommit, EntrySource};
use fieldstone_journal::session::Limits;

use super::field::summary_of;
use super::lookup::lookup;
use super::overlaid::{FieldWalk, Walked};
use super::purged::{is_purged, purged};
use super::scan::Scan;
use super::versions::{KeyVersions, Part};
use crate::api::{Extremes, FieldLocation, ListEntry, ListOptions, PlaceFile};
use crate::files::Files;
use crate::snapshot::{Snapshot, origin_at};

/// Lists the fields that a request selects, except those that an `older` snapshot shows.
pub fn list(
    snapshot: &Arc<Snapshot>,
    selection: Selection,
    options: &ListOptions,
    older: Option<Arc<Snapshot>>,
    limits: Limits,
) -> Result<ListStream> {
    let scan = match &older {
        None => Scan::new(snapshot.clone(), selection, options.session.transaction())?,
        Some(older) => {
            let news = |source| holds_news(snapshot, source, older);
            Scan::over(snapshot.clone(), selection, options.session.transaction(), news)?.with_removed(true)
        }
    };
    let scan = scan.within(limits);
    Ok(ListStream {
        walk: FieldWalk::of(match &older {
            None => scan.with_removed(options.masked && options.depth == 3),
            Some(_) => scan,
        }),
        older,
        options: options.clone(),
        decoder: KeyDecoder::new(),
        users: HashMap::new(),
        names: UserNames(None),
        attempt: None,
        masked: Vec::new(),
        failed: false,
        only: None,
    })
}

/// Whether an older snapshot shows what a commit holds.
fn shows(older: &Snapshot, commit: &EntryCommit) -> bool {
    older.holds(commit) && older.order(commit, None).is_some()
}

/// Whether a source holds a commit that an older snapshot does not show. One that cannot be read may.
fn holds_news(snapshot: &Snapshot, source: usize, older: &Snapshot) -> bool {
    match &snapshot.sources[source] {
        EntrySource::Segment(segment, _) => segment.meta().map_or(true, |meta| {
            (0..meta.commits.len() as u64).any(|number| {
                snapshot.commit_at(source, number).map_or(true, |commit| !shows(older, &commit))
            })
        }),
        // A later decision may have made prepared commits visible.
        EntrySource::Takeover(takeover) => {
            !older.taken.holds_all(takeover) || takeover.rows(TakeoverTable::Transactions) > 0
        }
    }
}

/// The source of users' names.
struct UserNames(Option<Arc<dyn Identity>>);

impl UserNames {
    /// The owner that counts: that of the log's file, whoever wrote it.
    fn owner(&self, user: u32, header: Option<&LogHeader>) -> Arc<str> {
        match (&self.0, header) {
            (_, Some(header)) if header.uid == user => header.user.as_str().into(),
            (Some(identity), _) => identity.user_name(user).into(),
            (None, _) => user.to_string().into(),
        }
    }
}

/// The stream behind a listing.
pub struct ListStream {
    walk: FieldWalk,
    /// A snapshot whose fields are not listed.
    older: Option<Arc<Snapshot>>,
    options: ListOptions,
    decoder: KeyDecoder,
    users: HashMap<u32, Arc<str>>,
    names: UserNames,
    /// The log that was shown last, and the attempt it is of: neighbours are of one.
    attempt: Option<(Id, Arc<str>)>,
    /// Hidden versions of the last key, to be given next, in reverse.
    masked: Vec<ListEntry>,
    failed: bool,
    /// Commits of which a field's parts have to be.
    only: Option<HashSet<(Id, u64)>>,
}

impl Iterator for ListStream {
    type Item = Result<ListEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if let Some(entry) = self.masked.pop() {
            return Some(Ok(entry));
        }
        let next = self.next_entry();
        self.failed = next.is_err();
        next.transpose()
    }
}

impl ListStream {
    /// The same, with the fields that overlays show.
    pub fn with_overlays(mut self, limits: &Limits) -> Result<ListStream> {
        if self.walk.snapshot().overlays.is_empty() {
            return Ok(self);
        }
        let own = self.options.session.transaction();
        let walk = self.walk.with_overlays((own, self.options.masked && self.options.depth == 3), limits)?;
        self.walk = if self.older.is_some() { walk.partial() } else { walk };
        Ok(self)
    }

    /// The same, of fields alone with a part that came by one of these commits: log and sequence.
    pub fn of_commits(mut self, commits: HashSet<(Id, u64)>) -> ListStream {
        self.only = Some(commits);
        self
    }

    /// The same, which is Denied where a lock forbids lists.
    pub fn heeding_locks(mut self, identity: &Arc<dyn Identity>) -> ListStream {
        self.walk = self.walk.heeding(LockKind::List, true, identity);
        self
    }

    /// The same, which goes on elsewhere if files go that a takeover has replaced.
    pub fn on(mut self, files: &Arc<Files>) -> ListStream {
        self.walk = self.walk.on(files);
        self
    }

    /// The same; names of users whom no log names are asked for there.
    pub fn named_by(mut self, identity: &Arc<dyn Identity>) -> ListStream {
        self.names = UserNames(Some(identity.clone()));
        self
    }

    fn is_wanted(&self, versions: &KeyVersions) -> bool {
        let of = |only: &HashSet<(Id, u64)>| {
            // A moved part is of the commit that it was moved from, too.
            let moved = |part: &Part| part.commit.moved.map(|moved| (moved.order.1, moved.sequence));
            let is_of = |part: &Part| {
                only.contains(&(part.commit.writer, part.commit.sequence))
                    || moved(part).is_some_and(|commit| only.contains(&commit))
            };
            versions.live().iter().any(is_of)
        };
        self.only.as_ref().is_none_or(of)
    }

    /// Whether the older snapshot, if there is one, does not show a field.
    fn is_new(&self, walked: &mut Walked) -> Result<bool> {
        let Some(older) = &self.older else { return Ok(true) };
        let is_new = |part: &Part| !shows(older, &part.commit);
        if let Some((_, overlay)) = walked.shown {
            return Ok(
                !older.overlays.has(self.walk.overlay(overlay)) || walked.versions.live().iter().any(is_new)
            );
        }
        if !walked.versions.parts.iter().any(is_new) {
            return Ok(false);
        }
        // The walk did not see everything under the key.
        let own = self.options.session.transaction();
        match lookup(self.walk.snapshot(), &walked.versions.key, own)? {
            Some(all) if all.live().iter().any(is_new) => {
                walked.versions = all;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn next_entry(&mut self) -> Result<Option<ListEntry>> {
        loop {
            let Some(mut walked) = self.walk.next_key()? else { return self.end().map(|()| None) };
            if !self.is_new(&mut walked)? || !self.is_wanted(&walked.versions) {
                continue;
            }
            let newest = if walked.versions.live > 0 { Some(self.entry(&walked)?) } else { None };
            if self.options.depth < 3 {
                self.walk.skip_levels(walked.key(), usize::from(self.options.depth.max(1)))?;
            } else if self.options.masked {
                while walked.versions.go_back() {
                    let mut older = self.entry(&walked)?;
                    older.masked = true;
                    self.masked.insert(0, older);
                }
            }
            if let Some(mut entry) = newest.or_else(|| self.masked.pop()) {
                entry.depth = self.options.depth.clamp(1, 3);
                return Ok(Some(entry));
            }
        }
    }

    /// Everything that can be read comes first; then a list says so if a purge may have taken something away from this version (R31).
    fn end(&self) -> Result<()> {
        match self.older.is_none() && is_purged(self.walk.snapshot(), self.walk.selection())? {
            true => Err(purged("more fields")),
            false => Ok(()),
        }
    }

    fn attempt(&mut self, walked: &Walked) -> Option<Arc<str>> {
        let part = walked.versions.live().iter().find(|part| part.attempt.is_some())?;
        if part.commit.moved.is_some() {
            let origin =
                origin_at(self.walk.snapshot_of(walked), part.source as usize, part.entry.commit).ok()??;
            return origin.attempt.map(|attempt| attempt.name.into());
        }
        let writer = part.commit.writer;
        if self.attempt.as_ref().is_none_or(|(of, _)| *of != writer) {
            self.attempt = Some((writer, self.walk.snapshot_of(walked).attempt_name(writer)?.into()));
        }
        self.attempt.as_ref().map(|(_, name)| name.clone())
    }

    fn entry(&mut self, walked: &Walked) -> Result<ListEntry> {
        let (key, versions) = (self.decoder.decode(walked.key())?, &walked.versions);
        let newest = versions.newest();
        let array = newest.entry.array.as_ref();
        let (commit, snapshot) = (&newest.commit, self.walk.snapshot_of(walked));
        let user = snapshot.hand_overs.owner(commit.user, commit.stamp);
        // The log names the user who wrote it.
        let header = || snapshot.header(commit.writer).filter(|_| user == commit.user);
        let name = || self.names.owner(user, header().as_deref());
        let owner = self.users.entry(user).or_insert_with(name).clone();
        let attempt = self.attempt(walked);
        let snapshot = self.walk.snapshot_of(walked);
        // Pieces that disagree are listed as the newest says; reading them is a Conflict.
        let agree = versions.array().is_ok();
        Ok(ListEntry {
            key,
            depth: 3,
            nbytes: if agree { versions.nbytes()? } else { newest.entry.length },
            dtype: array.map(|a| a.dtype),
            shape: array.map(|a| a.shape.as_slice().into()),
            chunks: chunks_of(versions),
            packed: is_packed(snapshot, newest),
            complete: agree && versions.is_complete()?,
            place: place_of(snapshot, newest),
            time: newest.commit.time,
            owner,
            summary: summary_of(versions).map(Extremes::from),
            attempt,
            masked: false,
        })
    }
}

/// Extents of the chunks that a field is stored in; of pieces those of the field's creation, else of the
/// largest piece. `None` where one block holds it.
fn chunks_of(versions: &KeyVersions) -> Option<Arc<[u64]>> {
    let newest = versions.newest().entry.array.as_ref()?;
    if newest.piece.is_none() {
        return versions.newest().chunk().map(Arc::from);
    }
    let arrays = || versions.live().iter().filter_map(|part| part.entry.array.as_deref());
    let whole = arrays().find(|array| array.piece.is_none()).and_then(|array| array.chunk.as_deref());
    let extents = |array: &ArrayInfo| match (&array.chunk, &array.piece) {
        (Some(chunk), _) => chunk.clone(),
        (None, Some(piece)) => piece.count().to_vec(),
        (None, None) => array.shape.clone(),
    };
    whole.map(Arc::from).or_else(|| {
        let largest = arrays()
            .map(extents)
            .max_by_key(|count| count.iter().fold(1, |n: u64, extent| n.saturating_mul(*extent)))?;
        Some(largest.into())
    })
}

/// Whether blocks of an array are compressed. The bytes of those in a table end where it begins, where
/// nothing else stands between.
fn is_packed(snapshot: &Snapshot, part: &Part) -> Option<bool> {
    part.entry.array.as_ref()?;
    match part.entry.location {
        Location::Blocks { .. } => place_of(snapshot, part)?.length.map(|stored| stored < part.entry.length),
        _ => None,
    }
}

/// The position of a part's first bytes.
pub fn place_of(snapshot: &Snapshot, part: &Part) -> Option<FieldLocation> {
    match &part.entry.location {
        Location::None | Location::AttemptTombstone(_) | Location::Removed { .. } => None,
        Location::Inline { data, .. } => Some(FieldLocation {
            file: match &snapshot.sources[part.source as usize] {
                EntrySource::Segment(..) => PlaceFile::Own(part.holder, 0),
                EntrySource::Takeover(takeover) => PlaceFile::Takeover(takeover.place.clone()),
            },
            offset: 0,
            length: Some(data.len() as u64),
        }),
        Location::Blocks { file, offset, blocks, .. } => Some(FieldLocation {
            file: PlaceFile::Own(part.holder, *file),
            offset: *offset,
            length: match blocks {
                Blocks::Inline(blocks) => Some(blocks.iter().map(|b| b.stored).sum()),
                Blocks::Table { offset: table, .. } => table.checked_sub(*offset),
            },
        }),
        Location::Grown(grown) => Some(FieldLocation {
            file: PlaceFile::Grown(grown.path.as_str().into()),
            offset: grown.offset,
            length: Some(part.entry.length),
        }),
        Location::External(external) => Some(FieldLocation {
            file: PlaceFile::Outside(external.url.as_str().into()),
            offset: external.offset,
            length: Some(part.entry.length),
        }),
    }
}
