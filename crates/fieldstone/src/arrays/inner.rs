//! The state of a job on one rank: its run, its team, its groups and open files.

use std::sync::Arc;

use fieldstone_array::distributed::files::deferred::DeferredWriter;
use fieldstone_array::distributed::group::Group;
use fieldstone_array::distributed::plan::{RoundMemory, Settings};
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::Team;
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::{ArrayGroup as GroupRecord, ArrayLayout, RunName};
use fieldstone_format::location::GROWN_SINCE;

use super::each;
use super::folder::JobFolder;
use super::pending::{LoggedWrites, PendingHistories};
use super::report::{JobReport, Phase};
use super::source::OpenFiles;
use crate::Session;
use crate::Store;
use crate::naming::Naming;
use crate::own_files::make_folder;
use crate::run::Run;
use fieldstone_store::api::IfExists;

/// Options for opening a job; equal on all ranks.
#[derive(Debug, Clone)]
pub struct JobOptions {
    /// The project in which the run's name is unique; empty for none.
    pub project: String,
    /// Number of ranks that write in an exchange; `None`: all.
    pub writers: Option<usize>,
    /// Number of ranks that read in an exchange; `None`: all.
    pub readers: Option<usize>,
    /// Bytes that a rank may use for moving elements.
    pub buffer: usize,
    /// The place of arrays: in files, or in the store's logs.
    pub layout: ArrayLayout,
    /// Hints for opening files, besides the communicator's own.
    pub hints: Hints,
    /// The session, and the transaction, of all writes.
    pub session: Session,
    /// How a flush treats an existing step, for arrays in files; if absent, as the run or the store says.
    pub if_exists: Option<IfExists>,
}

impl Default for JobOptions {
    fn default() -> JobOptions {
        JobOptions {
            project: String::new(),
            writers: None,
            readers: None,
            buffer: Settings::BUFFER,
            layout: ArrayLayout::Files,
            hints: Hints::default(),
            session: Session::default(),
            if_exists: None,
        }
    }
}

impl JobOptions {
    /// Settings of reads outside any group.
    pub(super) fn to_read(&self) -> Settings {
        Settings { buffer: self.buffer, aggregators: self.readers, ..Settings::default() }
    }
}

/// A group of the job on this rank.
#[derive(Debug)]
pub struct OpenGroup {
    pub record: GroupRecord,
    pub group: Group,
    /// Whether the catalog has it.
    pub declared: bool,
    /// The reason for its level.
    pub level: String,
    /// The reason for the way that its elements took last.
    pub method: String,
    /// Hints of its own.
    pub hints: Hints,
}

#[derive(Debug, Default)]
pub struct JobState {
    pub groups: Vec<OpenGroup>,
    pub files: OpenFiles,
    pub report: JobReport,
    /// Writes to the store's logs since the last flush.
    pub logged: LoggedWrites,
    /// The thread for writes that do not wait; the first of them makes it.
    pub writer: Option<Arc<DeferredWriter>>,
    /// Seconds that an open takes here, if measured.
    pub open_cost: Option<f64>,
    /// Whether rank 0 has left the flag of an open job.
    pub flagged: bool,
    /// Whether a file may show less than was flushed.
    pub unshown: bool,
    pub closed: bool,
}

#[derive(Debug)]
pub struct JobInner {
    pub store: Store,
    pub team: Team,
    pub run: RunName,
    pub options: JobOptions,
    /// None if the store is not in a folder.
    pub folder: Option<JobFolder>,
    pub writable: bool,
    pub state: Mutex<JobState>,
    /// Memory of exchanges of all groups.
    pub memory: RoundMemory,
    /// Partitions that threads are writing.
    pub pending: PendingHistories,
    /// On rank 0: says that the job may name meshes and kept partitions.
    pub naming: Mutex<Option<Naming>>,
}

impl JobState {
    /// The session of all writes: in the job's transaction, or in the one that writes to logs have begun.
    pub fn session(&self, options: &JobOptions) -> Session {
        options.session.within(options.session.transaction().or(self.logged.transaction))
    }

    pub fn check_open(&self) -> Result<()> {
        match self.closed {
            false => Ok(()),
            true => Err(Code::Closed.error("the job is closed")),
        }
    }

    /// The thread for writes that do not wait, with a queue of `buffer` bytes.
    pub fn writer(&mut self, buffer: usize) -> Arc<DeferredWriter> {
        self.writer.get_or_insert_with(|| DeferredWriter::new(buffer)).clone()
    }

    /// Collective: closes all files.
    pub fn close(&mut self) -> Result<()> {
        self.closed = true;
        let groups = each(self.groups.iter_mut().map(|open| open.group.close()));
        groups.and(self.files.close())
    }
}

impl JobInner {
    pub fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock()
    }

    pub fn env(&self) -> &Env {
        self.store.backend().env()
    }

    /// Runs a part of a call, and counts its time and the bytes that it sent.
    pub fn timed<T>(&self, state: &mut JobState, phase: Phase, act: impl FnOnce(&mut JobState) -> T) -> T {
        let began = self.env().clock.monotonic();
        let result = act(state);
        let spent = self.env().clock.monotonic().saturating_sub(began) as f64 / 1e9;
        *state.report.seconds.entry(phase).or_default() += spent;
        result
    }

    pub fn writable(&self) -> Result<()> {
        match self.writable {
            true => Ok(()),
            false => Err(Code::ReadOnly
                .error("the store is open for reading")
                .with_hint("open it with mode \"a\" to write")),
        }
    }

    pub fn catalog_run(&self) -> Run {
        Run::new(&self.store, self.run.clone(), &self.options.session)
    }

    /// The folder of this job's files.
    pub fn folder(&self) -> Result<&JobFolder> {
        self.folder.as_ref().ok_or_else(|| {
            Code::Option
                .error("files of distributed arrays need a store in a folder")
                .with_hint("open the store by the path of a folder that all ranks can reach")
        })
    }

    /// On rank 0: makes the store if it is absent. Its own folders come before those of array files: a store that has
    /// array files and no logs has lost its logs.
    pub fn make_store(&self) -> Result<()> {
        self.folder()?;
        match self.team.rank() {
            0 => self.store.backend().create(),
            _ => Ok(()),
        }
    }

    /// Fails with Denied if the store's format version does not allow arrays in files.
    pub fn check_format(&self) -> Result<()> {
        self.store.backend().check_format(GROWN_SINCE, "an array in a file of the store")
    }

    /// On rank 0: makes a folder in the store.
    pub fn make_folder(&self, within: &str) -> Result<()> {
        self.make_store()?;
        match self.team.rank() {
            0 => make_folder(self.env(), &self.folder()?.root, within).map(drop),
            _ => Ok(()),
        }
    }

    /// On rank 0: says to purges that this job may name meshes and kept partitions, until it is closed. Before it looks
    /// at what the catalog has of them.
    pub fn begin_naming(&self, within: &str) -> Result<()> {
        let Some(folder) = self.folder.as_ref().filter(|_| self.team.rank() == 0 && self.writable) else {
            return Ok(());
        };
        let mut naming = self.naming.lock();
        if naming.is_none() {
            let job = folder.within.rsplit('/').next().unwrap_or_default();
            *naming = Naming::of_job(self.env(), &folder.root.join(within), job)?;
        }
        Ok(())
    }

    /// The key of a variable at a step.
    pub fn key(&self, variable: &str, step: i64) -> Result<Vec<(String, String)>> {
        self.store.catalog().key_of(&self.run, Some(variable), Some(step))
    }
}
