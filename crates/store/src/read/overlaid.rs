//! A walk over the fields of a request, those among them that overlays show (J-53).
//!
//! ```text
//! own       the walk over the keys that fields were archived by      ┐
//! overlay   a walk over the keys that it selects, each as it appears ┼▶ one order of keys, each once
//! overlay   ...                                                      ┘
//! ```
//!
//! Invariants:
//! * under one key, a field that was archived by it counts, then that of the newest overlay;
//! * without overlays the walk costs what the own one does.

use std::sync::Arc;

use fieldstone_core::env::Identity;
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::schema::Selection;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::level_ends;
use fieldstone_journal::session::Limits;

use super::lookup::lookup;
use super::matcher::Matcher;
use super::scan::Scan;
use super::versions::KeyVersions;
use crate::files::Files;
use crate::snapshot::{Overlay, Snapshot};

/// A key that a walk gives.
#[derive(Debug)]
pub struct Walked {
    /// The versions under the key that the field was archived by.
    pub versions: KeyVersions,
    /// The key under which an overlay shows it, and the overlay's number.
    pub shown: Option<(Vec<u8>, usize)>,
}

impl Walked {
    /// The key under which it is found.
    pub fn key(&self) -> &[u8] {
        self.shown.as_ref().map_or(&self.versions.key, |(key, _)| key)
    }
}

/// The next one of a walk, as far as it was looked for.
#[derive(Debug)]
enum Ahead<T> {
    Unknown,
    Next(T),
    End,
}

/// A walk over what an overlay shows.
#[derive(Debug)]
struct ShownScan {
    overlay: Arc<Overlay>,
    scan: Scan,
    /// The next key as it appears.
    ahead: Ahead<(Vec<u8>, KeyVersions)>,
    /// The encoded first level of the dataset that it shows fields in, and may.
    level: Vec<u8>,
}

/// The walk.
#[derive(Debug)]
pub struct FieldWalk {
    own: Scan,
    ahead: Ahead<KeyVersions>,
    /// The newest overlay comes first.
    shown: Vec<ShownScan>,
    /// The first levels of keys that are passed, and how many levels these are.
    passed: (Vec<u8>, usize),
    /// Whether the own walk does not meet all sources.
    is_partial: bool,
    transaction: Option<Id>,
    /// The first error of damage, which comes last.
    damage: Option<Error>,
}

impl FieldWalk {
    /// The walk of a scan alone.
    pub fn of(own: Scan) -> FieldWalk {
        let (passed, damage) = Default::default();
        let (ahead, shown) = (Ahead::Unknown, Vec::new());
        FieldWalk { own, ahead, shown, passed, is_partial: false, transaction: None, damage }
    }

    /// A walk over what a request selects; overlays show fields.
    pub fn new(
        snapshot: &Arc<Snapshot>,
        selection: &Selection,
        own: Option<Id>,
        limits: &Limits,
    ) -> Result<FieldWalk> {
        let scan = Scan::new(snapshot.clone(), selection.clone(), own)?.within(limits.clone());
        FieldWalk::of(scan).with_overlays((own, false), limits)
    }

    /// The same walk, with the fields that overlays show; also with keys that they would show a field under if it had not been
    /// removed.
    pub fn with_overlays(mut self, (own, removed): (Option<Id>, bool), limits: &Limits) -> Result<FieldWalk> {
        let snapshot = self.own.snapshot().clone();
        for overlay in snapshot.overlays.newest_first() {
            let selection = self.own.selection().clone();
            let scan = Scan::through(&snapshot, selection, overlay, own)?;
            let scan = scan.within(limits.clone()).with_removed(removed);
            let (overlay, ahead) = (overlay.clone(), Ahead::Unknown);
            self.shown.push(ShownScan { overlay, scan, ahead, level: Vec::new() });
        }
        self.transaction = own;
        Ok(self)
    }

    /// The same walk, whose own scan does not meet all sources.
    pub fn partial(mut self) -> FieldWalk {
        self.is_partial = true;
        self
    }

    fn map(mut self, change: impl Fn(Scan) -> Scan) -> FieldWalk {
        self.own = change(self.own);
        self.shown = self.shown.into_iter().map(|one| ShownScan { scan: change(one.scan), ..one }).collect();
        self
    }

    /// The same walk, which heeds locks: of the dataset that a field appears in, and of that it was archived in.
    pub fn heeding(self, kind: LockKind, strict: bool, identity: &Arc<dyn Identity>) -> FieldWalk {
        self.map(|scan| scan.heeding(kind, strict, identity))
    }

    /// The same walk, which goes on elsewhere if files go that a takeover has replaced.
    pub fn on(self, files: &Arc<Files>) -> FieldWalk {
        self.map(|scan| scan.on(files))
    }

    /// The same walk; losses of logs are not an error at its end.
    pub fn lenient(self, lenient: bool) -> FieldWalk {
        self.map(|scan| scan.lenient(lenient))
    }

    /// The request.
    pub fn selection(&self) -> &Selection {
        self.own.selection()
    }

    /// The request in its prepared form.
    pub fn matcher(&mut self) -> &mut Matcher {
        self.own.matcher()
    }

    /// The snapshot that the walk over fields' own keys is in.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        self.own.snapshot()
    }

    /// The snapshot that a field was found in.
    pub fn snapshot_of(&self, walked: &Walked) -> &Arc<Snapshot> {
        match &walked.shown {
            Some((_, overlay)) => self.shown[*overlay].scan.snapshot(),
            None => self.own.snapshot(),
        }
    }

    /// The overlay with a number.
    pub fn overlay(&self, number: usize) -> &Arc<Overlay> {
        &self.shown[number].overlay
    }

    /// The next key under which something is visible. Damage is an error after the last key.
    pub fn next_key(&mut self) -> Result<Option<Walked>> {
        if self.shown.is_empty() {
            return Ok(self.own.next_key()?.map(|versions| Walked { versions, shown: None }));
        }
        loop {
            self.look_ahead()?;
            let Some(number) = self.first_shown() else {
                if let Ahead::Next(versions) = std::mem::replace(&mut self.ahead, Ahead::Unknown) {
                    return Ok(Some(self.own_one(versions)));
                }
                self.ahead = Ahead::End;
                return self.damage.take().map_or(Ok(None), Err);
            };
            let ahead = std::mem::replace(&mut self.shown[number].ahead, Ahead::Unknown);
            let Ahead::Next((key, versions)) = ahead else { continue };
            self.drop_shown(&key);
            let has_own =
                || Ok::<bool, Error>(lookup(self.own.snapshot(), &key, self.transaction)?.is_some());
            if self.is_partial && has_own()? {
                continue;
            }
            return Ok(Some(Walked { versions, shown: Some((key, number)) }));
        }
    }

    fn own_one(&mut self, versions: KeyVersions) -> Walked {
        if versions.live > 0 {
            self.drop_shown(&versions.key);
        }
        Walked { versions, shown: None }
    }

    /// The overlay whose next key comes first, unless that of the own walk does.
    fn first_shown(&self) -> Option<usize> {
        let mut first: Option<(usize, &[u8])> = None;
        for (number, one) in self.shown.iter().enumerate() {
            if let Ahead::Next((key, _)) = &one.ahead
                && first.is_none_or(|(_, least)| &key[..] < least)
            {
                first = Some((number, key));
            }
        }
        let is_behind = |(_, key): &(usize, &[u8])| match &self.ahead {
            Ahead::Next(own) => *key < &own.key[..],
            _ => true,
        };
        first.filter(is_behind).map(|(number, _)| number)
    }

    /// Passes what overlays show under a key that something else counts under.
    fn drop_shown(&mut self, key: &[u8]) {
        for one in &mut self.shown {
            if matches!(&one.ahead, Ahead::Next((shown, _)) if shown == key) {
                one.ahead = Ahead::Unknown;
            }
        }
    }

    /// Looks for the next key of each walk.
    fn look_ahead(&mut self) -> Result<()> {
        if matches!(self.ahead, Ahead::Unknown) {
            self.ahead = match held(self.own.next_key(), &mut self.damage)? {
                Some(versions) => Ahead::Next(versions),
                None => Ahead::End,
            };
        }
        for one in self.shown.iter_mut().filter(|one| matches!(one.ahead, Ahead::Unknown)) {
            one.ahead = match held(one.next(&self.passed), &mut self.damage)? {
                Some(next) => Ahead::Next(next),
                None => Ahead::End,
            };
        }
        Ok(())
    }

    /// Passes the rest of the dataset or index in which a key lies: the keys with the same first levels.
    pub fn skip_levels(&mut self, key: &[u8], levels: usize) -> Result<()> {
        let prefix = &key[..level_ends(key)?[levels - 1]];
        if self.shown.is_empty() {
            return self.own.skip_prefix(prefix);
        }
        match &self.ahead {
            // It stands at this key, or in what is passed.
            Ahead::Unknown => self.own.skip_prefix(prefix)?,
            Ahead::Next(next) if next.key.starts_with(prefix) => {
                self.own.skip_prefix(prefix)?;
                self.ahead = Ahead::Unknown;
            }
            _ => {}
        }
        for one in &mut self.shown {
            if let Ahead::Next((shown, versions)) = &one.ahead
                && shown.starts_with(prefix)
            {
                one.scan.skip_prefix(&versions.key[..level_ends(&versions.key)?[levels - 1]])?;
                one.ahead = Ahead::Unknown;
            }
        }
        self.passed = (prefix.to_vec(), levels);
        Ok(())
    }
}

/// Takes damage to come later; other errors end the walk.
fn held<T>(found: Result<Option<T>>, damage: &mut Option<Error>) -> Result<Option<T>> {
    match found {
        Err(e) if e.kind() == ErrorKind::Corrupt => {
            damage.get_or_insert(e);
            Ok(None)
        }
        found => found,
    }
}

impl ShownScan {
    /// The next field that it shows, with the key under which it does so; not one with first levels that are passed.
    fn next(&mut self, (passed, levels): &(Vec<u8>, usize)) -> Result<Option<(Vec<u8>, KeyVersions)>> {
        while let Some(versions) = self.scan.next_key()? {
            let shown = self.overlay.shown(&versions.key)?;
            if !passed.is_empty() && shown.starts_with(passed) {
                self.scan.skip_prefix(&versions.key[..level_ends(&versions.key)?[levels - 1]])?;
                continue;
            }
            let level = &shown[..level_ends(&shown)?[0]];
            if self.level != level {
                if !self.overlay.counts(level, self.scan.snapshot()) || self.scan.is_locked(level)? {
                    self.scan.skip_prefix(&versions.key[..level_ends(&versions.key)?[0]])?;
                    continue;
                }
                self.level = level.to_vec();
            }
            return Ok(Some((shown, versions)));
        }
        Ok(None)
    }
}

/// The field that an overlay shows under a key: the key that it was archived by, what stands there, and the overlay's number among the
/// newest.
pub fn lookup_overlaid(
    snapshot: &Snapshot,
    key: &[u8],
    own: Option<Id>,
    mut may: impl FnMut(&[u8]) -> Result<bool>,
) -> Result<Option<(KeyVersions, usize)>> {
    for (number, overlay) in snapshot.overlays.newest_first().enumerate() {
        let Some(archived) = overlay.own(key)? else { continue };
        let (level, ends) = (&key[..level_ends(key)?[0]], level_ends(&archived)?);
        if !overlay.counts(level, snapshot) || !may(&archived[..ends[0]])? {
            continue;
        }
        if let Some(versions) = lookup(snapshot, &archived, own)? {
            return Ok(Some((versions, number)));
        }
    }
    Ok(None)
}
