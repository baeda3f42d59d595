//! Takes fields from an existing FDB, which the helper process reads through pyfdb.
//!
//! Keys are those of FDB's own listing, so any FDB fits a store whose schema accepts them; a new store gets the FDB's
//! own schema, see [`fdb_schema`].
//!
//! Invariants:
//! * a dataset (a directory of FDB) is one transaction: an interrupted one leaves nothing;
//! * fields that were taken before, equal in every byte, add nothing, so an interrupted ingest can be repeated;
//! * if FDB holds fields under two spellings of one key, the first listed is taken, the others are reported;
//! * memory holds two fields, 16 bytes for each field seen, and the needs of a flush of [`BATCH`] fields.
//!
//! ```no_run
//! use fieldstone::{FdbSource, IngestOptions, OpenOptions, Request};
//!
//! let request = Request::parse("class=rd,expver=xxxx,step=0/to/24/by/6")?;
//! let source = FdbSource { config: "/etc/fdb/config.yaml".into(), request };
//! let options = IngestOptions::default();
//! let schema = Some(fieldstone::fdb_schema(&source.config, &options.helper)?);
//! let store = fieldstone::open("store", &OpenOptions { schema, ..Default::default() })?;
//! let report = fieldstone::ingest_fdb(&store, &source, &options)?;
//! println!("{} fields", report.taken.iter().map(|taken| taken.fields).sum::<u64>());
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use fieldstone_core::request::{Item, Request as Selection, Values};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::helper::Request;
use fieldstone_format::keys::encode_key;
use fieldstone_store::api::{ArchiveOptions, FieldStore, ListOptions, ReadOptions, Value};
use serde_json::Map;
use xxhash_rust::xxh3::xxh3_128;

use super::{IngestOptions, IngestReport, Progress, Skipped, Taken};
use crate::Session;
use crate::interop::grib::{borrowed, merge};
use crate::interop::helper::{
    Content, FieldFrame, Helper, HelperEvent, HelperOptions, Name, Reply, Texts, failure,
};

/// Number of fields of one transaction between flushes: these make them durable, but not yet visible.
const BATCH: u64 = 100_000;
/// Maximum number of lines in a report; further ones are only counted.
const MAX_SKIPPED: usize = 100;
/// Prefix of a configuration's path in a list of files.
const PREFIX: &str = "fdb:";

/// An FDB, and the request for its fields.
#[derive(Debug, Clone, Default)]
pub struct FdbSource {
    /// Path of FDB's configuration, a YAML file.
    pub config: PathBuf,
    /// In the words of MARS; empty means all.
    pub request: Selection,
}

impl FdbSource {
    /// The configuration that `fdb:PATH` names; `None` for other text.
    pub fn config_of(text: &Path) -> Option<PathBuf> {
        text.to_str()?.strip_prefix(PREFIX).map(PathBuf::from)
    }

    /// Its name in reports: `fdb:PATH`.
    fn name(&self) -> PathBuf {
        let mut name = std::ffi::OsString::from(PREFIX);
        name.push(&self.config);
        name.into()
    }
}

/// The schema in an FDB's configuration, for a store that will take its fields.
pub fn fdb_schema(config: &Path, options: &HelperOptions) -> Result<String> {
    let absolute = absolute(config)?;
    let mut helper = Helper::start(options)?;
    helper.send(&Request::Fdb { config: &absolute, request: None }, &[])?;
    let mut text = None;
    loop {
        match helper.next()? {
            HelperEvent::Reply(Reply::Schema(schema), _) => text = Some(schema),
            HelperEvent::Reply(Reply::Done, _) => break,
            event => return Err(unexpected(event).context(format!("{PREFIX}{}", config.display()))),
        }
    }
    text.ok_or_else(|| Error::internal("the helper sent no schema"))
}

/// Takes the fields of an FDB that a request selects.
///
/// The report lists faults of single fields; an error ends the ingest: complete datasets before it stay, and the same
/// call continues from there.
pub fn ingest_fdb(
    store: &dyn FieldStore,
    source: &FdbSource,
    options: &IngestOptions<'_>,
) -> Result<IngestReport> {
    let unknown = |values: &Values| matches!(values, Values::Present | Values::Absent);
    if let Some((keyword, values)) = source.request.iter().find(|(_, values)| unknown(values)) {
        return Err(Code::RequestSyntax
            .error(format!("an FDB cannot be asked for {keyword}={values}"))
            .with_hint("list the values, or leave the keyword out"));
    }
    store.will_write();
    let name = source.name();
    let taken = Taken::nothing(&name);
    let datasets = ListOptions { depth: 1, ..ListOptions::default() };
    let fresh = store.list(&Selection::new(), &datasets)?.next().is_none();
    let mut take = Take { store, options, taken, skipped: Vec::new(), more: 0, fresh, seen: HashSet::new() };
    let mut current = None;
    let outcome = take.read(source, &name, &mut current);
    let outcome = outcome.and_then(|()| take.commit_open(&mut current));
    if let Err(error) = outcome {
        if let Some(open) = current {
            let _ = store.abandon(open.transaction, &Session::default());
        }
        let name = name.display();
        return Err(match take.taken.fields {
            0 => error.context(name),
            n => error.context(format!("{name} ({n} fields of datasets before this one were taken)")),
        });
    }
    if take.more > 0 {
        let (what, why) = (format!("{} more fields", take.more), "for similar reasons".to_owned());
        take.skipped.push(Skipped { path: name, what, why });
    }
    Ok(IngestReport { files: 1, done: 1, taken: vec![take.taken], skipped: take.skipped, of_meshes: false })
}

/// A dataset whose fields are coming.
struct Open {
    name: String,
    transaction: Id,
    fields: u64,
    bytes: u64,
}

struct Take<'a> {
    store: &'a dyn FieldStore,
    options: &'a IngestOptions<'a>,
    taken: Taken,
    skipped: Vec<Skipped>,
    /// Fields that were skipped and are not in `skipped`.
    more: usize,
    /// Whether the store was empty, so that no comparison is needed.
    fresh: bool,
    /// Digests of the keys that this ingest has seen.
    seen: HashSet<u128>,
}

impl Take<'_> {
    fn read(&mut self, source: &FdbSource, name: &Path, current: &mut Option<Open>) -> Result<()> {
        let config = absolute(&source.config)?;
        let request = words(&source.request)?;
        let mut helper = Helper::start(&self.options.helper)?;
        helper.send(&Request::Fdb { config: &config, request: Some(&request) }, &[])?;
        loop {
            match helper.next()? {
                HelperEvent::Reply(Reply::Field(field), payload) => self.field(field, &payload, current)?,
                HelperEvent::Reply(Reply::Skipped { what, why }, _) => self.skip(what, why),
                HelperEvent::Reply(Reply::Progress { done, of }, _) => {
                    if let Some(report) = self.options.progress {
                        report(&Progress { path: name, index: 0, files: 1, done, of })?;
                    }
                }
                HelperEvent::Reply(Reply::Done, _) => return Ok(()),
                event => return Err(unexpected(event)),
            }
        }
    }

    fn field(&mut self, field: FieldFrame, payload: &[u8], current: &mut Option<Open>) -> Result<()> {
        let (Name::Key(key), Content::Opaque, Some(dataset)) = (field.name, field.content, field.dataset)
        else {
            return Err(Error::internal("the helper sent a field that is not one of an FDB"));
        };
        if current.as_ref().is_some_and(|open| open.name != dataset) {
            self.commit_open(current)?;
        }
        let key_text = || key.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",");
        let key = match merge(&self.store.schema(), key.clone(), &self.options.key) {
            Ok(merged) => merged,
            Err(error) => {
                self.skip(key_text(), error.to_string());
                return Ok(());
            }
        };
        let resolved = match self.store.schema().resolve(&borrowed(&key)) {
            Ok(resolved) => resolved,
            Err(error) => {
                self.skip(key_text(), error.to_string());
                return Ok(());
            }
        };
        if !self.seen.insert(xxh3_128(&encode_key(&resolved).bytes)) {
            self.skip(key_text(), format!("another field of this FDB has the same key, {resolved}"));
            return Ok(());
        }
        if !self.fresh && self.held(&key, payload)? {
            self.taken.unchanged += 1;
            return Ok(());
        }
        let open = match current {
            Some(open) => open,
            none => {
                none.insert(Open { name: dataset, transaction: self.store.begin()?, fields: 0, bytes: 0 })
            }
        };
        let options = ArchiveOptions { session: Session::from(open.transaction), ..Default::default() };
        self.store.archive(&borrowed(&key), Value::Bytes(payload), &options)?;
        open.fields += 1;
        open.bytes += payload.len() as u64;
        if open.fields % BATCH == 0 {
            self.store.flush(&Session::from(open.transaction))?;
        }
        Ok(())
    }

    /// Commits the current dataset.
    fn commit_open(&mut self, current: &mut Option<Open>) -> Result<()> {
        if let Some(open) = current.take() {
            self.store.decide(open.transaction, true, &Session::default())?;
            self.taken.fields += open.fields;
            self.taken.bytes += open.bytes;
        }
        Ok(())
    }

    /// Whether the store has exactly these bytes under exactly this key.
    fn held(&self, key: &Texts, payload: &[u8]) -> Result<bool> {
        let pairs = borrowed(key);
        let field = match self.store.get(&pairs, &ReadOptions::default()) {
            Ok(field) => field,
            // Invalid: the key selects several fields, none of them its own.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => return Ok(false),
            Err(e) => return Err(e),
        };
        let same = field.key()? == self.store.schema().resolve(&pairs)?
            && field.dtype()?.is_none()
            && field.nbytes()? == payload.len() as u64;
        // A damaged field is archived again.
        Ok(same && field.read().is_ok_and(|bytes| bytes == payload))
    }

    fn skip(&mut self, what: String, why: String) {
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(Skipped { path: self.taken.path.clone(), what, why });
        } else {
            self.more += 1;
        }
    }
}

/// A request as the lists of words for FDB's interface: ranges are `a`, `to`, `b`, `by`, `c`.
fn words(request: &Selection) -> Result<Map<String, serde_json::Value>> {
    let mut named = Map::new();
    for (keyword, values) in request.iter() {
        let items = match values {
            Values::Any => continue,
            Values::List(items) => items,
            Values::Like(_) | Values::Present | Values::Absent => {
                return Err(Code::RequestSyntax
                    .error(format!("{keyword}={values}: an FDB does not accept patterns"))
                    .with_hint("list the values, or leave the keyword out"));
            }
        };
        let mut words: Vec<&str> = Vec::new();
        for item in items {
            match item {
                Item::One(value) => words.push(value),
                Item::Range { from, to, by } => {
                    words.extend([from.as_str(), "to", to]);
                    words.extend(by.iter().flat_map(|by| ["by", by.as_str()]));
                }
            }
        }
        named.insert(keyword.to_owned(), words.into());
    }
    Ok(named)
}

fn absolute(config: &Path) -> Result<String> {
    let path =
        std::path::absolute(config).map_err(|e| Error::invalid(format!("{}: {e}", config.display())))?;
    path.into_os_string()
        .into_string()
        .map_err(|path| Error::invalid(format!("{} is not UTF-8", path.to_string_lossy())))
}

fn unexpected(event: HelperEvent) -> Error {
    match event {
        HelperEvent::Reply(Reply::Failed { code, message, hint }, _) => failure(code, message, hint),
        HelperEvent::Reply(..) => Error::internal("the helper answered another question"),
        HelperEvent::Died(how) => Code::HelperFailed
            .error(format!("FDB's library {how}"))
            .with_hint("fdb-list of the same request may say more"),
    }
}
