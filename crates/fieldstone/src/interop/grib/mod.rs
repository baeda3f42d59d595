//! Archives GRIB messages under the keys of their headers: [`archive_grib`], and code that it shares
//! with ingest.
//!
//! | module | holds |
//! |---|---|
//! | [`keys`] | the keys of headers: from the cache, else from eccodes in the helper |
//! | [`batch`] | the fields of a source, some at a time, with their keys |
//!
//! Invariants:
//! * a field's bytes are those of its message; a message of several fields is archived as messages of one;
//! * a refused call archives nothing;
//! * memory holds one batch of messages (16 MiB, or one message) and the cached keys (64 MiB).
//!
//! ```no_run
//! use fieldstone::{ArchiveOptions, GribOptions, GribSource, OpenOptions};
//!
//! let store = fieldstone::open("store", &OpenOptions { schema: Some("mars".into()), ..Default::default() })?;
//! let source = GribSource::Path("forecast.grib".as_ref());
//! let n = fieldstone::archive_grib(&store, source, &GribOptions::default(), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! println!("{n} fields");
//! # Ok::<(), fieldstone::Error>(())
//! ```

pub mod batch;
pub mod keys;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use fieldstone_core::schema::{KeywordType, Schema};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::grib::header::grid_of;
use fieldstone_store::api::{ArchiveOptions, FieldStore, Pairs, Value};
use xxhash_rust::xxh3::xxh3_128;

use crate::interop::helper::{HelperOptions, Texts};
use crate::interop::shared_helper::SharedHelper;
use batch::{Batches, FileSource, Keep, Part};

/// The attribute by which a declared variable names the grid of its messages: [`grid_name`].
pub(crate) const GRID: &str = "GRIB_grid";

/// The word that is valid in every list of words.
const UNKNOWN: &str = "unknown";

/// The name of a grid: a digest of its description in messages.
pub(crate) fn grid_name(message: &[u8]) -> String {
    format!("{:032x}", xxh3_128(grid_of(message)))
}

/// The source of messages.
#[derive(Debug, Clone, Copy)]
pub enum GribSource<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// A file.
    Path(&'a Path),
}

/// Options of [`archive_grib`].
#[derive(Debug, Clone, Default)]
pub struct GribOptions {
    /// Keywords for the key of every message: a message that contradicts them is refused; keywords that it lacks are
    /// added.
    pub key: Texts,
    /// Options for starting the helper, if one is needed.
    pub helper: HelperOptions,
}

/// Archives every field of every message of a source under the key of its header; returns the number of fields.
///
/// Like `archive` it does not flush, and a key archived again is a new version. Nothing is archived if a message is
/// damaged (Corrupt), contradicts `options.key`, or does not fit the store's schema (Invalid): the error gives the byte
/// offset of the message. Nor is anything if a message belongs to a dataset of another user, or to a locked one (Denied), or
/// if its key exists where that is an error (Conflict).
pub fn archive_grib(
    store: &dyn FieldStore,
    source: GribSource<'_>,
    options: &GribOptions,
    archive: &ArchiveOptions,
) -> Result<u64> {
    let archiving = Archiving { store, options, archive };
    match source {
        GribSource::Bytes(bytes) => archiving.all(bytes),
        GribSource::Path(path) => {
            let file = FileSource::open(path)?;
            archiving.all(&file).map_err(|error| error.context(path.display()))
        }
    }
}

/// The keys of the fields in bytes, in their order, or the reason why there is none.
pub fn grib_keys(bytes: &[u8], helper: &HelperOptions) -> Result<Vec<std::result::Result<Texts, String>>> {
    let mut reader = SharedHelper::new(helper);
    let mut batches = Batches::new(bytes);
    let mut keys = Vec::new();
    while let Some(parts) = batches.next(&mut reader)? {
        keys.extend(parts.into_iter().map(|part| part.field.map(|field| field.key)));
    }
    Ok(keys)
}

struct Archiving<'a> {
    store: &'a dyn FieldStore,
    options: &'a GribOptions,
    archive: &'a ArchiveOptions,
}

impl Archiving<'_> {
    fn all<S: Keep + ?Sized>(&self, source: &S) -> Result<u64> {
        let mut reader = SharedHelper::new(&self.options.helper);
        let mut batches = Batches::new(source);
        let Some(first) = batches.next(&mut reader)? else {
            return Err(Code::FileFormat
                .error("it holds no GRIB messages")
                .with_hint("a message begins with GRIB and ends with 7777"));
        };
        if batches.at_end() {
            return self.take(first);
        }
        // With more than one batch, check all before archiving the first.
        let mut seen = HashSet::new();
        self.check(&first, &mut seen)?;
        drop(first);
        while let Some(parts) = batches.next(&mut reader)? {
            self.check(&parts, &mut seen)?;
        }
        let (mut batches, mut taken) = (Batches::new(source), 0);
        while let Some(parts) = batches.next(&mut reader)? {
            taken += self.take(parts)?;
        }
        Ok(taken)
    }

    /// Refuses what the store will not take; `seen` has hashes of all keys before.
    fn check(&self, parts: &[Part<'_>], seen: &mut HashSet<u64>) -> Result<()> {
        let (schema, options) =
            (self.store.schema(), ArchiveOptions { dry_run: true, ..self.archive.clone() });
        let keys: Vec<Texts> = parts.iter().map(|part| self.key(&schema, part)).collect::<Result<_>>()?;
        let pairs: Vec<Vec<(&str, &str)>> = keys.iter().map(borrowed).collect();
        let mut items: Vec<(&Pairs<'_>, Value<'_>)> = Vec::with_capacity(pairs.len());
        for (part, pairs) in parts.iter().zip(&pairs) {
            let key = schema.resolve(pairs).map_err(|e| at(part, explain(&schema, e)))?;
            let mut hasher = DefaultHasher::new();
            key.to_string().hash(&mut hasher);
            // A key that an earlier batch has is one that exists by then.
            let times = if seen.insert(hasher.finish()) { 1 } else { 2 };
            items.extend([(&pairs[..], Value::Bytes(&[])); 2].into_iter().take(times));
        }
        self.store.archive_many(&items, &options)
    }

    fn take(&self, parts: Vec<Part<'_>>) -> Result<u64> {
        let schema = self.store.schema();
        let keys: Vec<Texts> = parts.iter().map(|part| self.key(&schema, part)).collect::<Result<_>>()?;
        let pairs: Vec<Vec<(&str, &str)>> = keys.iter().map(borrowed).collect();
        let values = parts.iter().flat_map(|part| part.field.as_ref().ok());
        let items: Vec<(&Pairs<'_>, Value<'_>)> =
            pairs.iter().zip(values).map(|(key, field)| (&key[..], Value::Bytes(&field.bytes))).collect();
        if let Err(error) = self.store.archive_many(&items, self.archive) {
            // The error names the first message that does not fit.
            for (part, key) in parts.iter().zip(&pairs) {
                schema.resolve(key).map_err(|e| at(part, explain(&schema, e)))?;
            }
            return Err(error);
        }
        Ok(items.len() as u64)
    }

    fn key(&self, schema: &Schema, part: &Part<'_>) -> Result<Texts> {
        match &part.field {
            Ok(field) => {
                let key = merge(schema, field.key.clone(), &self.options.key);
                key.map(|key| fitted(schema, key)).map_err(|error| at(part, error))
            }
            Err(why) => Err(refused(part, why.clone())),
        }
    }
}

fn at(part: &Part<'_>, error: Error) -> Error {
    error.context(&part.what)
}

fn refused(part: &Part<'_>, why: String) -> Error {
    Error::corrupt(format!("{}: {why}", part.what))
        .with_hint("ingest takes the intact messages of a damaged file and reports the rest")
}

/// Explains a key's error if the schema is not one for GRIB.
pub(crate) fn explain(schema: &Schema, error: Error) -> Error {
    if schema.name() != Some("simulation") {
        return error;
    }
    Code::SchemaRole
        .error("the store's schema, simulation, cannot hold GRIB messages")
        .with_hint("take GRIB files into another store, created with the schema mars")
}

/// The pairs of `key` with those that the caller wants everywhere. Invalid if they contradict; two spellings of one
/// value do not.
pub(crate) fn merge(schema: &Schema, mut key: Texts, extra: &Texts) -> Result<Texts> {
    for (keyword, wanted) in extra {
        let Some(place) = key.iter().position(|(known, _)| known == keyword) else {
            key.push((keyword.clone(), wanted.clone()));
            continue;
        };
        if key[place].1 == *wanted {
            continue;
        }
        // A key that differs only in this value is the same key if the values are equal.
        let own = schema.resolve(&borrowed(&key)).ok();
        let value = std::mem::replace(&mut key[place].1, wanted.clone());
        let given = schema.resolve(&borrowed(&key)).ok();
        let text = |found: &Option<fieldstone_core::key::FieldKey>, raw: &str| {
            let found = found.as_ref().and_then(|key| key.iter().find(|(name, _)| ***name == **keyword));
            found.map_or_else(|| raw.to_owned(), |(_, value)| value.text().into_owned())
        };
        if own.is_none() || own != given {
            let (own, given) = (text(&own, &value), text(&given, wanted));
            return Err(Code::KeyContradiction
                .error(format!("its {keyword} is {own}, but the given key says {given}"))
                .with_hint(format!("leave {keyword} out of the key, or archive such messages separately")));
        }
        key[place].1 = value;
    }
    Ok(key)
}

/// Turns values of a wrong type into texts: a `date` that is not a date becomes `date_text`, and so on. A MARS word
/// that the schema's list lacks becomes `unknown`, with `levtype_text` next to it, and so on. The key stays unchanged
/// if it fits, or would still not fit.
pub(crate) fn fitted(schema: &Schema, key: Texts) -> Texts {
    if schema.resolve(&borrowed(&key)).is_ok() {
        return key;
    }
    use KeywordType as T;
    let mut fitted = Texts::with_capacity(key.len() + 1);
    for (keyword, text) in &key {
        let kind = schema.type_of(keyword).filter(|kind| kind.canonical(keyword, text).is_err());
        match kind {
            Some(T::Date | T::Time | T::Step | T::Integer | T::Double) => {}
            Some(T::Word(_)) => fitted.push((keyword.clone(), UNKNOWN.to_owned())),
            _ => {
                fitted.push((keyword.clone(), text.clone()));
                continue;
            }
        }
        fitted.push((format!("{keyword}_text"), text.clone()));
    }
    if schema.resolve(&borrowed(&fitted)).is_ok() { fitted } else { key }
}

/// Pairs in the form that a store's calls accept.
pub(crate) fn borrowed(pairs: &Texts) -> Vec<(&str, &str)> {
    pairs.iter().map(|(keyword, value)| (keyword.as_str(), value.as_str())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_word_that_no_list_has_is_kept_beside_unknown() {
        let schema = Schema::builtin("mars").unwrap();
        let text = |pairs: &[(&str, &str)]| -> Texts {
            pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let base =
            [("class", "od"), ("expver", "0001"), ("stream", "oper"), ("type", "fc"), ("levtype", "sfc")];
        for word in ["class", "stream", "type", "levtype", "domain"] {
            let mut key = text(&base);
            key.extend(text(&[("date", "20260101"), ("time", "0000"), ("step", "0"), ("param", "167")]));
            key.retain(|(keyword, _)| keyword != word);
            key.push((word.to_owned(), "newest".to_owned()));
            assert!(schema.resolve(&borrowed(&key)).is_err(), "{word}");
            let found = schema.resolve(&borrowed(&fitted(&schema, key))).unwrap();
            let of = |keyword: &str| found.get(keyword).map(|value| value.text().into_owned());
            assert_eq!(of(word).as_deref(), Some("unknown"));
            assert_eq!(of(&format!("{word}_text")).as_deref(), Some("newest"));
        }
    }
}
