//! A store that shows and takes only what a request selects.
//!
//! Fields outside the filter are not listed, retrieved, got, counted, removed, verified or dumped, and cannot be
//! archived. Owners, transactions, status and versions are those of the store beneath.
//!
//! A call's request is bound to the filter (F-3, [`Request::within`]), so that keys are compared with both where
//! they are compared anyway: order, strictness and what is missing stay what the caller's own request says,
//! and a field outside is simply not there. Calls that name a key compare it here.
//!
//! It is a view and no lock: what a process can open through a filter it can open without. Figures of the
//! whole store (writers, files, commits, unflushed fields of the handle beneath) are shown as they are.
//!
//! ```
//! use std::sync::Arc;
//! use fieldstone_core::env::sim::SimWorld;
//! use fieldstone_core::request::Request;
//! use fieldstone_core::ErrorKind;
//! use fieldstone_store::api::*;
//! use fieldstone_store::local::{LocalOptions, LocalStore};
//! use fieldstone_store::frontends::FilterStore;
//!
//! let options = LocalOptions { writable: true, ..LocalOptions::default() };
//! let all = Arc::new(LocalStore::open(SimWorld::memory(), "/store".as_ref(), options)?);
//! let winds = FilterStore::new(all.clone(), Request::parse("variable=u/v")?)?;
//! let put = |store: &dyn FieldStore, variable| {
//!     store.archive(&[("run", "a"), ("variable", variable)], Value::Bytes(b"x"), &ArchiveOptions::default())
//! };
//! put(&*all, "t")?;
//! put(&winds, "u")?;
//! winds.flush(&Session::default())?;
//! let keys: Vec<String> = winds
//!     .list(&Request::parse("run=a")?, &ListOptions::default())?
//!     .map(|entry| Ok(entry?.key.to_string()))
//!     .collect::<fieldstone_core::Result<_>>()?;
//! assert_eq!(keys, ["{run=a}{variable=u}{}"]);
//! assert_eq!(put(&winds, "t").map_err(|e| e.kind()), Err(ErrorKind::Denied));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

#![deny(clippy::missing_trait_methods)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::key::{FieldKey, KeyValue};
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::{encode_key, key_text};
use fieldstone_journal::Session;

use crate::api::*;
use crate::field::{Field, Fields};
use crate::read::{Match, Matcher};

/// A store that shows and takes only what a request selects.
#[derive(Debug)]
pub struct FilterStore<S: ?Sized = dyn FieldStore> {
    beneath: Arc<S>,
    filter: Request,
    /// The filter, ready to be compared with keys.
    matcher: Mutex<Matcher>,
}

impl<S: FieldStore + ?Sized> FilterStore<S> {
    /// The fields of a store that `filter` selects.
    ///
    /// Invalid for a filter that the schema does not take, and for one with days relative to today: what it
    /// shows would change overnight.
    pub fn new(beneath: Arc<S>, filter: Request) -> Result<FilterStore<S>> {
        let schema = beneath.schema();
        let selection = schema.select(&filter).map_err(|e| e.context(format!("the filter {filter}")))?;
        Ok(FilterStore { beneath, filter, matcher: Mutex::new(Matcher::new(selection)) })
    }

    /// The store beneath.
    pub fn beneath(&self) -> &Arc<S> {
        &self.beneath
    }

    /// A caller's request, restricted to the fields of the filter.
    pub fn shown(&self, request: &Request) -> Request {
        request.clone().within(self.filter.clone())
    }

    /// Whether an encoded key is shown.
    pub fn shows(&self, key: &[u8]) -> Result<bool> {
        // A panic of one caller must not lock all others out: the matcher only remembers kinds of keys.
        let mut matcher = self.matcher.lock();
        Ok(matcher.test(key)? == Match::Yes)
    }

    /// The key that pairs name, which must be one that is shown.
    fn check(&self, pairs: &Pairs<'_>) -> Result<()> {
        let key = self.beneath.schema().resolve(pairs)?;
        match self.shows(&encode_key(&key).bytes)? {
            true => Ok(()),
            false => Err(self.outside(&key.to_string())),
        }
    }

    fn outside(&self, key: &str) -> Error {
        Code::OutsideFilter
            .error(format!("{key} is outside the filter {} on {}", self.filter, self.url()))
            .with_hint("give it to the store itself, opened without the filter")
    }

    /// The refusal of a call that is the whole store's.
    pub fn refused(&self, what: &str) -> Error {
        Code::OutsideFilter
            .error(format!(
                "{what} is of the whole store at {}, of which {} is shown",
                self.url(),
                self.filter
            ))
            .with_hint("open the store itself, without the filter")
    }

    /// The only field that a key names as a request, among those that are shown.
    fn get_shown(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<Field> {
        match get_by_request(self, key, options) {
            // By its own key again: that read says also whether a newer version may have been lost.
            Ok(field) => match self.get_exactly(&field.key()?, options) {
                Ok(same) if same.id().key == field.id().key => Ok(same),
                Err(e) if e.kind() == ErrorKind::Corrupt => Err(e),
                _ => Ok(field),
            },
            // It may have been there: a list says so at its end, where commits were lost.
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let request = key_request(key);
                let all = ListOptions { session: options.session.clone(), ..ListOptions::default() };
                self.list(&request, &all)?.try_for_each(|entry| entry.map(drop))?;
                Err(e)
            }
            Err(e) => Err(e),
        }
    }

    fn get_exactly(&self, key: &FieldKey, options: &ReadOptions) -> Result<Field> {
        let pairs: Vec<(&str, String)> =
            key.iter().map(|(name, value)| (&**name, value.text().into_owned())).collect();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.beneath.get(&pairs, options)
    }
}

impl<S: FieldStore + ?Sized> FieldAccess for FilterStore<S> {
    fn url(&self) -> &str {
        self.beneath.url()
    }

    fn schema(&self) -> Schema {
        self.beneath.schema()
    }

    fn extend_schema(&self, _text: &str, _session: &Session) -> Result<Schema> {
        Err(self.outside("the schema"))
    }

    fn select(&self, request: &Request) -> Result<Selection> {
        self.beneath.select(&self.shown(request))
    }

    fn bounds(&self) -> Result<Vec<Request>> {
        let mut bounds = self.beneath.bounds()?;
        bounds.push(self.filter.clone());
        Ok(bounds)
    }

    fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
        self.check(key)?;
        self.beneath.archive(key, value, options)
    }

    fn archive_many(&self, items: &[(&Pairs<'_>, Value<'_>)], options: &ArchiveOptions) -> Result<()> {
        for (i, (key, _)) in items.iter().enumerate() {
            self.check(key).map_err(|e| e.context(format!("field {i}")))?;
        }
        self.beneath.archive_many(items, options)
    }

    fn create_field(&self, key: &Pairs<'_>, spec: &FieldSpec<'_>, options: &ArchiveOptions) -> Result<()> {
        self.check(key)?;
        self.beneath.create_field(key, spec, options)
    }

    fn archive_external(
        &self,
        key: &Pairs<'_>,
        spec: &ExternalSpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.check(key)?;
        self.beneath.archive_external(key, spec, options)
    }

    fn archive_stored(
        &self,
        key: &Pairs<'_>,
        spec: &StoredArraySpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.check(key)?;
        self.beneath.archive_stored(key, spec, options)
    }

    fn remove(&self, request: &Request, options: &RemoveOptions) -> Result<u64> {
        self.beneath.remove(&self.shown(request), options)
    }

    fn remove_fields(&self, fields: &[Field], options: &RemoveOptions) -> Result<()> {
        for field in fields {
            if !self.shows(field.id().key)? {
                return Err(self.outside(&key_text(field.id().key)));
            }
        }
        self.beneath.remove_fields(fields, options)
    }

    fn list(&self, request: &Request, options: &ListOptions) -> Result<Listing> {
        self.beneath.list(&self.shown(request), options)
    }

    fn retrieve(&self, request: &Request, options: &RetrieveOptions) -> Result<Fields> {
        self.beneath.retrieve(&self.shown(request), options)
    }

    fn get(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<Field> {
        if let Ok(exact) = self.beneath.schema().resolve(key)
            && !self.shows(&encode_key(&exact).bytes)?
        {
            return self.get_shown(key, options);
        }
        match self.beneath.get(key, options) {
            // If it is the only one beneath, it is the only one here, too.
            Ok(field) if self.shows(field.id().key)? => Ok(field),
            Ok(_) => self.get_shown(key, options),
            // Several beneath may be one here.
            Err(e) if e.kind() == ErrorKind::Invalid => self.get_shown(key, options),
            Err(e) => Err(e),
        }
    }

    fn axes(&self, request: &Request, options: &ReadOptions) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>> {
        self.beneath.axes(&self.shown(request), options)
    }

    fn version(&self) -> Result<String> {
        self.beneath.version()
    }

    fn refresh(&self) -> Result<()> {
        self.beneath.refresh()
    }

    fn owner(&self, level: &[u8]) -> Result<Option<u32>> {
        self.beneath.owner(level)
    }

    fn claim(&self, level: Vec<u8>, session: &Session) -> Result<()> {
        self.beneath.claim(level, session)
    }
}

impl<S: FieldStore + ?Sized> FieldStreams for FilterStore<S> {
    fn archive_stream(
        &self,
        key: &Pairs<'_>,
        stream: ByteStream<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.check(key)?;
        self.beneath.archive_stream(key, stream, options)
    }
}

impl<S: FieldStore + ?Sized> Transactions for FilterStore<S> {
    fn flush(&self, session: &Session) -> Result<()> {
        self.beneath.flush(session)
    }

    fn discard(&self, session: &Session) -> Result<()> {
        self.beneath.discard(session)
    }

    fn check_lost(&self, session: &Session) -> Result<()> {
        self.beneath.check_lost(session)
    }

    fn unflushed(&self) -> u64 {
        self.beneath.unflushed()
    }

    fn will_write(&self) {
        self.beneath.will_write();
    }

    fn begin(&self) -> Result<Id> {
        self.beneath.begin()
    }

    fn decide(&self, transaction: Id, commit: bool, session: &Session) -> Result<()> {
        self.beneath.decide(transaction, commit, session)
    }

    fn abandon(&self, transaction: Id, session: &Session) -> Result<()> {
        self.beneath.abandon(transaction, session)
    }

    fn set_active_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()> {
        self.beneath.set_active_kinds(transaction, on, off, session)
    }
}

impl<S: FieldStore + ?Sized> Admin for FilterStore<S> {
    fn stats(&self, request: &Request) -> Result<Stats> {
        self.beneath.stats(&self.shown(request))
    }

    fn stats_by(&self, request: &Request, by: &StatsBy) -> Result<Vec<StatsRow>> {
        self.beneath.stats_by(&self.shown(request), by)
    }

    fn status(&self) -> Result<Status> {
        self.beneath.status()
    }

    fn skipped(&self) -> Result<Vec<String>> {
        self.beneath.skipped()
    }

    fn verify(&self, request: &Request) -> Result<VerifyReport> {
        self.beneath.verify(&self.shown(request))
    }

    fn dump(&self, request: &Request) -> Result<Vec<String>> {
        self.beneath.dump(&self.shown(request))
    }

    fn checkpoint(&self, _: &Path, _: &CheckpointOptions, _: &Session) -> Result<CheckpointReport> {
        Err(self.refused("a checkpoint"))
    }

    fn close(&self, session: &Session) -> Result<()> {
        self.beneath.close(session)
    }
}
