//! The ranks of a job: one run, its groups, and flushes that are one commit.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fieldstone_array::distributed::files::deferred::DeferredWriter;
use fieldstone_array::distributed::files::sums::BLOCK;
use fieldstone_array::distributed::group::{DurableArray, Group, GroupSettings, agreement};
use fieldstone_array::distributed::plan::Settings;
use fieldstone_array::distributed::view::View;
use fieldstone_core::dtype::ByteOrder;
use fieldstone_core::env::Env;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::{Comm, Team};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    ArrayGroup as GroupRecord, ArrayLayout, BasicPattern, HistoryDecl, Record, RunName,
};
use fieldstone_format::netcdf::paths;
use fieldstone_store::api::{ArchiveOptions, StoredArraySpec, Value};

use super::group::ArrayGroup;
use super::level;
use super::partitions::PendingHistory;
use super::report::{JobReport, Phase};
use super::source::OpenFiles;
use super::spec::{self, GroupOptions, LevelChoice};
use crate::Store;
use crate::run::Run;

/// The folder of array files within a store's.
const FOLDER: &str = "arrays";

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
    /// The transaction that all writes belong to.
    pub transaction: Option<Id>,
}

impl Default for JobOptions {
    fn default() -> JobOptions {
        JobOptions {
            project: String::new(),
            writers: None,
            readers: None,
            buffer: Settings::BUFFER,
            transaction: None,
        }
    }
}

/// A group of the job on this rank.
#[derive(Debug)]
pub(super) struct OpenGroup {
    pub record: GroupRecord,
    pub group: Group,
    /// Whether the catalog has it.
    declared: bool,
    /// Why its level is what it is.
    pub level: String,
    /// Why its elements went as they did last.
    pub method: String,
}

#[derive(Debug, Default)]
pub(super) struct JobState {
    pub groups: Vec<OpenGroup>,
    pub files: OpenFiles,
    pub report: JobReport,
    /// Writes for those who do not wait; made by the first of them.
    writer: Option<Arc<DeferredWriter>>,
    closed: bool,
}

#[derive(Debug)]
pub(super) struct JobInner {
    pub store: Store,
    pub team: Team,
    pub run: RunName,
    pub options: JobOptions,
    /// The folder of this job's files, and its path within the store's; none where the store is not in a folder.
    folder: Option<(PathBuf, String)>,
    writable: bool,
    state: Mutex<JobState>,
    /// Partitions that threads write.
    pending: Mutex<Vec<PendingHistory>>,
}

/// A job: the ranks of a communicator, which write and read groups of one run. Clones are the same job.
#[derive(Debug, Clone)]
pub struct ArrayJob {
    pub(super) inner: Arc<JobInner>,
}

impl ArrayJob {
    /// Collective: the run of this name, made or continued; without a name a new one. Of a store that is opened for reading
    /// the run has to be there. Without a communicator the process is alone.
    ///
    /// Files of a job stand in a folder of its own, `arrays/<run>/<random>`, so that no rank of an earlier job of the run
    /// reaches them.
    ///
    /// Errors: `Conflict` where ranks say different things; what making the run gives.
    pub fn open(
        store: &Store,
        comm: Option<Arc<dyn Comm>>,
        name: Option<&str>,
        options: &JobOptions,
    ) -> Result<ArrayJob> {
        let env = store.composed().journal().env().clone();
        let comm = comm.unwrap_or_else(|| Arc::new(SingleComm::new(env.disk.clone())));
        let team = Team::new(comm);
        let call = format!("opens a job of run {name:?} with {options:?}");
        agreement::same_call(&team, "job", &call, Ok(0))?;
        let begun = match team.rank() {
            0 => begin(store, &env, name, options),
            _ => Ok(Vec::new()),
        };
        let begun = team.broadcast("job", 0, begun)?;
        let mut parts = begun.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
        let mut part = || parts.next().unwrap_or_default();
        let (writes, name, folder, within) = (part(), part(), part(), part());
        let folder = (!folder.is_empty()).then(|| (PathBuf::from(folder), within));
        let run = RunName { project: options.project.clone(), name };
        let (options, writable) = (options.clone(), writes == "w");
        let pending = Mutex::default();
        let inner = JobInner {
            pending,
            store: store.clone(),
            team,
            run,
            options,
            folder,
            writable,
            state: Mutex::default(),
        };
        if inner.team.rank() == 0 {
            inner.state().report.connections = 1;
        }
        Ok(ArrayJob { inner: Arc::new(inner) })
    }

    /// The run, for calls on this rank alone.
    pub fn run(&self) -> Run {
        Run::new(&self.inner.store, self.inner.run.clone(), self.inner.options.transaction)
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.inner.team.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.inner.team.size()
    }

    /// What this rank has done so far.
    pub fn report(&self) -> JobReport {
        self.inner.state().report.clone()
    }

    /// Collective: declares a group, or takes it where it is there and says the same. A rank that failed before passes
    /// its error.
    ///
    /// Errors: `Conflict` where ranks, or an earlier declaration, say otherwise; `Invalid` for what no file can hold.
    pub fn group_of(&self, name: &str, options: Result<&GroupOptions>) -> Result<ArrayGroup> {
        self.inner.group(name, options.map(Some))
    }

    /// As [`group_of`](Self::group_of), where nothing failed before.
    pub fn group(&self, name: &str, options: &GroupOptions) -> Result<ArrayGroup> {
        self.group_of(name, Ok(options))
    }

    /// Collective: a group as it was declared; `NotFound` where there is none of the name.
    pub fn declared_group(&self, name: &str) -> Result<ArrayGroup> {
        self.inner.group(name, Ok(None))
    }

    /// Collective: makes all writes since the last flush durable and visible, or none of them: one commit by rank 0.
    ///
    /// Where it fails, nothing of them is left; the job goes on.
    pub fn flush(&self) -> Result<()> {
        let mut state = self.inner.state();
        state.check_open()?;
        self.inner.flush(&mut state)
    }

    /// Collective: forgets all writes since the last flush.
    pub fn discard(&self) -> Result<()> {
        let mut state = self.inner.state();
        agreement::same_call(&self.inner.team, "discard", "discards", Ok(0))?;
        each(state.groups.iter_mut().map(|open| open.group.discard()))
    }

    /// Collective: flushes, and closes all files. Again it does nothing.
    pub fn close(&self) -> Result<()> {
        let mut state = self.inner.state();
        if state.closed {
            return Ok(());
        }
        let flushed = self.inner.flush(&mut state);
        flushed.and(state.close())
    }

    /// Ends the job on this rank for an error of its own, whatever the others do: in the step that they are in, or come
    /// to, they have this error, and so in all later ones. What was not flushed is gone on all ranks.
    pub fn abandon(&self, error: Error) {
        let mut state = self.inner.state();
        if !std::mem::replace(&mut state.closed, true) {
            self.inner.team.leave(error);
            state.groups.iter_mut().for_each(|open| open.group.abandon());
        }
    }
}

/// On rank 0: the run; gives whether it is written, its name, and the folder of the job's files, with zeros between them.
fn begin(store: &Store, env: &Env, name: Option<&str>, options: &JobOptions) -> Result<Vec<u8>> {
    let mut random = [0; 8];
    env.rand.fill(&mut random);
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = name.map_or_else(|| format!("run-{random}"), str::to_owned);
    let writable = store.composed().journal().check_writable().is_ok();
    match Run::find(store, Some(&options.project), &name, options.transaction) {
        Err(error) if error.kind() == ErrorKind::NotFound && writable => {
            let run = store.create_run(&name).project(&options.project).within(options.transaction);
            run.exist_ok().create()?;
        }
        found => drop(found?),
    }
    let (mut folder, mut within) = (String::new(), String::new());
    if let Some(root) = store.composed().folder() {
        let mut run = String::new();
        if !options.project.is_empty() {
            paths::encode(&options.project, &mut run);
            run.push('.');
        }
        paths::encode(&name, &mut run);
        within = format!("{FOLDER}/{run}/{random}");
        let path = root.join(&within);
        folder = path.to_str().map(str::to_owned).ok_or_else(|| {
            Code::Name.error(format!("{} is no path in UTF-8, which ranks could agree upon", path.display()))
        })?;
    }
    let writes = if writable { "w" } else { "r" };
    Ok([writes, &name, &folder, &within].join("\0").into_bytes())
}

impl JobState {
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

    fn close(&mut self) -> Result<()> {
        self.closed = true;
        let groups = each(self.groups.iter_mut().map(|open| open.group.close()));
        groups.and(self.files.close())
    }
}

impl JobInner {
    pub fn state(&self) -> MutexGuard<'_, JobState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Partitions that threads write, until the next flush.
    pub fn pending(&self) -> MutexGuard<'_, Vec<PendingHistory>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What no other job's files are called.
    pub fn attempt(&self) -> Result<&str> {
        let (_, within) = self.folder()?;
        Ok(within.rsplit('/').next().unwrap_or(within))
    }

    pub fn env(&self) -> &Env {
        self.store.composed().journal().env()
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

    fn catalog_run(&self) -> Run {
        Run::new(&self.store, self.run.clone(), self.options.transaction)
    }

    fn settings(&self, record: &GroupRecord) -> Result<GroupSettings> {
        let JobOptions { writers, readers, buffer, .. } = self.options;
        let method = fieldstone_array::distributed::plan::Method::parse(&record.method)?;
        Ok(GroupSettings { method, buffer, writers, readers })
    }

    fn group(self: &Arc<Self>, name: &str, options: Result<Option<&GroupOptions>>) -> Result<ArrayGroup> {
        let mut state = self.state();
        state.check_open()?;
        let index = self.timed(&mut state, Phase::Plan, |state| self.open_group(state, name, options))?;
        Ok(ArrayGroup::new(self.clone(), index, &state.groups[index]))
    }

    fn open_group(
        self: &Arc<Self>,
        state: &mut JobState,
        name: &str,
        options: Result<Option<&GroupOptions>>,
    ) -> Result<usize> {
        let said = match &options {
            Ok(Some(options)) => options.lines(name),
            _ => format!("takes group {name}"),
        };
        agreement::same_call(
            &self.team,
            "group",
            &said,
            options.as_ref().map(|_| 0).map_err(Error::replicate),
        )?;
        let on_mesh = options?.map(|options| self.on_mesh(options)).transpose()?;
        let options = on_mesh.as_ref();
        if let Some(known) = state.groups.iter().position(|open| open.record.name == name) {
            let same =
                options.map_or(Ok(()), |options| {
                    let record = &state.groups[known].record;
                    let again = self.settle(name, options, Some(record), None)?;
                    record.clone().merge(&again).map_err(|what| otherwise(name, &what)).and_then(|()| {
                        match again.sets.len() <= record.sets.len() {
                            true => Ok(()),
                            false => Err(Code::VariableDiffers
                                .error(format!("group {name} is open, and is declared with further sets"))
                                .with_hint("declare all sets at once, or another group")),
                        }
                    })
                });
            return self.team.agree("group", same).map(|()| known);
        }
        // As the catalog has it: rank 0 looks, and tells the others.
        let found = match self.team.rank() {
            0 => self.declared(name).map(|record| record.map_or_else(Vec::new, |record| self.encode(record))),
            _ => Ok(Vec::new()),
        };
        let found = self.team.broadcast("group", 0, found)?;
        let found = if found.is_empty() { None } else { Some(self.decode(found)?) };
        let mut why = String::new();
        let record = match (options, found) {
            (None, None) => {
                let error = match self.team.rank() {
                    0 => self.catalog_run().array_group(name).map(drop),
                    _ => Ok(()),
                };
                self.team.agree("group", error)?;
                return Err(Code::VariableNotFound.error(format!("the run has no group '{name}'")));
            }
            (None, Some(record)) => record,
            (Some(options), found) => {
                self.team.agree("group", self.writable().and_then(|()| self.folder().map(drop)))?;
                let mut chosen = None;
                if options.level == LevelChoice::Auto && found.is_none() {
                    let open = level::cost_of_an_open(&self.team, self.env(), &self.folder()?.0)?;
                    let draft = self.settle(name, options, None, None)?;
                    let choice = level::choose(&draft, open);
                    (chosen, why) = (Some(choice.level.number() as u8), choice.why);
                }
                let record = self.settle(name, options, found.as_ref(), chosen);
                let record = record.and_then(|record| match found {
                    Some(mut found) => {
                        found.merge(&record).map_err(|what| otherwise(name, &what)).map(|()| found)
                    }
                    None => Ok(record),
                });
                let record = self.team.agree("group", record)?;
                let declared = match self.team.rank() {
                    0 => self.declare_variables(&record),
                    _ => Ok(()),
                };
                self.team.agree("group", declared)?;
                record
            }
        };
        if why.is_empty() {
            why = format!("level {}: as it was declared", record.level);
        }
        let group = spec::files_of(&record).and_then(|files| {
            let folder =
                self.folder.as_ref().map(|(folder, _)| folder.join(group_folder(state.groups.len())));
            let disk = self.env().disk.clone();
            Group::new(self.team.clone(), disk, &folder.unwrap_or_default(), files, self.settings(&record)?)
        });
        let group = self.team.agree("group", group)?;
        state.groups.push(OpenGroup { record, group, declared: false, level: why, method: String::new() });
        Ok(state.groups.len() - 1)
    }

    /// What a declaration comes to where the group is known, or a level was chosen: what it leaves open is as it was.
    fn settle(
        &self,
        name: &str,
        options: &GroupOptions,
        found: Option<&GroupRecord>,
        chosen: Option<u8>,
    ) -> Result<GroupRecord> {
        let level = match options.level {
            LevelChoice::Is(level) => level,
            LevelChoice::Auto => fieldstone_array::distributed::files::organisation::Level::Three,
        };
        let mut record = options.record(name, level, ArrayLayout::Files)?;
        if options.level == LevelChoice::Auto {
            record.level = chosen.or(found.map(|found| found.level)).unwrap_or(record.level);
        }
        if let Some(found) = found {
            if record.method == "auto" {
                record.method = found.method.clone();
            }
            for set in &mut record.sets {
                let known = found.sets.iter().find(|known| known.variable == set.variable);
                if let Some(known) = known {
                    (set.pattern, set.view) = (known.pattern, known.view.clone());
                }
            }
        }
        Ok(record)
    }

    /// On rank 0: a group as the catalog has it.
    fn declared(&self, name: &str) -> Result<Option<GroupRecord>> {
        match self.catalog_run().array_group(name) {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A group on its way to other ranks: as the side record that keeps it.
    fn encode(&self, record: GroupRecord) -> Vec<u8> {
        Record::Groups(self.run.clone(), vec![record]).encode().bytes.to_vec()
    }

    fn decode(&self, bytes: Vec<u8>) -> Result<GroupRecord> {
        let kind = Record::Groups(self.run.clone(), Vec::new()).encode().kind;
        match Record::decode(&fieldstone_format::log::SideRecord { kind, bytes: bytes.into() })? {
            Record::Groups(_, groups) => groups.into_iter().next(),
            _ => None,
        }
        .ok_or_else(|| Error::internal("a group came from rank 0 as something else"))
    }

    /// The folder of this job's files, absolute and within the store.
    pub(super) fn folder(&self) -> Result<&(PathBuf, String)> {
        self.folder.as_ref().ok_or_else(|| {
            Code::Option
                .error("files of distributed arrays need a store in a folder")
                .with_hint("open the store by the path of a folder that all ranks reach")
        })
    }

    fn flush(&self, state: &mut JobState) -> Result<()> {
        agreement::same_call(&self.team, "flush", "flushes", Ok(0))?;
        let prepared = self.timed(state, Phase::Sync, |state| {
            let mut durable = Vec::new();
            for (number, open) in state.groups.iter_mut().enumerate() {
                if !open.group.files().is_flushed() {
                    durable.push((number, open.group.prepare()?));
                }
            }
            Ok(durable)
        });
        let outcome = prepared.and_then(|durable| {
            let histories = self.timed(state, Phase::Sync, |_| self.finish_histories())?;
            if !self.writable {
                return Ok(());
            }
            self.timed(state, Phase::Commit, |state| {
                let committed = match self.team.rank() {
                    0 => self.commit(state, &durable, histories),
                    _ => Ok(()),
                };
                self.team.agree("flush", committed)
            })
        });
        if let Err(error) = outcome {
            // The first error is the one to be reported.
            for open in &mut state.groups {
                let _ = open.group.undo();
                let _ = open.group.discard();
            }
            return Err(error);
        }
        self.timed(state, Phase::Commit, |state| each(state.groups.iter_mut().map(|open| open.group.show())))
    }

    /// On rank 0: gives the store what was made durable, and flushes it.
    fn commit(
        &self,
        state: &mut JobState,
        durable: &[(usize, Vec<DurableArray>)],
        histories: Vec<HistoryDecl>,
    ) -> Result<()> {
        let taken = self.archive(state, durable).and_then(|()| {
            // One that another job has kept meanwhile stands.
            let catalog = self.store.catalog();
            let known = if histories.is_empty() {
                Vec::new()
            } else {
                catalog.histories(self.options.transaction)?
            };
            let fresh = histories.into_iter().filter(|own| !known.iter().any(|other| other.path == own.path));
            catalog.create_histories(fresh.collect(), self.options.transaction)
        });
        if let Err(error) = taken {
            // What was taken of this flush names files that are about to go.
            self.store.discard(self.options.transaction)?;
            state.groups.iter_mut().for_each(|open| open.declared = false);
            return Err(error);
        }
        self.store.flush(self.options.transaction).inspect_err(|_| {
            state.groups.iter_mut().for_each(|open| open.declared = false);
        })
    }

    fn archive(&self, state: &mut JobState, durable: &[(usize, Vec<DurableArray>)]) -> Result<()> {
        let options = ArchiveOptions { transaction: self.options.transaction, ..ArchiveOptions::default() };
        for (number, arrays) in durable {
            let (_, within) = self.folder()?;
            let open = &mut state.groups[*number];
            if !open.declared {
                self.declare(open)?;
                open.declared = true;
            }
            for DurableArray { set, shape, holes } in arrays {
                let kept = &open.record.sets[set.set];
                let key = self.key(&kept.variable.name, set.step)?;
                let key: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
                let dtype = kept.dtype.with_order(ByteOrder::Big);
                if set.extent.len == 0 {
                    self.store.archive(&key, Value::Array { data: &[], dtype, shape }, &options)?;
                    continue;
                }
                let fill = open.group.decl(set.set).fill.clone().map(|mut fill| {
                    if !dtype.is_native() {
                        dtype.swap_bytes(&mut fill);
                    }
                    fill
                });
                let stored = StoredArraySpec {
                    path: &format!("{within}/{}/{}", group_folder(*number), set.file),
                    offset: set.extent.offset,
                    dtype,
                    shape,
                    fill: fill.as_deref(),
                    block: BLOCK * dtype.size() as u64,
                    sums: &set.sums,
                    holes: *holes,
                };
                self.store.archive_stored(&key, &stored, &options)?;
            }
        }
        Ok(())
    }

    /// Declares a group to the catalog, with what is known of views by now.
    fn declare(&self, open: &mut OpenGroup) -> Result<()> {
        let views: Vec<Option<View>> =
            (0..open.record.sets.len()).map(|set| open.group.view(set).cloned()).collect();
        for (set, view) in open.record.sets.iter_mut().zip(views) {
            if let (true, Some(view)) = (set.view.is_empty(), view) {
                set.view = view.describe();
                if view.word() == "irregular" {
                    set.pattern = BasicPattern::Irregular;
                }
            }
        }
        self.declare_variables(&open.record)?;
        self.catalog_run().create_array_group(open.record.clone())
    }

    /// Declares the variables of a group to the catalog. A set whose extents vary, which has fields, is there with the
    /// shape of one of them: what was compared is the group's record.
    fn declare_variables(&self, record: &GroupRecord) -> Result<()> {
        let run = self.catalog_run();
        let known = self.declared(&record.name)?.map_or_else(Vec::new, |known| known.sets);
        let mut variables = spec::variables_of(record)?;
        variables.retain(|decl| {
            decl.shape.is_some() || known.iter().all(|set| set.variable.name != decl.variable.name)
        });
        run.create_variables(variables)
    }

    /// The key of a variable at a step.
    pub fn key(&self, variable: &str, step: i64) -> Result<Vec<(String, String)>> {
        self.store.catalog().key_of(&self.run, Some(variable), Some(step))
    }

    /// On rank 0: steps at which the fields of variables are, those that are whole.
    pub fn steps(&self, variables: &[String]) -> Result<BTreeSet<i64>> {
        super::group::common_steps(&self.store, &self.run, variables, self.options.transaction)
    }
}

/// The first error of calls that are all made, whatever came of the others: they are collective.
pub(super) fn each(outcomes: impl Iterator<Item = Result<()>>) -> Result<()> {
    let mut first = Ok(());
    for outcome in outcomes {
        first = first.and(outcome);
    }
    first
}

/// The folder of a group of a job: names of groups need not be names of folders.
fn group_folder(number: usize) -> String {
    format!("g{number}")
}

fn otherwise(name: &str, what: &str) -> Error {
    Code::VariableDiffers
        .error(format!("group '{name}' was declared with another {what}"))
        .with_hint("take it as it was declared, with job.group(name), or declare a group of another name")
}
