//! The ranks of a job: one run, its groups, and flushes that are one commit.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_array::distributed::group::agreement;
use fieldstone_array::distributed::plan::RoundMemory;
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::hints::HintedComm;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::{Comm, Step, Team};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::RunName;

use super::folder::{JobFolder, new_job, of_run};
use super::group::ArrayGroup;
use super::inner::{JobInner, JobOptions};
use super::pending::PendingHistories;
use super::report::{JobReport, Phase};
use super::show::show_left;
use super::spec::GroupOptions;
use super::{each, refuse};
use crate::Store;
use crate::own_files::remove_left;
use crate::run::Run;

/// A job: the ranks of a communicator, which write and read groups of one run. Clones are the same job.
#[derive(Debug, Clone)]
pub struct ArrayJob {
    pub(super) inner: Arc<JobInner>,
}

impl ArrayJob {
    /// Collective: opens a job of the named run, which is made or continued; without a name, of a new run. In a store
    /// that is open for reading, the run must exist. Without a communicator the process is alone.
    ///
    /// A job's files are in a folder of its own, `arrays/<run>/<random>`, so that no rank of an earlier job of the run
    /// reaches them.
    ///
    /// Errors: `Conflict` if ranks give different arguments; those of making the run.
    pub fn open(
        store: &Store,
        comm: Option<Arc<dyn Comm>>,
        name: Option<&str>,
        options: &JobOptions,
    ) -> Result<ArrayJob> {
        let env = store.backend().env().clone();
        let comm = comm.unwrap_or_else(|| Arc::new(SingleComm::new(env.disk.clone())));
        let team = Team::new(HintedComm::over(comm, &options.hints));
        let call = format!("opens a job of run {name:?} with {options:?}");
        agreement::same_call(&team, "job", &call, Ok(0))?;
        let begun = match team.rank() {
            0 => begin(store, &env, name, options),
            _ => Ok(Vec::new()),
        };
        let begun = team.broadcast("job", 0, begun)?;
        let mut parts = begun.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
        let mut part = || parts.next().unwrap_or_default();
        let (writes, name, root, within, writer) = (part(), part(), part(), part(), part());
        let root = PathBuf::from(root);
        let folder = (!within.is_empty()).then_some(JobFolder { root, within, writer });
        let run = RunName { project: options.project.clone(), name };
        let (options, writable) = (options.clone(), writes == "w");
        let inner = JobInner {
            store: store.clone(),
            team,
            run,
            options,
            folder,
            writable,
            state: Mutex::default(),
            memory: RoundMemory::default(),
            pending: PendingHistories::default(),
            naming: Mutex::default(),
        };
        if inner.team.rank() == 0 {
            inner.state().report.connections = 1;
        }
        Ok(ArrayJob { inner: Arc::new(inner) })
    }

    /// The run, for calls on this rank alone.
    pub fn run(&self) -> Run {
        Run::new(&self.inner.store, self.inner.run.clone(), &self.inner.options.session)
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.inner.team.rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.inner.team.size()
    }

    /// This rank's counters and times so far.
    pub fn report(&self) -> JobReport {
        self.inner.state().report.clone()
    }

    /// Collective: declares a group, or takes an existing group with the same declaration. A rank that failed before
    /// passes its error.
    ///
    /// Errors: `Conflict` if ranks, or an earlier declaration, say otherwise; `Invalid` for a group that no file can
    /// hold.
    pub fn group_of(&self, name: &str, options: Result<&GroupOptions>) -> Result<ArrayGroup> {
        self.opened(name, options.map(Some))
    }

    /// As [`group_of`](Self::group_of), on a rank that has not failed.
    pub fn group(&self, name: &str, options: &GroupOptions) -> Result<ArrayGroup> {
        self.group_of(name, Ok(options))
    }

    /// Collective: the group as it was declared; `NotFound` if there is none of this name.
    pub fn declared_group(&self, name: &str) -> Result<ArrayGroup> {
        self.opened(name, Ok(None))
    }

    fn opened(&self, name: &str, options: Result<Option<&GroupOptions>>) -> Result<ArrayGroup> {
        let job = &self.inner;
        let mut state = job.state();
        state.check_open()?;
        let index = job.timed(&mut state, Phase::Plan, |state| job.open_group(state, name, options))?;
        Ok(ArrayGroup::new(job.clone(), index, &state.groups[index]))
    }

    /// Takes part, as failed, in the call that the other ranks make and this rank could not begin. Returns the error
    /// that the others get, too; the job goes on.
    pub fn refuse(&self, call: impl Into<Step>, error: Error) -> Error {
        refuse(&self.inner.team, call, error)
    }

    /// Collective: gathers a text of each rank on all ranks before a call. A rank that failed before passes its error.
    pub fn tell_all(&self, call: &'static str, said: Result<String>) -> Result<Vec<String>> {
        let all = self.inner.team.allgather(call, said.map(String::into_bytes))?;
        Ok(all.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned()).collect())
    }

    /// Collective: makes all writes since the last flush durable and visible in one commit by rank 0, or none of them.
    ///
    /// A failed flush leaves none of them; the job goes on.
    pub fn flush(&self) -> Result<()> {
        let mut state = self.inner.state();
        state.check_open()?;
        self.inner.flush(&mut state)
    }

    /// Collective: forgets all writes since the last flush.
    pub fn discard(&self) -> Result<()> {
        let mut state = self.inner.state();
        agreement::same_call(&self.inner.team, "discard", "discards", Ok(0))?;
        let files = each(state.groups.iter_mut().map(|open| open.group.discard()));
        files.and(self.inner.drop_logged(&mut state))
    }

    /// Collective: flushes, and closes all files. A second call does nothing.
    pub fn close(&self) -> Result<()> {
        let mut state = self.inner.state();
        if state.closed {
            return Ok(());
        }
        let flushed = self.inner.flush(&mut state);
        self.inner.memory.release();
        let closed = flushed.and(state.close());
        if closed.is_ok() && state.flagged && !state.unshown {
            let _ = self.inner.folder().map(|folder| folder.unflag(self.inner.env()));
        }
        if closed.is_ok() {
            drop(self.inner.naming.lock().take());
        }
        closed
    }

    /// Ends the job on this rank with its own error, whatever the others do: they get this error in their current or
    /// next step, and in all later steps. All ranks lose the writes that were not flushed.
    pub fn abandon(&self, error: Error) {
        let mut state = self.inner.state();
        if !std::mem::replace(&mut state.closed, true) {
            self.inner.team.leave(error);
            state.groups.iter_mut().for_each(|open| open.group.abandon());
            // The rank's own error is the one to report; no reader sees the undecided writes.
            let _ = self.inner.forget_logged(&mut state);
        }
    }
}

/// On rank 0: the run; returns whether it can be written, its name, the store's folder, the relative folder of the
/// job's files, and the process, separated by zeros.
fn begin(store: &Store, env: &Env, name: Option<&str>, options: &JobOptions) -> Result<Vec<u8>> {
    let random = new_job(env);
    let name = name.map_or_else(|| format!("run-{random}"), str::to_owned);
    let writable = store.backend().check_writable().is_ok();
    match Run::find(store, Some(&options.project), &name, &options.session) {
        Err(error) if error.kind() == ErrorKind::NotFound && writable => {
            let run = store.create_run(&name).project(&options.project).within(&options.session);
            run.exist_ok().create()?;
        }
        found => drop(found?),
    }
    let (mut folder, mut within) = (String::new(), String::new());
    let writer = env.identity.writer_name();
    if let Some(root) = store.backend().folder() {
        let run = RunName { project: options.project.clone(), name: name.clone() };
        if writable {
            remove_left(env, &root);
            show_left(store, &run, &root.join(of_run(&run)));
        }
        within = format!("{}/{random}", of_run(&run));
        folder = root.to_str().map(str::to_owned).ok_or_else(|| {
            let path = root.join(&within);
            Code::Name.error(format!("the path {} is not UTF-8, so ranks cannot agree on it", path.display()))
        })?;
    }
    let writes = if writable { "w" } else { "r" };
    Ok([writes, &name, &folder, &within, &writer].join("\0").into_bytes())
}
