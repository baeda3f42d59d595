//! Wipes: what a request selects vanishes at once, whatever it holds, by a record whose size does not depend on it (R26).
//!
//! Invariants:
//! * the record names the version that was looked through, so that nothing is hidden that the caller did not see;
//! * it speaks of whole datasets and indexes: of the values that keywords of the first two levels have there.

use std::collections::BTreeSet;
use std::sync::Arc;

use fieldstone_core::key::{FieldKey, KeyValue, LEVELS, Names};
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::schema::{Constraint, Schema, Selection};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::keys::{KeyDecoder, level_ends};
use fieldstone_format::store_record::{self, RangeAction, STORE_RECORDS_SINCE, SelectionItem};
use fieldstone_journal::snapshot::is_older;
use fieldstone_journal::{Journal, Session};

use crate::api::{WipeReport, Wiping};
use crate::levels::keyword_below;
use crate::read::{KeyVersions, Scan, all_of_dataset};
use crate::snapshot::Snapshot;

/// Levels of which a wipe may name keywords.
const LEVELS_WIPED: usize = 2;

/// Hides for good what a request selects of whole datasets and indexes; see the facade's `Store::wipe`.
pub fn wipe(journal: &Journal, request: &Request, how: &Wiping) -> Result<WipeReport> {
    journal.access().check_writable()?;
    journal.format().check(STORE_RECORDS_SINCE, "a wipe")?;
    check_levels(&journal.schema().now(), request, &RangeAction::Wipe)?;
    let now = journal.env().clock.now();
    let selection = journal.schema().make(|schema| schema.select_at(request, now))?;
    if selection.names_nothing() && !how.all {
        return Err(Code::RequestTooBroad
            .error("a wipe of everything was asked for")
            .with_hint("list values of the datasets to wipe, such as run=a, or say that all is meant"));
    }
    let what = Vanishing { age: how.older_than, doit: how.doit, ..Vanishing::wipe(Foreign::Refused) };
    let gone = vanish(journal, selection, &what, &how.session)?;
    let foreign = journal.medium().inspect().foreign()?;
    Ok(WipeReport { foreign, done: how.doit, ..gone })
}

/// The fate of datasets that are not the caller's to wipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// Denied.
    Refused,
    /// They stay, and nothing is said of them.
    PassedOver,
}

/// How fields vanish.
#[derive(Debug)]
pub struct Vanishing {
    /// By a wipe or by a hide.
    pub action: RangeAction,
    /// Only what is older than this time.
    pub age: Option<i64>,
    /// Whether they do; otherwise they are only counted.
    pub doit: bool,
    /// The fate of datasets of others.
    pub foreign: Foreign,
}

impl Vanishing {
    /// A wipe that is only counted.
    pub fn wipe(foreign: Foreign) -> Vanishing {
        Vanishing { action: RangeAction::Wipe, age: None, doit: false, foreign }
    }
}

/// Hides what a selection selects; the fields, and their bytes. A wipe takes fields that are hidden, too.
pub fn vanish(
    journal: &Journal,
    selection: Selection,
    how: &Vanishing,
    session: &Session,
) -> Result<WipeReport> {
    let (snapshot, foreign) = (journal.looks().snapshot()?, how.foreign);
    let is_hide = how.action == RangeAction::Hide;
    let mut found = WipedFields::new(selection.clone(), how);
    let mut scan = match is_hide {
        true => Scan::new(snapshot.clone(), selection, None)?,
        false => Scan::unhidden(&snapshot, selection)?,
    };
    scan = scan.on(journal.files()).within(session.limits(&journal.env().clock));
    let (ranges, what) = (journal.ranges(), if is_hide { "hide" } else { "wipe" });
    let mut dataset = Vec::new();
    while let Some(versions) = scan.next_key()? {
        let own = &versions.key[..level_ends(&versions.key)?[0]];
        if foreign == Foreign::PassedOver && dataset != own {
            if ranges.check_may(own, &snapshot, what, session).is_err() {
                scan.skip_prefix(own)?;
                continue;
            }
            dataset = own.to_vec();
        }
        if let Some(dataset) = found.add(scan.snapshot(), &versions)? {
            ranges.check_may(&dataset, &snapshot, what, session)?;
            if !is_hide {
                journal.datasets().check_unlocked(LockKind::Wipe, &dataset, &snapshot)?;
            }
            if found.add_rest(scan.snapshot(), scan.selection(), &versions)? {
                scan.skip_prefix(&dataset)?;
            }
        }
    }
    let (fields, nbytes) = (found.fields, found.nbytes);
    if how.doit && fields > 0 {
        // On a full disk there is room for this at least.
        let maintenance = journal.maintenance();
        let _room = maintenance.room_for_record();
        ranges.hide(&how.action, found.selections(), (&snapshot, how.age), session)?;
    }
    Ok(WipeReport { fields, nbytes, ..WipeReport::default() })
}

/// Invalid for a keyword of single fields, also where no field has it.
pub fn check_levels(schema: &Schema, request: &Request, action: &RangeAction) -> Result<()> {
    check_presence(request, action)?;
    keyword_below(schema, request, LEVELS_WIPED).map_or(Ok(()), |keyword| Err(too_deep(keyword, action)))
}

/// The word for a wipe or a hide.
fn name(action: &RangeAction) -> &'static str {
    if *action == RangeAction::Hide { "a hide" } else { "a wipe" }
}

/// Invalid for a keyword that keys are not to have: a record of a wipe cannot say that.
fn check_presence(request: &Request, action: &RangeAction) -> Result<()> {
    if let Some((keyword, _)) = request.iter().find(|(_, values)| matches!(values, Values::Absent)) {
        return Err(Error::invalid(format!("{} cannot ask for keys without {keyword}", name(action)))
            .with_hint("list values of other keywords"));
    }
    request.bounds().iter().try_for_each(|bound| check_presence(bound, action))
}

fn too_deep(keyword: &str, action: &RangeAction) -> Error {
    let what = name(action);
    let error = Error::invalid(format!(
        "{keyword} stands below the second level of keys: {what} takes whole datasets and indexes"
    ));
    error.with_hint(match action {
        RangeAction::Wipe => "remove takes single fields",
        _ => "name keywords of the first two levels; schema show prints them",
    })
}

/// Fields to be wiped, and the values by which they are named.
struct WipedFields {
    selection: Selection,
    action: RangeAction,
    age: Option<i64>,
    decoder: KeyDecoder,
    dataset: Vec<u8>,
    /// The keywords of the last key, and of those the constrained ones: number of the range, and places of its items.
    shape: Option<([Names; LEVELS], usize)>,
    ranges: Vec<WipedRange>,
    fields: u64,
    nbytes: u64,
}

/// Keys that constrain the same keywords at the same levels.
struct WipedRange {
    items: Vec<(usize, Arc<str>, BTreeSet<KeyValue>)>,
}

impl WipedFields {
    fn new(selection: Selection, how: &Vanishing) -> WipedFields {
        let (action, age, decoder) = (how.action.clone(), how.age, KeyDecoder::new());
        let (dataset, ranges) = (Vec::new(), Vec::new());
        WipedFields { selection, action, age, decoder, dataset, shape: None, ranges, fields: 0, nbytes: 0 }
    }

    /// Adds a field, if it is old enough; the encoded first level where it is the first one of its dataset.
    fn add(&mut self, snapshot: &Snapshot, versions: &KeyVersions) -> Result<Option<Vec<u8>>> {
        if let Some(age) = self.age
            && !is_old(snapshot, versions, age)?
        {
            return Ok(None);
        }
        let key = self.decoder.decode(&versions.key)?;
        self.note(&key)?;
        self.fields += 1;
        self.nbytes = self.nbytes.saturating_add(versions.nbytes().unwrap_or(0));
        if !self.dataset.is_empty() && versions.key.starts_with(&self.dataset) {
            return Ok(None);
        }
        self.dataset = versions.key[..level_ends(&versions.key)?[0]].to_vec();
        Ok(Some(self.dataset.clone()))
    }

    /// Adds all other fields of the dataset of the field that was added, if that is possible without looking at them.
    fn add_rest(&mut self, snapshot: &Snapshot, selection: &Selection, first: &KeyVersions) -> Result<bool> {
        if self.age.is_some() {
            return Ok(false);
        }
        let Some((fields, nbytes)) = all_of_dataset(snapshot, selection, &self.dataset)? else {
            return Ok(false);
        };
        self.fields += fields.saturating_sub(1);
        self.nbytes = self.nbytes.saturating_add(nbytes.saturating_sub(first.nbytes().unwrap_or(0)));
        Ok(true)
    }

    /// Notes the values of a key's constrained keywords.
    fn note(&mut self, key: &FieldKey) -> Result<()> {
        let names = [0, 1, 2].map(|level| key.levels[level].names.clone());
        let range = match &self.shape {
            Some((known, range)) if *known == names => *range,
            _ => {
                let range = self.range_of(&names)?;
                self.shape = Some((names, range));
                range
            }
        };
        for (level, keyword, values) in &mut self.ranges[range].items {
            let level = &key.levels[*level];
            let at = level.names.iter().position(|name| name == keyword);
            if let Some(value) = at.and_then(|at| level.values.get(at))
                && !values.contains(value)
            {
                values.insert(value.clone());
            }
        }
        Ok(())
    }

    /// The range for keys with these keywords.
    fn range_of(&mut self, names: &[Names; LEVELS]) -> Result<usize> {
        let [first, second, third] = names;
        let matcher = self.selection.for_shape([first, second, third]);
        let matcher = matcher.ok_or_else(|| Error::internal("a key was selected that does not match"))?;
        let mut items = Vec::new();
        for (level, (names, constraints)) in names.iter().zip(&matcher.constraints).enumerate() {
            for (name, constraint) in names.iter().zip(constraints) {
                match constraint {
                    Constraint::Any => {}
                    _ if level == LEVELS - 1 => return Err(too_deep(name, &self.action)),
                    _ => items.push((level, name.clone(), BTreeSet::new())),
                }
            }
        }
        let same = |range: &WipedRange| {
            range.items.iter().map(|(level, name, _)| (level, name)).eq(items.iter().map(|(l, n, _)| (l, n)))
        };
        if let Some(known) = self.ranges.iter().position(same) {
            return Ok(known);
        }
        self.ranges.push(WipedRange { items });
        Ok(self.ranges.len() - 1)
    }

    fn selections(self) -> Vec<store_record::Selection> {
        let item = |(level, keyword, values): (usize, Arc<str>, BTreeSet<KeyValue>)| SelectionItem {
            level: level as u8,
            keyword,
            values: values.into_iter().collect(),
        };
        let selection = |range: WipedRange| store_record::Selection {
            items: range.items.into_iter().map(item).collect(),
        };
        self.ranges.into_iter().map(selection).collect()
    }
}

/// Whether everything that makes a field is older than a time.
fn is_old(snapshot: &Snapshot, versions: &KeyVersions, age: i64) -> Result<bool> {
    for part in versions.live() {
        let commit = snapshot.commit_at(part.source as usize, part.entry.commit)?;
        if !snapshot.order(&commit, None).is_some_and(|order| is_older(&commit, order, age)) {
            return Ok(false);
        }
    }
    Ok(true)
}
