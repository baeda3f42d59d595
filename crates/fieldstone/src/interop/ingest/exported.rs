//! An exported file's metadata besides its values (`spec/exported-metadata.md`): the keys that its fields had, and the
//! attributes on them.
//!
//! Invariants:
//! * damaged lines do not prevent the file's fields from being taken, but then nothing from the lines is;
//! * a line that contradicts a declaration of the store makes the file be refused;
//! * a field that the store already has under its own key, equal in every element, is not written again.

use std::collections::BTreeSet;

use fieldstone_core::geometry::IndexBox;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::RunName;
use fieldstone_store::api::{FieldAccess, FieldStore, ReadOptions};

use super::netcdf::HEADER;
use crate::Store;
use crate::interop::grib::borrowed;
use crate::interop::helper::{Content, Texts};
use crate::transfer::Written;

/// The metadata of one file.
#[derive(Debug, Default)]
pub struct Exported {
    by_key: bool,
    written: Option<Written>,
}

impl Exported {
    /// Puts the fields under their former keys, of which these are some, with the changes in `base`. Invalid if they do
    /// not fit the store; a contradiction's code if `base` names one run for several.
    pub fn by_key(&mut self, store: &dyn FieldStore, keys: &[Texts], base: &Texts) -> Result<()> {
        let runs: BTreeSet<&str> =
            keys.iter().flatten().filter(|(k, _)| k == "run").map(|(_, run)| &**run).collect();
        if runs.len() > 1 && base.iter().any(|(keyword, _)| keyword == "run") {
            return Err(Code::KeyContradiction
                .error(format!("the file has fields of {} runs, but the key names only one", runs.len()))
                .with_hint("leave run out of the key, or export each run into its own file in a folder"));
        }
        let schema = store.schema();
        for key in keys {
            let own = key.iter().filter(|(keyword, _)| !base.iter().any(|(known, _)| known == keyword));
            let key: Texts = own.chain(base).cloned().collect();
            schema.resolve(&borrowed(&key)).map_err(|e| Error::invalid(e.message().to_owned()))?;
        }
        self.by_key = true;
        Ok(())
    }

    /// Whether fields get their former keys.
    pub fn is_by_key(&self) -> bool {
        self.by_key
    }

    /// Reads lines, and declares what the fields need; `base` has the keywords that replace those of the former keys.
    /// Returns the reason if nothing of the lines is taken.
    pub fn read(
        &mut self,
        store: &Store,
        base: &Texts,
        transaction: Id,
        lines: &[u8],
    ) -> Result<Option<String>> {
        let Ok(text) = std::str::from_utf8(lines) else { return Ok(Some("it is not UTF-8".to_owned())) };
        let mut written = match Written::read(text, store, &|run| place(store, &run, base)) {
            Ok(written) => written,
            Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid) => {
                return Ok(Some(error.message().to_owned()));
            }
            Err(error) => return Err(error),
        };
        written.declare(store, transaction)?;
        self.written = Some(written);
        Ok(None)
    }

    /// Whether lines declare a variable.
    pub fn declares(&self, run: &RunName, variable: &str) -> bool {
        self.written.as_ref().is_some_and(|written| written.declares(run, variable))
    }

    /// Adds the attributes of the fields, once the fields exist.
    pub fn finish(&mut self, store: &Store, transaction: Id) -> Result<()> {
        self.written.take().map_or(Ok(()), |written| written.carry(store, transaction).map(drop))
    }
}

/// The new name of a run, if `base` changes keywords of it.
fn place(store: &Store, run: &RunName, base: &Texts) -> Result<RunName> {
    let schema = store.schema();
    let mut pairs: Texts =
        schema.pairs_of(&run.project, &run.name)?.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    for (keyword, value) in base {
        pairs.retain(|(known, _)| known != keyword);
        pairs.push((keyword.clone(), value.clone()));
    }
    let mut pairs = borrowed(&pairs);
    pairs.push(("variable", HEADER));
    match schema.run_of(&schema.resolve(&pairs)?) {
        Some((project, name)) => Ok(RunName { project, name }),
        None => Err(Error::invalid("the store's schema has no runs")),
    }
}

/// Whether the store has a field, or a part of it, under exactly this key.
pub fn is_there(store: &dyn FieldStore, key: &Texts, content: &Content, payload: &[u8]) -> Result<bool> {
    let pairs = borrowed(key);
    let field = match store.get(&pairs, &ReadOptions::default()) {
        Ok(field) if field.key()? == store.schema().resolve(&pairs)? => field,
        Ok(_) => return Ok(false),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Conflict) => {
            return Ok(false);
        }
        Err(e) => return Err(e),
    };
    let (Content::Array { dtype, shape } | Content::Piece { dtype, shape, .. }) = content else {
        return Ok(false);
    };
    if field.dtype()? != Some(*dtype) || field.shape()?.as_ref() != Some(shape) || !field.is_complete()? {
        return Ok(false);
    }
    let region = match content {
        Content::Piece { start, count, shape, .. } => {
            Some(IndexBox::new(start.clone(), count.clone(), shape)?)
        }
        _ => None,
    };
    match field.read_box(region.as_ref()) {
        Ok(there) => Ok(there == payload),
        // A damaged field is not equal: it is written again.
        Err(e) if e.kind() == ErrorKind::Corrupt => Ok(false),
        Err(e) => Err(e),
    }
}
