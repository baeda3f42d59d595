//! The fields of a transfer: finds them, checks that each has a place in the target, and carries them over.
//!
//! Invariants:
//! * a field that cannot be read is skipped and named; nothing of it is in the target, and it stays in the source;
//! * a move also archives fields that the target has: the version there may be on its way elsewhere, by another move,
//!   which removes that one and no newer one (F-8);
//! * writes of others in the target under a key of the transfer, between the look at it and the decision, are not
//!   hidden: the transfer then fails with Conflict, unless the value is the same.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter::once;

use fieldstone_core::key::FieldKey;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::entry::EntryId;
use fieldstone_format::keys::encode_key;
use fieldstone_format::origin::MOVED_SINCE;
use fieldstone_format::setting::IfExists;
use fieldstone_store::api::{
    ArchiveOptions, FieldAccess, FieldStore, ListOptions, ReadOptions, RemoveOptions, RetrieveOptions,
};
use fieldstone_store::{Field, Fields};
use xxhash_rust::xxh3::xxh3_128;

use super::arrays::{Arrays, PlaceNumber};
use super::content::{Archived, Content, is_damage};
use super::{TransferOptions, TransferReport, Unreadable};
use crate::Session;
use crate::Store;

/// Number of fields of one commit at the target; their content is in its data log by then.
const COMMIT_FIELDS: usize = 20_000;
/// Number of fields removed by one call.
const REMOVE_FIELDS: usize = 1024;
/// Maximum number of missing combinations that are named.
const NAMED: usize = 5;

/// Conditions of a search for the fields of a transfer.
pub struct Search<'a> {
    /// Whether a listed value of this request without a field is an error.
    pub strict: &'a dyn Fn(usize, &Fields) -> bool,
    /// Whether a field belongs to the transfer.
    pub wanted: &'a dyn Fn(&FieldKey, &Field) -> bool,
}

/// The fields of a transfer, each with a place in the target.
pub struct FieldPlan {
    /// `None` if no request selects any.
    fields: Option<Fields>,
    /// Digests of the source's keys by those of the target's.
    places: HashMap<u128, u128>,
    /// Digests of the source's keys.
    keys: HashSet<u128>,
    /// Indexes of fields that requests name again, and of those outside the transfer; ascending.
    passed: Vec<usize>,
    /// Unreadable fields, each with its digest.
    damaged: Vec<(u128, FieldKey, Unreadable)>,
}

/// A field that was carried into the target.
pub struct CarriedField {
    /// Its index in the plan.
    index: usize,
    /// The digest of the bytes read.
    sum: u128,
    /// The target's entry under its key at that time.
    seen: Option<EntryId>,
    /// The stamp of the place in the order that it has there; `None` if that is of the transaction's decision.
    place: Option<u64>,
    /// The digests of the older values that went with it, newest first.
    older: Vec<u128>,
    /// The user to whom it belonged.
    owner: Option<u32>,
    /// Whether it is an array in a file.
    in_file: bool,
}

impl CarriedField {
    /// Whether it has its time and its place in the order there.
    pub fn keeps_place(&self) -> bool {
        self.place.is_some()
    }

    /// How many older values went with it.
    pub fn versions(&self) -> u64 {
        self.older.len() as u64
    }

    /// The user to whom it belonged, if anybody knows.
    pub fn owner(&self) -> Option<u32> {
        self.owner
    }
}

/// The end of carrying fields over.
pub enum Carrying {
    /// All readable fields are in the transaction.
    Done(Vec<CarriedField>),
    /// The transaction has parts of an unreadable field: it is useless, and another one may succeed.
    Again,
}

impl FieldPlan {
    /// Finds the fields, and checks that each has a place of its own in the target.
    pub fn new(
        from: &dyn FieldStore,
        requests: &[Request],
        to: &dyn FieldStore,
        search: &Search<'_>,
    ) -> Result<FieldPlan> {
        // Lenient, since incomplete fields are carried over as they are.
        let lenient = RetrieveOptions { strict: false, session: Session::default() };
        let mut all: Option<Fields> = None;
        for (number, request) in requests.iter().enumerate() {
            let found = from.retrieve(request, &lenient)?;
            let missing = found.missing_count();
            if missing > 0 && (search.strict)(number, &found) {
                let named = found.missing(NAMED).join("; ");
                let more = missing.saturating_sub(NAMED as u64);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                return Err(Code::FieldNotFound
                    .error(format!("no field for {named}{more}"))
                    .with_hint("see what exists with axes or list, or leave strict off"));
            }
            all = Some(match all {
                Some(fields) => fields.concat(found),
                None => found,
            });
        }
        let schema = to.schema();
        let count = all.as_ref().map_or(0, Fields::len);
        let mut plan = FieldPlan {
            places: HashMap::with_capacity(count),
            keys: HashSet::with_capacity(count),
            passed: Vec::new(),
            damaged: Vec::new(),
            fields: None,
        };
        for (index, field) in all.iter().flat_map(Fields::iter).enumerate() {
            let field = field?;
            let key = field.key()?;
            if !(search.wanted)(&key, &field) {
                plan.passed.push(index);
                continue;
            }
            let pairs = texts(&key);
            let place = schema
                .resolve(&borrowed(&pairs))
                .map_err(|e| e.context(format!("{key} does not fit the schema of {}", to.url())))?;
            if let Err(e) = field.dtype() {
                plan.passed.push(index);
                plan.note_damage(&key, e)?;
                continue;
            }
            plan.keys.insert(digest(&key));
            match plan.places.insert(digest(&place), digest(&key)) {
                Some(other) if other == digest(&key) => plan.passed.push(index),
                Some(_) => {
                    return Err(Code::KeyContradiction.error(format!(
                        "{key} and another field would get the same key {place} in {}",
                        to.url()
                    )));
                }
                None => {}
            }
        }
        plan.fields = all;
        Ok(plan)
    }

    /// The fields, each once.
    fn each(&self) -> impl Iterator<Item = (u64, Result<Field>)> + '_ {
        let fields =
            self.fields.iter().flat_map(|fields| (0..fields.len()).map(move |index| (fields, index)));
        let once = fields.filter(|(_, index)| self.passed.binary_search(index).is_err());
        once.map(|(fields, index)| (index as u64, fields.get(index)))
    }

    /// Their keys.
    pub fn each_key(&self) -> impl Iterator<Item = Result<FieldKey>> + '_ {
        self.each().map(|(_, field)| field?.key())
    }

    /// Their number.
    pub fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Whether the field of a key is one of them.
    pub fn holds(&self, key: &FieldKey) -> bool {
        self.keys.contains(&digest(key))
    }

    /// The commits that wrote their parts, of this store or of those that they were moved from.
    pub fn commits(&self) -> Result<BTreeSet<CommitId>> {
        let mut commits = BTreeSet::new();
        for (_, field) in self.each() {
            commits.extend(field?.commits().into_iter().map(|(id, _)| id));
        }
        Ok(commits)
    }

    /// How many older values the fields hide.
    pub fn older_count(&self) -> Result<u64> {
        self.each().try_fold(0, |sum: u64, (_, field)| Ok(sum.saturating_add(field?.older_count()? as u64)))
    }

    /// Records a field that cannot be read, if the error says so.
    fn note_damage(&mut self, key: &FieldKey, error: Error) -> Result<()> {
        if !is_damage(&error) {
            return Err(error);
        }
        self.keys.remove(&digest(key));
        let unreadable = Unreadable { key: key.to_string(), why: error.message().to_owned() };
        if !self.damaged.iter().any(|(known, ..)| *known == digest(key)) {
            self.damaged.push((digest(key), key.clone(), unreadable));
        }
        Ok(())
    }

    /// Skips a field that cannot be read.
    fn pass(&mut self, index: usize, key: &FieldKey, error: Error) -> Result<()> {
        self.note_damage(key, error)?;
        if let Err(place) = self.passed.binary_search(&index) {
            self.passed.insert(place, index);
        }
        Ok(())
    }

    /// Fields that cannot be read.
    pub fn damaged(&self) -> impl Iterator<Item = (&FieldKey, &Unreadable)> {
        self.damaged.iter().map(|(_, key, unreadable)| (key, unreadable))
    }

    /// Archives the fields that the target lacks, makes them durable, and compares them. `moving`: also those that it
    /// has.
    pub fn carry(
        &mut self,
        to: &Store,
        (transaction, moving): (Id, bool),
        arrays: &mut Arrays,
        options: &TransferOptions<'_>,
        report: &mut TransferReport,
    ) -> Result<Carrying> {
        let keeps = to.backend().check_format(MOVED_SINCE, "the time of a moved field").is_ok();
        let all = self.fields.as_ref().map_or(0, Fields::len) as u64;
        let report_progress = |done: u64| match options.progress {
            Some(progress) => progress(done, all),
            None => Ok(()),
        };
        let session = Session::from(transaction);
        let archive = ArchiveOptions { session, verbatim: true, ..ArchiveOptions::default() };
        let how = How { moving, keeps, versions: options.versions && keeps, archive };
        let mut carried: Vec<CarriedField> = Vec::new();
        let mut flushed = 0;
        for (number, (index, place)) in self.ordered(arrays)?.enumerate() {
            let Some(field) = self.fields.as_ref().filter(|_| self.passed.binary_search(&index).is_err())
            else {
                continue;
            };
            report_progress(number as u64)?;
            let field = field.get(index)?;
            let key = field.key()?;
            match carry_one(to, (field, place), &key, (&how, arrays), report) {
                Ok(Carriage::There) => {}
                Ok(Carriage::Archived(field)) => carried.push(CarriedField { index, ..field }),
                Ok(Carriage::Unreadable(error)) => self.pass(index, &key, error)?,
                Ok(Carriage::Torn(error)) => {
                    self.pass(index, &key, error)?;
                    return Ok(Carrying::Again);
                }
                Err(error) => return Err(error.context(&key)),
            }
            if carried.len() >= flushed + COMMIT_FIELDS {
                to.flush(Session::from(transaction))?;
                flushed = carried.len();
            }
        }
        arrays.finish()?;
        to.flush(Session::from(transaction))?;
        for one in &carried {
            report_progress(all)?;
            self.compare(to, transaction, one)?;
        }
        report_progress(all)?;
        Ok(Carrying::Done(carried))
    }

    /// Indexes of all fields, in the order in which they are carried: arrays for files come last, group by group, and in each
    /// step by step, as a job writes them.
    fn ordered(
        &self,
        arrays: &Arrays,
    ) -> Result<impl Iterator<Item = (usize, Option<PlaceNumber>)> + 'static> {
        let all = self.fields.as_ref().map_or(0, Fields::len);
        let mut placed: Vec<(PlaceNumber, usize)> = Vec::new();
        if !arrays.is_empty() {
            for (index, field) in self.each() {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                placed.extend(arrays.place_of(&field?.key()?).map(|place| (place, index)));
            }
        }
        let mut later: Vec<usize> = placed.iter().map(|(_, index)| *index).collect();
        later.sort_unstable();
        placed.sort_unstable();
        let first = (0..all).filter(move |index| later.binary_search(index).is_err());
        Ok(first.map(|index| (index, None)).chain(placed.into_iter().map(|(place, at)| (at, Some(place)))))
    }

    /// Compares the target's durable field, in the transaction, with the bytes read.
    fn compare(&self, to: &Store, transaction: Id, one: &CarriedField) -> Result<()> {
        let Some(fields) = &self.fields else { return Ok(()) };
        let field = fields.get(one.index)?;
        let key = field.key()?;
        let there = exactly(to, &texts(&key), &Session::from(transaction))?;
        let contents = Content::with_older(field, !one.older.is_empty(), one.in_file)?;
        let mut theirs = Vec::new();
        if let Some(there) = &there {
            theirs.push(contents[0].digest_of(&there.clone().lenient())?);
            theirs.extend(digests_of(&contents[1..], &one.older, there)?.into_iter().map(Some));
        }
        let ours: Vec<Option<u128>> = once(&one.sum).chain(&one.older).map(|sum| Some(*sum)).collect();
        if theirs != ours {
            if one.place.is_some() && place_in(to, &texts(&key))? > one.place {
                return Err(written(&key, to));
            }
            return Err(Code::CopyDiffers
                .error(format!("{} does not return the bytes that were written under {key}", to.url()))
                .with_hint("nothing was copied; run verify on both stores"));
        }
        if there.is_some_and(|there| Some(there.id().entry) == one.seen) {
            return Err(Error::conflict(format!(
                "a newer attempt of {key} in {} hides the copied field",
                to.url()
            ))
            .with_hint("nothing was moved; open the other store without attempt="));
        }
        Ok(())
    }

    /// Fails with Conflict if the target's entry under a key differs from the one seen.
    pub fn check_unchanged(&self, to: &Store, carried: &[CarriedField]) -> Result<()> {
        let Some(fields) = self.fields.as_ref().filter(|_| !carried.is_empty()) else { return Ok(()) };
        to.refresh()?;
        for one in carried {
            let field = fields.get(one.index)?;
            let key = field.key()?;
            let pairs = texts(&key);
            let hides = one.place.is_some() && place_in(to, &pairs)? > one.place;
            let there = exactly(to, &pairs, &Session::default())?;
            if !hides && there.as_ref().is_none_or(|there| Some(there.id().entry) == one.seen) {
                continue;
            }
            let sum = match &there {
                Some(there) => readable(Content::new(field, one.in_file)?.digest_of(there))?,
                None => None,
            };
            if sum != Some(one.sum) {
                return Err(written(&key, to));
            }
        }
        Ok(())
    }

    /// Fails with Conflict if a field that the target has now is not to be seen there: its place in the order is one of the
    /// past, and somebody removed what stood under the key while the transaction was decided.
    pub fn check_arrived(&self, to: &Store, carried: &[CarriedField]) -> Result<()> {
        let Some(fields) = self.fields.as_ref().filter(|_| !carried.is_empty()) else { return Ok(()) };
        to.refresh()?;
        for one in carried.iter().filter(|one| one.place.is_some()) {
            let key = fields.get(one.index)?.key()?;
            if exactly(to, &texts(&key), &Session::default())?.is_none() {
                return Err(Error::conflict(format!(
                    "{key} was removed in {} while it was moved there",
                    to.url()
                ))
                .with_hint("nothing was removed from the source; move again"));
            }
        }
        Ok(())
    }

    /// Fails before anything is copied if the caller may not remove the plan's fields: checks one field of each
    /// dataset.
    pub fn check_removable(&self, from: &dyn FieldStore) -> Result<()> {
        let mut datasets = HashSet::new();
        let mut some = Vec::new();
        for (_, field) in self.each() {
            let field = field?;
            let key = encode_key(&field.key()?);
            if datasets.insert(xxh3_128(&key.bytes[..key.ends[0]])) {
                some.push(field);
            }
        }
        if some.is_empty() {
            return Ok(());
        }
        let probe = from.begin()?;
        let refused = from.remove_fields(&some, &RemoveOptions { session: Session::from(probe) });
        from.abandon(probe, &Session::default())?;
        refused
    }

    /// Removes exactly the versions of the plan, in a session.
    pub fn remove(&self, from: &dyn FieldStore, session: &Session) -> Result<()> {
        let options = RemoveOptions { session: session.clone() };
        let mut some = Vec::with_capacity(REMOVE_FIELDS);
        for (_, field) in self.each() {
            some.push(field?);
            if some.len() == REMOVE_FIELDS {
                from.remove_fields(&some, &options)?;
                some.clear();
            }
        }
        from.remove_fields(&some, &options)
    }

    /// The keys of the plan that still have a field.
    pub fn kept(&self, from: &dyn FieldStore, requests: &[Request]) -> Result<Vec<String>> {
        let mut kept = Vec::new();
        for request in requests {
            for entry in from.list(request, &ListOptions::default())? {
                let key = entry?.key;
                if self.holds(&key) && !kept.contains(&key.to_string()) {
                    kept.push(key.to_string());
                }
            }
        }
        Ok(kept)
    }
}

/// The result for one field.
enum Carriage {
    /// The target already has it.
    There,
    /// It was archived.
    Archived(CarriedField),
    /// It cannot be read.
    Unreadable(Error),
    /// The same, and parts of it were written.
    Torn(Error),
}

/// The way in which fields are carried.
struct How {
    /// They are removed from the source afterwards.
    moving: bool,
    /// The target has places for their times.
    keeps: bool,
    /// Older values go with them.
    versions: bool,
    archive: ArchiveOptions,
}

/// Damage of the source becomes an outcome.
macro_rules! unless_damaged {
    ($outcome:expr) => {
        match $outcome {
            Err(e) if is_damage(&e) => return Ok(Carriage::Unreadable(e)),
            outcome => outcome?,
        }
    };
}

/// Archives a field, unless the target has it already and it stays in the source.
fn carry_one(
    to: &Store,
    (field, place): (Field, Option<PlaceNumber>),
    key: &FieldKey,
    (how, arrays): (&How, &mut Arrays),
    report: &mut TransferReport,
) -> Result<Carriage> {
    let pairs = texts(key);
    let contents = unless_damaged!(arrays.contents(field, place, how.versions));
    let (newest, older) = (&contents[0], &contents[1..]);
    let there = exactly(to, &pairs, &Session::default())?;
    let mut equal = false;
    if let Some(there) = &there
        && let Some(theirs) = readable(newest.digest_of(there))?
    {
        equal = unless_damaged!(newest.digest()) == Some(theirs);
    }
    if equal
        && !how.moving
        && let Some(there) = &there
    {
        let ours = older.iter().map(Content::digest).collect::<Result<Option<Vec<u128>>>>();
        let ours = unless_damaged!(ours).unwrap_or_default();
        if ours.len() == older.len() && digests_of(older, &ours, there)? == ours {
            report.unchanged += 1;
            return Ok(Carriage::There);
        }
    }
    // Its own place, raised above what the key has there, so that it is seen.
    let lift = match contents.last().and_then(Content::oldest_place).filter(|_| how.keeps) {
        Some(oldest) => {
            let there = place_in(to, &pairs)?.map_or(0, |newest| newest.saturating_add(1));
            Some(there.saturating_sub(oldest))
        }
        None => None,
    };
    let mut sums = Vec::with_capacity(contents.len());
    for (number, content) in contents.iter().rev().enumerate() {
        // An equal field must not be replaced by a different one.
        let if_exists = (equal || number > 0).then_some(IfExists::New);
        let archive = ArchiveOptions { if_exists, ..how.archive.clone() };
        let pairs = borrowed(&pairs);
        let in_file = match place.filter(|_| content.array_in_file().is_some()) {
            Some(place) => arrays.archive(place, content, &pairs, lift, &archive)?,
            None => None,
        };
        let archived = in_file.map_or_else(|| content.archive(to, &pairs, lift, &archive), Ok)?;
        match archived {
            Archived::Whole(sum) => sums.insert(0, sum),
            Archived::Unreadable(error) if number == 0 => return Ok(Carriage::Unreadable(error)),
            Archived::Unreadable(error) | Archived::Torn(error) => return Ok(Carriage::Torn(error)),
        }
    }
    if equal {
        report.unchanged += 1;
    } else {
        report.fields += 1;
        report.bytes = report.bytes.saturating_add(newest.nbytes()?);
    }
    let place = lift.zip(newest.newest_place()).map(|(lift, newest)| newest.saturating_add(lift));
    Ok(Carriage::Archived(CarriedField {
        index: 0,
        sum: sums.remove(0),
        seen: there.map(|there| there.id().entry),
        place,
        older: sums,
        owner: newest.owner(),
        in_file: newest.array_in_file().is_some(),
    }))
}

/// Those of these older values, newest first, that stand behind a field in their order: all of them where the store has them.
/// Others may stand between them, because a value without an attempt keeps its place beside those of the newest attempt.
fn digests_of(older: &[Content], sums: &[u128], field: &Field) -> Result<Vec<u128>> {
    let (mut there, mut found) = (field.clone(), Vec::with_capacity(sums.len()));
    for (content, sum) in older.iter().zip(sums) {
        loop {
            let Some(next) = there.older()? else { return Ok(found) };
            there = next.lenient();
            if readable(content.digest_of(&there))? == Some(*sum) {
                found.push(*sum);
                break;
            }
        }
    }
    Ok(found)
}

/// Conflict: somebody wrote or removed a key in the target meanwhile.
fn written(key: &FieldKey, to: &Store) -> Error {
    Error::conflict(format!("{key} was written or removed in {} during the transfer", to.url()))
        .with_hint("nothing was copied; try again if the older value should replace it")
}

/// The greatest stamp of a place in the order that an entry under a key has in a store.
fn place_in(store: &Store, pairs: &Texts) -> Result<Option<u64>> {
    let key = store.schema().resolve(&borrowed(pairs))?;
    store.backend().newest_place(&encode_key(&key).bytes)
}

/// The field under exactly this key.
fn exactly(store: &dyn FieldStore, pairs: &Texts, session: &Session) -> Result<Option<Field>> {
    let pairs = borrowed(pairs);
    let key = store.schema().resolve(&pairs)?;
    match store.get(&pairs, &ReadOptions { session: session.clone() }) {
        Ok(field) if field.key()? == key => Ok(Some(field.lenient())),
        Ok(_) => Ok(None),
        // Conflict: pieces that disagree, so the field is not the expected one.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Conflict) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// A damaged field of the target is not equal: it is archived again.
fn readable<T>(outcome: Result<Option<T>>) -> Result<Option<T>> {
    match outcome {
        Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Conflict) => Ok(None),
        outcome => outcome,
    }
}

type Texts = Vec<(String, String)>;

/// A key's keywords and values; of a keyword at several levels the deepest.
pub fn texts(key: &FieldKey) -> Texts {
    let mut pairs = Texts::new();
    for (keyword, value) in key.iter().filter(|(_, value)| !value.is_absent()) {
        pairs.retain(|(known, _)| **known != **keyword);
        pairs.push((keyword.to_string(), value.text().into_owned()));
    }
    pairs
}

pub fn borrowed(pairs: &Texts) -> Vec<(&str, &str)> {
    pairs.iter().map(|(keyword, value)| (keyword.as_str(), value.as_str())).collect()
}

/// A digest of a key.
pub fn digest(key: &FieldKey) -> u128 {
    xxh3_128(&encode_key(key).bytes)
}
