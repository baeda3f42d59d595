//! The store in a folder of a file system; on a simulated disk also the store in memory.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fieldstone_core::env::{Disk, Env};
use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::EntryId;
use fieldstone_format::keys::{EncodedKey, encode_key, level_ends};
use fieldstone_format::log::{Decision, SideRecord};
use fieldstone_format::version::Version;
use fieldstone_format::{FORMAT_VERSION, marker};

mod ownership;

use crate::api::*;
use crate::checkpoint::{Checkpoint, Durable};
use crate::files::Files;
use crate::fork::PerProcess;
use crate::identity::{StoreIdentity, random_id};
use crate::join::Sources;
use crate::layout::Layout;
use crate::read;
use crate::report;
use crate::run::BlockCache;
use crate::snapshot::{ALL_KINDS, Look, Refresher, Snapshot};
use crate::writer::{self, Existence, Horizon, Prepared, Writer};

/// Longest schema: every log's header repeats it.
const SCHEMA_MAX: usize = 1 << 20;

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
}

/// A store in a folder.
#[derive(Debug)]
pub struct LocalStore {
    env: Env,
    layout: Layout,
    options: LocalOptions,
    schema: Schema,
    /// Id of the store, or the one it gets if we create it.
    id: Id,
    /// Version of the marker, where it is not ours.
    marker_version: Option<String>,
    /// Whether the store was there when it was opened, or was made since.
    existence: Arc<Existence>,
    pinned: Option<Arc<Snapshot>>,
    process: PerProcess<State>,
}

/// What one process has of a store.
#[derive(Debug)]
struct State {
    files: Arc<Files>,
    refresher: Mutex<Refresher>,
    writer: Mutex<Writer>,
    /// Encoded first levels that are claimed, or need no claim.
    claimed: Mutex<HashSet<Vec<u8>>>,
    /// Transactions that this process opened.
    begun: Mutex<HashSet<Id>>,
    /// Datasets that we are known to own, or that nobody owns yet.
    own_datasets: Mutex<HashSet<Vec<u8>>>,
    /// Who has side records for our flushes.
    sources: Sources,
    /// What checkpoints of this process left in which folder.
    checkpoints: Mutex<HashMap<PathBuf, Durable>>,
    /// The field of many pieces that was asked for last: the hits of a query follow one another in it.
    last: Mutex<Option<LastField>>,
}

/// Pieces from which on a field is kept for the next read of it.
const LAST_MIN: usize = 8;

/// A field as a snapshot, which never changes, has it.
#[derive(Debug)]
struct LastField {
    snapshot: Arc<Snapshot>,
    key: Vec<u8>,
    own: Option<Id>,
    field: read::Field,
}

impl State {
    fn new(env: &Env, layout: &Layout, options: &LocalOptions, existence: &Arc<Existence>) -> State {
        let outside = options.outside.as_ref().unwrap_or(&env.disk).clone();
        let files = Arc::new(Files::new(env.disk.clone(), outside, layout.clone()));
        let sources = Sources::default();
        let writer = Writer::new(env.clone(), layout.clone(), sources.clone(), existence.clone());
        State {
            refresher: Mutex::new(Refresher::new(
                env.clone(),
                files.clone(),
                Arc::new(BlockCache::default()),
            )),
            files,
            writer: Mutex::new(writer),
            claimed: Mutex::default(),
            begun: Mutex::default(),
            own_datasets: Mutex::default(),
            sources,
            checkpoints: Mutex::default(),
            last: Mutex::default(),
        }
    }
}

/// A panic of one caller must not lock all others out: what the lock guards is checked where it is
/// used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LocalStore {
    /// Opens the store in `folder`. Nothing is created before the first commit.
    pub fn open(env: Env, folder: &Path, options: LocalOptions) -> Result<LocalStore> {
        if options.schema.as_ref().is_some_and(|schema| schema.text().len() > SCHEMA_MAX) {
            return Err(Error::invalid(format!("the schema is longer than {SCHEMA_MAX} bytes"))
                .with_hint("every log repeats it: keep it to rules and types"));
        }
        let root = env.disk.absolute(folder).map_err(|e| Error::io("look at", folder, e))?;
        let layout = Layout::new(root);
        let existence = Arc::new(Existence::default());
        let state = State::new(&env, &layout, &options, &existence);
        let found = find_identity(&env, &layout, &state)?;
        if let Some(found) = &found {
            existence.note(found.id, env.disk.stat(&layout.logs()).is_ok());
        }
        let marker_version = writer::foreign_marker(&env, &layout)?;
        match &found {
            None if options.must_exist => {
                return Err(Error::not_found(format!("there is no store at {}", folder.display()))
                    .with_hint("check the path; a store is made by the first flush into it"));
            }
            Some(_) if options.must_be_new => {
                return Err(Error::conflict(format!("there is a store at {} already", folder.display()))
                    .with_hint("open it with mode a"));
            }
            _ => {}
        }
        let (id, schema) = match (found, &options.schema) {
            (Some(found), Some(asked)) if found.schema != asked.text() => {
                return Err(Error::conflict(format!(
                    "the store at {} has another schema than the one asked for",
                    folder.display()
                ))
                .with_hint("open it without a schema to take its own"));
            }
            (Some(found), _) => (found.id, Schema::parse(&found.schema)?),
            (None, Some(asked)) => (random_id(&env), asked.clone()),
            (None, None) => {
                let schema = Schema::builtin("simulation");
                (random_id(&env), schema.ok_or_else(|| Error::internal("no schema is built in"))?)
            }
        };
        let mut store = LocalStore {
            process: PerProcess::new(env.identity.clone(), state),
            env,
            layout,
            options,
            schema,
            id,
            marker_version,
            existence,
            pinned: None,
        };
        if let Some(text) = &store.options.at {
            let version = Version::decode(text)?;
            let newest = store.snapshot()?;
            let pinned = newest.at(&version, &lock(&store.state().refresher))?;
            store.pinned = Some(Arc::new(pinned));
        }
        Ok(store)
    }

    /// Makes the store now, without a field: folders and marker, durable. Does nothing where it is there;
    /// Conflict where another process has meanwhile made it with another schema.
    pub fn create(&self) -> Result<()> {
        self.check_writable()?;
        self.check_versions(&*self.snapshot()?)?;
        writer::create_store(&self.env, &self.layout, self.identity(), &self.existence).map(drop)
    }

    fn state(&self) -> &State {
        self.process.get(|| State::new(&self.env, &self.layout, &self.options, &self.existence))
    }

    /// The snapshot that a read of now sees.
    fn snapshot(&self) -> Result<Arc<Snapshot>> {
        match &self.pinned {
            Some(pinned) => Ok(pinned.clone()),
            None => lock(&self.state().refresher).refresh(Look::Hints),
        }
    }

    fn check_writable(&self) -> Result<()> {
        if self.options.writable {
            return Ok(());
        }
        let why = if self.options.at.is_some() {
            "was opened at an older version"
        } else {
            "is open for reading only"
        };
        Err(Error::denied(format!("the store at {} {why}", self.options.url))
            .with_hint("open it with mode a"))
    }

    /// Refuses to write beside what is of another version of the format: what we cannot read we could
    /// contradict.
    fn check_versions(&self, snapshot: &Snapshot) -> Result<()> {
        let marker =
            self.marker_version.as_ref().map(|v| format!("{} of format version {v}", marker::FILE_NAME));
        let Some(first) = marker.as_ref().or(snapshot.foreign.first()) else { return Ok(()) };
        Err(Error::denied(format!(
            "the store at {} holds {first}; this release knows version {FORMAT_VERSION} and does not write beside others",
            self.options.url
        ))
        .with_hint("write with a release that knows all versions in the store; reading goes on here"))
    }

    fn identity(&self) -> StoreIdentity {
        StoreIdentity { id: self.id, schema: self.schema.text().to_owned() }
    }

    fn take(&self, value: Prepared<'_>, transaction: Option<Id>) -> Result<()> {
        lock(&self.state().writer).take(transaction, value, &|| Ok(self.identity()))
    }

    /// Takes what others have for a session's next flush.
    fn drain(&self, session: Option<Id>) -> Result<()> {
        for source in self.state().sources.alive() {
            let records = source.drain(session)?;
            if !records.is_empty() {
                lock(&self.state().writer).take_drained(session, records);
            }
        }
        Ok(())
    }

    fn compression(&self, options: &ArchiveOptions) -> Compression {
        options
            .compression
            .or(self.options.compression)
            .or(self.schema.compression())
            .unwrap_or(Compression::None)
    }

    /// Conflict where a transaction has ended and does not hold what we flushed last.
    fn check_open(
        &self,
        transaction: Id,
        flushed: Option<writer::Flushed>,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let verdict = snapshot.verdict(transaction, self.env.identity.uid());
        let Some(verdict) = verdict.filter(|verdict| verdict.closed()) else {
            return Ok(());
        };
        if flushed.is_some_and(|flushed| verdict.covers_commit(flushed.writer, flushed.sequence)) {
            return Ok(());
        }
        let verb = if verdict.aborted() { "aborted" } else { "committed" };
        Err(Error::conflict(format!(
            "transaction {transaction} is {verb} already: what comes later is never visible"
        ))
        .with_hint("begin a new transaction"))
    }

    /// Ends a transaction. `given`: somebody else may have its id.
    fn end(&self, transaction: Id, commit: bool, given: bool) -> Result<()> {
        self.check_writable()?;
        if commit {
            self.flush(Some(transaction))?;
        } else {
            self.discard(Some(transaction))?;
        }
        let (horizon, snapshot) = self.horizon()?;
        let user = self.env.identity.uid();
        let verdict = snapshot.verdict(transaction, user);
        if let Some(verdict) = verdict.filter(|verdict| verdict.closed()) {
            if verdict.aborted() == commit {
                self.check_open(transaction, None, &snapshot)?;
            }
        } else {
            let covers = snapshot.prepared(transaction, user);
            self.check_decider(transaction, &covers, &snapshot)?;
            // The end is written even of nothing, for those who have joined and not flushed yet.
            if given || !covers.is_empty() || verdict.is_some() {
                let kinds = ALL_KINDS;
                self.write_decision(Decision { transaction, committed: commit, kinds, covers }, horizon)?;
            }
        }
        let state = self.state();
        lock(&state.writer).end(transaction);
        lock(&state.begun).remove(&transaction);
        Ok(())
    }

    /// Writes a decision; Conflict where it ends a transaction that another process flushed into meanwhile.
    fn write_decision(&self, decision: Decision, horizon: Horizon) -> Result<()> {
        let transaction = decision.transaction;
        let ends = decision.committed && decision.kinds == ALL_KINDS;
        let covers = decision.covers.clone();
        let written = lock(&self.state().writer).decide(decision, horizon, &|| Ok(self.identity()))?;
        lock(&self.state().refresher).wrote(written.slot);
        if !ends {
            return Ok(());
        }
        // Whoever flushed into the transaction while it was decided is told so by its own flush; we are
        // told here, because one of us always sees the other.
        let late: Vec<String> = self
            .snapshot()?
            .prepared(transaction, self.env.identity.uid())
            .into_iter()
            .filter(|(w, s)| !covers.iter().any(|(v, t)| v == w && t >= s))
            .map(|(w, _)| w.to_string())
            .collect();
        if late.is_empty() {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "transaction {transaction} is committed, without what writer {} flushed meanwhile",
            late.join(", ")
        ))
        .with_hint("let all joined processes leave before the opener commits"))
    }

    /// Encoded keys of what a request selects: of what is visible, and of what was archived here and not
    /// flushed.
    fn selected_keys(&self, selection: Selection, session: Option<Id>) -> Result<BTreeSet<Vec<u8>>> {
        let mut keys = BTreeSet::new();
        let mut matcher = read::Matcher::new(selection.clone());
        for key in lock(&self.state().writer).keys(session) {
            if matcher.test(&key)? == read::Match::Yes {
                keys.insert(key);
            }
        }
        let mut scan = read::Scan::new(self.snapshot()?, selection, session)?;
        while let Some(versions) = scan.next_key()? {
            keys.insert(versions.key);
        }
        Ok(keys)
    }

    /// Removes what stands under keys, all of them or none; each with the entry that is to be the newest.
    fn remove_keys(&self, keys: Vec<(Vec<u8>, Option<EntryId>)>, session: Option<Id>) -> Result<()> {
        for (key, _) in &keys {
            let end = level_ends(key)?[0];
            self.check_prefix(key[..end].to_vec())?;
        }
        for (bytes, only) in keys {
            let ends = level_ends(&bytes)?;
            self.take(Prepared::removal(EncodedKey { bytes, ends }, only), session)?;
        }
        Ok(())
    }

    fn horizon(&self) -> Result<(Horizon, Arc<Snapshot>)> {
        let mut refresher = lock(&self.state().refresher);
        let snapshot = refresher.refresh(Look::Hints)?;
        self.check_versions(&snapshot)?;
        let horizon = Horizon { max_stamp: refresher.max_stamp(), snapshot: Some(snapshot.clone()) };
        Ok((horizon, snapshot))
    }
}

/// Identity of the store in a folder: from its marker, or, where that is damaged or lost, from a log.
fn find_identity(env: &Env, layout: &Layout, state: &State) -> Result<Option<StoreIdentity>> {
    let marker = writer::read_marker(env, layout)?;
    if let Some(Ok(marker)) = marker {
        return Ok(Some(StoreIdentity { id: marker.id, schema: marker.schema }));
    }
    let snapshot = lock(&state.refresher).refresh(Look::All)?;
    let told = snapshot.logs.iter().find(|log| log.header.store != Id::NONE);
    match (told, marker) {
        (Some(log), _) => Ok(Some(StoreIdentity { id: log.header.store, schema: log.header.schema.clone() })),
        (None, Some(Err(damage))) => Err(damage),
        (None, _) => Ok(None),
    }
}

impl FieldStore for LocalStore {
    fn url(&self) -> &str {
        &self.options.url
    }

    fn schema(&self) -> Schema {
        self.schema.clone()
    }

    fn select(&self, request: &Request) -> Result<fieldstone_core::schema::Selection> {
        self.schema.select_at(request, self.env.clock.now())
    }

    fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
        self.check_writable()?;
        let key = self.schema.resolve(key)?;
        self.check_dataset(&key)?;
        let chunks = options.chunks.as_deref();
        let mut prepared = Prepared::value(&key, value, self.compression(options), chunks, None)?;
        if options.share {
            prepared.share();
        }
        self.take(prepared, options.transaction)
    }

    fn archive_many(&self, items: &[(&Pairs<'_>, Value<'_>)], options: &ArchiveOptions) -> Result<()> {
        self.check_writable()?;
        let numbered = |i: usize| move |e: Error| e.context(format!("field {i}"));
        let mut keys = Vec::with_capacity(items.len());
        for (i, (key, _)) in items.iter().enumerate() {
            let key = self.schema.resolve(key).map_err(numbered(i))?;
            self.check_dataset(&key).map_err(numbered(i))?;
            keys.push(key);
        }
        let (compression, chunks) = (self.compression(options), options.chunks.as_deref());
        for (i, (key, (_, value))) in keys.iter().zip(items).enumerate() {
            let mut prepared =
                Prepared::value(key, *value, compression, chunks, None).map_err(numbered(i))?;
            if options.share {
                prepared.share();
            }
            self.take(prepared, options.transaction)?;
        }
        Ok(())
    }

    fn create_field(&self, key: &Pairs<'_>, spec: &FieldSpec<'_>, options: &ArchiveOptions) -> Result<()> {
        self.check_writable()?;
        let key = self.schema.resolve(key)?;
        self.check_dataset(&key)?;
        self.take(Prepared::created(&key, spec)?, options.transaction)
    }

    fn archive_external(
        &self,
        key: &Pairs<'_>,
        spec: &ExternalSpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.check_writable()?;
        let key = self.schema.resolve(key)?;
        self.check_dataset(&key)?;
        let prepared = Prepared::external(&key, self.state().files.outside(), spec)?;
        self.take(prepared, options.transaction)
    }

    fn remove(&self, request: &Request, options: &RemoveOptions) -> Result<u64> {
        self.check_writable()?;
        let selection = self.select(request)?;
        if selection.is_unconstrained() {
            return Err(Error::invalid("a removal of everything was asked for")
                .with_hint("name what is to go, such as run=a; step=* names all that have a step"));
        }
        let keys = self.selected_keys(selection, options.transaction)?;
        let removed = keys.len() as u64;
        self.remove_keys(keys.into_iter().map(|key| (key, None)).collect(), options.transaction)?;
        Ok(removed)
    }

    fn remove_fields(&self, fields: &[read::Field], options: &RemoveOptions) -> Result<()> {
        self.check_writable()?;
        let mut named = Vec::with_capacity(fields.len());
        for field in fields {
            if field.root() != self.layout.root() {
                return Err(Error::invalid(format!("{} is a field of another store", field.key()?)));
            }
            named.push((field.encoded_key().to_vec(), Some(field.id())));
        }
        self.remove_keys(named, options.transaction)
    }

    fn archive_side(&self, records: Vec<SideRecord>, transaction: Option<Id>) -> Result<()> {
        self.check_writable()?;
        lock(&self.state().writer).take_side(transaction, records);
        Ok(())
    }

    fn pending_side(&self, transaction: Option<Id>) -> Result<Vec<SideRecord>> {
        self.drain(transaction)?;
        Ok(lock(&self.state().writer).side(transaction))
    }

    fn owner(&self, level: &[u8]) -> Result<Option<u32>> {
        Ok(self.snapshot()?.owner(level))
    }

    fn claim(&self, level: Vec<u8>, transaction: Option<Id>) -> Result<()> {
        self.check_writable()?;
        self.check_prefix(level.clone())?;
        lock(&self.state().writer).take_claim(transaction, level);
        Ok(())
    }

    fn feed(&self) -> Result<Feed> {
        Ok(Feed::new(self.snapshot()?, self.state().files.clone()))
    }

    fn flush(&self, transaction: Option<Id>) -> Result<()> {
        self.check_writable()?;
        self.drain(transaction)?;
        let state = self.state();
        {
            let mut writer = lock(&state.writer);
            writer.check(transaction)?;
            if !writer.has_work(transaction) {
                return Ok(());
            }
        }
        let (horizon, snapshot) = self.horizon()?;
        if let Some(id) = transaction {
            self.check_open(id, None, &snapshot)?;
        }
        let flushed = {
            let mut writer = lock(&state.writer);
            for prefix in writer.datasets(transaction) {
                self.check_owner(&prefix, &snapshot).inspect_err(|_| {
                    lock(&state.own_datasets).remove(&prefix);
                })?;
            }
            let claim = |levels: &BTreeSet<Vec<u8>>| self.claim_levels(levels);
            writer.flush(transaction, horizon, &claim, &|| Ok(self.identity()))?
        };
        if let Some(flushed) = &flushed {
            lock(&state.refresher).wrote(flushed.slot);
        }
        if let (Some(id), Some(_)) = (transaction, flushed) {
            // A decision may have been written meanwhile; then this flush is not part of it.
            self.check_open(id, flushed, &*self.snapshot()?)?;
        }
        state.sources.alive().iter().for_each(|source| source.flushed(transaction));
        Ok(())
    }

    fn discard(&self, transaction: Option<Id>) -> Result<()> {
        self.state().sources.alive().iter().for_each(|source| source.discarded(transaction));
        lock(&self.state().writer).discard(transaction);
        Ok(())
    }

    fn check_lost(&self, transaction: Option<Id>) -> Result<()> {
        lock(&self.state().writer).check(transaction)
    }

    fn unflushed(&self) -> u64 {
        lock(&self.state().writer).unflushed()
    }

    fn refresh(&self) -> Result<()> {
        if self.pinned.is_none() {
            lock(&self.state().refresher).refresh(Look::All)?;
        }
        Ok(())
    }

    fn version(&self) -> Result<String> {
        Ok(self.snapshot()?.version().encode())
    }

    fn list(&self, request: &Request, options: &ListOptions) -> Result<Listing> {
        if !(1..=3).contains(&options.depth) {
            return Err(Error::invalid(format!("depth {} is not 1, 2 or 3", options.depth)));
        }
        Ok(Box::new(read::list(&self.snapshot()?, self.select(request)?, options)?))
    }

    fn retrieve(&self, request: &Request, options: &RetrieveOptions) -> Result<read::Fields> {
        let selection = self.select(request)?;
        let state = self.state();
        read::retrieve(&state.files, &self.snapshot()?, selection, options.strict, options.transaction)
    }

    fn get(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<read::Field> {
        let exact = self.schema.resolve(key);
        if let Ok(key) = &exact {
            let snapshot = self.snapshot()?;
            let key = encode_key(key);
            if let Some(loss) = snapshot.loss(&key.bytes[..key.ends[0]]) {
                return Err(loss.error());
            }
            let key = key.bytes;
            let state = self.state();
            let same = |last: &&LastField| {
                Arc::ptr_eq(&last.snapshot, &snapshot) && last.key == key && last.own == options.transaction
            };
            if let Some(last) = lock(&state.last).as_ref().filter(same) {
                return Ok(last.field.clone());
            }
            if let Some(versions) = read::lookup(&snapshot, &key, options.transaction)? {
                versions.array()?;
                let many = versions.live > LAST_MIN;
                let field = read::Field::new(state.files.clone(), snapshot.clone(), versions, false);
                if many {
                    let (own, field) = (options.transaction, field.clone());
                    *lock(&state.last) = Some(LastField { snapshot, key, own, field });
                }
                return Ok(field);
            }
        }
        let found = get_by_request(self, key, options);
        let snapshot = self.snapshot()?;
        let loss = match &found {
            Ok(field) => snapshot.loss(&field.encoded_key()[..level_ends(field.encoded_key())?[0]]),
            Err(_) => snapshot.losses.first(),
        };
        loss.map_or(found, |loss| Err(loss.error()))
    }

    fn axes(&self, request: &Request, options: &ReadOptions) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>> {
        read::axes(&self.snapshot()?, self.select(request)?, options.transaction)
    }

    fn stats(&self, request: &Request) -> Result<Stats> {
        report::stats(&self.env, &self.state().files, &self.snapshot()?, self.select(request)?)
    }

    fn status(&self) -> Result<Status> {
        let state = self.state();
        let snapshot = self.snapshot()?;
        let refresher = lock(&state.refresher);
        let mut status = report::status(&self.env, &self.layout, &snapshot, &refresher)?;
        status.url = self.options.url.clone();
        status.schema = self.schema.name().unwrap_or("custom").to_owned();
        status.unflushed = lock(&state.writer).unflushed();
        if status.id.is_none() && matches!(writer::read_marker(&self.env, &self.layout), Ok(Some(Ok(_)))) {
            // Made, and nothing flushed yet.
            status.id = Some(self.id);
        }
        Ok(status)
    }

    fn verify(&self, request: &Request) -> Result<VerifyReport> {
        let state = self.state();
        let snapshot = self.snapshot()?;
        report::verify(&self.env, &state.files, &snapshot, self.select(request)?, &state.refresher)
    }

    fn dump(&self, request: &Request) -> Result<Vec<String>> {
        let state = self.state();
        report::dump(&state.files, &self.snapshot()?, self.select(request)?, &state.refresher)
    }

    fn begin(&self) -> Result<Id> {
        self.check_writable()?;
        let id = random_id(&self.env);
        lock(&self.state().begun).insert(id);
        Ok(id)
    }

    fn decide(&self, transaction: Id, commit: bool) -> Result<()> {
        self.end(transaction, commit, true)
    }

    fn abandon(&self, transaction: Id) -> Result<()> {
        self.end(transaction, false, false)
    }

    fn decide_kinds(&self, transaction: Id, on: u32, off: u32) -> Result<()> {
        self.check_writable()?;
        if on & off != 0 {
            return Err(Error::invalid("a kind is to be made visible and invisible at once"));
        }
        if on != 0 {
            self.flush(Some(transaction))?;
        }
        let (horizon, snapshot) = self.horizon()?;
        let user = self.env.identity.uid();
        let verdict = snapshot.verdict(transaction, user);
        if verdict.is_some_and(|verdict| verdict.aborted()) {
            return self.check_open(transaction, None, &snapshot);
        }
        self.check_decider(transaction, &snapshot.prepared(transaction, user), &snapshot)?;
        let before = verdict.map_or(0, |verdict| verdict.kinds());
        let kinds = (before | on) & !off;
        let covers = match verdict {
            Some(verdict) if verdict.closed() => verdict.covers().to_vec(),
            _ => snapshot.prepared(transaction, user),
        };
        let covered = |(writer, sequence): &(Id, u64)| {
            verdict.is_some_and(|verdict| verdict.covers_commit(*writer, *sequence))
        };
        if kinds == before && covers.iter().all(covered) {
            return Ok(());
        }
        self.write_decision(Decision { transaction, committed: true, kinds, covers }, horizon)
    }

    fn checkpoint(&self, folder: &Path, options: &CheckpointOptions) -> Result<CheckpointReport> {
        // In memory are those stores whose folder is not on the disk where files outside are.
        let Some(outside) = &self.options.outside else {
            return Err(Error::invalid(format!("the store at {} is in a folder", self.options.url))
                .with_hint("a checkpoint is taken of a memory: store; this one is durable at each flush"));
        };
        let target = Env { disk: outside.clone(), ..self.env.clone() };
        let folder = target.disk.absolute(folder).map_err(|e| Error::io("look at", folder, e))?;
        let state = self.state();
        // One at a time: two into one folder would write the same files.
        let mut known = lock(&state.checkpoints);
        self.flush(None)?;
        let snapshot = self.snapshot()?;
        let mut checkpoint = Checkpoint {
            files: &state.files,
            snapshot: &snapshot,
            target,
            layout: Layout::new(folder.clone()),
            identity: self.identity(),
            durable: known.remove(&folder).unwrap_or_default(),
        };
        let report = checkpoint.write(options)?;
        known.insert(folder, checkpoint.durable);
        Ok(report)
    }

    fn close(&self) -> Result<()> {
        // What was lost before does not keep the rest from being flushed: there is no later call.
        let lost = self.check_lost(None);
        let flushed = if self.options.writable { self.flush(None) } else { Ok(()) };
        lock(&self.state().writer).close();
        self.state().sources.alive().iter().for_each(|source| source.closed());
        match (lost, flushed) {
            (Err(lost), Err(e)) => Err(e.context(lost.message())),
            (lost, flushed) => lost.and(flushed),
        }
    }

    fn home(&self) -> Home {
        let folder = self.options.native.then(|| self.layout.root().to_owned());
        // Another process may have made the store since this handle was opened.
        let found = find_identity(&self.env, &self.layout, self.state()).ok().flatten();
        Home {
            id: found.map_or(self.id, |identity| identity.id),
            folder,
            writable: self.options.writable,
            pinned: self.pinned.is_some(),
            env: self.env.clone(),
        }
    }

    fn attach(&self, source: Weak<dyn SideSource>) {
        self.state().sources.attach(source);
    }
}
