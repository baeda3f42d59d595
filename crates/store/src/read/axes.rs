//! The values present per keyword.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use fieldstone_core::env::Identity;
use fieldstone_core::key::{KeyValue, LEVELS, Level};
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::schema::Selection;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::{KeyDecoder, decode_value};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{axis_prefix, parse_axis_key, parse_axis_place};
use fieldstone_journal::entry_source::EntrySource;
use fieldstone_journal::segment::Segment;
use fieldstone_journal::session::Limits;
use fieldstone_journal::takeover::Takeover;

use super::overlaid::FieldWalk;
use super::purged::check_whole;
use super::scan::Scan;
use crate::snapshot::{Owners, Snapshot};

/// Keywords in the order of levels, with their values in typed order; a keyword that is absent from
/// every field is left out. Of a keyword that a key has at several levels the deepest counts. Denied where a lock forbids lists;
/// NotFound in an older version of which a purge may have dropped something (R31).
pub fn axes(
    snapshot: &Arc<Snapshot>,
    selection: Selection,
    own: Option<Id>,
    limits: Limits,
    identity: &Arc<dyn Identity>,
) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>> {
    check_whole(snapshot, &selection)?;
    let mut axes = Axes::default();
    let is_plain = snapshot.locks.is_empty() && snapshot.overlays.is_empty();
    let is_everything = selection.is_unconstrained() && is_plain;
    if !(is_everything && from_segments(snapshot, &selection, &limits, &mut axes)?) {
        axes = Axes::default();
        let mut walk = FieldWalk::new(snapshot, &selection, own, &limits)?;
        walk = walk.heeding(LockKind::List, true, identity);
        let mut decoder = KeyDecoder::new();
        let mut last: [Option<Arc<Level>>; LEVELS] = [const { None }; LEVELS];
        while let Some(walked) = walk.next_key()? {
            let key = decoder.decode(walked.key())?;
            for (depth, level) in key.levels.iter().enumerate() {
                if last[depth].as_ref().is_some_and(|seen| Arc::ptr_eq(seen, level)) {
                    continue;
                }
                last[depth] = Some(level.clone());
                for (name, value) in level.names.iter().zip(&level.values) {
                    if key.levels[depth + 1..].iter().any(|deeper| has(deeper, name)) {
                        // Not of this key; of the next one with this level perhaps.
                        last[depth] = None;
                    } else {
                        axes.add(name, value);
                    }
                }
            }
        }
    }
    Ok(axes.finish())
}

fn has(level: &Level, keyword: &Arc<str>) -> bool {
    level.names.iter().position(|name| name == keyword).is_some_and(|i| !level.values[i].is_absent())
}

#[derive(Default)]
struct Axes {
    order: Vec<Arc<str>>,
    values: BTreeMap<Arc<str>, AxisSet>,
}

/// The values of a keyword. Sources give them in order, mostly: what comes behind all others is only appended.
#[derive(Default)]
struct AxisSet {
    ascending: Vec<KeyValue>,
    /// Those that came late.
    others: BTreeSet<KeyValue>,
}

impl AxisSet {
    fn add(&mut self, value: Cow<'_, KeyValue>) {
        if self.ascending.last().is_none_or(|last| *last < *value) {
            self.ascending.push(value.into_owned());
        } else if self.ascending.binary_search(&value).is_err() && !self.others.contains(&*value) {
            self.others.insert(value.into_owned());
        }
    }

    fn finish(mut self) -> Vec<KeyValue> {
        if !self.others.is_empty() {
            self.ascending.extend(self.others);
            self.ascending.sort_unstable();
        }
        self.ascending
    }
}

impl Axes {
    fn add(&mut self, name: &Arc<str>, value: &KeyValue) {
        if !value.is_absent() {
            self.of(name).add(Cow::Borrowed(value));
        }
    }

    fn of(&mut self, name: &Arc<str>) -> &mut AxisSet {
        if !self.values.contains_key(name) {
            self.order.push(name.clone());
        }
        self.values.entry(name.clone()).or_default()
    }

    fn finish(mut self) -> Vec<(Arc<str>, Vec<KeyValue>)> {
        self.order
            .into_iter()
            .filter_map(|name| {
                let set = self.values.remove(&name)?;
                Some((name, set.finish()))
            })
            .collect()
    }
}

/// Answers from what segments and takeovers say of themselves, where that is the whole truth: all commits visible,
/// nothing removed, one user, every axis complete, no keyword at two levels (a key may have it at both).
fn from_segments(
    snapshot: &Arc<Snapshot>,
    everything: &Selection,
    limits: &Limits,
    axes: &mut Axes,
) -> Result<bool> {
    let all_count = !snapshot.accepted.has_entries() && snapshot.losses.is_empty();
    if matches!(snapshot.owners, Owners::Many(..)) || !all_count {
        return Ok(false);
    }
    let (mut all, mut partly) = (AxisValues::new(), HashSet::new());
    for (i, source) in snapshot.sources.iter().enumerate() {
        if snapshot.wipes.hide_source(snapshot, i) {
            continue;
        }
        // Of a source that wipes hide in part, the keys say what is left.
        if snapshot.wipes.may_concern(snapshot, i) {
            partly.insert(i);
        }
        let mut unused = AxisValues::new();
        let all = if partly.contains(&i) { &mut unused } else { &mut all };
        let whole = match source {
            EntrySource::Segment(segment, _) => of_segment(snapshot, i, segment, all)?,
            EntrySource::Takeover(takeover) => of_takeover(snapshot, takeover, all)?,
        };
        if !whole {
            return Ok(false);
        }
    }
    if !partly.is_empty() {
        all.extend(of_keys(snapshot, everything, |source| partly.contains(&source), limits.clone())?);
    }
    // Sources list their axes level by level; keep that order over all of them.
    all.sort_by_key(|(level, _, _)| *level);
    let mut places = BTreeMap::new();
    for (level, keyword, values) in all {
        if *places.entry(keyword.clone()).or_insert(level) != level {
            return Ok(false);
        }
        let mut values = values.into_iter().filter(|value| !value.is_absent()).peekable();
        if values.peek().is_some() {
            let axis = axes.of(&keyword);
            values.for_each(|value| axis.add(Cow::Owned(value)));
        }
    }
    Ok(true)
}

type AxisValues = Vec<(u8, Arc<str>, Vec<KeyValue>)>;

/// The values that the keys of some sources have.
fn of_keys(
    snapshot: &Arc<Snapshot>,
    everything: &Selection,
    walked: impl Fn(usize) -> bool,
    limits: Limits,
) -> Result<AxisValues> {
    let mut levels: [Axes; LEVELS] = Default::default();
    let mut scan = Scan::over(snapshot.clone(), everything.clone(), None, walked)?.within(limits);
    let mut decoder = KeyDecoder::new();
    let mut last: [Option<Arc<Level>>; LEVELS] = [const { None }; LEVELS];
    while let Some(versions) = scan.next_key()? {
        let key = decoder.decode(&versions.key)?;
        for (depth, level) in key.levels.iter().enumerate() {
            if last[depth].as_ref().is_some_and(|seen| Arc::ptr_eq(seen, level)) {
                continue;
            }
            last[depth] = Some(level.clone());
            level.names.iter().zip(&level.values).for_each(|(name, value)| levels[depth].add(name, value));
        }
    }
    let of_level = |(level, axes): (usize, Axes)| {
        axes.finish().into_iter().map(move |(keyword, values)| (level as u8, keyword, values))
    };
    Ok(levels.into_iter().enumerate().flat_map(of_level).collect())
}

fn of_segment(snapshot: &Snapshot, source: usize, segment: &Segment, all: &mut AxisValues) -> Result<bool> {
    let meta = segment.meta()?;
    let is_hidden = |number| Ok(snapshot.order(&snapshot.commit_at(source, number)?, None).is_none());
    let mut hidden = (0..meta.commits.len() as u64).map(is_hidden);
    if meta.removals || hidden.any(|hidden: Result<bool>| hidden.unwrap_or(true)) {
        return Ok(false);
    }
    for axis in &meta.axes {
        let Some(values) = &axis.values else { return Ok(false) };
        all.push((axis.level, axis.keyword.clone(), values.clone()));
    }
    Ok(true)
}

/// Of a takeover without prepared commits, of which the snapshot shows everything.
fn of_takeover(snapshot: &Snapshot, takeover: &Arc<Takeover>, all: &mut AxisValues) -> Result<bool> {
    let hides = takeover.record.removals || takeover.rows(TakeoverTable::Transactions) > 0;
    if hides || !snapshot.taken.holds_all(takeover) {
        return Ok(false);
    }
    let mut by_place: BTreeMap<u64, (u8, Arc<str>, Vec<KeyValue>)> = BTreeMap::new();
    // Rows of one keyword follow one another.
    let (mut prefix, mut at) = (Vec::new(), 0);
    takeover.each_below(TakeoverTable::Axes, &[], |key, place| {
        if let Some(mut rest) = key.strip_prefix(&prefix[..]).filter(|_| !prefix.is_empty())
            && let Some(axis) = by_place.get_mut(&at)
        {
            axis.2.push(decode_value(&mut rest)?);
            return if rest.is_empty() { Ok(()) } else { Err(Error::corrupt("a row of axes is too long")) };
        }
        let (level, keyword, value) = parse_axis_key(key)?;
        (prefix, at) = (axis_prefix(level, &keyword), parse_axis_place(place)?);
        by_place.entry(at).or_insert_with(|| (level, keyword, Vec::new())).2.push(value);
        Ok(())
    })?;
    all.extend(by_place.into_values());
    Ok(true)
}
