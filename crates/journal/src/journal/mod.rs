//! The journal of one store, as one handle has it: what this process writes, and the snapshots it reads.
//!
//! A [`Journal`] is opened, and gives out parts, each with one job:
//!
//! | part | |
//! |---|---|
//! | [`access`](Journal::access) | the store that the handle is of, and what the handle may do there |
//! | [`looks`](Journal::looks) | looks at the logs, and the snapshots and feeds that they give |
//! | [`unflushed`](Journal::unflushed) | values and records that wait for flushes |
//! | [`committer`](Journal::committer) | makes commits; threads share them (`gathering`) |
//! | [`transactions`](Journal::transactions) | commits that become visible together |
//! | [`datasets`](Journal::datasets) | the owners of datasets |
//! | [`schema`](Journal::schema), [`settings`](Journal::settings), [`format`](Journal::format) | what is in force for the whole store, and how its owner changes it |
//! | [`acceptances`](Journal::acceptances) | losses that are accepted |
//! | [`ranges`](Journal::ranges) | wipes, hides, locks, overlays |
//! | [`checkpoints`](Journal::checkpoints) | copies of a store in memory |
//! | [`maintenance`](Journal::maintenance) | takeovers of ended logs |
//!
//! A part is a few references, which cost nothing to give out: callers ask for one at each call, and keep none.
//!
//! Invariants:
//! * a commit record is the only thing that makes anything visible (J-1);
//! * nothing is made on disk before the first commit, or before [`Journal::create`];
//! * locks are taken in this order, none across a sync except the first: checkpoints, refresher, writer. The locks of
//!   the schema, of the gathering, of allowed datasets and of begun transactions are held for a moment, and no other
//!   lock is taken under them.

mod accept;
mod access;
mod backup;
mod begun;
mod beside_logs;
mod checkpoint;
mod commit;
mod datasets;
mod ended;
mod format;
mod gathering;
mod looks;
mod maintenance;
mod opening;
mod options;
mod pinned;
mod purging;
mod ranges;
pub mod repair;
mod schema;
mod schema_state;
mod settings;
#[cfg(test)]
mod tests;
mod transactions;
mod unflushed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fieldstone_core::env::Env;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::attempt::{ATTEMPTS_SINCE, Origin};
use fieldstone_format::marker::{self, Marker};
use fieldstone_format::version::Version;
use tracing::debug_span;

pub use self::accept::{Acceptances, FileState};
pub use self::access::Access;
pub use self::backup::promote;
use self::begun::Begun;
pub use self::checkpoint::Checkpoints;
use self::checkpoint::Written;
use self::commit::CommitState;
pub use self::commit::Committer;
use self::datasets::Allowed;
pub use self::datasets::Datasets;
pub use self::format::FormatVersion;
use self::looks::LookState;
pub use self::looks::Looks;
pub use self::maintenance::{Maintenance, Survey};
use self::opening::{check_existence, check_options, find_identity, no_store, open_copy, schema_of};
pub use self::options::JournalOptions;
use self::pinned::Pinned;
pub use self::purging::{PurgeOptions, PurgeProgress, PurgeReport};
pub use self::ranges::Ranges;
pub use self::schema::SchemaInForce;
use self::schema_state::SchemaState;
pub use self::settings::StoreSettings;
pub use self::transactions::Transactions;
pub use self::unflushed::Unflushed;
use crate::files::Files;
use crate::fork::PerProcess;
use crate::home::Home;
use crate::identity::{StoreIdentity, random_id};
use crate::medium::Medium;
use crate::medium::posix::FileMedium;
use crate::medium::posix::layout::OlderVersion;
use crate::session::Session;
use crate::writer::Writer;

/// How often a close flushes what is left where commits of this handle fail.
const CLOSING: usize = 8;

/// The journal of a store.
#[derive(Debug)]
pub struct Journal {
    access: Access,
    /// As it was opened; each process has one of its own beside it.
    medium: Arc<dyn Medium>,
    /// The schema in force.
    schema: SchemaState,
    pinned: Option<Pinned>,
    /// Whether the store was seen to be there, or is about to be.
    seen: AtomicBool,
    process: PerProcess<State>,
}

/// The state of one process.
#[derive(Debug)]
struct State {
    medium: Arc<dyn Medium>,
    files: Arc<Files>,
    looks: Arc<LookState>,
    commits: CommitState,
    allowed: Allowed,
    begun: Begun,
    checkpoints: Written,
}

impl State {
    fn new(env: &Env, medium: Arc<dyn Medium>, options: &JournalOptions) -> State {
        let outside = options.outside.as_ref().unwrap_or(&env.disk).clone();
        let looks = Arc::new(LookState::new(medium.clone()));
        State {
            looks: looks.clone(),
            commits: CommitState::new(Writer::new(
                env.clone(),
                medium.clone(),
                options.origin.clone(),
                options.limits,
            )),
            files: Arc::new(Files::new(medium.clone(), outside, looks)),
            medium,
            allowed: Allowed::default(),
            begun: Begun::default(),
            checkpoints: Written::default(),
        }
    }
}

impl Journal {
    /// Opens the journal of the store in `folder`. Nothing is created before the first commit.
    pub fn open(env: Env, folder: &Path, options: JournalOptions) -> Result<Journal> {
        let (medium, shown) = (FileMedium::new(env.clone(), folder)?, folder.display().to_string());
        if let Some(at) = options.at.as_ref().filter(|_| medium.copy().is_some()) {
            // A backup may have files that its source purged since.
            for is_exact in [true, false] {
                let at = OlderVersion { version: Version::decode(at)?, is_exact };
                let older = FileMedium::at(env.clone(), folder, Some(at))?;
                match Journal::of(env.clone(), Arc::new(older), &shown, options.clone()) {
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    opened => return opened,
                }
            }
        }
        Journal::of(env, Arc::new(medium), &shown, options)
    }

    /// Opens the journal of the store in a medium. Nothing is created before the first commit.
    pub fn over(env: Env, medium: Arc<dyn Medium>, options: JournalOptions) -> Result<Journal> {
        let shown = medium.name().display().to_string();
        Journal::of(env, medium, &shown, options)
    }

    fn of(env: Env, medium: Arc<dyn Medium>, shown: &str, mut options: JournalOptions) -> Result<Journal> {
        let _span = debug_span!("open", store = options.url, writable = options.writable).entered();
        check_options(&options)?;
        if let Some(files) = medium.files() {
            files.check_folder()?;
            open_copy(files, shown, &mut options)?;
        }
        let state = State::new(&env, medium.clone(), &options);
        let found = find_identity(&*medium, &state.looks)?;
        match &found {
            Some(found) => medium.note_exists(found.id),
            // Without its marker a store is known by its logs.
            None => state
                .looks
                .refresher()
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
        let schema = schema_of(found.as_ref(), &options)?;
        let id = found.map_or_else(|| random_id(&env), |found| found.id);
        let identity = StoreIdentity { id, schema: schema.text().to_owned() };
        let mut journal = Journal {
            process: PerProcess::new(env.identity.clone(), state),
            schema: SchemaState::new(env.identity.clone(), schema),
            access: Access::new(env, options, identity, marker_version, shown),
            medium,
            pinned: None,
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
        let Some(text) = &self.access.options().at else { return Ok(()) };
        let version = Version::decode(text)?;
        let looks = self.looks();
        let newest = looks.snapshot()?;
        let pinned = newest.at(&version, &looks.refresher().lock())?;
        let base = self.schema.base().clone();
        self.schema = SchemaState::new(self.env().identity.clone(), base);
        self.schema.follow(&pinned);
        self.pinned = Some(Pinned::new(self.env(), pinned));
        Ok(())
    }

    /// Refuses a store that cannot keep the attempt, or has not the schema, that the options ask for.
    fn check_asked(&self) -> Result<()> {
        let options = self.access.options();
        if options.writable && options.origin != Origin::default() {
            self.format().check(ATTEMPTS_SINCE, "an attempt, which attempt= and comm= name,")?;
        }
        // A script names the schema that the store was made with, also when it has grown since.
        if let Some(asked) = &options.schema
            && !self.schema.base().grew_from(asked.text())
            && !self.schema().now().grew_from(asked.text())
        {
            let shown = self.access.shown();
            return Err(Code::SchemaDiffers
                .error(format!("the store at {shown} has another schema than the one asked for"))
                .with_hint("open it without a schema to take its own"));
        }
        Ok(())
    }

    fn state(&self) -> &State {
        self.process.get(|| State::new(self.env(), self.medium.forked(), self.access.options()))
    }

    // ---- parts

    /// The store of the handle, and the rights of the handle.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Looks at the logs, and the snapshots that they give.
    pub fn looks(&self) -> Looks<'_> {
        self.looks_of(self.state())
    }

    fn looks_of<'a>(&'a self, state: &'a State) -> Looks<'a> {
        Looks {
            access: &self.access,
            schema: &self.schema,
            pinned: self.pinned.as_ref(),
            medium: &state.medium,
            state: &state.looks,
        }
    }

    /// Values and records that wait for flushes.
    pub fn unflushed(&self) -> Unflushed<'_> {
        Unflushed { access: &self.access, writer: &self.state().commits.writer }
    }

    /// The owners of datasets.
    pub fn datasets(&self) -> Datasets<'_> {
        self.datasets_of(self.state())
    }

    fn datasets_of<'a>(&'a self, state: &'a State) -> Datasets<'a> {
        Datasets { looks: self.looks_of(state), allowed: &state.allowed, writer: &state.commits.writer }
    }

    /// Makes commits.
    pub fn committer(&self) -> Committer<'_> {
        self.committer_of(self.state())
    }

    fn committer_of<'a>(&'a self, state: &'a State) -> Committer<'a> {
        Committer { datasets: self.datasets_of(state), state: &state.commits, begun: &state.begun }
    }

    /// Transactions: commits that become visible together.
    pub fn transactions(&self) -> Transactions<'_> {
        let state = self.state();
        Transactions { committer: self.committer_of(state) }
    }

    /// The schema in force.
    pub fn schema(&self) -> SchemaInForce<'_> {
        SchemaInForce { committer: self.committer() }
    }

    /// Settings of the whole store.
    pub fn settings(&self) -> StoreSettings<'_> {
        StoreSettings { committer: self.committer() }
    }

    /// The version of the format that the store is of.
    pub fn format(&self) -> FormatVersion<'_> {
        FormatVersion { settings: self.settings() }
    }

    /// Losses that are accepted.
    pub fn acceptances(&self) -> Acceptances<'_> {
        Acceptances { committer: self.committer() }
    }

    /// Ranges: what is said of many entries at once.
    pub fn ranges(&self) -> Ranges<'_> {
        Ranges { committer: self.committer() }
    }

    /// Copies of a store in memory.
    pub fn checkpoints(&self) -> Checkpoints<'_> {
        let state = self.state();
        Checkpoints { committer: self.committer_of(state), written: &state.checkpoints }
    }

    /// Maintenance.
    pub fn maintenance(&self) -> Maintenance<'_> {
        Maintenance { looks: self.looks() }
    }

    // ---- the store as a whole

    /// The world that the store lives in.
    pub fn env(&self) -> &Env {
        self.access.env()
    }

    /// The place of the bytes.
    pub fn medium(&self) -> &Arc<dyn Medium> {
        &self.state().medium
    }

    /// The sources of fields: the medium, and files outside of it.
    pub fn files(&self) -> &Arc<Files> {
        &self.state().files
    }

    /// Makes the store now, without a commit: folders and marker, durable. Does nothing where it is there;
    /// Conflict where another process has meanwhile made it with another schema.
    pub fn create(&self) -> Result<()> {
        self.access.check_writable()?;
        self.access.check_versions(&*self.looks().snapshot()?)?;
        self.medium().create(self.access.identity().clone()).map(drop)
    }

    /// NotFound where there is no store, and nothing waits in this process that would make one: reads call it first, so
    /// that a mistyped path is an error in every mode. A store in memory is always there, and one that was seen is not
    /// looked for again.
    pub fn check_there(&self) -> Result<()> {
        if self.seen.load(Ordering::Relaxed) || self.access.is_in_memory() {
            return Ok(());
        }
        if self.medium().marker()?.is_some() || self.looks().snapshot()?.has_commits() {
            self.seen.store(true, Ordering::Relaxed);
            return Ok(());
        }
        match self.unflushed().is_any() {
            true => Ok(()),
            false => Err(no_store(self.access.shown(), false)),
        }
    }

    /// Declares that this handle is about to write: from now on [`check_there`](Self::check_there) succeeds.
    pub fn will_write(&self) {
        self.seen.store(true, Ordering::Relaxed);
    }

    /// Id of a store that was made and has no commit yet.
    pub fn made_id(&self) -> Option<Id> {
        let marker = self.medium().marker().ok()??;
        Marker::decode(&marker).is_ok().then_some(self.access.identity().id)
    }

    /// The place and the identity of the store.
    pub fn home(&self) -> Home {
        let (options, state) = (self.access.options(), self.state());
        let folder = options.native.then(|| PathBuf::from(self.medium.name()));
        // Another process may have made the store since this handle was opened.
        let found = find_identity(&*state.medium, &state.looks).ok().flatten();
        Home {
            id: found.map_or(self.access.identity().id, |identity| identity.id),
            folder,
            writable: options.writable,
            pinned: self.pinned.is_some(),
            env: self.env().clone(),
        }
    }

    /// Flushes and says that this handle writes no more. Raises what any thread lost outside of transactions and has not
    /// learned of: there may be no later call.
    pub fn close(&self, session: &Session) -> Result<()> {
        let session = &session.within(None);
        let (committer, unflushed) = (self.committer(), self.unflushed());
        // An earlier loss does not keep the rest from being flushed.
        let mut raised: Option<Error> = None;
        let mut note = |outcome: Result<()>| match (outcome, raised.take()) {
            (Err(e), Some(before)) => raised = Some(e.context(before.message())),
            (outcome, before) => raised = outcome.err().or(before),
        };
        let mut losses = unflushed.losses(session);
        note(unflushed.check_lost(session));
        for _ in 0..CLOSING {
            if self.access.options().writable {
                note(committer.flush(session));
            }
            // A failed commit takes its batch along; content that came after it still has to be flushed.
            let now = unflushed.losses(session);
            if now == losses || !unflushed.holds(session) {
                break;
            }
            losses = now;
        }
        let mut writer = self.state().commits.idle();
        note(writer.sessions.report_untold(session.key()));
        let has_written = writer.has_made_log();
        writer.close();
        drop(writer);
        if has_written && self.access.options().closing_merges {
            self.maintenance().merge_on_close(session);
        }
        raised.map_or(Ok(()), Err)
    }
}
