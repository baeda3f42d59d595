//! The fields of a transfer: which they are, that each has a place in the target, and how they go there.

use std::collections::{HashMap, HashSet};

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

use super::content::Content;
use super::{TransferOptions, TransferReport};

/// Fields of one commit at the target; what they hold is in its data log by then.
const COMMIT_FIELDS: u64 = 20_000;
/// Fields removed by one call.
const REMOVE_FIELDS: usize = 1024;
/// Most missing combinations that are named.
const NAMED: usize = 5;

/// What a search for the fields of a transfer keeps to.
pub struct Search<'a> {
    /// Whether a listed value of this request without a field is an error.
    pub strict: &'a dyn Fn(usize, &Fields) -> bool,
    /// Whether the field of this key is one.
    pub wanted: &'a dyn Fn(&FieldKey) -> bool,
}

/// The fields of a transfer, each with a place in the target.
pub struct FieldPlan {
    /// `None` where no request asks for any.
    fields: Option<Fields>,
    /// Digests of the source's keys by those of the target's.
    places: HashMap<u128, u128>,
    /// Digests of the source's keys.
    keys: HashSet<u128>,
    /// Indexes of fields that requests name again, and of those that are none of the transfer.
    passed: Vec<usize>,
}

impl FieldPlan {
    /// Finds the fields, and checks that each has a place of its own in the target.
    pub fn new(
        from: &dyn FieldStore,
        requests: &[Request],
        to: &dyn FieldStore,
        search: &Search<'_>,
    ) -> Result<FieldPlan> {
        // Lenient, since what is not complete is carried over as it is.
        let lenient = RetrieveOptions { strict: false, transaction: None };
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
            fields: None,
        };
        for (index, field) in all.iter().flat_map(Fields::iter).enumerate() {
            let field = field?;
            let key = field.key()?;
            if !(search.wanted)(&key) {
                plan.passed.push(index);
                continue;
            }
            let pairs = texts(&key);
            let place = schema
                .resolve(&borrowed(&pairs))
                .map_err(|e| e.context(format!("{key} has no place in {}", to.url())))?;
            // Pieces that disagree make no field.
            field.dtype()?;
            plan.keys.insert(digest(&key));
            match plan.places.insert(digest(&place), digest(&key)) {
                Some(other) if other == digest(&key) => plan.passed.push(index),
                Some(_) => {
                    return Err(Code::KeyContradiction.error(format!(
                        "{key} and another field would have the same key {place} in {}",
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

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Whether the field of a key is one of them.
    pub fn holds(&self, key: &FieldKey) -> bool {
        self.keys.contains(&digest(key))
    }

    /// Archives what the target has not, makes it durable, and compares what it then has.
    pub fn carry(
        &self,
        to: &dyn FieldStore,
        transaction: Id,
        options: &TransferOptions<'_>,
        report: &mut TransferReport,
    ) -> Result<()> {
        let mut carried = Vec::new();
        let all = self.fields.as_ref().map_or(0, Fields::len) as u64;
        let report_progress = |done: u64| match options.progress {
            Some(progress) => progress(done, all),
            None => Ok(()),
        };
        let archive =
            ArchiveOptions { transaction: Some(transaction), verbatim: true, ..ArchiveOptions::default() };
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
            report_progress(all)?;
            let Some(fields) = &self.fields else { break };
            let field = fields.get(index)?;
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
        report_progress(all)
    }

    /// Removes the very versions of the plan, within a transaction.
    pub fn remove(&self, from: &dyn FieldStore, transaction: Id) -> Result<()> {
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
