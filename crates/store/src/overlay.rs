//! Overlays: the fields that a request selects appear under other values, too, until somebody who may ends that (J-53).
//!
//! Invariants:
//! * one record says which keys are selected, by their values, so that what is archived later appears, too;
//! * each keyword that gets another value has one value in the request, and the schema names a shown field as readers do;
//! * only reads by request or key show fields so: all that counts, moves, hides or frees fields goes by their own keys.

use std::sync::Arc;

use fieldstone_core::key::{FieldKey, KeyValue, LEVELS, Names};
use fieldstone_core::request::{Request, Values};
use fieldstone_core::schema::{Constraint, RuleDescription, Schema, Selection};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::{KeyDecoder, encode_key, key_text, level_ends};
use fieldstone_format::store_record::{
    Range, RangeAction, STORE_RECORDS_SINCE, Selection as Selected, SelectionItem,
};
use fieldstone_journal::{Journal, Session};

use crate::api::{OverlaidFields, Overlaying};
use crate::field::Field;
use crate::read::{LocalField, Scan, lookup, lookup_overlaid};
use crate::snapshot::{Overlay, Snapshot};

/// Most values that a keyword of the request may list.
const VALUES_MAX: usize = 10_000;

/// Lets what a request selects appear under other values, too, or ends that; returns how many fields do so.
pub fn set_overlay(journal: &Journal, request: &Request, how: &Overlaying) -> Result<u64> {
    journal.access().check_writable()?;
    journal.format().check(STORE_RECORDS_SINCE, "an overlay")?;
    let asked = AskedOverlay::new(journal, request, how)?;
    if how.shows { asked.make(journal, how) } else { asked.end(journal, how) }
}

/// The overlays in force, oldest first.
pub fn overlays(journal: &Journal) -> Result<Vec<OverlaidFields>> {
    let (snapshot, identity) = (journal.looks().snapshot()?, &journal.env().identity);
    let row = |overlay: &Arc<Overlay>| OverlaidFields {
        request: request_of(&overlay.made.range.selection),
        values: values_of(&overlay.made.range),
        by: identity.user_name(overlay.made.user),
        since: overlay.made.time,
    };
    let mut rows: Vec<OverlaidFields> = snapshot.overlays.newest_first().map(row).collect();
    rows.reverse();
    Ok(rows)
}

/// The field that an overlay shows under an encoded key.
pub fn field(
    journal: &Journal,
    mut snapshot: Arc<Snapshot>,
    key: &[u8],
    own: Option<Id>,
) -> Result<Option<Field>> {
    let files = journal.files();
    let find = |snapshot: &Arc<Snapshot>| {
        lookup_overlaid(snapshot, key, own, |level| {
            journal.datasets().check_unlocked(
                fieldstone_core::lock_kind::LockKind::Retrieve,
                level,
                snapshot,
            )?;
            snapshot.loss(level).map_or(Ok(true), |loss| Err(loss.error()))
        })
    };
    let found = match find(&snapshot) {
        Err(gone) if gone.code() == Code::DataGone => {
            snapshot = files.again(&snapshot)?.ok_or(gone)?;
            find(&snapshot)?
        }
        found => found?,
    };
    let Some((versions, _)) = found else { return Ok(None) };
    versions.array()?;
    Ok(Some(LocalField::shown(files.clone(), snapshot, versions, Some(key.into()))))
}

/// Invalid for a key under which an overlay alone shows a field: it stands under another key.
pub fn check_own<'a>(
    journal: &Journal,
    keys: impl Iterator<Item = &'a [u8]>,
    session: &Session,
) -> Result<()> {
    let snapshot = journal.looks().snapshot()?;
    if snapshot.overlays.is_empty() {
        return Ok(());
    }
    let own = session.transaction();
    for key in keys {
        if lookup(&snapshot, key, own)?.is_none()
            && let Some((versions, _)) = lookup_overlaid(&snapshot, key, own, |_| Ok(true))?
        {
            let (shown, archived) = (key_text(key), key_text(&versions.key));
            return Err(Error::invalid(format!("an overlay shows the field {archived} as {shown}"))
                .with_hint("name it by the key that it was archived by, or end the overlay"));
        }
    }
    Ok(())
}

/// Fields, and the values under which they are to appear.
struct AskedOverlay<'a> {
    request: &'a Request,
    schema: Schema,
    /// The fields, by their own keys.
    own: Selection,
    /// The same with the other values.
    shown: Selection,
    values: String,
}

impl<'a> AskedOverlay<'a> {
    fn new(journal: &Journal, request: &'a Request, how: &Overlaying) -> Result<AskedOverlay<'a>> {
        let now = journal.env().clock.now();
        let select = |request: &Request| journal.schema().make(|schema| schema.select_at(request, now));
        if how.values.is_empty() {
            return Err(Error::invalid("an overlay was asked for without values under which fields appear")
                .with_hint("give a keyword another value, such as expver=test"));
        }
        let mut other = Request::new();
        for (keyword, value) in &how.values {
            if other.get(keyword).is_some() {
                return Err(Error::invalid(format!("{keyword} is given two other values")));
            }
            other.set(keyword.as_str(), Values::list([value.as_str()]));
        }
        // Unknown keywords and wrong values first.
        select(&other)?;
        let own = select(request)?;
        check_lists(request, "an overlay")?;
        let (schema, mut shown) = (journal.schema().now(), request.clone());
        for (keyword, value) in &how.values {
            let spelled = schema.spelling(keyword);
            let own = request.iter().find(|(own, _)| schema.spelling(own) == spelled);
            let one =
                |(_, values): &(&str, &Values)| matches!(values, Values::List(items) if items.len() == 1);
            let Some((own, _)) = own.filter(one) else {
                return Err(Error::invalid(format!(
                    "{request} does not say which one {spelled} is to appear as {spelled}={value}"
                ))
                .with_hint(format!("give {spelled} one value in the request")));
            };
            shown.set(own, Values::list([value.as_str()]));
        }
        Ok(AskedOverlay { request, schema, own, shown: select(&shown)?, values: other.to_string() })
    }

    fn make(&self, journal: &Journal, how: &Overlaying) -> Result<u64> {
        let snapshot = journal.looks().snapshot()?;
        let mut scan = Scan::new(snapshot.clone(), self.own.clone(), None)?.on(journal.files());
        scan = scan.lenient(true).within(how.session.limits(&journal.env().clock));
        let (mut decoder, mut planned, mut fields) = (KeyDecoder::new(), Vec::<Planned>::new(), 0);
        let (mut level, mut may_have) = (Vec::new(), false);
        while let Some(versions) = scan.next_key()? {
            let key = decoder.decode(&versions.key)?;
            let names = [0, 1, 2].map(|level| key.levels[level].names.clone());
            let number = match planned.iter().position(|one| one.names == names) {
                Some(number) => number,
                None => {
                    planned.push(self.plan(names, &key)?);
                    planned.len() - 1
                }
            };
            let shown = planned[number].overlay.shown(&versions.key)?;
            let dataset = &shown[..level_ends(&shown)?[0]];
            if level != dataset {
                journal.ranges().check_may(dataset, &snapshot, "show fields in", &how.session)?;
                may_have = snapshot.has_dataset(dataset);
                level = dataset.to_vec();
            }
            if !may_have || lookup(&snapshot, &shown, None)?.is_none() {
                fields += 1;
            }
        }
        if planned.is_empty() {
            return Err(Code::FieldNotFound
                .error(format!("no field is selected by {}", self.request))
                .with_hint("see what exists with list"));
        }
        let mut ranges: Vec<Range> = Vec::new();
        for Planned { overlay, .. } in planned {
            let range = overlay.made.range.clone();
            if !ranges.contains(&range) && !is_there(&snapshot, &range) {
                ranges.push(range);
            }
        }
        if ranges.is_empty() {
            let error = Error::conflict(format!("{} appears as {} already", self.request, self.values));
            return Err(error.with_hint("overlays lists what is in force; remove ends one"));
        }
        let ranges = ranges.into_iter().map(|range| (range.selection, range.action)).collect();
        journal.ranges().overlay(ranges, true, &how.session)?;
        Ok(fields)
    }

    /// The overlay of keys with these names, of which one is given.
    fn plan(&self, names: [Names; LEVELS], key: &FieldKey) -> Result<Planned> {
        let [first, second, third] = &names;
        let constraints = |selection: &Selection| {
            let matcher = selection.for_shape([first, second, third]);
            matcher.map(|matcher| matcher.constraints)
        };
        let lost = || Error::internal("a key was selected that does not match");
        let own = constraints(&self.own).ok_or_else(lost)?;
        let other = constraints(&self.shown).ok_or_else(lost)?;
        let (mut items, mut values) = (Vec::new(), Vec::new());
        for level in 0..LEVELS {
            for (i, name) in names[level].iter().enumerate() {
                let Some(own) = listed(&own[level][i], name)? else { continue };
                let other = listed(&other[level][i], name)?.unwrap_or_default();
                if let [value] = &other[..]
                    && other != own
                {
                    values.push((level as u8, name.clone(), value.clone()));
                }
                items.push(SelectionItem { level: level as u8, keyword: name.clone(), values: own });
            }
        }
        let selection = Selected { items };
        let range = Range { action: RangeAction::Overlay(values), selection, version: Vec::new(), age: None };
        let overlay = Overlay::planned(range).ok_or_else(|| {
            Error::invalid(format!("{} appears as {} as it is", self.request, self.values))
                .with_hint("give a keyword another value than the request does")
        })?;
        self.check_named(key, &overlay)?;
        Ok(Planned { names, overlay })
    }

    /// Invalid where the schema would name a shown field by another key than readers look for.
    fn check_named(&self, key: &FieldKey, overlay: &Overlay) -> Result<()> {
        let own = encode_key(key).bytes;
        let shown = KeyDecoder::new().decode(&overlay.shown(&own)?)?;
        let named = |key: &FieldKey| {
            let texts: Vec<(String, String)> = key
                .levels
                .iter()
                .flat_map(|level| level.names.iter().zip(&level.values))
                .filter(|(_, value)| !value.is_absent())
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect();
            let pairs: Vec<(&str, &str)> = texts.iter().map(|(name, value)| (&**name, &**value)).collect();
            self.schema.resolve(&pairs)
        };
        // Of keys with parts of keywords the schema says nothing.
        if named(key).ok().as_ref() != Some(key) {
            return Ok(());
        }
        let hint =
            "an overlay keeps the keywords of a key: only values of the same rule can stand for one another";
        match named(&shown) {
            Ok(other) if other == shown => Ok(()),
            Ok(other) => {
                Err(Error::invalid(format!("{key} cannot appear as {shown}: the schema has {other}"))
                    .with_hint(hint))
            }
            Err(e) => {
                Err(Error::invalid(format!("{key} cannot appear as {shown}: {}", e.message()))
                    .with_hint(hint))
            }
        }
    }

    fn end(&self, journal: &Journal, how: &Overlaying) -> Result<u64> {
        let snapshot = journal.looks().snapshot()?;
        let is_asked = |overlay: &&Arc<Overlay>| self.is(&overlay.made.range);
        let ended: Vec<Arc<Overlay>> = snapshot.overlays.newest_first().filter(is_asked).cloned().collect();
        if ended.is_empty() {
            return Err(Code::NotFound
                .error(format!("no overlay shows {} as {}", self.request, self.values))
                .with_hint("overlays lists what is in force"));
        }
        let (mut fields, mut ranges) = (0, Vec::new());
        for overlay in ended {
            let shown = |by: &str| format!("{by} shows {} as {}", self.request, self.values);
            journal.ranges().check_may_end(&overlay.made, &snapshot, shown, &how.session)?;
            fields += count(journal, &snapshot, &overlay, &how.session)?;
            let range = &overlay.made.range;
            ranges.push((range.selection.clone(), range.action.clone()));
        }
        journal.ranges().overlay(ranges, false, &how.session)?;
        Ok(fields)
    }

    /// Whether a range is the overlay that is asked for.
    fn is(&self, range: &Range) -> bool {
        let RangeAction::Overlay(values) = &range.action else { return false };
        self.schema.rules().iter().any(|rule| {
            let names = names_of(rule, &range.selection);
            let [first, second, third] = &names;
            let shape = [first, second, third];
            let (Some(own), Some(shown)) = (self.own.for_shape(shape), self.shown.for_shape(shape)) else {
                return false;
            };
            let is_alike = |level: usize, i: usize, name: &Arc<str>| {
                let mut items = range.selection.items.iter();
                let item = items.find(|item| usize::from(item.level) == level && item.keyword == *name);
                let other =
                    values.iter().find(|(at, keyword, _)| usize::from(*at) == level && keyword == name);
                let expected = item.map(|item| item.values.clone());
                let appears = other.map_or_else(|| expected.clone(), |(.., value)| Some(vec![value.clone()]));
                listed(&own.constraints[level][i], name).is_ok_and(|own| own == expected)
                    && listed(&shown.constraints[level][i], name).is_ok_and(|shown| shown == appears)
            };
            (0..LEVELS).all(|level| names[level].iter().enumerate().all(|(i, name)| is_alike(level, i, name)))
        })
    }
}

/// The keywords of keys of a rule, and those that a selection names besides.
fn names_of(rule: &RuleDescription, selection: &Selected) -> [Names; LEVELS] {
    std::array::from_fn(|level| {
        let own = rule.levels[level].keywords.iter().filter(|keyword| !keyword.hidden);
        let mut names: Vec<Arc<str>> = own.map(|keyword| keyword.name.clone()).collect();
        for item in selection.items.iter().filter(|item| usize::from(item.level) == level) {
            if !names.contains(&item.keyword) {
                names.push(item.keyword.clone());
            }
        }
        names.into()
    })
}

/// Invalid for a request that a record cannot say: it lists values.
pub(crate) fn check_lists(request: &Request, what: &str) -> Result<()> {
    if !request.bounds().is_empty() {
        return Err(Error::invalid(format!("{what} is of a whole store, and this one shows a part"))
            .with_hint("open the store itself"));
    }
    match request.iter().find(|(_, values)| !matches!(values, Values::List(_) | Values::Any)) {
        Some((keyword, _)) => {
            Err(Error::invalid(format!("{what} takes lists of values, and {keyword} has none"))
                .with_hint("list values, or leave the keyword out"))
        }
        None => Ok(()),
    }
}

/// An overlay of keys with the same names.
struct Planned {
    names: [Names; LEVELS],
    overlay: Overlay,
}

fn is_there(snapshot: &Snapshot, range: &Range) -> bool {
    let mut known = snapshot.overlays.newest_first().map(|overlay| &overlay.made.range);
    known.any(|known| known.action == range.action && known.selection == range.selection)
}

/// The values that a constraint lists, ascending; `None` if it asks for none.
pub(crate) fn listed(constraint: &Constraint, keyword: &str) -> Result<Option<Vec<KeyValue>>> {
    let Some(first) = constraint.lists().first() else { return Ok(None) };
    if first.len() > VALUES_MAX {
        return Err(Error::invalid(format!("{keyword} lists more than {VALUES_MAX} values for a record"))
            .with_hint("leave the keyword out to take any value"));
    }
    let mut values: Vec<KeyValue> = first.values().filter(|value| constraint.matches(value)).collect();
    values.sort_unstable();
    Ok(Some(values))
}

/// How many fields an overlay shows.
fn count(
    journal: &Journal,
    snapshot: &Arc<Snapshot>,
    overlay: &Arc<Overlay>,
    session: &Session,
) -> Result<u64> {
    let everything = journal.schema().make(|schema| schema.select(&Request::new()))?;
    let mut scan = Scan::through(snapshot, everything, overlay, None)?.on(journal.files()).lenient(true);
    scan = scan.within(session.limits(&journal.env().clock));
    let mut fields = 0;
    while let Some(versions) = scan.next_key()? {
        let shown = overlay.shown(&versions.key)?;
        let counts = overlay.counts(&shown[..level_ends(&shown)?[0]], snapshot);
        fields += u64::from(counts && lookup(snapshot, &shown, None)?.is_none());
    }
    Ok(fields)
}

/// A selection as a request.
pub(crate) fn request_of(selection: &Selected) -> String {
    let mut request = Request::new();
    for item in &selection.items {
        let present = item.values.iter().filter(|value| !value.is_absent());
        request.set(&*item.keyword, Values::list(present.map(KeyValue::to_string)));
    }
    request.to_string()
}

fn values_of(range: &Range) -> String {
    let RangeAction::Overlay(values) = &range.action else { return String::new() };
    let mut request = Request::new();
    for (_, keyword, value) in values {
        request.set(&**keyword, Values::list([value.to_string()]));
    }
    request.to_string()
}
