//! The place of a netCDF file: its run, or its run and a digest if other files have the run.

use std::collections::{BTreeSet, HashMap};

use fieldstone_core::geometry::IndexBox;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_store::api::{FieldLocation, FieldStore, ListEntry, ListOptions, PlaceFile, ReadOptions};
use serde_json::Value;

use super::report::Taken;
use crate::interop::grib::borrowed;
use crate::interop::helper::Texts;

/// The variable under which the header of a file is kept.
pub const HEADER: &str = "@header";
/// The keyword that separates files of one run, and the number of its digits of the digest.
const SOURCE: &str = "source";
const SOURCE_DIGITS: usize = 12;

/// The decision about a file.
pub enum Offer {
    /// Its fields go under these pairs.
    New(Texts),
    /// The store already has it under these pairs, in this many fields.
    Held(Texts, u64),
}

/// Finds the place of a file. Invalid if the store's schema has none.
///
/// A file that the store has is taken again, under the same keys, if its stored form is no longer good: values in a
/// file outside the store that changed or is missing, or, with `copy`, any values outside the store.
pub fn place(store: &dyn FieldStore, run: String, sha256: &str, extra: &Texts, copy: bool) -> Result<Offer> {
    let mut base = extra.clone();
    if !base.iter().any(|(keyword, _)| keyword == "run") {
        base.insert(0, ("run".to_owned(), run));
    }
    check(store, &base)?;
    match held(store, &base, sha256, copy)? {
        StoredFile::Good(fields) => return Ok(Offer::Held(base, fields)),
        StoredFile::Stale => return Ok(Offer::New(base)),
        StoredFile::Not => {}
    }
    if own_fields(store, &base)?.next().transpose()?.is_none() {
        return Ok(Offer::New(base));
    }
    if !base.iter().any(|(keyword, _)| keyword == SOURCE) {
        base.push((SOURCE.to_owned(), sha256.chars().take(SOURCE_DIGITS).collect()));
    }
    check(store, &base)?;
    match held(store, &base, sha256, copy)? {
        StoredFile::Good(fields) => Ok(Offer::Held(base, fields)),
        StoredFile::Stale | StoredFile::Not => Ok(Offer::New(base)),
    }
}

/// Checks whether the schema has a place for the file.
fn check(store: &dyn FieldStore, base: &Texts) -> Result<()> {
    if let Some((keyword, _)) = base.iter().find(|(keyword, _)| keyword == "variable" || keyword == "step") {
        return Err(
            Code::KeyContradiction.error(format!("{keyword} comes from the file, so the key cannot give it"))
        );
    }
    let mut pairs = borrowed(base);
    pairs.push(("variable", HEADER));
    let Err(error) = store.schema().resolve(&pairs) else { return Ok(()) };
    if store.schema().name() != Some("mars") {
        return Err(error);
    }
    Err(Code::SchemaRole
        .error("the store's schema, mars, cannot hold netCDF fields")
        .with_hint("take netCDF files into another store, created with the schema simulation"))
}

/// Whether the store has a file.
enum StoredFile {
    /// It does, in this many fields.
    Good(u64),
    /// It does, and its values must be taken again.
    Stale,
    /// It does not.
    Not,
}

/// Whether exactly this file is under `base`.
fn held(store: &dyn FieldStore, base: &Texts, sha256: &str, copy: bool) -> Result<StoredFile> {
    let mut pairs = borrowed(base);
    pairs.push(("variable", HEADER));
    let field = match store.get(&pairs, &ReadOptions::default()) {
        Ok(field) if field.key()? == store.schema().resolve(&pairs)? => field,
        Ok(_) => return Ok(StoredFile::Not),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => return Ok(StoredFile::Not),
        Err(e) => return Err(e),
    };
    // A damaged header identifies nothing: the file is taken again next to its remains.
    let Ok(text) = field.read() else { return Ok(StoredFile::Not) };
    let header: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
    if header["source"]["sha256"] != *sha256 {
        return Ok(StoredFile::Not);
    }
    let (mut fields, mut looked_at) = (0, Vec::new());
    for entry in own_fields(store, base)? {
        let entry = entry?;
        fields += 1;
        let Some(FieldLocation { file: PlaceFile::Outside(url), .. }) = &entry.place else { continue };
        if copy {
            return Ok(StoredFile::Stale);
        }
        // One field of a file shows whether the file is unchanged.
        if looked_at.contains(url) {
            continue;
        }
        if !is_sound(store, &entry)? {
            return Ok(StoredFile::Stale);
        }
        looked_at.push(url.clone());
    }
    Ok(StoredFile::Good(fields))
}

/// Whether the first element of a field can be read.
fn is_sound(store: &dyn FieldStore, entry: &ListEntry) -> Result<bool> {
    let texts: Texts = entry.key.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let shape = entry.shape.as_deref().unwrap_or_default();
    let first = IndexBox::new(vec![0; shape.len()], vec![1; shape.len()], shape)?;
    match store.get(&borrowed(&texts), &ReadOptions::default())?.read_box(Some(&first)) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(false),
        Err(error) => Err(error),
    }
}

/// Adds to each file the keywords that it lacks but others have whose keys contain all of its own.
pub fn tell_apart(store: &dyn FieldStore, taken: &mut [Taken]) -> Result<()> {
    let run_of = |key: &Texts| key.iter().find(|(keyword, _)| keyword == "run").map(|(_, run)| run.clone());
    let runs: BTreeSet<String> = taken.iter().filter_map(|taken| run_of(&taken.key)).collect();
    if runs.is_empty() || !store.schema().keywords().iter().any(|name| **name == *"variable") {
        return Ok(());
    }
    let mut request = Request::new();
    request.set("run", Values::list(runs));
    request.set("variable", Values::list([HEADER]));
    let mut keys: HashMap<String, Vec<Texts>> = HashMap::new();
    for entry in store.list(&request, &ListOptions::default())? {
        let entry = entry?;
        let held = entry.key.iter().filter(|(name, value)| &***name != "variable" && !value.is_absent());
        let key: Texts = held.map(|(name, value)| (name.to_string(), value.text().into_owned())).collect();
        keys.entry(run_of(&key).unwrap_or_default()).or_default().push(key);
    }
    for file in taken {
        let Some(beside) = run_of(&file.key).and_then(|run| keys.get(&run)) else { continue };
        let own = |name: &str| file.key.iter().any(|(keyword, _)| keyword == name);
        let further = beside.iter().filter(|key| file.key.iter().all(|pair| key.contains(pair)));
        let further = further.flatten().map(|(name, _)| name).filter(|name| !own(name));
        file.lacks = further.cloned().collect::<BTreeSet<_>>().into_iter().collect();
    }
    Ok(())
}

/// The fields with these pairs and, of further ones, only a variable and a step.
fn own_fields(store: &dyn FieldStore, base: &Texts) -> Result<impl Iterator<Item = Result<ListEntry>>> {
    let mut request = Request::new();
    for (keyword, value) in base {
        request.set(keyword, Values::list([value]));
    }
    let known: Vec<String> = base.iter().map(|(keyword, _)| keyword.clone()).collect();
    let own = move |name: &str| matches!(name, "variable" | "step") || known.iter().any(|k| k == name);
    let entries = store.list(&request, &ListOptions::default())?;
    Ok(entries.filter(move |entry| entry.as_ref().map_or(true, |e| e.key.iter().all(|(name, _)| own(name)))))
}
