//! What a job is on one rank: its run, its team, its groups and open files.

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
use crate::own_files::make_folder;
use crate::run::Run;
use fieldstone_store::api::Exist;

/// How a job is opened; equal on all ranks.
#[derive(Debug, Clone)]
pub struct JobOptions {
    /// The project within which the run's name is unique; empty for none.
    pub project: String,
    /// How many ranks write in an exchange; `None`: all.
    pub writers: Option<usize>,
    /// How many ranks read in an exchange; `None`: all.
    pub readers: Option<usize>,
    /// Bytes that a rank may use for moving elements.
    pub buffer: usize,
    /// Where arrays lie: in files, or in the store's logs.
    pub layout: ArrayLayout,
    /// What files are opened with, beside the communicator's own hints.
    pub hints: Hints,
    /// The session, and the transaction, that all writes belong to.
    pub session: Session,
    /// What a flush does where a step is there, of arrays in files; as the run or the store says where absent.
    pub exist: Option<Exist>,
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
            exist: None,
        }
    }
}

impl JobOptions {
    /// Settings of reads that belong to no group.
    pub(super) fn to_read(&self) -> Settings {
        Settings { buffer: self.buffer, owners: self.readers, ..Settings::default() }
    }
}

/// A group of the job on this rank.
#[derive(Debug)]
pub struct OpenGroup {
    pub record: GroupRecord,
    pub group: Group,
    /// Whether the catalog has it.
    pub declared: bool,
    /// Why its level is what it is.
    pub level: String,
    /// Why its elements went as they did last.
    pub method: String,
    /// Hints of its own.
    pub hints: Hints,
}

#[derive(Debug, Default)]
pub struct JobState {
    pub groups: Vec<OpenGroup>,
    pub files: OpenFiles,
    pub report: JobReport,
    /// What was written to the store's logs since the last flush.
    pub logged: LoggedWrites,
    /// Writes for those who do not wait; made by the first of them.
    pub writer: Option<Arc<DeferredWriter>>,
    /// Seconds that an open takes here, once that was measured.
    pub open_cost: Option<f64>,
    /// Whether rank 0 has left the mark of an open job.
    pub marked: bool,
    /// Whether a file may show less than is flushed.
    pub unshown: bool,
    pub closed: bool,
}

#[derive(Debug)]
pub struct JobInner {
    pub store: Store,
    pub team: Team,
    pub run: RunName,
    pub options: JobOptions,
    /// None where the store is not in a folder.
    pub folder: Option<JobFolder>,
    pub writable: bool,
    pub state: Mutex<JobState>,
    /// Of exchanges of all groups.
    pub memory: RoundMemory,
    /// Partitions that threads write.
    pub pending: PendingHistories,
}

impl JobState {
    /// The session that all writes belong to: in the job's transaction, or in the one that its log mode has begun.
    pub fn session(&self, options: &JobOptions) -> Session {
        options.session.within(options.session.transaction().or(self.logged.transaction))
    }

    pub fn check_open(&self) -> Result<()> {
        match self.closed {
            false => Ok(()),
            true => Err(Code::Closed.error("the job is closed")),
        }
    }

    /// The thread that writes for those who do not wait, with a queue of so many bytes.
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

    /// Runs a part of a call, and counts its time and what was sent in it.
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

    /// On rank 0: makes the store where it is absent. Its folders stand before those of files with arrays: a store that
    /// has these and no logs has lost them.
    pub fn make_store(&self) -> Result<()> {
        self.folder()?;
        match self.team.rank() {
            0 => self.store.backend().create(),
            _ => Ok(()),
        }
    }

    /// Denied where the store is of a version of the format that has no place for arrays in files.
    pub fn check_format(&self) -> Result<()> {
        self.store.backend().check_format(GROWN_SINCE, "an array in a file of the store")
    }

    /// On rank 0: makes a folder of the store's.
    pub fn make_folder(&self, within: &str) -> Result<()> {
        self.make_store()?;
        match self.team.rank() {
            0 => make_folder(self.env(), &self.folder()?.root, within).map(drop),
            _ => Ok(()),
        }
    }

    /// The key of a variable at a step.
    pub fn key(&self, variable: &str, step: i64) -> Result<Vec<(String, String)>> {
        self.store.catalog().key_of(&self.run, Some(variable), Some(step))
    }
}
