//! The place of a netCDF file: its run, or its run and a digest where others have the run.

use fieldstone_core::key::FieldKey;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_store::api::{FieldStore, ListOptions, ReadOptions};
use serde_json::Value;

use super::borrowed;
use crate::helper::Texts;

/// The variable under which the header of a file is kept.
pub const HEADER: &str = "@header";
/// The keyword that keeps files of one run apart, and how many digits of the digest it has.
const SOURCE: &str = "source";
const SOURCE_DIGITS: usize = 12;

/// What becomes of a file.
pub enum Offer {
    /// Its fields go under these pairs.
    New(Texts),
    /// The store has it already, in so many fields.
    Held(u64),
}

/// Finds the place of a file. Invalid where the store's schema has none.
pub fn place(store: &dyn FieldStore, run: String, sha256: &str, extra: &Texts) -> Result<Offer> {
    let mut base = extra.clone();
    if !base.iter().any(|(keyword, _)| keyword == "run") {
        base.insert(0, ("run".to_owned(), run));
    }
    check(store, &base)?;
    if let Some(fields) = held(store, &base, sha256)? {
        return Ok(Offer::Held(fields));
    }
    if own_fields(store, &base)?.next().transpose()?.is_none() {
        return Ok(Offer::New(base));
    }
    if !base.iter().any(|(keyword, _)| keyword == SOURCE) {
        base.push((SOURCE.to_owned(), sha256.chars().take(SOURCE_DIGITS).collect()));
    }
    check(store, &base)?;
    match held(store, &base, sha256)? {
        Some(fields) => Ok(Offer::Held(fields)),
        None => Ok(Offer::New(base)),
    }
}

/// Whether the schema has a place for the file.
fn check(store: &dyn FieldStore, base: &Texts) -> Result<()> {
    if let Some((keyword, _)) = base.iter().find(|(keyword, _)| keyword == "variable" || keyword == "step") {
        return Err(Error::invalid(format!("{keyword} comes from the file and cannot be given in the key")));
    }
    let mut pairs = borrowed(base);
    pairs.push(("variable", HEADER));
    let Err(error) = store.schema().resolve(&pairs) else { return Ok(()) };
    if store.schema().name() != Some("mars") {
        return Err(error);
    }
    Err(Error::invalid("the store has the schema mars, which has no place for netCDF")
        .with_hint("take netCDF files into a store of their own, opened with the schema simulation"))
}

/// How many fields of this very file stand under `base`; `None` where it is not there.
fn held(store: &dyn FieldStore, base: &Texts, sha256: &str) -> Result<Option<u64>> {
    let mut pairs = borrowed(base);
    pairs.push(("variable", HEADER));
    let field = match store.get(&pairs, &ReadOptions::default()) {
        Ok(field) if field.key()? == store.schema().resolve(&pairs)? => field,
        Ok(_) => return Ok(None),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => return Ok(None),
        Err(e) => return Err(e),
    };
    // A damaged header tells nothing: the file is taken again beside what is left of it.
    let Ok(text) = field.read() else { return Ok(None) };
    let header: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
    if header["source"]["sha256"] != *sha256 {
        return Ok(None);
    }
    let fields = own_fields(store, base)?.try_fold(0, |n, key| key.map(|_| n + 1));
    fields.map(Some)
}

/// The fields that have these pairs and, of further ones, only a variable and a step.
fn own_fields(store: &dyn FieldStore, base: &Texts) -> Result<impl Iterator<Item = Result<FieldKey>>> {
    let mut request = Request::new();
    for (keyword, value) in base {
        request.set(keyword, Values::list([value]));
    }
    let known: Vec<String> = base.iter().map(|(keyword, _)| keyword.clone()).collect();
    let own = move |name: &str| matches!(name, "variable" | "step") || known.iter().any(|k| k == name);
    let keys = store.list(&request, &ListOptions::default())?.map(|entry| entry.map(|entry| entry.key));
    Ok(keys.filter(move |key| key.as_ref().map_or(true, |key| key.iter().all(|(name, _)| own(name)))))
}
