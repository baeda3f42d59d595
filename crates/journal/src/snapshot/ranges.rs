//! Ranges of side records as a snapshot has them, and the keys that they select.

use std::sync::Arc;

use fieldstone_core::key::KeyValue;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::{decode_names, decode_value, encode_value, skip_value};
use fieldstone_format::store_record::{Range, RangeAction, Selection, SelectionItem};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::DatasetRow;
use fieldstone_format::version::Version;

use super::{HandOvers, Snapshot};
use crate::marks::Marks;

/// The user who may do anything.
pub(super) const ROOT: u32 = 0;
/// Levels that the selection of a wipe may speak of.
const LEVELS_WIPED: usize = 2;

/// A range in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRange {
    /// Stamp of its commit.
    pub stamp: u64,
    /// The log that it stands in.
    pub log: Id,
    /// Sequence of its commit.
    pub sequence: u64,
    /// When, nanoseconds since 1970, by its writer's clock.
    pub time: i64,
    /// The user whose log it is.
    pub user: u32,
    /// Its content.
    pub range: Range,
}

impl StoreRange {
    /// Whether it is a user's at a stamp: he made it, or was handed over what its maker had.
    pub fn is_of(&self, user: u32, at: u64, hand_overs: &HandOvers) -> bool {
        hand_overs.owner_at(self.user, self.stamp, at) == user
    }
}

/// A keyword of a selection, and the encoded values that it may have, ascending.
pub(super) type Item = (usize, Arc<str>, Vec<Box<[u8]>>);

/// Keywords of a level, each with its encoded value.
pub(super) type LevelValues<'a> = Vec<(Arc<str>, &'a [u8])>;

/// Whether items select keys with these keywords and values, level by level.
pub(super) fn selects(items: &[Item], levels: &[LevelValues<'_>]) -> bool {
    let absent = absent();
    items.iter().all(|(level, keyword, values)| {
        let found = levels.get(*level).and_then(|level| level.iter().find(|(name, _)| name == keyword));
        let value = found.map_or(&absent[..], |(_, value)| value);
        values.binary_search_by(|known| (**known).cmp(value)).is_ok()
    })
}

/// Datasets that are listed one by one; beyond that everything is selected.
const DATASETS_LISTED: usize = 1000;

/// The datasets in which purges have dropped entries, removals among them, that a follower with these marks may not have met.
pub fn purged_beyond(marks: &Marks, snapshot: &Snapshot) -> Result<Vec<Selection>> {
    let mut datasets = Vec::new();
    for takeover in snapshot.taken.takeovers().all() {
        let known = marks.number(takeover.owner());
        if takeover.number() <= known {
            continue;
        }
        takeover.each_below(TakeoverTable::Datasets, &[], |level, row| {
            if DatasetRow::decode(row)?.purged > known {
                datasets.push(dataset(level)?);
            }
            Ok(())
        })?;
    }
    if datasets.len() > DATASETS_LISTED {
        datasets = vec![Selection { items: Vec::new() }];
    }
    Ok(datasets)
}

/// The selection of one dataset, by its encoded first level.
fn dataset(mut level: &[u8]) -> Result<Selection> {
    let mut items = Vec::new();
    for keyword in decode_names(&mut level)?.iter() {
        let values = vec![decode_value(&mut level)?];
        items.push(SelectionItem { level: 0, keyword: keyword.clone(), values });
    }
    Ok(Selection { items })
}

/// The keys that a selection of whole datasets and indexes selects.
#[derive(Debug)]
pub struct Selected(Vec<Item>);

impl Selected {
    /// The keys of a selection.
    pub fn new(selection: &Selection) -> Selected {
        Selected(items(selection))
    }

    /// Whether it selects an encoded key; damage counts as selected.
    pub fn selects(&self, key: &[u8]) -> bool {
        level_values(key).map_or(true, |levels| selects(&self.0, &levels))
    }

    /// Whether it may select a key in a dataset, by its encoded first level.
    pub fn selects_in(&self, dataset: &[u8]) -> bool {
        let of_dataset: Vec<Item> = self.0.iter().filter(|(level, ..)| *level == 0).cloned().collect();
        level_values(dataset).map_or(true, |levels| selects(&of_dataset, &levels))
    }
}

/// The first levels of a key.
pub(super) fn level_values(key: &[u8]) -> Result<Vec<LevelValues<'_>>> {
    let (mut rest, mut levels) = (key, Vec::with_capacity(LEVELS_WIPED));
    while levels.len() < LEVELS_WIPED && !rest.is_empty() {
        let names = decode_names(&mut rest)?;
        let mut level = Vec::with_capacity(names.len());
        for name in names.iter() {
            level.push((name.clone(), skip_value(&mut rest)?));
        }
        levels.push(level);
    }
    Ok(levels)
}

pub(super) fn items(selection: &Selection) -> Vec<Item> {
    let encoded = |value: &KeyValue| {
        let mut bytes = Vec::new();
        encode_value(value, &mut bytes);
        Box::from(bytes)
    };
    let item = |item: &fieldstone_format::store_record::SelectionItem| {
        let mut values: Vec<Box<[u8]>> = item.values.iter().map(encoded).collect();
        values.sort_unstable();
        (usize::from(item.level), item.keyword.clone(), values)
    };
    selection.items.iter().map(item).collect()
}

pub(super) fn absent() -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_value(&KeyValue::Absent, &mut bytes);
    bytes
}

/// Whether a range speaks of whole datasets and indexes alone; one that speaks of deeper levels is not for this release.
pub(super) fn is_shallow(range: &Range) -> bool {
    range.selection.items.iter().all(|item| usize::from(item.level) < LEVELS_WIPED)
}

/// A range as readers take it; damage where its version cannot be understood.
pub(super) fn checked(made: StoreRange) -> Result<Arc<StoreRange>> {
    if matches!(made.range.action, RangeAction::Wipe | RangeAction::Hide) {
        Version::from_record(&made.range.version).map_err(|e: Error| e.context("the version of a range"))?;
    }
    Ok(Arc::new(made))
}
