//! GRIB files, and the keys of their messages: the key of the header; if another message of the same ingest has it,
//! that key plus what distinguishes the two.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use fieldstone_core::env::Env;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::grib::fields::fields;
use fieldstone_format::grib::header::Header;
use fieldstone_format::grib::messages::Source;
use fieldstone_format::keys::encode_key;
use fieldstone_store::api::{FieldAccess, FieldLocation, FieldStore, ListOptions, PlaceFile, ReadOptions};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::declare;
use super::file::{End, Harvest, State};
use crate::interop::grib::batch::{Batches, FileSource};
use crate::interop::grib::{borrowed, explain, fitted, merge};
use crate::interop::helper::{Content, Texts};

/// Nanoseconds between progress reports.
const REPORTED: u64 = 100_000_000;

impl State<'_> {
    /// Reads a GRIB file.
    pub fn grib(
        &mut self,
        path: &Path,
        source: &FileSource,
        progress: &dyn Fn(f64) -> Result<()>,
        harvest: &mut Harvest<'_>,
    ) -> Result<End> {
        let file = self.messages.begin(path);
        let mut batches = Batches::new(source);
        let clock = Env::real().clock;
        let mut reported = clock.monotonic();
        loop {
            let parts = match batches.next(&mut self.helper) {
                Ok(Some(parts)) => parts,
                Ok(None) => {
                    let declared = std::mem::take(&mut harvest.declared);
                    let session = harvest.transaction.into();
                    declare::grib(self.catalog, &mut self.helper, declared, &session)?;
                    return Ok(End::Whole);
                }
                Err(error) => return self.cannot_start(error).map(End::Refused),
            };
            for part in parts {
                let field = match part.field {
                    Ok(field) => field,
                    Err(why) => {
                        harvest.skips.add(part.what, why);
                        continue;
                    }
                };
                let schema = self.store.schema();
                let place = MessageOrigin { file, at: part.place };
                let mut ask = |message: &[u8]| self.helper.apart(&Header::new(message));
                let arrival = merge(&schema, field.key, &self.options.key)
                    .and_then(|key| self.messages.place(key, &field.bytes, Some(place), &mut ask));
                match arrival {
                    Ok(Arrival::Unchanged(key)) => harvest.note(key, true),
                    Ok(Arrival::New(key)) => {
                        let (at, length, _) = part.place;
                        // The messages of one with several fields are archived separately, and those shorter ones are
                        // not in any file.
                        let archived = match harvest.is_outside() && field.bytes.len() as u64 == length {
                            true => self.archive_outside(&key, (at, length), harvest),
                            false => self.archive(&key, &Content::Opaque, &field.bytes, harvest),
                        };
                        match archived {
                            // A file that changes, or cannot be read, is not taken.
                            Err(error) if harvest.is_outside() && error.kind() != ErrorKind::Denied => {
                                return Ok(End::Refused(error));
                            }
                            archived => archived?,
                        }
                        harvest.declared.add(&schema, &key, &field.bytes)?;
                        harvest.declared.ask(&mut self.helper, false);
                        harvest.note(key, false);
                    }
                    Err(error) if error.kind() == ErrorKind::Invalid => {
                        harvest.skips.add(part.what, error.to_string());
                    }
                    Err(error) => return Err(error),
                }
            }
            if clock.monotonic().saturating_sub(reported) > REPORTED {
                reported = clock.monotonic();
                progress(batches.position() as f64 / source.size().max(1) as f64)?;
            }
        }
    }
}

/// The place of a message.
pub enum Arrival {
    /// Under this key.
    New(Texts),
    /// The store already has it under this key.
    Unchanged(Texts),
}

/// The messages of one ingest, by key.
pub struct Messages<'a> {
    store: &'a dyn FieldStore,
    /// Whether the store must have the bytes themselves.
    copy: bool,
    /// Whether the store was empty when the ingest began, so that no comparison is needed.
    fresh: bool,
    holders: HashMap<u128, Holder>,
    /// Keys that the current file brought.
    current: Vec<u128>,
    /// The files so far.
    files: Vec<PathBuf>,
}

/// The origin of a message.
#[derive(Debug, Clone, Copy)]
pub struct MessageOrigin {
    /// Number of the file.
    file: usize,
    /// Offset and length of its message, and the field's number in the message.
    at: (u64, u64, usize),
}

/// Asks for the facts that distinguish a message from others with its key.
pub type Ask<'a> = dyn FnMut(&[u8]) -> Result<Texts> + 'a;

/// The message that has a key.
struct Holder {
    /// Digest of the message.
    message: u128,
    /// Its origin; `None` if its distinguishing facts are known from the beginning.
    place: Option<MessageOrigin>,
    /// Digests of its distinguishing facts, keyword and value together, once they were asked for.
    apart: Option<Box<[u64]>>,
}

impl<'a> Messages<'a> {
    pub fn new(store: &'a dyn FieldStore, copy: bool) -> Result<Messages<'a>> {
        let datasets = ListOptions { depth: 1, ..ListOptions::default() };
        let fresh = store.list(&Request::new(), &datasets)?.next().is_none();
        Ok(Messages { store, copy, fresh, holders: HashMap::new(), current: Vec::new(), files: Vec::new() })
    }

    /// Begins a file whose messages come next; returns its number.
    pub fn begin(&mut self, path: &Path) -> usize {
        self.files.push(path.to_owned());
        self.files.len() - 1
    }

    /// Finds the place of a message by the rules of `spec/helper-protocol.md`, "GRIB keys".
    pub fn place(
        &mut self,
        mut key: Texts,
        message: &[u8],
        place: Option<MessageOrigin>,
        ask: &mut Ask<'_>,
    ) -> Result<Arrival> {
        let digest = xxh3_128(message);
        // Ask for distinguishing facts only if another message has the key.
        let mut apart: Option<Texts> = if place.is_none() { Some(ask(message)?) } else { None };
        let mut tried = 0;
        let mut ordinal = 1u64;
        let schema = self.store.schema();
        key = fitted(&schema, key);
        let id = loop {
            let resolved = schema.resolve(&borrowed(&key)).map_err(|e| explain(&schema, e))?;
            let id = xxh3_128(&encode_key(&resolved).bytes);
            let Some(holder) = self.holders.get_mut(&id) else { break id };
            if holder.message == digest {
                return Ok(Arrival::Unchanged(key));
            }
            let theirs = match &mut holder.apart {
                Some(known) => known,
                unknown => {
                    let again = holder.place.and_then(|place| reread(&self.files, place, holder.message));
                    let facts = again.map_or(Ok(Texts::new()), |message| ask(&message))?;
                    unknown.insert(facts.iter().map(fact).collect())
                }
            };
            let own = match &mut apart {
                Some(known) => known,
                unknown => unknown.insert(ask(message)?),
            };
            let differs = |pair: &(String, String)| {
                !key.iter().any(|(keyword, _)| *keyword == pair.0) && !theirs.contains(&fact(pair))
            };
            if let Some(next) = own.iter().skip(tried).position(differs) {
                tried += next + 1;
                key.extend(own.get(tried - 1).cloned());
                continue;
            }
            tried = own.len();
            ordinal += 1;
            key.retain(|(keyword, _)| keyword != "ordinal");
            key.push(("ordinal".to_owned(), ordinal.to_string()));
        };
        let held = !self.fresh && self.stored(&key, message)?;
        let apart = apart.map(|apart| apart.iter().map(fact).collect());
        self.holders.insert(id, Holder { message: digest, place, apart });
        self.current.push(id);
        Ok(if held { Arrival::Unchanged(key) } else { Arrival::New(key) })
    }

    /// Whether the store has exactly this message under exactly this key.
    fn stored(&self, key: &Texts, message: &[u8]) -> Result<bool> {
        let pairs = borrowed(key);
        let field = match self.store.get(&pairs, &ReadOptions::default()) {
            Ok(field) => field,
            // Invalid: the key selects several fields, none of them its own.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => return Ok(false),
            Err(e) => return Err(e),
        };
        if field.key()? != self.store.schema().resolve(&pairs)?
            || field.dtype()?.is_some()
            || field.nbytes()? != message.len() as u64
        {
            return Ok(false);
        }
        // A damaged field is not equal to this message: archiving it again repairs it.
        Ok(field.read().is_ok_and(|bytes| bytes == message) && !(self.copy && self.is_outside(&pairs)?))
    }

    /// Whether the bytes of a field are in a file outside the store.
    fn is_outside(&self, pairs: &[(&str, &str)]) -> Result<bool> {
        let key = self.store.schema().resolve(pairs)?;
        let mut request = Request::new();
        for (keyword, value) in pairs {
            request.set(*keyword, Values::list([*value]));
        }
        for entry in self.store.list(&request, &ListOptions::default())? {
            let entry = entry?;
            if entry.key == key {
                return Ok(matches!(&entry.place, Some(FieldLocation { file: PlaceFile::Outside(_), .. })));
            }
        }
        Ok(false)
    }

    /// Drops the current file's keys, because it is not taken.
    pub fn forget(&mut self) {
        for id in self.current.drain(..) {
            self.holders.remove(&id);
        }
    }

    /// Begins another file.
    pub fn next_file(&mut self) {
        self.current.clear();
    }
}

/// Reads a message of this ingest again; none if its file has changed since.
fn reread(files: &[PathBuf], place: MessageOrigin, digest: u128) -> Option<Vec<u8>> {
    let (at, len, field) = place.at;
    let source = FileSource::open(files.get(place.file)?).ok()?;
    let end = at.checked_add(len).filter(|end| *end <= source.size())?;
    let mut buffer = Vec::new();
    let message = source.view(at, usize::try_from(end - at).ok()?, &mut buffer).ok()?;
    let field = fields(message).ok()?.into_iter().nth(field)?;
    (xxh3_128(&field) == digest).then(|| field.into_owned())
}

fn fact((keyword, value): &(String, String)) -> u64 {
    xxh3_64(format!("{keyword}={value}").as_bytes())
}
