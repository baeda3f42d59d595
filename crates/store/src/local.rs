//! The store over one journal: in a folder of a file system, in memory (on a simulated disk), or in any other
//! medium.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::Clock;
use fieldstone_core::env::{Disk, Env};
use fieldstone_core::key::{FieldKey, KeyValue};
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::attempt::Origin;
use fieldstone_format::entry::EntryId;
use fieldstone_format::keys::{EncodedKey, encode_key, encode_level, level_ends};
use fieldstone_format::location::GROWN_SINCE;
use fieldstone_format::origin::MOVED_SINCE;
use fieldstone_format::setting::Setting;
use fieldstone_journal::Journal;
use fieldstone_journal::Session;
use fieldstone_journal::fork::PerProcess;
use fieldstone_journal::journal::JournalOptions;
use fieldstone_journal::medium::Medium;
use fieldstone_journal::session::Limits;
use fieldstone_journal::snapshot::Snapshot;
use fieldstone_journal::writer::Encoded;
use fieldstone_journal::writer::LogLimits;

use crate::api::*;
use crate::encode;
use crate::existing::NewFields;
use crate::field::{Field, Fields};
use crate::overlay;
use crate::read;
use crate::report;

/// Bytes of an opaque field above which memory does not hold all of it.
const STREAMED: u64 = 16 << 20;

/// How a [`LocalStore`] is opened.
#[derive(Debug, Clone, Default)]
pub struct LocalOptions {
    /// The URL as the user gave it.
    pub url: String,
    /// Whether archiving is allowed.
    pub writable: bool,
    /// Whether an absent store is NotFound.
    pub must_exist: bool,
    /// Whether an existing store is a Conflict.
    pub must_be_new: bool,
    /// Schema; the store's own where absent, `simulation` for a new store.
    pub schema: Option<Schema>,
    /// Version to read.
    pub at: Option<String>,
    /// Compression where a call does not say.
    pub compression: Option<Compression>,
    /// The file system of files outside the store, where it is not the store's own.
    pub outside: Option<Arc<dyn Disk>>,
    /// Whether the store's file system is this machine's.
    pub native: bool,
    /// Of which job what is written is.
    pub origin: Origin,
    /// The behaviour of an archive whose key has a field, if the call does not set it; by default the store's.
    pub if_exists: Option<IfExists>,
    /// The version of the format of a store that is new; the newest where absent.
    pub format: Option<u32>,
    /// When a log is long enough for the next one to begin.
    pub limits: LogLimits,
    /// Whether a close now and then takes over ended logs.
    pub closing_merges: bool,
}

impl LocalOptions {
    fn journal(self) -> JournalOptions {
        JournalOptions {
            url: self.url,
            writable: self.writable,
            must_exist: self.must_exist,
            must_be_new: self.must_be_new,
            schema: self.schema,
            at: self.at,
            outside: self.outside,
            native: self.native,
            origin: self.origin,
            format: self.format,
            limits: self.limits,
            closing_merges: self.closing_merges,
            is_backup: false,
        }
    }
}

/// A store over one journal.
#[derive(Debug)]
pub struct LocalStore {
    journal: Arc<Journal>,
    url: String,
    compression: Option<Compression>,
    if_exists: Option<IfExists>,
    /// Content archived as new, and not flushed.
    new_fields: PerProcess<NewFields>,
    /// Whether the store is in memory, and files outside are on another disk.
    in_memory: bool,
    /// The field of many pieces that was asked for last: the hits of a query follow one another in it.
    last: PerProcess<Mutex<Option<LastField>>>,
}

/// The setting of a store that says what an archive does where its key has a field.
const EXIST: &str = "exist";

/// Pieces from which on a field is kept for the next read of it.
const LAST_MIN: usize = 8;

/// A field as a snapshot, which never changes, has it.
#[derive(Debug)]
struct LastField {
    snapshot: Arc<Snapshot>,
    key: Vec<u8>,
    own: Option<Id>,
    field: Field,
}

impl LocalStore {
    /// Opens the store in `folder`. Nothing is created before the first commit.
    pub fn open(env: Env, folder: &Path, options: LocalOptions) -> Result<LocalStore> {
        LocalStore::of(options, |options| Journal::open(env, folder, options))
    }

    /// Opens the store in a medium. Nothing is created before the first commit.
    pub fn open_in(env: Env, medium: Arc<dyn Medium>, options: LocalOptions) -> Result<LocalStore> {
        LocalStore::of(options, |options| Journal::over(env, medium, options))
    }

    fn of(options: LocalOptions, open: impl FnOnce(JournalOptions) -> Result<Journal>) -> Result<LocalStore> {
        let (url, compression, if_exists) = (options.url.clone(), options.compression, options.if_exists);
        let journal = Arc::new(open(options.journal())?);
        // An attempt is as old as its first process, also where a straggler of it flushes only now.
        journal.committer().announce(&Session::default())?;
        Ok(LocalStore { if_exists, ..LocalStore::over(journal, url, compression) })
    }

    /// The store whose journal is open already; `url` as the user gave it, and the compression where a call
    /// does not say.
    pub fn over(journal: Arc<Journal>, url: String, compression: Option<Compression>) -> LocalStore {
        let identity = &journal.env().identity;
        let last = PerProcess::new(identity.clone(), Mutex::default());
        let new_fields = PerProcess::new(identity.clone(), NewFields::default());
        let in_memory = journal.access().is_in_memory();
        journal.files().add_beyond(Arc::new(read::OtherStores::new(journal.env().clone())));
        LocalStore { journal, url, compression, if_exists: None, new_fields, in_memory, last }
    }

    /// Its journal.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Its folder; absolute. `None` where it is not in a folder of a file system that other processes reach.
    pub fn folder(&self) -> Option<PathBuf> {
        let files = self.journal.medium().files()?;
        (!self.in_memory).then(|| files.root().to_owned())
    }

    /// Makes the store now, without a field: folders and marker, durable. Does nothing where it is there;
    /// Conflict where another process has meanwhile made it with another schema.
    pub fn create(&self) -> Result<()> {
        self.journal.create()
    }

    /// All entries that count under a key, newest first; removals are among them.
    pub fn entries(&self, key: &Pairs<'_>, session: &Session) -> Result<Vec<KeyEntry>> {
        let key = self.journal.schema().make(|schema| schema.resolve(key))?;
        read::entries(&*self.journal.looks().snapshot()?, &encode_key(&key).bytes, session.transaction())
    }

    /// Hides for good what a request selects of whole datasets and indexes; see the facade's `Store::wipe`.
    pub fn wipe(&self, request: &Request, how: &Wiping) -> Result<WipeReport> {
        crate::wipe::wipe(&self.journal, request, how)
    }

    /// Makes or ends a rule of retention; see the facade's `Store::retain`.
    pub fn retain(&self, request: &Request, how: &Retaining) -> Result<RetentionRule> {
        crate::retain::retain(&self.journal, request, how)
    }

    /// Applies rules of retention, and does what pays; see the facade's `Store::maintain`.
    pub fn maintain(
        &self,
        what: &Maintaining,
        each: &mut dyn FnMut(MaintainProgress) -> Result<()>,
    ) -> Result<MaintainReport> {
        crate::maintain::maintain(&self.journal, what, each)
    }

    /// The greatest stamp of a place in the order that a visible entry under an encoded key has, removals included.
    pub fn newest_place(&self, key: &[u8]) -> Result<Option<u64>> {
        read::newest_place(&*self.journal.looks().snapshot()?, key)
    }

    /// The transactions that somebody decided about, or flushed into.
    pub fn transactions(&self) -> Result<Vec<TransactionState>> {
        Ok(read::transactions(&*self.journal.looks().snapshot()?))
    }

    /// The settings that its owner made, by name.
    pub fn settings(&self) -> Result<StoreSettings> {
        Ok((*self.journal.looks().snapshot()?.settings).clone())
    }

    /// The fields with a part that came by one of these commits of this store: log and sequence.
    pub fn list_commits(&self, commits: HashSet<(Id, u64)>, options: &ListOptions) -> Result<Listing> {
        let (snapshot, selection) = (self.journal.looks().snapshot()?, self.select(&Request::new())?);
        Ok(Box::new(
            self.named(read::list(&snapshot, selection, options, None, self.limits(&options.session))?)
                .of_commits(commits),
        ))
    }

    /// Selects the fields that became visible after a version, and returns the version at which this was so. NotFound
    /// if the version is gone.
    pub fn list_since(
        &self,
        request: &Request,
        since: &str,
        options: &ListOptions,
    ) -> Result<(Listing, String)> {
        let snapshot = self.journal.looks().snapshot()?;
        let older = self.journal.looks().older(&snapshot, since)?;
        let now = snapshot.version().encode();
        Ok((listing(self, &snapshot, request, options, Some(Arc::new(older)))?, now))
    }

    /// Waits until any process flushes something after a version; `false` if none did in this number of nanoseconds.
    pub fn wait(&self, since: &str, timeout: u64, session: &Session) -> Result<bool> {
        self.journal.looks().wait(since, timeout, session)
    }

    fn named(&self, listing: read::ListStream) -> read::ListStream {
        let identity = &self.journal.env().identity;
        listing.named_by(identity).heeding_locks(identity).on(self.journal.files())
    }

    fn last(&self) -> MutexGuard<'_, Option<LastField>> {
        self.last.get(Mutex::default).lock()
    }

    fn check_dataset(&self, key: &FieldKey, session: &Session) -> Result<()> {
        let mut prefix = Vec::new();
        encode_level(&key.levels[0], &mut prefix);
        self.journal.datasets().check(prefix, session)
    }

    fn compression(&self, options: &ArchiveOptions) -> Compression {
        options
            .compression
            .or(self.compression)
            .or(self.journal.schema().now().compression())
            .unwrap_or(Compression::None)
    }

    /// The behaviour of an archive whose key has a field.
    fn if_exists(&self, options: &ArchiveOptions) -> IfExists {
        let set = || self.journal.settings().get(EXIST).and_then(|text| IfExists::parse(&text).ok());
        options.if_exists.or(self.if_exists).or_else(set).unwrap_or_default()
    }

    /// Says for the whole store what an archive does where its key has a field, durably. Denied for others than the
    /// store's owner.
    pub fn set_if_exists(&self, if_exists: IfExists, session: &Session) -> Result<()> {
        let setting = Setting { name: EXIST.to_owned(), value: if_exists.name().to_owned() };
        self.journal.settings().set(&setting, session)
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.journal.env().clock
    }

    fn limits(&self, session: &Session) -> Limits {
        session.limits(self.clock())
    }

    fn new_fields(&self) -> &NewFields {
        self.new_fields.get(NewFields::default)
    }

    /// Hands an encoded value to the journal, unless it is to be new and is not.
    pub(crate) fn take(&self, mut value: Encoded<'_>, created: bool, options: &ArchiveOptions) -> Result<()> {
        let session = &options.session;
        if let Some(origin) = &options.origin {
            self.journal.format().check(MOVED_SINCE, "the time of a moved field")?;
            value.origin = Some(Arc::new(origin.clone()));
        }
        if self.if_exists(options) == IfExists::New {
            return self.journal.committer().take(value, session);
        }
        let piece = match &value.entry.array {
            Some(array) if array.piece.is_some() => value.entry.index_box()?,
            _ => None,
        };
        let (snapshot, key) = (self.journal.looks().snapshot()?, value.key.bytes.clone());
        self.new_fields().check(
            &snapshot,
            &key,
            piece.as_ref(),
            session.key(),
            self.journal.access().attempt(),
        )?;
        self.journal.committer().take(value, session)?;
        self.new_fields().note(&key, piece, created, session.key());
        Ok(())
    }

    /// Conflict where others flushed meanwhile what a session took to be new.
    fn check_new(&self, session: &Session) -> Result<()> {
        if self.new_fields().is_empty(session.key()) {
            return Ok(());
        }
        self.new_fields().check_all(
            &*self.journal.looks().snapshot()?,
            session.key(),
            self.journal.access().attempt(),
        )
    }

    /// The content of a session no longer waits.
    fn forget_taken<T>(&self, outcome: Result<T>, session: &Session) -> Result<T> {
        if outcome.is_ok() || !self.journal.unflushed().holds(session) {
            self.new_fields().forget(session.key());
        }
        outcome
    }

    /// Encoded keys of the fields that a request selects: visible ones, and those archived here and not flushed.
    fn selected_keys(&self, selection: Selection, session: &Session) -> Result<BTreeSet<Vec<u8>>> {
        let mut keys = BTreeSet::new();
        let mut matcher = read::Matcher::new(selection.clone());
        for key in self.journal.unflushed().keys(session) {
            if matcher.test(&key)? == read::Match::Yes {
                keys.insert(key);
            }
        }
        let mut scan = read::Scan::new(self.journal.looks().snapshot()?, selection, session.transaction())?
            .within(self.limits(session));
        while let Some(versions) = scan.next_key()? {
            keys.insert(versions.key);
        }
        Ok(keys)
    }

    /// Invalid for a keyword that the schema does not name: one with further keywords takes every name, so that a slip
    /// shows only where no field has it.
    fn check_declared(&self, keyword: &str) -> Result<()> {
        let names = self.schema().keywords();
        if names.iter().any(|known| **known == *keyword) {
            return Ok(());
        }
        let hint = did_you_mean(keyword, names.iter().map(|known| &**known));
        let error = Code::KeywordUnknown.error(format!("no selected field has the keyword `{keyword}`"));
        Err(error.with_hint(hint.unwrap_or_else(|| "axes lists the keywords that fields have".to_owned())))
    }

    /// Removes what stands under keys, all of them or none; each with the entry that is to be the newest.
    fn remove_keys(&self, keys: Vec<(Vec<u8>, Option<EntryId>)>, session: &Session) -> Result<()> {
        for (key, _) in &keys {
            let end = level_ends(key)?[0];
            self.journal.datasets().check(key[..end].to_vec(), session)?;
        }
        for (bytes, only) in keys {
            let ends = level_ends(&bytes)?;
            self.journal.committer().take(encode::removal(EncodedKey { bytes, ends }, only), session)?;
        }
        Ok(())
    }
}

/// Lists the fields that a request selects, those among them that overlays show.
fn listing(
    store: &LocalStore,
    snapshot: &Arc<Snapshot>,
    request: &Request,
    options: &ListOptions,
    older: Option<Arc<Snapshot>>,
) -> Result<Listing> {
    let limits = store.limits(&options.session);
    let listing = read::list(snapshot, store.select(request)?, options, older, limits.clone())?;
    Ok(Box::new(store.named(listing.with_overlays(&limits)?)))
}

impl FieldAccess for LocalStore {
    fn url(&self) -> &str {
        &self.url
    }

    fn schema(&self) -> Schema {
        self.journal.schema().now()
    }

    fn extend_schema(&self, text: &str, session: &Session) -> Result<Schema> {
        self.journal.schema().extend(text, session)
    }

    fn select(&self, request: &Request) -> Result<fieldstone_core::schema::Selection> {
        let now = self.journal.env().clock.now();
        self.journal.schema().make(|schema| schema.select_at(request, now))
    }

    fn bounds(&self) -> Result<Vec<Request>> {
        Ok(Vec::new())
    }

    fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
        self.journal.access().check_writable()?;
        let key = self.journal.schema().make(|schema| schema.resolve(key))?;
        self.check_dataset(&key, &options.session)?;
        let chunks = options.chunks.as_deref();
        let mut prepared = encode::value(&key, value, self.compression(options), chunks, &options.missing)?;
        if options.share {
            prepared.share();
        }
        self.take(prepared, false, options)
    }

    fn archive_many(&self, items: &[(&Pairs<'_>, Value<'_>)], options: &ArchiveOptions) -> Result<()> {
        self.journal.access().check_writable()?;
        let numbered = |i: usize| move |e: Error| e.context(format!("field {i}"));
        let mut keys = Vec::with_capacity(items.len());
        for (i, (key, _)) in items.iter().enumerate() {
            let key = self.journal.schema().make(|schema| schema.resolve(key)).map_err(numbered(i))?;
            self.check_dataset(&key, &options.session).map_err(numbered(i))?;
            keys.push(key);
        }
        if self.if_exists(options) == IfExists::Error {
            let (snapshot, session) = (self.journal.looks().snapshot()?, options.session.key());
            // Of these, too, no two may be one.
            let those = NewFields::default();
            for (i, (key, (_, value))) in keys.iter().zip(items).enumerate() {
                let (key, piece) = (encode_key(key).bytes, value.piece().map_err(numbered(i))?);
                self.new_fields()
                    .check(&snapshot, &key, piece.as_ref(), session, self.journal.access().attempt())
                    .and_then(|()| those.check_pending(&key, piece.as_ref(), session))
                    .map_err(numbered(i))?;
                those.note(&key, piece, false, session);
            }
        }
        if options.dry_run {
            return Ok(());
        }
        let (compression, chunks) = (self.compression(options), options.chunks.as_deref());
        for (i, (key, (_, value))) in keys.iter().zip(items).enumerate() {
            let mut prepared =
                encode::value(key, *value, compression, chunks, &options.missing).map_err(numbered(i))?;
            if options.share {
                prepared.share();
            }
            self.take(prepared, false, options)?;
        }
        Ok(())
    }

    fn create_field(&self, key: &Pairs<'_>, spec: &FieldSpec<'_>, options: &ArchiveOptions) -> Result<()> {
        self.journal.access().check_writable()?;
        let key = self.journal.schema().make(|schema| schema.resolve(key))?;
        self.check_dataset(&key, &options.session)?;
        self.take(encode::created(&key, spec)?, true, options)
    }

    fn archive_external(
        &self,
        key: &Pairs<'_>,
        spec: &ExternalSpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.journal.access().check_writable()?;
        let key = self.journal.schema().make(|schema| schema.resolve(key))?;
        self.check_dataset(&key, &options.session)?;
        let prepared = encode::external(&key, self.journal.files().outside(), spec, &options.missing)?;
        self.take(prepared, false, options)
    }

    fn archive_stored(
        &self,
        key: &Pairs<'_>,
        spec: &StoredArraySpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.journal.access().check_writable()?;
        let key = self.journal.schema().make(|schema| schema.resolve(key))?;
        self.check_dataset(&key, &options.session)?;
        self.journal.format().check(GROWN_SINCE, "an array in a file of the store")?;
        if self.folder().is_none() {
            return Err(Code::WrongStore
                .error(format!("{key}: the store at {} has no folder for files with arrays", self.url))
                .with_hint("archive the array itself, or open a store in a folder"));
        }
        self.take(encode::stored(&key, spec)?, false, options)
    }

    fn remove(&self, request: &Request, options: &RemoveOptions) -> Result<u64> {
        self.journal.access().check_writable()?;
        let selection = self.select(request)?;
        if selection.names_nothing() {
            return Err(Code::RequestTooBroad.error("a removal of everything was asked for").with_hint(
                "list values of the fields to remove, such as run=a or step=0/to/24; * lists none",
            ));
        }
        let keys = self.selected_keys(selection, &options.session)?;
        let removed = keys.len() as u64;
        self.remove_keys(keys.into_iter().map(|key| (key, None)).collect(), &options.session)?;
        Ok(removed)
    }

    fn remove_fields(&self, fields: &[Field], options: &RemoveOptions) -> Result<()> {
        self.journal.access().check_writable()?;
        let mut named = Vec::with_capacity(fields.len());
        for field in fields {
            let id = field.id();
            if id.store != self.journal.medium().name() {
                return Err(Code::WrongStore.error(format!("{} is a field of another store", field.key()?)));
            }
            named.push((id.key.to_vec(), Some(id.entry)));
        }
        overlay::check_own(&self.journal, named.iter().map(|(key, _)| &key[..]), &options.session)?;
        self.remove_keys(named, &options.session)
    }

    fn list(&self, request: &Request, options: &ListOptions) -> Result<Listing> {
        if !(1..=3).contains(&options.depth) {
            return Err(Code::Option.error(format!("depth {} is not 1, 2 or 3", options.depth)));
        }
        listing(self, &self.journal.looks().snapshot()?, request, options, None)
    }

    fn retrieve(&self, request: &Request, options: &RetrieveOptions) -> Result<Fields> {
        let selection = self.select(request)?;
        read::retrieve(
            self.journal.files(),
            &self.journal.looks().snapshot()?,
            selection,
            options.strict,
            &options.session,
            self.journal.env(),
        )
    }

    fn get(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<Field> {
        let exact = self.journal.schema().make(|schema| schema.resolve(key));
        if let Ok(key) = &exact {
            let mut snapshot = self.journal.looks().snapshot()?;
            let key = encode_key(key);
            let level = &key.bytes[..key.ends[0]];
            self.journal.datasets().check_unlocked(LockKind::Retrieve, level, &snapshot)?;
            if let Some(loss) = snapshot.loss(&key.bytes[..key.ends[0]]) {
                return Err(loss.error());
            }
            let key = key.bytes;
            let same = |last: &&LastField| {
                Arc::ptr_eq(&last.snapshot, &snapshot)
                    && last.key == key
                    && last.own == options.session.transaction()
            };
            if let Some(last) = self.last().as_ref().filter(same) {
                return Ok(last.field.clone());
            }
            let (files, own) = (self.journal.files(), options.session.transaction());
            if let Some(versions) = read::lookup_moved(files, &mut snapshot, &key, own)? {
                versions.array()?;
                let many = versions.live > LAST_MIN;
                let field = read::LocalField::field(self.journal.files().clone(), snapshot.clone(), versions);
                if many {
                    let (own, field) = (options.session.transaction(), field.clone());
                    *self.last() = Some(LastField { snapshot, key, own, field });
                }
                return Ok(field);
            }
            if !snapshot.overlays.is_empty()
                && let Some(field) = overlay::field(&self.journal, snapshot, &key, own)?
            {
                return Ok(field);
            }
        }
        let found = get_by_request(self, key, options);
        let snapshot = self.journal.looks().snapshot()?;
        if let (Ok(key), Err(error)) = (&exact, &found)
            && error.code() == Code::FieldNotFound
        {
            let (name, key) = (key.to_string(), encode_key(key));
            if read::is_dataset_purged(&snapshot, &key.bytes[..key.ends[0]])? {
                return Err(read::purged(name));
            }
        }
        let loss = match &found {
            Ok(field) => snapshot.loss(&field.id().key[..level_ends(field.id().key)?[0]]),
            Err(_) => snapshot.losses.first(),
        };
        loss.map_or(found, |loss| Err(loss.error()))
    }

    fn axes(&self, request: &Request, options: &ReadOptions) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>> {
        read::axes(
            &self.journal.looks().snapshot()?,
            self.select(request)?,
            options.session.transaction(),
            self.limits(&options.session),
            &self.journal.env().identity,
        )
    }

    fn version(&self) -> Result<String> {
        Ok(self.journal.looks().snapshot()?.version().encode())
    }

    fn refresh(&self) -> Result<()> {
        self.journal.looks().refresh()
    }

    fn owner(&self, level: &[u8]) -> Result<Option<u32>> {
        self.journal.datasets().owner(level)
    }

    fn claim(&self, level: Vec<u8>, session: &Session) -> Result<()> {
        self.journal.datasets().claim(level, session)
    }
}

impl FieldStreams for LocalStore {
    fn archive_stream(
        &self,
        key: &Pairs<'_>,
        stream: ByteStream<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        if stream.nbytes <= STREAMED || options.share {
            return self.archive(key, Value::Bytes(&stream.bytes()?), options);
        }
        self.journal.access().check_writable()?;
        let key = self.journal.schema().make(|schema| schema.resolve(key))?;
        self.check_dataset(&key, &options.session)?;
        let streamed = encode::streamed(stream, self.compression(options)).map_err(|e| e.context(&key))?;
        self.take(streamed.encoded(&key)?, false, options)
    }
}

impl Transactions for LocalStore {
    fn flush(&self, session: &Session) -> Result<()> {
        self.check_new(session)?;
        self.forget_taken(self.journal.committer().flush(session), session)
    }

    fn discard(&self, session: &Session) -> Result<()> {
        self.journal.unflushed().discard(session);
        self.new_fields().forget(session.key());
        Ok(())
    }

    fn check_lost(&self, session: &Session) -> Result<()> {
        self.journal.unflushed().check_lost(session)
    }

    fn unflushed(&self) -> u64 {
        self.journal.unflushed().count()
    }

    fn begin(&self) -> Result<Id> {
        self.journal.transactions().begin()
    }

    fn decide(&self, transaction: Id, commit: bool, session: &Session) -> Result<()> {
        let within = session.within(transaction);
        if commit {
            self.check_new(&within)?;
        }
        self.forget_taken(self.journal.transactions().decide(transaction, commit, session), &within)
    }

    fn abandon(&self, transaction: Id, session: &Session) -> Result<()> {
        self.forget_taken(
            self.journal.transactions().abandon(transaction, session),
            &session.within(transaction),
        )
    }

    fn set_active_kinds(&self, transaction: Id, on: u32, off: u32, session: &Session) -> Result<()> {
        self.journal.transactions().set_active_kinds(transaction, on, off, session)
    }
}

impl Admin for LocalStore {
    fn stats(&self, request: &Request) -> Result<Stats> {
        report::stats(self.journal.files(), &self.journal.looks().snapshot()?, self.select(request)?)
    }

    fn stats_by(&self, request: &Request, by: &StatsBy) -> Result<Vec<StatsRow>> {
        let by = match by {
            StatsBy::Keyword(keyword) => {
                let mut known = Request::new();
                known.set(keyword, Values::Present);
                self.select(&known)?;
                StatsBy::Keyword(self.schema().spelling(keyword).to_owned())
            }
            by => by.clone(),
        };
        let (snapshot, selection) = (self.journal.looks().snapshot()?, self.select(request)?);
        let identity = &*self.journal.env().identity;
        let rows = report::stats_by(self.journal.files(), &snapshot, selection, &by, identity)?;
        if let StatsBy::Keyword(keyword) = &by
            && !rows.is_empty()
            && rows.iter().all(|row| row.name.is_none())
        {
            self.check_declared(keyword)?;
        }
        Ok(rows)
    }

    fn status(&self) -> Result<Status> {
        let snapshot = self.journal.looks().even_without_logs()?;
        let mut status = {
            let refresher = self.journal.looks().refresher().lock();
            report::status(
                self.journal.env(),
                self.journal.medium().inspect(),
                &snapshot,
                &refresher,
                self.journal.files(),
            )?
        };
        status.url = self.url.clone();
        status.schema = self.journal.schema().now().name().unwrap_or("custom").to_owned();
        // The logs of a promoted copy name the store that it was copied from.
        if self.journal.medium().files().is_some_and(|files| files.copy().is_some()) {
            status.id = Some(self.journal.home().id);
        }
        status.unflushed = self.journal.unflushed().count();
        // Made, and nothing flushed yet.
        status.id = status.id.or_else(|| self.journal.made_id());
        let user = self.journal.access().user(&Session::default());
        status.advice = report::advice(&status, &snapshot, &self.journal.looks().refresher().lock(), user);
        Ok(status)
    }

    fn skipped(&self) -> Result<Vec<String>> {
        let snapshot = self.journal.looks().even_without_logs()?;
        // A link in place of a log is found by the listing and by the look at it: it is named once.
        let mut named = BTreeSet::new();
        let problems = snapshot.problems.iter();
        let passed = problems.filter(|problem| problem.skipped && named.insert(&problem.file));
        Ok(passed.map(|problem| format!("{}: {}", problem.file, problem.why)).collect())
    }

    fn verify(&self, request: &Request) -> Result<VerifyReport> {
        let snapshot = self.journal.looks().even_without_logs()?;
        let identity = &*self.journal.env().identity;
        let selection = self.select(request)?;
        let refresher = self.journal.looks().refresher();
        report::verify(self.journal.files(), (&snapshot, None), selection, refresher, identity)
    }

    fn dump(&self, request: &Request) -> Result<Vec<String>> {
        report::dump(
            self.journal.medium().inspect(),
            &self.journal.looks().snapshot()?,
            self.select(request)?,
        )
    }

    fn checkpoint(
        &self,
        folder: &Path,
        options: &CheckpointOptions,
        session: &Session,
    ) -> Result<CheckpointReport> {
        if !self.in_memory {
            return Err(Code::WrongStore
                .error(format!("the store at {} is in a folder", self.url))
                .with_hint("a checkpoint is taken of a memory: store; this one is durable at each flush"));
        }
        self.journal.checkpoints().write(folder, options, session)
    }

    fn close(&self, session: &Session) -> Result<()> {
        self.journal.close(session)
    }
}
