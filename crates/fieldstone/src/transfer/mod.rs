//! Handing fields to another store: `copy` and `move`.
//!
//! Invariants:
//! * the target has all of what a call carries over, or nothing of it: it is one transaction there;
//! * what the target has durably (F-8) is read back and compared with what was read from the source before
//!   anything is visible or reported;
//! * a move removes from the source only after that, and only the very versions that were carried over:
//!   a newer one that was written meanwhile stays, and is reported. A crash leaves a field in the source,
//!   in the target, or in both, and never in neither;
//! * fields that the target has already, equal in type, shape and every element, are not written again;
//! * memory holds a part of one array (16 MiB, or a chunk where that is longer) or one opaque field, and
//!   about 100 bytes per field.
//!
//! Arrays keep type, byte order, shape, chunks, and whether they are compressed. A field that is not
//! complete is copied as it is: what was written, and the fill of what was not. The target keeps its own
//! schema: where it has no place for a key the call is Invalid before any byte moves.
//!
//! ```
//! use fieldstone::transfer::{TransferOptions, copy};
//! use fieldstone::{ArchiveOptions, FieldStore, OpenOptions, Request, Value};
//!
//! let (hot, cold) = (
//!     fieldstone::open("memory:", &OpenOptions::default())?,
//!     fieldstone::open("memory:", &OpenOptions::default())?,
//! );
//! let key = [("run", "demo"), ("variable", "t"), ("step", "6")];
//! hot.archive(&key, Value::Bytes(b"hello"), &ArchiveOptions::default())?;
//! hot.flush(None)?;
//! let report = copy(&*hot, &[Request::parse("run=demo")?], &*cold, &TransferOptions::default())?;
//! assert_eq!((report.fields, report.bytes), (1, 5));
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod content;

use std::collections::HashMap;
use std::fmt;

use fieldstone_core::key::FieldKey;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::encode_key;
use fieldstone_store::api::{
    ArchiveOptions, FieldStore, ListOptions, ReadOptions, RemoveOptions, RetrieveOptions,
};
use fieldstone_store::{Field, Fields};
use xxhash_rust::xxh3::xxh3_128;

use crate::open::{Mode, OpenOptions};
use content::Content;

/// Fields of one commit at the target; what they hold is in its data log by then.
const COMMIT_FIELDS: u64 = 20_000;
/// Fields removed by one call.
const REMOVE_FIELDS: usize = 1024;
/// Most missing combinations, and most keys that stayed, that are named.
const NAMED: usize = 5;

/// Called with the fields done and all of them; an error ends the transfer, and nothing of it stays.
pub type OnProgress<'a> = dyn Fn(u64, u64) -> Result<()> + 'a;

/// Options of [`copy`] and [`move_fields`].
#[derive(Clone, Copy)]
pub struct TransferOptions<'a> {
    /// Whether a listed value or combination without a field is an error.
    pub strict: bool,
    /// What is reported about progress.
    pub progress: Option<&'a OnProgress<'a>>,
}

impl Default for TransferOptions<'_> {
    fn default() -> Self {
        TransferOptions { strict: true, progress: None }
    }
}

impl fmt::Debug for TransferOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = self.progress.is_some();
        f.debug_struct("TransferOptions").field("strict", &self.strict).field("progress", &progress).finish()
    }
}

/// What a transfer did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferReport {
    /// Fields that the target has now and had not before.
    pub fields: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Fields that the target had already, equal in every element.
    pub unchanged: u64,
    /// Fields that the source has no more.
    pub removed: u64,
    /// Keys under which the source has a newer version, written meanwhile, that stayed there.
    pub kept: Vec<String>,
}

/// Copies what requests name from one store to another.
pub fn copy(
    from: &dyn FieldStore,
    requests: &[Request],
    to: &dyn FieldStore,
    options: &TransferOptions<'_>,
) -> Result<TransferReport> {
    let plan = TransferPlan::new(from, requests, to, options)?;
    plan.copy(to, options)
}

/// Moves what requests name from one store to another: copies it, then removes it from the source.
pub fn move_fields(
    from: &dyn FieldStore,
    requests: &[Request],
    to: &dyn FieldStore,
    options: &TransferOptions<'_>,
) -> Result<TransferReport> {
    let (source, target) = (from.status()?.id, to.status()?.id);
    if source.is_some() && source == target {
        return Err(Code::WrongStore
            .error(format!(
                "{} and {} are the same store, or one is a copy of the other's files",
                from.url(),
                to.url()
            ))
            .with_hint("move into a store of its own"));
    }
    let plan = TransferPlan::new(from, requests, to, options)?;
    // Who may not remove is refused before anything is copied.
    let removal = from.begin()?;
    let outcome = plan.remove(from, removal).and_then(|()| plan.copy(to, options));
    let mut report = match outcome {
        Ok(report) => report,
        Err(error) => {
            let _ = from.abandon(removal);
            return Err(error);
        }
    };
    let undone = "everything is in the target; move again to remove it from the source";
    from.decide(removal, true).map_err(|e| e.context("removing from the source").with_hint(undone))?;
    report.kept = plan.left(from, requests)?;
    report.removed = (plan.each().count() as u64).saturating_sub(report.kept.len() as u64);
    Ok(report)
}

/// Opens the store that is to receive fields; one that is not there yet gets the source's schema.
pub fn open_target(url: &str, from: &dyn FieldStore) -> Result<crate::Store> {
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let schema = match crate::open(url, &reading) {
        Err(e) if e.kind() == ErrorKind::NotFound => Some(from.schema().text().to_owned()),
        _ => None,
    };
    crate::open(url, &OpenOptions { schema, ..OpenOptions::default() })
}

/// The fields of a transfer, each with a place in the target.
struct TransferPlan {
    fields: Fields,
    /// Digests of the source's keys by those of the target's.
    places: HashMap<u128, u128>,
    /// Indexes of fields that requests name again.
    again: Vec<usize>,
}

impl TransferPlan {
    /// Finds the fields, and checks that each has a place of its own in the target.
    fn new(
        from: &dyn FieldStore,
        requests: &[Request],
        to: &dyn FieldStore,
        options: &TransferOptions<'_>,
    ) -> Result<TransferPlan> {
        // Lenient, since what is not complete is carried over as it is.
        let lenient = RetrieveOptions { strict: false, transaction: None };
        let mut all: Option<Fields> = None;
        for request in requests {
            let found = from.retrieve(request, &lenient)?;
            let missing = found.missing_count();
            if options.strict && missing > 0 {
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
        let Some(fields) = all else { return Err(Code::RequestTooBroad.error("a transfer needs a request")) };
        let schema = to.schema();
        let mut places = HashMap::with_capacity(fields.len());
        let mut again = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let field = field?;
            let key = field.key()?;
            let pairs = texts(&key);
            let place = schema
                .resolve(&borrowed(&pairs))
                .map_err(|e| e.context(format!("{key} has no place in {}", to.url())))?;
            // Pieces that disagree make no field.
            field.dtype()?;
            match places.insert(digest(&place), digest(&key)) {
                Some(other) if other == digest(&key) => again.push(index),
                Some(_) => {
                    return Err(Code::KeyContradiction.error(format!(
                        "{key} and another field would have the same key {place} in {}",
                        to.url()
                    )));
                }
                None => {}
            }
        }
        Ok(TransferPlan { fields, places, again })
    }

    /// The fields, each once.
    fn each(&self) -> impl Iterator<Item = (u64, Result<Field>)> + '_ {
        let once = (0..self.fields.len()).filter(|index| self.again.binary_search(index).is_err());
        once.map(|index| (index as u64, self.fields.get(index)))
    }

    fn copy(&self, to: &dyn FieldStore, options: &TransferOptions<'_>) -> Result<TransferReport> {
        let transaction = to.begin()?;
        let outcome = self.carry(to, transaction, options);
        match outcome {
            Ok(report) if report.fields > 0 => to.decide(transaction, true).map(|()| report),
            Ok(report) => to.abandon(transaction).map(|()| report),
            Err(error) => {
                let _ = to.abandon(transaction);
                Err(error)
            }
        }
    }

    /// Archives what the target has not, makes it durable, and compares what it then has.
    fn carry(
        &self,
        to: &dyn FieldStore,
        transaction: Id,
        options: &TransferOptions<'_>,
    ) -> Result<TransferReport> {
        let mut report = TransferReport::default();
        let mut carried = Vec::new();
        let report_progress = |done: u64| match options.progress {
            Some(progress) => progress(done, self.fields.len() as u64),
            None => Ok(()),
        };
        let archive = ArchiveOptions { transaction: Some(transaction), ..ArchiveOptions::default() };
        for (index, field) in self.each() {
            report_progress(index)?;
            let field = field?;
            let key = field.key()?;
            let pairs = texts(&key);
            let content = Content::new(field)?;
            if let Some(there) = exactly(to, &pairs, None)?
                && let Some(theirs) = readable(content.digest_of(&there))?
                && Some(theirs) == content.digest()?
            {
                report.unchanged += 1;
                continue;
            }
            let sum = content.archive(to, &borrowed(&pairs), &archive).map_err(|e| e.context(&key))?;
            report.fields += 1;
            report.bytes = report.bytes.saturating_add(content.nbytes()?);
            carried.push((index as usize, sum));
            if report.fields.is_multiple_of(COMMIT_FIELDS) {
                to.flush(Some(transaction))?;
            }
        }
        to.flush(Some(transaction))?;
        for (index, sum) in carried {
            report_progress(self.fields.len() as u64)?;
            let field = self.fields.get(index)?;
            let key = field.key()?;
            let there = exactly(to, &texts(&key), Some(transaction))?;
            let theirs = match &there {
                Some(there) => Content::new(field)?.digest_of(&there.clone().lenient())?,
                None => None,
            };
            if theirs != Some(sum) {
                return Err(Code::CopyDiffers
                    .error(format!("{} does not give back what was written into it under {key}", to.url()))
                    .with_hint("nothing was copied; see what verify says of both stores"));
            }
        }
        report_progress(self.fields.len() as u64)?;
        Ok(report)
    }

    /// Removes the very versions of the plan, within a transaction.
    fn remove(&self, from: &dyn FieldStore, transaction: Id) -> Result<()> {
        let options = RemoveOptions { transaction: Some(transaction) };
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

    /// The keys of the plan that have a field all the same.
    fn left(&self, from: &dyn FieldStore, requests: &[Request]) -> Result<Vec<String>> {
        let moved: std::collections::HashSet<u128> = self.places.values().copied().collect();
        let mut left = Vec::new();
        for request in requests {
            for entry in from.list(request, &ListOptions::default())? {
                let key = entry?.key;
                if moved.contains(&digest(&key)) && !left.contains(&key.to_string()) {
                    left.push(key.to_string());
                }
            }
        }
        Ok(left)
    }
}

/// The field under this very key.
fn exactly(store: &dyn FieldStore, pairs: &Texts, transaction: Option<Id>) -> Result<Option<Field>> {
    let pairs = borrowed(pairs);
    let key = store.schema().resolve(&pairs)?;
    match store.get(&pairs, &ReadOptions { transaction }) {
        Ok(field) if field.key()? == key => Ok(Some(field.lenient())),
        Ok(_) => Ok(None),
        // Conflict: pieces that disagree, which are not what is to be there.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Conflict) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// What is damaged in the target is not equal: it is archived again.
fn readable<T>(outcome: Result<Option<T>>) -> Result<Option<T>> {
    match outcome {
        Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Conflict) => Ok(None),
        outcome => outcome,
    }
}

type Texts = Vec<(String, String)>;

/// A key's keywords and values; of a keyword at several levels the deepest.
fn texts(key: &FieldKey) -> Texts {
    let mut pairs = Texts::new();
    for (keyword, value) in key.iter().filter(|(_, value)| !value.is_absent()) {
        pairs.retain(|(known, _)| **known != **keyword);
        pairs.push((keyword.to_string(), value.text().into_owned()));
    }
    pairs
}

fn borrowed(pairs: &Texts) -> Vec<(&str, &str)> {
    pairs.iter().map(|(keyword, value)| (keyword.as_str(), value.as_str())).collect()
}

fn digest(key: &FieldKey) -> u128 {
    xxh3_128(&encode_key(key).bytes)
}
