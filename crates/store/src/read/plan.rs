//! The fields of a retrieve: found once, kept compactly, decoded window by window.
//!
//! Locating reads only the index. A field takes 12 bytes here (plus 8 for its place in request order). Its entry is
//! decoded again when it is read, for [`WINDOW`] fields at a time, so that a retrieve of millions of fields runs in
//! bounded memory. If a takeover has replaced the files of the index meanwhile, the same entries are located again
//! in the newest snapshot (R31).

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::env::{Env, Identity};
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::schema::{Keys, Selection};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_journal::Session;
use fieldstone_journal::entry_source::EntryCursor;
use fieldstone_journal::session::Limits;

use super::field::LocalField;
use super::lookup::lookup;
use super::matcher::Matcher;
use super::overlaid::{FieldWalk, lookup_overlaid};
use super::purged::{is_purged, purged};
use super::versions::{KeyVersions, LastCommit, Part};
use crate::field::{Field, Fields, FieldsSource};
use crate::files::Files;
use crate::snapshot::{KeyWipes, Snapshot};
use fieldstone_format::keys::{encode_key, level_ends};

/// Fields decoded together.
const WINDOW: usize = 1024;
/// Requests that name at most this many keys look each of them up; others walk the index.
const LOOKUPS_MAX: u64 = 256;
/// Most missing combinations that a message names.
const MISSING_NAMED: usize = 5;

/// An entry's place: its source, and where it is there.
type Ref = (u32, u32, u32);

#[derive(Debug)]
struct Plan {
    files: Arc<Files>,
    snapshot: Arc<Snapshot>,
    lenient: bool,
    own: Option<Id>,
    selection: Selection,
    /// Number of fields.
    count: usize,
    /// The entries of the fields, as they were located last.
    located: Mutex<Arc<Located>>,
    /// The places in request order of found fields, ascending; empty if nothing is missing.
    ranks: Vec<u64>,
    /// The window decoded last.
    window: Mutex<Option<(usize, Arc<[Field]>)>>,
}

/// The entries of the fields in a snapshot.
#[derive(Debug)]
struct Located {
    snapshot: Arc<Snapshot>,
    /// The one entry of each field, or an index into `complex` where the source is `u32::MAX`.
    refs: Vec<Ref>,
    /// The live entries of fields that have several, newest first.
    complex: Vec<Vec<Ref>>,
    /// By the number of a field that an overlay shows, that of the overlay among the newest.
    overlaid: HashMap<usize, usize>,
}

/// A window's information about one field: its key and its parts, each with its rank among them.
#[derive(Default, Clone)]
struct Slot {
    key: Vec<u8>,
    parts: Vec<(usize, Part)>,
}

/// Finds what a request names.
pub fn retrieve(
    files: &Arc<Files>,
    snapshot: &Arc<Snapshot>,
    selection: Selection,
    strict: bool,
    session: &Session,
    env: &Env,
) -> Result<Fields> {
    let own = session.transaction();
    let sought = LocatedFields { strict, identity: Some(env.identity.clone()), ..LocatedFields::default() };
    let (ranks, located) = locate(snapshot, &selection, own, sought, session.limits(&env.clock))?;
    let plan = Plan {
        files: files.clone(),
        snapshot: snapshot.clone(),
        lenient: !strict,
        own,
        selection,
        count: located.refs.len(),
        located: Mutex::new(Arc::new(located)),
        ranks,
        window: Mutex::new(None),
    };
    if strict {
        plan.check_missing()?;
    }
    Ok(Fields::new(Arc::new(plan)))
}

/// Finds the entries of a selection; the places of its fields in request order, ascending, are the first result.
fn locate(
    snapshot: &Arc<Snapshot>,
    selection: &Selection,
    own: Option<Id>,
    mut located: LocatedFields,
    limits: Limits,
) -> Result<(Vec<u64>, Located)> {
    let Some(combinations) = selection.count_listed() else {
        return Err(Code::RequestTooBroad.error("the request names more combinations than can be counted"));
    };
    match selection.keys() {
        Some(keys) if keys.exact() && combinations <= LOOKUPS_MAX => {
            located.look_up(snapshot, selection, keys, own)?;
        }
        _ => located.search(snapshot, selection, own, limits)?,
    }
    let LocatedFields { mut ranked, complex, .. } = located;
    if !ranked.is_sorted_by_key(|(rank, ..)| *rank) {
        ranked.sort_by_key(|(rank, ..)| *rank);
    }
    let mut ranks: Vec<u64> = ranked.iter().map(|(rank, ..)| *rank).collect();
    ranks.dedup();
    let shown = |(number, (.., overlay)): (usize, &(u64, Ref, u32))| {
        overlay.checked_sub(1).map(|overlay| (number, overlay as usize))
    };
    let overlaid = match snapshot.overlays.is_empty() {
        true => HashMap::new(),
        false => ranked.iter().enumerate().filter_map(shown).collect(),
    };
    let refs = ranked.into_iter().map(|(_, r, _)| r).collect();
    Ok((ranks, Located { snapshot: snapshot.clone(), refs, complex, overlaid }))
}

/// The entries of the fields that were found, in the order in which they were.
#[derive(Default)]
struct LocatedFields {
    /// Whether a field that lacks something is an error.
    strict: bool,
    /// Names users where locks count.
    identity: Option<Arc<dyn Identity>>,
    /// Place in request order and entry of each, or an index into `complex` where the entry says `u32::MAX`; and 0, or 1 and the
    /// number of the overlay that shows it.
    ranked: Vec<(u64, Ref, u32)>,
    /// See [`Located::complex`].
    complex: Vec<Vec<Ref>>,
}

impl LocatedFields {
    /// Looks each key up.
    fn look_up(
        &mut self,
        snapshot: &Arc<Snapshot>,
        selection: &Selection,
        keys: Keys,
        own: Option<Id>,
    ) -> Result<()> {
        let (mut matcher, mut positions) = (Matcher::new(selection.clone()), Vec::new());
        for key in keys {
            let key = encode_key(&key).bytes;
            let Some(rank) = matcher.rank(&key, &mut positions)? else { continue };
            let level = &key[..level_ends(&key)?[0]];
            if self.is_locked(snapshot, level)? {
                continue;
            }
            if let Some(loss) = snapshot.loss(level).filter(|_| self.strict) {
                return Err(loss.error());
            }
            if let Some(versions) = lookup(snapshot, &key, own)? {
                self.add(rank, &versions, None)?;
                continue;
            }
            let may = |level: &[u8]| match snapshot.loss(level).filter(|_| self.strict) {
                Some(loss) => Err(loss.error()),
                None => Ok(!self.is_locked(snapshot, level)?),
            };
            if let Some((versions, overlay)) = lookup_overlaid(snapshot, &key, own, may)? {
                self.add(rank, &versions, Some(overlay))?;
            }
        }
        Ok(())
    }

    /// Whether a lock keeps the fields of a dataset, by its encoded first level, from readers; Denied where that is an error.
    fn is_locked(&self, snapshot: &Snapshot, level: &[u8]) -> Result<bool> {
        let Some(identity) = self.identity.as_ref().filter(|_| !snapshot.locks.is_empty()) else {
            return Ok(false);
        };
        match snapshot.locks.against(LockKind::Retrieve, level, snapshot)? {
            Some(lock) if self.strict => Err(lock.error(level, &**identity)),
            found => Ok(found.is_some()),
        }
    }

    /// Walks the index.
    fn search(
        &mut self,
        snapshot: &Arc<Snapshot>,
        selection: &Selection,
        own: Option<Id>,
        limits: Limits,
    ) -> Result<()> {
        let mut positions = Vec::new();
        let mut walk = FieldWalk::new(snapshot, selection, own, &limits)?.lenient(!self.strict);
        if let Some(identity) = &self.identity {
            walk = walk.heeding(LockKind::Retrieve, self.strict, identity);
        }
        while let Some(walked) = walk.next_key()? {
            let rank = walk.matcher().rank(walked.key(), &mut positions)?.unwrap_or(0);
            self.add(rank, &walked.versions, walked.shown.map(|(_, overlay)| overlay))?;
        }
        Ok(())
    }

    fn add(&mut self, rank: u64, versions: &KeyVersions, overlay: Option<usize>) -> Result<()> {
        if self.strict {
            versions.array()?;
            versions.check_complete()?;
        }
        let at = |part: &Part| (part.source, part.place.0, part.place.1);
        let entry = match versions.live() {
            [part] => at(part),
            parts => {
                self.complex.push(parts.iter().map(at).collect());
                (u32::MAX, (self.complex.len() - 1) as u32, 0)
            }
        };
        self.ranked.push((rank, entry, overlay.map_or(0, |number| number as u32 + 1)));
        Ok(())
    }
}

impl Plan {
    /// Refuses combinations of listed values that have no field.
    fn check_missing(&self) -> Result<()> {
        let missing = self.missing_count();
        if missing == 0 {
            return Ok(());
        }
        let named = self.missing(MISSING_NAMED).join("; ");
        let more = if missing > MISSING_NAMED as u64 {
            format!("; and {} more", missing - MISSING_NAMED as u64)
        } else {
            String::new()
        };
        if is_purged(&self.snapshot, &self.selection)? {
            return Err(purged(format!("fields for {named}{more}")));
        }
        Err(Code::FieldNotFound
            .error(format!("no field for {named}{more}"))
            .with_hint("see what exists with axes or list, or retrieve with strict=False"))
    }

    /// Decodes the entries of some fields, wherever takeovers have moved them.
    fn decode(&self, start: usize, end: usize) -> Result<Arc<[Field]>> {
        let mut located = self.located.lock().clone();
        loop {
            match self.decode_in(&located, start, end) {
                Err(gone) if gone.code() == Code::DataGone => {
                    located = self.locate_again(&located)?.ok_or(gone)?;
                }
                outcome => return outcome,
            }
        }
    }

    /// The same entries in a newer snapshot, given where they were; `None` if they are where they were, or nowhere.
    fn locate_again(&self, before: &Arc<Located>) -> Result<Option<Arc<Located>>> {
        let mut known = self.located.lock();
        if !Arc::ptr_eq(&known, before) {
            return Ok(Some(known.clone()));
        }
        let Some(snapshot) = self.files.again(&before.snapshot)? else { return Ok(None) };
        // A lock that somebody has set meanwhile leaves what was found before.
        let sought = LocatedFields { strict: !self.lenient, ..LocatedFields::default() };
        let (ranks, now) = locate(&snapshot, &self.selection, self.own, sought, Limits::default())?;
        if ranks != self.ranks || now.refs.len() != self.count {
            return match is_purged(&snapshot, &self.selection)? {
                true => Err(purged("some of the fields")),
                false => Ok(None),
            };
        }
        *known = Arc::new(now);
        Ok(Some(known.clone()))
    }

    /// Decodes the entries of some fields, each index block once.
    fn decode_in(&self, located: &Located, start: usize, end: usize) -> Result<Arc<[Field]>> {
        let mut wanted: Vec<(Ref, usize, usize)> = Vec::with_capacity(end - start);
        for (i, &at) in located.refs[start..end].iter().enumerate() {
            match at {
                (u32::MAX, complex, _) => {
                    let refs = &located.complex[complex as usize];
                    wanted.extend(refs.iter().enumerate().map(|(j, &r)| (r, i, j)));
                }
                _ => wanted.push((at, i, 0)),
            }
        }
        wanted.sort_unstable();
        let mut slots = vec![Slot::default(); end - start];
        let (mut open, mut last): (Option<EntryCursor>, _) = (None, LastCommit::default());
        for ((source, high, low), i, j) in wanted {
            let (index, place) = (source as usize, (high, low));
            let mut cursor = match open.take() {
                Some(cursor) if cursor.index == index => cursor,
                _ => EntryCursor::new(&located.snapshot.sources[index], index),
            };
            cursor.go_to(place)?;
            let mut parts = Vec::with_capacity(1);
            // Entries that wipes hide were not located.
            let (snapshot, wipes) = (&located.snapshot, KeyWipes::default());
            let (value, seen) = (cursor.value(), (self.own, &wipes));
            KeyVersions::collect(snapshot, (index, place), value, seen, &mut last, &mut parts)?;
            let slot = &mut slots[i];
            if slot.key.is_empty() {
                slot.key.extend_from_slice(cursor.key());
            }
            slot.parts.extend(parts.into_iter().map(|part| (j, part)));
            open = Some(cursor);
        }
        let overlays: Vec<_> = located.snapshot.overlays.newest_first().collect();
        slots
            .into_iter()
            .zip(start..)
            .map(|(Slot { key, mut parts }, number)| {
                parts.sort_by_key(|(j, _)| *j);
                let live = parts.len();
                let versions =
                    KeyVersions { key, parts: parts.into_iter().map(|(_, part)| part).collect(), live };
                if live == 0 {
                    return Err(Error::internal("a field vanished from its snapshot"));
                }
                let overlay = located.overlaid.get(&number).and_then(|overlay| overlays.get(*overlay));
                let shown = overlay.map(|overlay| overlay.shown(&versions.key)).transpose()?;
                let (files, snapshot) = (self.files.clone(), located.snapshot.clone());
                let field = LocalField::shown(files, snapshot, versions, shown.map(Vec::into_boxed_slice));
                Ok(if self.lenient { field.lenient() } else { field })
            })
            .collect()
    }
}

impl FieldsSource for Plan {
    fn count(&self) -> usize {
        self.count
    }

    fn get(&self, index: usize) -> Result<Field> {
        let start = index / WINDOW * WINDOW;
        if let Some((at, window)) = &*self.window.lock()
            && *at == start
        {
            return Ok(window[index - start].clone());
        }
        let window = self.decode(start, (start + WINDOW).min(self.count))?;
        let field = window[index - start].clone();
        *self.window.lock() = Some((start, window));
        Ok(field)
    }

    fn missing(&self, limit: usize) -> Vec<String> {
        let lengths: Vec<u64> = self.selection.listed_values().map(|(_, list)| list.len() as u64).collect();
        let describe = |mut rank: u64| {
            let mut positions = vec![0; lengths.len()];
            for (position, length) in positions.iter_mut().zip(&lengths).rev() {
                *position = (rank % length.max(&1)) as usize;
                rank /= length.max(&1);
            }
            self.selection.describe(&positions)
        };
        let total = self.selection.count_listed().unwrap_or(u64::MAX);
        let mut missing = Vec::new();
        let mut next = 0;
        if self.missing_count() == 0 {
            return missing;
        }
        for &rank in self.ranks.iter().chain([&total]) {
            while next < rank {
                if missing.len() == limit {
                    return missing;
                }
                missing.push(describe(next));
                next += 1;
            }
            next = rank.saturating_add(1);
        }
        missing
    }

    fn missing_count(&self) -> u64 {
        if self.selection.lists_nothing() {
            return 0;
        }
        self.selection.count_listed().unwrap_or(u64::MAX).saturating_sub(self.ranks.len() as u64)
    }

    fn version(&self) -> String {
        self.snapshot.version().encode()
    }
}
