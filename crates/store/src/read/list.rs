//! Listing: a stream in key order that holds one block per segment.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Identity;
use fieldstone_core::schema::Selection;
use fieldstone_format::Id;
use fieldstone_format::entry::{ArrayInfo, Blocks, Location};
use fieldstone_format::keys::{KeyDecoder, level_ends};
use fieldstone_format::segment::CommitInfo;
use fieldstone_journal::session::Limits;

use super::field::summary_of;
use super::lookup::lookup;
use super::scan::Scan;
use super::versions::{KeyVersions, Part};
use crate::api::{Extremes, FieldLocation, ListEntry, ListOptions, PlaceFile};
use crate::snapshot::{Snapshot, SnapshotLog};

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
            let news = |segment| holds_news(snapshot, segment, older);
            Scan::over(snapshot.clone(), selection, options.session.transaction(), news)?.with_removed(true)
        }
    };
    let scan = scan.within(limits);
    Ok(ListStream {
        scan: match &older {
            None => scan.with_removed(options.masked && options.depth == 3),
            Some(_) => scan,
        },
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
fn shows(older: &Snapshot, writer: Id, commit: &CommitInfo) -> bool {
    let reached = older.log(writer).is_some_and(|log| log.record.sequence >= commit.sequence);
    reached && older.order(writer, commit, None).is_some()
}

/// Whether a segment holds a commit that an older snapshot does not show. One that cannot be read may.
fn holds_news(snapshot: &Snapshot, segment: usize, older: &Snapshot) -> bool {
    let writer = snapshot.log_of(segment).writer;
    let meta = snapshot.segments[segment].meta();
    meta.map_or(true, |meta| meta.commits.iter().any(|commit| !shows(older, writer, commit)))
}

/// The source of users' names.
struct UserNames(Option<Arc<dyn Identity>>);

impl UserNames {
    /// The owner that counts: that of the log's file, whoever wrote it.
    fn owner(&self, log: &SnapshotLog) -> Arc<str> {
        match &self.0 {
            Some(identity) if log.header.uid != log.uid => identity.user_name(log.uid).into(),
            None if log.header.uid != log.uid => log.uid.to_string().into(),
            _ => log.header.user.as_str().into(),
        }
    }
}

/// The stream behind a listing.
pub struct ListStream {
    scan: Scan,
    /// A snapshot whose fields are not listed.
    older: Option<Arc<Snapshot>>,
    options: ListOptions,
    decoder: KeyDecoder,
    users: HashMap<u32, Arc<str>>,
    names: UserNames,
    /// The attempt that was shown last: neighbours are of one.
    attempt: Option<Arc<str>>,
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
    /// The same, of fields alone with a part that came by one of these commits: log and sequence.
    pub fn of_commits(mut self, commits: HashSet<(Id, u64)>) -> ListStream {
        self.only = Some(commits);
        self
    }

    /// The same; names of users whom no log names are asked for there.
    pub fn named_by(mut self, identity: &Arc<dyn Identity>) -> ListStream {
        self.names = UserNames(Some(identity.clone()));
        self
    }

    fn is_wanted(&self, versions: &KeyVersions) -> bool {
        let of = |only: &HashSet<(Id, u64)>| {
            versions.live().iter().any(|part| only.contains(&(part.writer, part.commit.sequence)))
        };
        self.only.as_ref().is_none_or(of)
    }

    fn next_entry(&mut self) -> Result<Option<ListEntry>> {
        loop {
            let Some(mut versions) = self.scan.next_key()? else { return Ok(None) };
            if let Some(older) = &self.older {
                let is_new = |part: &Part| !shows(older, part.writer, &part.commit);
                if !versions.parts.iter().any(is_new) {
                    continue;
                }
                // The walk did not see everything under the key.
                match lookup(self.scan.snapshot(), &versions.key, self.options.session.transaction())? {
                    Some(all) if all.live().iter().any(is_new) => versions = all,
                    _ => continue,
                }
            }
            if !self.is_wanted(&versions) {
                continue;
            }
            let newest = if versions.live > 0 { Some(self.entry(&versions)?) } else { None };
            if self.options.depth < 3 {
                let end = level_ends(&versions.key)?[usize::from(self.options.depth.max(1)) - 1];
                self.scan.skip_prefix(&versions.key[..end])?;
            } else if self.options.masked {
                while versions.go_back() {
                    let mut older = self.entry(&versions)?;
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

    fn attempt(&mut self, versions: &KeyVersions) -> Option<Arc<str>> {
        let part = versions.live().iter().find(|part| part.attempt.is_some())?;
        let log = self.scan.snapshot().log_of(part.segment as usize);
        let name = &log.record.attempt.as_ref()?.name;
        if self.attempt.as_deref() != Some(name) {
            self.attempt = Some(name.as_str().into());
        }
        self.attempt.clone()
    }

    fn entry(&mut self, versions: &KeyVersions) -> Result<ListEntry> {
        let key = self.decoder.decode(&versions.key)?;
        let newest = versions.newest();
        let array = newest.entry.array.as_ref();
        let log = self.scan.snapshot().log_of(newest.segment as usize);
        let owner = self.users.entry(log.uid).or_insert_with(|| self.names.owner(log)).clone();
        // Pieces that disagree are listed as the newest says; reading them is a Conflict.
        let agree = versions.array().is_ok();
        Ok(ListEntry {
            key,
            depth: 3,
            nbytes: if agree { versions.nbytes()? } else { newest.entry.length },
            dtype: array.map(|a| a.dtype),
            shape: array.map(|a| a.shape.as_slice().into()),
            chunks: chunks_of(versions),
            packed: is_packed(newest),
            complete: agree && versions.is_complete()?,
            place: place_of(newest),
            time: newest.commit.time,
            owner,
            summary: summary_of(versions).map(Extremes::from),
            attempt: self.attempt(versions),
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
    let arrays = || versions.live().iter().filter_map(|part| part.entry.array.as_ref());
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
fn is_packed(part: &Part) -> Option<bool> {
    part.entry.array.as_ref()?;
    match part.entry.location {
        Location::Blocks { .. } => place_of(part)?.length.map(|stored| stored < part.entry.length),
        _ => None,
    }
}

/// The position of a part's first bytes.
pub fn place_of(part: &Part) -> Option<FieldLocation> {
    match &part.entry.location {
        Location::None | Location::AttemptTombstone(_) | Location::Removed { .. } => None,
        Location::Inline { data, .. } => Some(FieldLocation {
            file: PlaceFile::Own(part.writer, 0),
            offset: 0,
            length: Some(data.len() as u64),
        }),
        Location::Blocks { file, offset, blocks, .. } => Some(FieldLocation {
            file: PlaceFile::Own(part.writer, *file),
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
