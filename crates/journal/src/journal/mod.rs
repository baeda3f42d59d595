//! The journal of one store, as one handle has it: what this process writes, and the snapshots it reads.
//!
//! * here: opening, snapshots, and what goes into the next commit;
//! * `commit`: flushes and decisions, and who waits for whom;
//! * `transactions`: what becomes visible together, and who decides;
//! * `ownership`: whose a dataset and a transaction are;
//! * `accept`: losses that are accepted;
//! * `schema`: the schema in force, and how it grows; `format`: the version of the format that the store is of.
//!
//! Invariants:
//! * a commit record is the only thing that makes anything visible (J-1);
//! * nothing is made on disk before the first commit, or before [`Journal::create`];
//! * a forked child has a writer, a snapshot and locks of its own.

mod accept;
mod commit;
mod format;
mod gathering;
mod ownership;
mod schema;
mod transactions;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use fieldstone_core::env::{Disk, Env};
use fieldstone_core::schema::Schema;
use fieldstone_core::sync::{Condvar, Mutex};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::attempt::{ATTEMPTS_SINCE, Origin};
use fieldstone_format::log::SideRecord;
use fieldstone_format::marker::{self, Marker};
use fieldstone_format::version::Version;
use fieldstone_format::{FIRST_VERSION, FORMAT_VERSION, Id};
use tracing::field::Empty;
use tracing::{debug_span, trace_span};

pub use self::accept::FileState;
use self::commit::idle;
use self::gathering::Gathering;
use self::ownership::check_user;
use self::schema::SchemaState;
use crate::feed::Feed;
use crate::files::Files;
use crate::fork::PerProcess;
use crate::home::Home;
use crate::identity::{StoreIdentity, random_id};
use crate::medium::posix::FileMedium;
use crate::medium::posix::checkpoint::{Checkpoint, CheckpointOptions, CheckpointReport, Durable};
use crate::medium::{Inspect, Look, Medium};
use crate::segment::BlockCache;
use crate::session::{Session, SessionKey};
use crate::snapshot::{LogView, Refresher, Snapshot};
use crate::writer::{Horizon, PendingArray, PendingCursor, PendingSide, Writer};

/// How long a wait for news sleeps between its looks, nanoseconds: first, and at last.
const LOOK_FIRST: u64 = 2_000_000;
const LOOK_LAST: u64 = 200_000_000;

/// How often a close flushes what is left where commits of this handle fail.
const CLOSING: usize = 8;

/// Longest schema: every log's header repeats it.
const SCHEMA_MAX: usize = 1 << 20;

/// How a [`Journal`] is opened.
#[derive(Debug, Clone, Default)]
pub struct JournalOptions {
    /// The URL as the user gave it, for messages.
    pub url: String,
    /// Whether writing is allowed.
    pub writable: bool,
    /// Whether an absent store is NotFound.
    pub must_exist: bool,
    /// Whether an existing store is a Conflict.
    pub must_be_new: bool,
    /// Schema; the store's own where absent, `simulation` for a new store.
    pub schema: Option<Schema>,
    /// Version to read.
    pub at: Option<String>,
    /// The file system of files outside the store, where it is not the store's own.
    pub outside: Option<Arc<dyn Disk>>,
    /// Whether the store's file system is this machine's.
    pub native: bool,
    /// Of which job what this handle writes is.
    pub origin: Origin,
    /// The version of the format of a store that is new; the newest where absent.
    pub format: Option<u32>,
}

/// The journal of a store.
#[derive(Debug)]
pub struct Journal {
    env: Env,
    /// As it was opened; each process has one of its own beside it.
    medium: Arc<dyn Medium>,
    options: JournalOptions,
    /// The schema in force.
    schema: SchemaState,
    /// Id of the store, or the one it gets if we create it.
    id: Id,
    /// Version of the marker, where it is not ours.
    marker_version: Option<String>,
    pinned: Option<Arc<Snapshot>>,
    /// The folder, as the caller named it, for messages.
    shown: String,
    /// Whether the store was seen to be there, or is about to be.
    seen: AtomicBool,
    process: PerProcess<State>,
}

/// What one process has of a store.
#[derive(Debug)]
struct State {
    medium: Arc<dyn Medium>,
    files: Arc<Files>,
    refresher: Mutex<Refresher>,
    /// How many reads have asked for a snapshot.
    asked: AtomicU64,
    /// The version of the format that the store was seen to be of; 0 before the first look.
    format: AtomicU32,
    writer: Mutex<Writer>,
    /// Notified when a commit is over.
    turn: Condvar,
    /// Who flushes.
    gathering: Mutex<Gathering>,
    /// Encoded first levels that are claimed, or need no claim.
    claimed: Mutex<HashSet<Vec<u8>>>,
    /// Transactions that this process opened.
    begun: Mutex<HashSet<Id>>,
    /// Datasets that we are known to own, or that nobody owns yet.
    own_datasets: Mutex<HashSet<Vec<u8>>>,
    /// What checkpoints of this process left in which folder.
    checkpoints: Mutex<HashMap<PathBuf, Durable>>,
}

impl State {
    fn new(env: &Env, medium: Arc<dyn Medium>, options: &JournalOptions) -> State {
        let outside = options.outside.as_ref().unwrap_or(&env.disk).clone();
        let writer = Writer::new(env.clone(), medium.clone(), options.origin.clone());
        let cache = Arc::new(BlockCache::default());
        State {
            refresher: Mutex::new(Refresher::new(medium.clone(), cache)),
            asked: AtomicU64::new(0),
            format: AtomicU32::new(0),
            files: Arc::new(Files::new(medium.clone(), outside)),
            medium,
            writer: Mutex::new(writer),
            turn: Condvar::new(),
            gathering: Mutex::default(),
            claimed: Mutex::default(),
            begun: Mutex::default(),
            own_datasets: Mutex::default(),
            checkpoints: Mutex::default(),
        }
    }
}

impl Journal {
    /// Opens the journal of the store in `folder`. Nothing is created before the first commit.
    pub fn open(env: Env, folder: &Path, options: JournalOptions) -> Result<Journal> {
        let medium = Arc::new(FileMedium::new(env.clone(), folder)?);
        Journal::of(env, medium, &folder.display().to_string(), options)
    }

    /// Opens the journal of the store in a medium. Nothing is created before the first commit.
    pub fn over(env: Env, medium: Arc<dyn Medium>, options: JournalOptions) -> Result<Journal> {
        let shown = medium.name().display().to_string();
        Journal::of(env, medium, &shown, options)
    }

    fn of(env: Env, medium: Arc<dyn Medium>, shown: &str, options: JournalOptions) -> Result<Journal> {
        let _span = debug_span!("open", store = options.url, writable = options.writable).entered();
        if options.schema.as_ref().is_some_and(|schema| schema.text().len() > SCHEMA_MAX) {
            return Err(Code::TooLarge
                .error(format!("the schema is longer than {SCHEMA_MAX} bytes"))
                .with_hint("every log repeats it: keep it to rules and types"));
        }
        options.origin.check()?;
        if let Some(files) = medium.files() {
            files.check_folder()?;
        }
        let state = State::new(&env, medium.clone(), &options);
        let found = find_identity(&state)?;
        match &found {
            Some(found) => medium.note_exists(found.id),
            // Without its marker a store is known by its logs.
            None => state
                .refresher
                .lock()
                .current()
                .without_logs
                .as_ref()
                .map_or(Ok(()), |gone| Err(gone.error()))?,
        }
        let marker = medium.marker()?;
        let marker_version = marker.and_then(|bytes| marker::foreign(&bytes).map(str::to_owned));
        let exists = found.is_some();
        check_existence(exists, &*medium, shown, &options)?;
        let (id, schema) = match (found, &options.schema) {
            (Some(found), _) => (found.id, Schema::parse(&found.schema)?),
            (None, Some(asked)) => (random_id(&env), asked.clone()),
            (None, None) => {
                let schema = Schema::builtin("simulation");
                (random_id(&env), schema.ok_or_else(|| Error::internal("no schema is built in"))?)
            }
        };
        let mut journal = Journal {
            process: PerProcess::new(env.identity.clone(), state),
            schema: SchemaState::new(env.identity.clone(), schema),
            env,
            medium,
            options,
            id,
            marker_version,
            pinned: None,
            shown: shown.to_owned(),
            seen: AtomicBool::new(exists),
        };
        journal.pin()?;
        if exists {
            journal.check_asked()?;
        }
        Ok(journal)
    }

    /// Pins the snapshot of the version that the options name, where they name one.
    fn pin(&mut self) -> Result<()> {
        let Some(text) = &self.options.at else { return Ok(()) };
        let version = Version::decode(text)?;
        let newest = self.snapshot()?;
        let pinned = newest.at(&version, &self.state().refresher.lock())?;
        let base = self.schema.base().clone();
        self.schema = SchemaState::new(self.env.identity.clone(), base);
        self.schema.follow(&pinned);
        self.pinned = Some(Arc::new(pinned));
        Ok(())
    }

    /// Refuses a store that cannot keep the attempt, or has not the schema, that the options ask for.
    fn check_asked(&self) -> Result<()> {
        if self.options.writable && self.options.origin != Origin::default() {
            self.check_format(ATTEMPTS_SINCE, "an attempt, which attempt= and comm= name,")?;
        }
        // A script names the schema that the store was made with, also when it has grown since.
        if let Some(asked) = &self.options.schema
            && !self.schema.base().grew_from(asked.text())
            && !self.schema().grew_from(asked.text())
        {
            return Err(Code::SchemaDiffers
                .error(format!("the store at {} has another schema than the one asked for", self.shown))
                .with_hint("open it without a schema to take its own"));
        }
        Ok(())
    }

    /// Makes the store now, without a commit: folders and marker, durable. Does nothing where it is there;
    /// Conflict where another process has meanwhile made it with another schema.
    pub fn create(&self) -> Result<()> {
        self.check_writable()?;
        self.check_versions(&*self.snapshot()?)?;
        self.medium().create(self.identity()).map(drop)
    }

    /// NotFound where there is no store, and nothing waits in this process that would make one: reads call it first, so
    /// that a mistyped path is heard of in every mode. A store in memory is always there, and one that was seen is not
    /// looked for again.
    pub fn check_there(&self) -> Result<()> {
        if self.seen.load(Ordering::Relaxed) || self.is_in_memory() {
            return Ok(());
        }
        if self.medium().marker()?.is_some() || !self.snapshot()?.logs.is_empty() {
            self.seen.store(true, Ordering::Relaxed);
            return Ok(());
        }
        match self.state().writer.lock().holds_anything() {
            true => Ok(()),
            false => Err(no_store(&self.shown, false)),
        }
    }

    /// Whoever has this handle is about to write: from now on [`check_there`](Self::check_there) finds nothing wrong.
    pub fn will_write(&self) {
        self.seen.store(true, Ordering::Relaxed);
    }

    /// The world that the store lives in.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The attempt that what it writes is of; empty where it names none.
    pub fn attempt(&self) -> &str {
        &self.options.origin.attempt
    }

    /// Of which job what it writes is.
    pub fn origin(&self) -> &Origin {
        &self.options.origin
    }

    /// Where the bytes lie.
    pub fn medium(&self) -> &Arc<dyn Medium> {
        &self.state().medium
    }

    /// What looks after what is stored.
    pub fn inspect(&self) -> &dyn Inspect {
        self.medium().inspect()
    }

    /// What fields are read from: the medium, and files outside of it.
    pub fn files(&self) -> &Arc<Files> {
        &self.state().files
    }

    /// Whether the store is in memory, and files outside are on another disk.
    pub fn is_in_memory(&self) -> bool {
        self.options.outside.is_some()
    }

    /// What keeps snapshots up to date.
    pub fn refresher(&self) -> &Mutex<Refresher> {
        &self.state().refresher
    }

    fn state(&self) -> &State {
        self.process.get(|| State::new(&self.env, self.medium.forked(), &self.options))
    }

    /// The snapshot that a read of now sees. Corrupt where the folder of logs is gone: what they held is not nothing.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>> {
        let snapshot = self.looked()?;
        match &snapshot.without_logs {
            None => Ok(snapshot),
            Some(gone) => Err(gone.error()),
        }
    }

    /// The same for reports of what is wrong, also where the folder of logs is gone.
    pub fn looked(&self) -> Result<Arc<Snapshot>> {
        match &self.pinned {
            Some(pinned) => Ok(pinned.clone()),
            None => {
                let state = self.state();
                let ticket = state.asked.fetch_add(1, Ordering::SeqCst) + 1;
                let _span = trace_span!("look", logs = Empty, moved = Empty).entered();
                let snapshot = state.refresher.lock().refresh_for(ticket, &state.asked)?;
                self.follow(&snapshot);
                Ok(snapshot)
            }
        }
    }

    /// A snapshot cut back to a version that its text names.
    pub fn older(&self, snapshot: &Snapshot, version: &str) -> Result<Snapshot> {
        snapshot.at(&Version::decode(version)?, &self.state().refresher.lock())
    }

    /// Waits until a commit is there that a version does not hold; `false` where none was in so many nanoseconds. Looks
    /// at boards, more and more seldom, and at logs as often as reads do.
    pub fn wait(&self, version: &str, timeout: u64, session: &Session) -> Result<bool> {
        let (version, clock) = (Version::decode(version)?, &self.env.clock);
        let (begun, mut pause) = (clock.monotonic(), LOOK_FIRST);
        loop {
            let news = |log: &Arc<LogView>| log.record.sequence > version.sequence(log.writer);
            if self.snapshot()?.logs.iter().any(news) {
                return Ok(true);
            }
            let waited = clock.monotonic().saturating_sub(begun);
            if waited >= timeout {
                return Ok(false);
            }
            session.check(&**clock)?;
            clock.sleep(pause.min(timeout - waited));
            pause = (pause + pause / 2).min(LOOK_LAST);
        }
    }

    /// How often a look at the logs was asked for in this process: by reads, feeds and commits.
    pub fn looks(&self) -> u64 {
        self.state().asked.load(Ordering::SeqCst)
    }

    /// Denied where this handle only reads.
    pub fn check_writable(&self) -> Result<()> {
        if self.options.writable {
            return Ok(());
        }
        let why = if self.options.at.is_some() {
            "was opened at an older version"
        } else {
            "is open for reading only"
        };
        Err(Code::ReadOnly
            .error(format!("the store at {} {why}", self.options.url))
            .with_hint("open it with mode a"))
    }

    /// Refuses to write beside what is of another version of the format: what we cannot read we could
    /// contradict.
    fn check_versions(&self, snapshot: &Snapshot) -> Result<()> {
        if snapshot.format.version > FORMAT_VERSION {
            return Err(Code::LaterStore
                .error(format!(
                    "the store at {} was upgraded to a later format than {FORMAT_VERSION}, this release's newest",
                    self.options.url
                ))
                .with_hint("write with a later release; reading goes on here as far as it knows the logs"));
        }
        let marker =
            self.marker_version.as_ref().map(|v| format!("{} of format version {v}", marker::FILE_NAME));
        // J-17: reading goes on without what is of another version, writing does not.
        let Some(first) = marker.as_ref().or(snapshot.foreign.first()) else { return Ok(()) };
        Err(Code::LaterStore.error(format!(
            "the store at {} holds {first}; this release knows versions {FIRST_VERSION} to {FORMAT_VERSION} and does not write beside others",
            self.options.url
        ))
        .with_hint("write with a release that knows all versions in the store; reading goes on here"))
    }

    fn identity(&self) -> StoreIdentity {
        StoreIdentity { id: self.id, schema: self.schema.base().text().to_owned() }
    }

    /// Encoded keys that the session's next commit holds values for.
    pub fn pending_keys(&self, session: &Session) -> Vec<Vec<u8>> {
        self.state().writer.lock().keys(session.key())
    }

    /// The same keys, each with element type and shape where its value is an array.
    pub fn pending_arrays(&self, session: &Session) -> Vec<PendingArray> {
        self.state().writer.lock().arrays(session.key())
    }

    /// Carries catalog and graph changes with the session's next commit.
    pub fn take_side(&self, records: Vec<SideRecord>, session: &Session) -> Result<()> {
        self.check_writable()?;
        check_user(&*self.env.identity, session)?;
        self.state().writer.lock().take_side(session.key(), records);
        Ok(())
    }

    /// Counts attributes of this thread that the caller keeps for a session, to hand them over by
    /// [`take_kept`](Self::take_kept) before the session is flushed: who keeps them learns of a failure as if
    /// they were here. Returns how often the session has lost something so far.
    pub fn keep(&self, attributes: u64, session: &Session) -> u64 {
        self.state().writer.lock().keep(session.key(), attributes)
    }

    /// Takes side records of so many attributes that were kept when the session had lost something so often.
    /// `false` where it has lost more since: then they were counted as lost, and are forgotten.
    pub fn take_kept(
        &self,
        records: Vec<SideRecord>,
        attributes: u64,
        losses: u64,
        session: &Session,
    ) -> bool {
        self.state().writer.lock().take_kept(session.key(), losses, attributes, records)
    }

    /// How often a session has lost to a failure what it had taken: a number that only grows. What was
    /// remembered of the session before is not so any more.
    pub fn losses(&self, session: &Session) -> u64 {
        self.state().writer.lock().losses().of(session.key())
    }

    /// The same of all sessions that have lost something.
    pub fn all_losses(&self) -> HashMap<SessionKey, u64> {
        self.state().writer.lock().losses().all()
    }

    /// Side records that this handle took for a session and did not flush yet, in their order.
    pub fn pending_side(&self, session: &Session) -> Result<Vec<SideRecord>> {
        Ok(self.pending_behind(session, PendingCursor::default()).records)
    }

    /// The same, but for those that a cursor has read, where these are still not flushed: what is read again and
    /// again costs what is new.
    pub fn pending_behind(&self, session: &Session, cursor: PendingCursor) -> PendingSide {
        self.state().writer.lock().side_behind(session.key(), cursor)
    }

    /// A cursor behind all of them.
    pub fn pending_cursor(&self, session: &Session) -> PendingCursor {
        self.state().writer.lock().side_cursor(session.key())
    }

    /// Whether anything that a session took waits for a flush, or for the end of one.
    pub fn has_pending(&self, session: &Session) -> bool {
        self.state().writer.lock().waits_for(session.key()).is_some()
    }

    /// What the logs hold at this moment (or in the version this handle was opened at), commit by commit.
    pub fn feed(&self) -> Result<Feed> {
        Ok(Feed::new(self.snapshot()?, self.medium().clone()))
    }

    /// Makes what a session took durable and visible; under a transaction: durable and prepared. Other sessions' values
    /// wait for flushes of theirs.
    pub fn flush(&self, session: &Session) -> Result<()> {
        self.check_writable()?;
        check_user(&*self.env.identity, session)?;
        let _span = debug_span!("flush", transaction = session.transaction().map(display)).entered();
        let Some(flushed) = self.commit_session(session)? else { return Ok(()) };
        if session.transaction().is_some() {
            // A decision may have been written meanwhile; then this flush is not part of it.
            self.check_open(session, Some(flushed), &*self.snapshot()?)?;
        }
        Ok(())
    }

    /// Forgets what a session took and did not flush.
    pub fn discard(&self, session: &Session) -> Result<()> {
        self.state().writer.lock().discard(session.key());
        Ok(())
    }

    /// Raises what a flush would raise of earlier failures that took what this thread gave, and nothing
    /// else; it counts as reported then.
    pub fn check_lost(&self, session: &Session) -> Result<()> {
        self.state().writer.lock().check(session.key())
    }

    /// Values taken and not yet flushed.
    pub fn unflushed(&self) -> u64 {
        self.state().writer.lock().unflushed()
    }

    /// Looks at every log that is not closed.
    pub fn refresh(&self) -> Result<()> {
        if self.pinned.is_none() {
            // FrameInfo after the lock is given back.
            let _span = debug_span!("refresh", logs = Empty, moved = Empty).entered();
            let snapshot = self.state().refresher.lock().refresh(Look::All)?;
            self.follow(&snapshot);
        }
        Ok(())
    }

    /// Id of a store that was made and has no commit yet.
    pub fn made_id(&self) -> Option<Id> {
        let marker = self.medium().marker().ok()??;
        Marker::decode(&marker).is_ok().then_some(self.id)
    }

    /// Flushes what is outside transactions, and writes all that is visible then to a folder, as an ordinary
    /// store, durable when this returns. Only for a store in memory.
    pub fn checkpoint(
        &self,
        folder: &Path,
        options: &CheckpointOptions,
        session: &Session,
    ) -> Result<CheckpointReport> {
        // In memory are those stores whose folder is not on the disk where files outside are.
        let Some(outside) = &self.options.outside else {
            return Err(Code::WrongStore
                .error(format!("the store at {} is in a folder", self.options.url))
                .with_hint("a checkpoint is taken of a memory: store; this one is durable at each flush"));
        };
        let target = Env { disk: outside.clone(), ..self.env.clone() };
        let folder = target.disk.absolute(folder).map_err(|e| Error::io("look at", folder, e))?;
        let state = self.state();
        // One at a time: two into one folder would write the same files.
        let mut known = state.checkpoints.lock();
        self.flush(&session.within(None))?;
        let snapshot = self.snapshot()?;
        let Some(source) = state.medium.files() else {
            return Err(Error::invalid(format!("the store at {} is not one of files", self.options.url))
                .with_hint("transfer its fields to a store in a folder"));
        };
        let what = (snapshot.logs.iter().map(|log| log.tip.clone()).collect(), snapshot.version().encode());
        let durable = known.remove(&folder).unwrap_or_default();
        let mut checkpoint = Checkpoint::new(source, what, target, &folder, self.identity(), durable);
        let report = checkpoint.write(options)?;
        known.insert(folder, checkpoint.into_durable());
        Ok(report)
    }

    /// Flushes and says that this handle writes no more. Raises what any thread lost outside of transactions and has not
    /// heard of: there may be no later call.
    pub fn close(&self, session: &Session) -> Result<()> {
        let session = &session.within(None);
        // What was lost before does not keep the rest from being flushed.
        let mut heard: Option<Error> = None;
        let mut hear = |outcome: Result<()>| match (outcome, heard.take()) {
            (Err(e), Some(before)) => heard = Some(e.context(before.message())),
            (outcome, before) => heard = outcome.err().or(before),
        };
        let mut losses = self.losses(session);
        hear(self.check_lost(session));
        for _ in 0..CLOSING {
            if self.options.writable {
                hear(self.flush(session));
            }
            // A commit that failed has taken its batch along; what came behind it is still to be flushed.
            let now = self.losses(session);
            if now == losses || !self.has_pending(session) {
                break;
            }
            losses = now;
        }
        let mut writer = idle(self.state(), self.state().writer.lock());
        hear(writer.report_untold(session.key()));
        writer.close();
        heard.map_or(Ok(()), Err)
    }

    /// Where and what the store is.
    pub fn home(&self) -> Home {
        let folder = self.options.native.then(|| PathBuf::from(self.medium.name()));
        // Another process may have made the store since this handle was opened.
        let found = find_identity(self.state()).ok().flatten();
        Home {
            id: found.map_or(self.id, |identity| identity.id),
            folder,
            writable: self.options.writable,
            pinned: self.pinned.is_some(),
            env: self.env.clone(),
        }
    }

    fn horizon(&self) -> Result<(Horizon, Arc<Snapshot>)> {
        let state = self.state();
        let ticket = state.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut refresher = state.refresher.lock();
        let snapshot = refresher.refresh_for(ticket, &state.asked)?;
        self.follow(&snapshot);
        self.check_versions(&snapshot)?;
        let horizon = Horizon { max_stamp: refresher.max_stamp(), snapshot: Some(snapshot.clone()) };
        Ok((horizon, snapshot))
    }
}

fn no_store(shown: &str, wants_to_write: bool) -> Error {
    Code::StoreNotFound.error(format!("there is no store at {shown}")).with_hint(match wants_to_write {
        true => "check the path, and whether its file system is mounted; fieldstone init makes a store",
        false => "check the path; a store is made by the first flush into it",
    })
}

/// Refuses a store that is there and must not be, or is not there and must be or finds no room.
fn check_existence(exists: bool, medium: &dyn Medium, shown: &str, options: &JournalOptions) -> Result<()> {
    match exists {
        false if options.must_exist => Err(no_store(shown, options.writable)),
        false => medium.files().map_or(Ok(()), |files| files.check_room()),
        true if options.must_be_new => Err(Code::StoreExists
            .error(format!("there is a store at {shown} already"))
            .with_hint("open it with mode a")),
        true => Ok(()),
    }
}

/// Identity of the store in a folder: from its marker, or, where that is damaged or lost, from a log.
fn find_identity(state: &State) -> Result<Option<StoreIdentity>> {
    let found = identity_now(state, state.medium.marker()?)?;
    match (found, state.medium.files()) {
        (Ok(identity), _) => Ok(identity),
        // The store is being made on another host: its marker's name shows here before its bytes.
        (Err(_), Some(files)) => identity_now(state, files.marker_when(marker::is_filled)?)?,
        (Err(damage), None) => Err(damage),
    }
}

/// The identity by a marker and the logs that there are now; an inner error where no log replaces a damaged marker.
fn identity_now(state: &State, marker: Option<Vec<u8>>) -> Result<Result<Option<StoreIdentity>>> {
    let marker = marker.map(|bytes| Marker::decode(&bytes));
    if let Some(Ok(marker)) = marker {
        return Ok(Ok(Some(StoreIdentity { id: marker.id, schema: marker.schema })));
    }
    let snapshot = state.refresher.lock().refresh(Look::All)?;
    let named = snapshot.logs.iter().find_map(|log| Some((log.header.known_store()?, log)));
    Ok(match (named, marker) {
        (Some((id, log)), _) => Ok(Some(StoreIdentity { id, schema: log.header.schema.clone() })),
        (None, Some(Err(damage))) => Err(damage),
        (None, _) => Ok(None),
    })
}
