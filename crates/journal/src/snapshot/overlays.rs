//! Overlays: ranges by which fields appear under other values, too, until somebody ends them (J-53).
//!
//! An overlay selects fields by the keys under which they were archived, and gives some of their keywords other values. It
//! counts in a dataset that it shows fields in if it is of the dataset's owner, of root, or of the owner of the folder of
//! logs, and in one that nobody owns whoever made it.
//!
//! Invariants:
//! * each keyword that gets another value has a single one in the selection, so that shown keys come in the order of the keys
//!   that they stand for, and each stands for one;
//! * an overlay shows fields that were archived under their key, and none that another overlay shows.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::key::{KeyValue, LEVELS};
use fieldstone_core::planted::{self, Planted};
use fieldstone_format::Id;
use fieldstone_format::keys::{decode_names, encode_value, skip_value};
use fieldstone_format::store_record::{Range, RangeAction};

use super::ranges::{Item, LevelValues, ROOT, StoreRange, absent, items, selects};
use super::{HandOvers, Snapshot, owner_then};

/// A keyword of a level that gets another value.
#[derive(Debug)]
struct ShownValue {
    level: usize,
    keyword: Arc<str>,
    /// The encoded value that it has in keys of fields.
    own: Box<[u8]>,
    /// The one under which these appear.
    value: Box<[u8]>,
}

/// An overlay that has not ended.
#[derive(Debug)]
pub struct Overlay {
    /// Its record.
    pub made: Arc<StoreRange>,
    items: Vec<Item>,
    shown: Vec<ShownValue>,
}

impl Overlay {
    /// The overlay of a record, if this release obeys it.
    fn new(made: Arc<StoreRange>) -> Option<Overlay> {
        let RangeAction::Overlay(values) = &made.range.action else { return None };
        let items = items(&made.range.selection);
        let own = |level: usize, keyword: &str| {
            let item = items.iter().find(|(at, name, _)| *at == level && **name == *keyword);
            match item.map(|(.., values)| &values[..]) {
                Some([own]) if **own != *absent() => Some(own.clone()),
                _ => None,
            }
        };
        let shown = |(level, keyword, value): &(u8, Arc<str>, KeyValue)| {
            let (level, keyword, mut bytes) = (usize::from(*level), keyword.clone(), Vec::new());
            encode_value(value, &mut bytes);
            let own = own(level, &keyword).filter(|own| **own != *bytes && !value.is_absent())?;
            Some(ShownValue { level, keyword, own, value: bytes.into() })
        };
        let shown = values.iter().map(shown).collect::<Option<Vec<_>>>()?;
        (!shown.is_empty()).then_some(Overlay { made, items, shown })
    }

    /// The overlay that a range would be; `None` for a range that nobody obeys as one.
    pub fn planned(range: Range) -> Option<Overlay> {
        let (stamp, log, sequence, time, user) = (0, Id::LEAST, 0, 0, ROOT);
        Overlay::new(Arc::new(StoreRange { stamp, log, sequence, time, user, range }))
    }

    /// The encoded value under which keys with this keyword at a level appear, if that is another one.
    pub fn value(&self, level: usize, keyword: &str) -> Option<&[u8]> {
        let shown = self.shown.iter().find(|shown| shown.level == level && *shown.keyword == *keyword);
        shown.map(|shown| &*shown.value)
    }

    /// Whether keys with these keywords, level by level, may be selected.
    pub fn fits(&self, has: impl Fn(usize, &str) -> bool) -> bool {
        let absent = absent();
        self.items.iter().all(|(level, keyword, values)| {
            has(*level, keyword) || values.binary_search_by(|value| (**value).cmp(&absent)).is_ok()
        })
    }

    /// The encoded values that selected keys have for a keyword at a level, ascending; `None` for any.
    pub fn values(&self, level: usize, keyword: &str) -> Option<&[Box<[u8]>]> {
        let item = self.items.iter().find(|(at, name, _)| *at == level && **name == *keyword);
        item.map(|(.., values)| &values[..])
    }

    /// The key under which the field of a selected key appears.
    pub fn shown(&self, key: &[u8]) -> Result<Vec<u8>> {
        let mut shown = Vec::with_capacity(key.len() + 16);
        walk(key, |level, keyword, value| {
            shown.extend_from_slice(match keyword {
                Some(keyword) => self.value(level, keyword).unwrap_or(value),
                None => value,
            });
            true
        })?;
        Ok(shown)
    }

    /// The key whose field appears under a key; `None` if this overlay shows nothing there.
    pub fn own(&self, shown: &[u8]) -> Result<Option<Vec<u8>>> {
        let (mut own, mut replaced) = (Vec::with_capacity(shown.len() + 16), 0);
        let whole = walk(shown, |level, keyword, value| {
            let is_its = |one: &&ShownValue| Some(&*one.keyword) == keyword && one.level == level;
            let value = match self.shown.iter().find(is_its) {
                Some(one) if *one.value != *value => return false,
                Some(one) => {
                    replaced += 1;
                    &*one.own
                }
                None => value,
            };
            own.extend_from_slice(value);
            true
        })?;
        let is_selected = whole && replaced == self.shown.len() && selects(&self.items, &all_values(&own)?);
        Ok(is_selected.then_some(own))
    }

    /// Whether it counts in the dataset with an encoded first level, in which it shows fields.
    pub fn counts(&self, level: &[u8], snapshot: &Snapshot) -> bool {
        let (by, owner) = (self.made.user, owner_then(snapshot, level, self.made.stamp));
        let is_above = by == ROOT || snapshot.folder_owner.is_none_or(|owner| owner == by);
        is_above || owner.is_none_or(|owner| owner == by)
    }
}

/// Calls `each` with the parts of an encoded key, one after the other: those without a keyword are names of a level. Stops where
/// it says so; `false` then.
fn walk<'a>(key: &'a [u8], mut each: impl FnMut(usize, Option<&str>, &'a [u8]) -> bool) -> Result<bool> {
    let mut rest = key;
    for level in 0..LEVELS {
        let before = rest;
        let names = decode_names(&mut rest)?;
        if !each(level, None, &before[..before.len() - rest.len()]) {
            return Ok(false);
        }
        for name in names.iter() {
            if !each(level, Some(name), skip_value(&mut rest)?) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// All levels of a key.
pub(super) fn all_values(key: &[u8]) -> Result<Vec<LevelValues<'_>>> {
    let (mut rest, mut levels) = (key, Vec::with_capacity(LEVELS));
    for _ in 0..LEVELS {
        let names = decode_names(&mut rest)?;
        let mut level = Vec::with_capacity(names.len());
        for name in names.iter() {
            level.push((name.clone(), skip_value(&mut rest)?));
        }
        levels.push(level);
    }
    Ok(levels)
}

/// The overlays of a snapshot.
#[derive(Debug, Default)]
pub struct Overlays {
    /// Those that have not ended, oldest first.
    all: Vec<Arc<Overlay>>,
    /// All overlays and ends of overlays.
    made: Vec<Arc<StoreRange>>,
    folder_owner: Option<u32>,
    hand_overs: Arc<HandOvers>,
}

impl Overlays {
    /// The overlays among ranges; those of an earlier snapshot if they are the same.
    pub(super) fn of(
        ranges: impl Iterator<Item = Arc<StoreRange>>,
        (folder_owner, hand_overs): (Option<u32>, &Arc<HandOvers>),
        before: Option<&Arc<Overlays>>,
    ) -> Arc<Overlays> {
        let mut made: Vec<Arc<StoreRange>> = ranges.filter(|made| is_overlay(&made.range)).collect();
        made.sort_by_key(|made| (made.stamp, made.log, made.sequence));
        let is_same = |before: &&Arc<Overlays>| {
            before.made.len() == made.len()
                && before.folder_owner == folder_owner
                && before.hand_overs == *hand_overs
                && before.made.iter().zip(&made).all(|(known, made)| Arc::ptr_eq(known, made))
        };
        if let Some(before) = before.filter(is_same) {
            return before.clone();
        }
        let mut left: Vec<Arc<StoreRange>> = Vec::new();
        for one in &made {
            let RangeAction::End(ended) = &one.range.action else {
                left.push(one.clone());
                continue;
            };
            let by = one.user;
            let is_above = by == ROOT || folder_owner.is_none_or(|owner| owner == by);
            let is_its = |made: &Arc<StoreRange>| {
                made.range.action == **ended
                    && made.range.selection == one.range.selection
                    && (is_above || made.is_of(by, one.stamp, hand_overs))
            };
            if let Some(at) = left.iter().rposition(is_its)
                && !planted::is(Planted::OverlayOutlivesEnd)
            {
                left.remove(at);
            }
        }
        let all = left.into_iter().filter_map(Overlay::new);
        let hand_overs = hand_overs.clone();
        Arc::new(Overlays { all: all.map(Arc::new).collect(), made, folder_owner, hand_overs })
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those that have not ended, newest first: of several that show something under one key the newest counts.
    pub fn newest_first(&self) -> impl Iterator<Item = &Arc<Overlay>> {
        self.all.iter().rev()
    }

    /// Whether an overlay is one of these.
    pub fn has(&self, overlay: &Overlay) -> bool {
        let id = |made: &StoreRange| (made.stamp, made.log, made.sequence);
        self.all.iter().any(|one| {
            id(&one.made) == id(&overlay.made) && one.made.range.selection == overlay.made.range.selection
        })
    }
}

fn is_overlay(range: &Range) -> bool {
    match &range.action {
        RangeAction::Overlay(_) => true,
        RangeAction::End(ended) => matches!(**ended, RangeAction::Overlay(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fieldstone_core::schema::Schema;
    use fieldstone_format::keys::encode_key;
    use fieldstone_format::store_record::{Selection, SelectionItem};

    use super::*;

    fn text(value: &str) -> KeyValue {
        KeyValue::Text(value.into())
    }

    fn made(stamp: u64, user: u32, action: RangeAction, values: Vec<KeyValue>) -> Arc<StoreRange> {
        let item = SelectionItem { level: 0, keyword: "run".into(), values };
        let selection = Selection { items: vec![item] };
        let range = Range { action, selection, version: Vec::new(), age: None };
        Arc::new(StoreRange { stamp, log: Id::LEAST, sequence: stamp, time: 0, user, range })
    }

    fn as_b() -> RangeAction {
        RangeAction::Overlay(vec![(0, "run".into(), text("b"))])
    }

    fn key(run: &str) -> Vec<u8> {
        let schema = Schema::builtin("simulation").unwrap();
        encode_key(&schema.resolve(&[("run", run), ("variable", "t"), ("step", "6")]).unwrap()).bytes
    }

    #[test]
    fn a_shown_key_stands_for_one_key() {
        let overlay = Overlay::new(made(1, 1, as_b(), vec![text("a")])).unwrap();
        assert_eq!(overlay.shown(&key("a")).unwrap(), key("b"));
        assert_eq!(overlay.own(&key("b")).unwrap(), Some(key("a")));
        assert_eq!(overlay.own(&key("a")).unwrap(), None);
        assert_eq!(overlay.own(&key("c")).unwrap(), None);
    }

    #[test]
    fn one_with_several_values_in_place_of_one_is_not_obeyed() {
        assert!(Overlay::new(made(1, 1, as_b(), vec![text("a"), text("c")])).is_none());
        assert!(Overlay::new(made(1, 1, as_b(), vec![text("b")])).is_none());
        assert!(Overlay::new(made(1, 1, as_b(), vec![KeyValue::Absent])).is_none());
    }

    #[test]
    fn an_end_by_who_may_ends_the_newest_one() {
        let ranges = |ender: u32| {
            let end = RangeAction::End(Box::new(as_b()));
            let all = [(1, 5, as_b()), (2, 5, as_b()), (3, ender, end)];
            let all = all.map(|(stamp, user, action)| made(stamp, user, action, vec![text("a")]));
            Overlays::of(all.into_iter(), (Some(7), &Arc::default()), None)
        };
        for (ender, left) in [(5, 1), (7, 1), (ROOT, 1), (6, 2)] {
            let overlays = ranges(ender);
            assert_eq!(overlays.newest_first().count(), left, "{ender}");
        }
    }
}
