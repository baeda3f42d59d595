//! Locks: ranges that say of whole datasets what nobody may do there until the lock ends (J-49).
//!
//! A lock counts for a dataset if it is of the dataset's owner, of root, or of the owner of the folder of logs, and so does
//! its end: that of the dataset's owner at its stamp. Everybody obeys it, whoever set it. Readers of an older version obey the
//! locks of now.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::env::Identity;
use fieldstone_core::key::{Level, Names};
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::keys::level_text;
use fieldstone_format::store_record::{Range, RangeAction, Selection};

use super::ranges::{Item, ROOT, StoreRange, items, level_values, selects};
use super::{HandOvers, Snapshot};

/// A lock that is in force for a dataset.
#[derive(Debug, Clone)]
pub struct Lock {
    /// Its record.
    pub made: Arc<StoreRange>,
    /// Bits of the forbidden calls.
    pub what: u8,
}

impl Lock {
    /// The error of a call that it forbids, on the dataset with an encoded first level.
    pub fn error(&self, level: &[u8], identity: &dyn Identity) -> Error {
        let (by, dataset) = (identity.user_name(self.made.user), level_text(level));
        let kinds: Vec<&str> = self.kinds().map(LockKind::name).collect();
        Code::DatasetLocked
            .error(format!("dataset {dataset} is locked by {by}: {}", kinds.join(", ")))
            .with_hint(format!("ask {by}, or unlock it"))
    }

    /// The forbidden calls.
    pub fn kinds(&self) -> impl Iterator<Item = LockKind> {
        let what = self.what;
        LockKind::ALL.into_iter().filter(move |kind| what & kind.bit() != 0)
    }
}

/// A dataset's encoded first level, and its owner.
type Dataset = (Box<[u8]>, Option<u32>);

/// The locks of a snapshot.
#[derive(Debug, Default)]
pub struct Locks {
    /// Locks and their ends, oldest first, each with what its selection asks for.
    all: Vec<(Arc<StoreRange>, Vec<Item>)>,
    /// The locks of the datasets that somebody asked about.
    known: Mutex<HashMap<Dataset, Arc<[Lock]>>>,
    /// By which their datasets belong to whom.
    hand_overs: Arc<HandOvers>,
}

impl Locks {
    /// The locks among ranges; those of an earlier snapshot if they are the same.
    pub(super) fn of(
        ranges: impl Iterator<Item = Arc<StoreRange>>,
        hand_overs: &Arc<HandOvers>,
        before: Option<&Arc<Locks>>,
    ) -> Arc<Locks> {
        let mut made: Vec<Arc<StoreRange>> = ranges.filter(|made| is_lock(&made.range)).collect();
        made.sort_by_key(|made| (made.stamp, made.log, made.sequence));
        let is_same = |before: &&Arc<Locks>| {
            before.all.len() == made.len()
                && before.hand_overs == *hand_overs
                && before.all.iter().zip(&made).all(|((known, _), made)| Arc::ptr_eq(known, made))
        };
        if let Some(before) = before.filter(is_same) {
            return before.clone();
        }
        let with_items = |made: Arc<StoreRange>| {
            let items = items(&made.range.selection);
            (made, items)
        };
        let all = made.into_iter().map(with_items).collect();
        Arc::new(Locks { all, known: Mutex::default(), hand_overs: hand_overs.clone() })
    }

    /// Whether there never was one.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn of_dataset(&self, level: &[u8], snapshot: &Snapshot) -> Result<Arc<[Lock]>> {
        let folder_owner = snapshot.folder_owner;
        let owner_at = |at: u64| {
            let exists = || snapshot.has_dataset(level);
            snapshot.owners.of(level, (&self.hand_overs, at), exists)
        };
        // The first owner says who owned it since.
        let dataset = (Box::from(level), owner_at(0));
        if let Some(known) = self.known.lock().get(&dataset) {
            return Ok(known.clone());
        }
        let levels = level_values(level)?;
        let mut found: Vec<Lock> = Vec::new();
        for (made, items) in &self.all {
            let by = made.user;
            let counts = by == ROOT
                || folder_owner.is_none_or(|owner| owner == by)
                || Some(by) == owner_at(made.stamp);
            if !counts || !selects(items, &levels) {
                continue;
            }
            match &made.range.action {
                RangeAction::Lock(what) => found.push(Lock { made: made.clone(), what: *what }),
                RangeAction::End(ended) => {
                    let is_its = |lock: &Lock| {
                        **ended == RangeAction::Lock(lock.what)
                            && lock.made.range.selection == made.range.selection
                    };
                    if let Some(at) = found.iter().rposition(is_its) {
                        found.remove(at);
                    }
                }
                _ => {}
            }
        }
        let found: Arc<[Lock]> = found.into();
        self.known.lock().insert(dataset, found.clone());
        Ok(found)
    }

    /// The locks in force for the dataset with an encoded first level, oldest first, in the snapshot that they are of.
    pub fn on(&self, level: &[u8], snapshot: &Snapshot) -> Result<Arc<[Lock]>> {
        if self.is_empty() {
            return Ok(Arc::default());
        }
        self.of_dataset(level, snapshot)
    }

    /// The newest lock that forbids something in a dataset.
    pub fn against(&self, kind: LockKind, level: &[u8], snapshot: &Snapshot) -> Result<Option<Lock>> {
        Ok(self.on(level, snapshot)?.iter().rev().find(|lock| lock.what & kind.bit() != 0).cloned())
    }

    /// Datasets that locks name one by one, in order, each by its first level; the locks of some may have ended.
    pub fn named(&self) -> Vec<Level> {
        let mut levels: Vec<Level> =
            self.all.iter().filter_map(|(made, _)| named(&made.range.selection)).collect();
        levels.sort();
        levels.dedup();
        levels
    }
}

/// The first level that a selection names: one value of each keyword.
fn named(selection: &Selection) -> Option<Level> {
    let value = |values: &[_]| match values {
        [value] => Some(Clone::clone(value)),
        _ => None,
    };
    let values = selection.items.iter().map(|item| value(&item.values)).collect::<Option<Vec<_>>>()?;
    let names: Names = selection.items.iter().map(|item| item.keyword.clone()).collect();
    (!values.is_empty()).then_some(Level { names, values })
}

fn is_lock(range: &Range) -> bool {
    let is_lock = match &range.action {
        RangeAction::Lock(_) => true,
        RangeAction::End(ended) => matches!(**ended, RangeAction::Lock(_)),
        _ => false,
    };
    is_lock && range.selection.items.iter().all(|item| item.level == 0)
}
