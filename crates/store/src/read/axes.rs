//! The values present per keyword.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::key::{KeyValue, LEVELS, Level};
use fieldstone_core::schema::Selection;
use fieldstone_format::Id;
use fieldstone_format::keys::KeyDecoder;
use fieldstone_journal::session::Limits;

use super::scan::Scan;
use crate::snapshot::{Owners, Snapshot};

/// Keywords in the order of levels, with their values in typed order; a keyword that is absent from
/// every field is left out. Of a keyword that a key has at several levels the deepest counts.
pub fn axes(
    snapshot: &Arc<Snapshot>,
    selection: Selection,
    own: Option<Id>,
    limits: Limits,
) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>> {
    let mut axes = Axes::default();
    if !(selection.is_unconstrained() && from_segments(snapshot, &mut axes)?) {
        axes = Axes::default();
        let mut scan = Scan::new(snapshot.clone(), selection, own)?.within(limits);
        let mut decoder = KeyDecoder::new();
        let mut last: [Option<Arc<Level>>; LEVELS] = [const { None }; LEVELS];
        while let Some(versions) = scan.next_key()? {
            let key = decoder.decode(&versions.key)?;
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
    values: BTreeMap<Arc<str>, BTreeSet<KeyValue>>,
}

impl Axes {
    fn add(&mut self, name: &Arc<str>, value: &KeyValue) {
        if value.is_absent() {
            return;
        }
        match self.values.get_mut(name) {
            Some(set) if set.contains(value) => {}
            Some(set) => drop(set.insert(value.clone())),
            None => {
                self.order.push(name.clone());
                self.values.insert(name.clone(), BTreeSet::from([value.clone()]));
            }
        }
    }

    fn finish(mut self) -> Vec<(Arc<str>, Vec<KeyValue>)> {
        self.order
            .into_iter()
            .filter_map(|name| {
                let set = self.values.remove(&name)?;
                Some((name, set.into_iter().collect()))
            })
            .collect()
    }
}

/// Answers from what the segments say of themselves, where that is the whole truth: all commits visible,
/// nothing removed, one user, every axis complete, no keyword at two levels (a key may have it at both).
fn from_segments(snapshot: &Snapshot, axes: &mut Axes) -> Result<bool> {
    let all_count = !snapshot.accepted.has_entries() && snapshot.losses.is_empty();
    if matches!(snapshot.owners, Owners::Many(..)) || !all_count {
        return Ok(false);
    }
    let mut all = Vec::new();
    for (i, segment) in snapshot.segments.iter().enumerate() {
        let writer = snapshot.log_of(i).writer;
        let meta = segment.meta()?;
        if meta.removals || meta.commits.iter().any(|commit| snapshot.order(writer, commit, None).is_none()) {
            return Ok(false);
        }
        for axis in &meta.axes {
            let Some(values) = &axis.values else { return Ok(false) };
            all.push((axis.level, &axis.keyword, values));
        }
    }
    // Segments list their axes level by level; keep that order over all segments.
    all.sort_by_key(|(level, _, _)| *level);
    let mut places = BTreeMap::new();
    for (level, keyword, values) in all {
        if *places.entry(keyword).or_insert(level) != level {
            return Ok(false);
        }
        values.iter().for_each(|value| axes.add(keyword, value));
    }
    Ok(true)
}
