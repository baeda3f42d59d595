//! A group of a job: each rank declares its parts of the sets, writes and reads.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_array::distributed::group::{ArraySource, Group, Memory, MemoryMut, READ, dense_strides};
use fieldstone_array::distributed::plan::MoveReport;
use fieldstone_array::distributed::view::{LocalView, View};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::comm::Step;
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::array_source::SourceMessage;
use fieldstone_format::catalog::{ArrayLayout, ArraySet, StorageOrder};

use super::inner::{JobInner, JobState, OpenGroup};
use super::memory::dense;
use super::refuse;
use super::report::Phase;
use super::source::locate;
use crate::steps::common_steps;

/// A group of a job. Clones are the same group.
#[derive(Debug, Clone)]
pub struct ArrayGroup {
    job: Arc<JobInner>,
    index: usize,
    name: String,
}

/// How a call writes; equal on all ranks.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Whether the call waits until the bytes are written.
    pub wait: bool,
    /// Hints of this call, besides the group's: for its exchange, and for a file that it makes.
    pub hints: Hints,
}

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions { wait: true, hints: Hints::default() }
    }
}

/// A read that all ranks have begun: each knows the shape of its part.
#[derive(Debug)]
pub struct ReadRequest {
    set: usize,
    source: ArraySource,
    local: LocalView,
    /// The shape of this rank's memory, in the order that the caller uses.
    local_shape: Vec<u64>,
    dtype: DType,
    hints: Hints,
}

impl ReadRequest {
    /// The shape of this rank's memory.
    pub fn local_shape(&self) -> &[u64] {
        &self.local_shape
    }

    /// Declared type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
}

impl ArrayGroup {
    pub(super) fn new(job: Arc<JobInner>, index: usize, open: &OpenGroup) -> ArrayGroup {
        ArrayGroup { job, index, name: open.record.name.clone() }
    }

    /// Its number in the job.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its sets, as the catalog keeps them; sets that a later declaration of the group added come last.
    pub fn sets(&self) -> Vec<ArraySet> {
        self.job.state().groups[self.index].record.sets.clone()
    }

    /// The set of this name, if the group has it.
    pub fn find_set(&self, name: &str) -> Option<ArraySet> {
        let state = self.job.state();
        let mut sets = state.groups[self.index].record.sets.iter();
        sets.find(|set| set.variable.name == name).cloned()
    }

    /// Its level: 1, 2 or 3; `None` if its arrays are in the store's logs.
    pub fn level(&self) -> Option<u8> {
        let state = self.job.state();
        let record = &state.groups[self.index].record;
        (record.layout == ArrayLayout::Files).then_some(record.level)
    }

    /// The method that the caller asked for.
    pub fn method(&self) -> String {
        self.job.state().groups[self.index].record.method.clone()
    }

    /// The order of an array's elements in files; the shapes of its sets use that order.
    pub fn order(&self) -> StorageOrder {
        self.job.state().groups[self.index].record.order
    }

    /// The reasons for its level and method.
    pub fn why(&self) -> String {
        let state = self.job.state();
        let open = &state.groups[self.index];
        let mut why = open.level.clone();
        if !open.method.is_empty() {
            why += &format!("; {}", open.method);
        }
        let untaken = match open.group.files() {
            Some(files) => files.untaken_hints(),
            None => {
                let all = self.job.team.hints().with(&open.hints);
                all.not_in(&all.own())
            }
        };
        if !untaken.is_empty() {
            why += &format!("; no library took the hints {untaken}");
        }
        why
    }

    /// Paths of the files that this job made for the group.
    pub fn files(&self) -> Vec<PathBuf> {
        let state = self.job.state();
        let files = state.groups[self.index].group.files();
        files.into_iter().flat_map(|files| files.names().map(|name| files.folder().join(name))).collect()
    }

    /// Sets the view of this rank for the named sets, or for all. The next call checks whether it fits.
    ///
    /// Errors: `NotFound` for a set that the group lacks.
    pub fn view(&self, view: &View, names: Option<&[&str]>) -> Result<()> {
        let mut state = self.job.state();
        let group = &mut state.groups[self.index].group;
        let sets = match names {
            Some(names) => names.iter().map(|name| group.set(name)).collect::<Result<Vec<_>>>()?,
            None => (0..group.len()).collect(),
        };
        group.set_view(view, &sets);
        Ok(())
    }

    /// Collective: writes a set at a step; each rank writes its part. A rank that failed before passes its error.
    ///
    /// Errors: `Conflict` if ranks write different bytes to one element, or name different sets or steps; `Invalid` for
    /// memory of another type or shape, or a view that does not fit; `NotFound` for a set that does not exist; `Denied`
    /// in a store that is open for reading. A failed write leaves nothing.
    pub fn write(&self, name: &str, step: i64, memory: Result<Memory<'_>>) -> Result<MoveReport> {
        self.write_with(name, step, memory, &WriteOptions::default())
    }

    /// As [`write`](Self::write); if the rank does not wait, a thread writes the bytes once they are exchanged, and
    /// begins their sync. The caller may reuse the memory when this returns. The next call that needs the bytes
    /// raises a later failure, at the latest the flush.
    pub fn write_with(
        &self,
        name: &str,
        step: i64,
        memory: Result<Memory<'_>>,
        options: &WriteOptions,
    ) -> Result<MoveReport> {
        let mut state = self.job.state();
        state.check_open()?;
        self.job.timed(&mut state, Phase::Write, |state| self.write_one(state, name, step, memory, options))
    }

    /// Collective: writes many sets at one step.
    pub fn write_many(&self, step: i64, sets: &[(&str, Memory<'_>)]) -> Result<()> {
        sets.iter().try_for_each(|(name, memory)| self.write(name, step, Ok(*memory)).map(drop))
    }

    fn write_one(
        &self,
        state: &mut JobState,
        name: &str,
        step: i64,
        memory: Result<Memory<'_>>,
        options: &WriteOptions,
    ) -> Result<MoveReport> {
        let WriteOptions { wait, hints } = options;
        let set = state.groups[self.index].group.set(name);
        let memory = self.job.writable().and(memory);
        let (set, memory) = match set {
            Ok(set) => (set, memory),
            Err(error) => (0, Err(error)),
        };
        let moved = match state.groups[self.index].record.layout {
            ArrayLayout::Fields => self.job.write_logged(state, self.index, (set, step), memory, hints),
            ArrayLayout::Files => {
                let writer = (!wait).then(|| state.writer(self.job.options.buffer));
                let open = &mut state.groups[self.index];
                let count = |group: &Group| group.files().map_or(0, |files| files.names().count());
                let files = count(&open.group);
                let moved = open.group.write(set, step, memory, (writer.as_ref(), hints));
                // A failed write may remove a file that an earlier one made.
                state.report.opened += count(&open.group).saturating_sub(files) as u64;
                moved
            }
        };
        let open = &mut state.groups[self.index];
        let moved = moved?;
        open.method.clone_from(&moved.why);
        state.report.note(&moved);
        Ok(moved)
    }

    /// Collective: begins to read a set at a step, by `view` or by this rank's view of the set. Reads see the job's own
    /// writes before their flush.
    ///
    /// Errors: `NotFound` if there is no such set or step; `Invalid` for a view that does not fit.
    pub fn begin_read(&self, name: &str, step: i64, view: Option<&View>) -> Result<ReadRequest> {
        self.begin_read_with(name, step, view, &Hints::default())
    }

    /// As [`begin_read`](Self::begin_read), with hints of this call.
    pub fn begin_read_with(
        &self,
        name: &str,
        step: i64,
        view: Option<&View>,
        hints: &Hints,
    ) -> Result<ReadRequest> {
        let mut state = self.job.state();
        state.check_open()?;
        self.job.timed(&mut state, Phase::Plan, |state| self.find(state, (name, step), view, hints))
    }

    fn find(
        &self,
        state: &mut JobState,
        (name, step): (&str, i64),
        view: Option<&View>,
        hints: &Hints,
    ) -> Result<ReadRequest> {
        let for_files = state.groups[self.index].hints.with(hints);
        let group = &mut state.groups[self.index].group;
        let (set, wrong) = match group.set(name) {
            Ok(set) => (set, Ok(())),
            Err(error) => (0, Err(error)),
        };
        let joined = group.agree_read((set, step), (view, hints), wrong)?;
        let source = match group.written(set, step)? {
            Some(source) => source,
            None => {
                let variable = state.groups[self.index].record.sets[set].variable.name.clone();
                let key = self.job.key(&variable, step)?;
                let session = &self.job.flush_written(state, self.index, (set, step))?;
                let store = &self.job.store;
                let message = match self.job.team.rank() {
                    0 => locate(store, &key, session).map(|message| message.encode()),
                    _ => Ok(Vec::new()),
                };
                let message = self.job.team.broadcast(READ, 0, message)?;
                let message = SourceMessage::decode(&message)?;
                let (source, opened) =
                    state.files.source(&self.job.team, &message, (store, &key, session), &for_files)?;
                state.report.opened += u64::from(opened);
                source
            }
        };
        let dtype = state.groups[self.index].record.sets[set].dtype;
        let fits = match source.dtype.to_native() == dtype.to_native() {
            true => Ok(()),
            false => Err(Code::DtypeMismatch.error(format!(
                "set {name} is declared with elements of {}, but step {step} has {}",
                dtype.name(),
                source.dtype.name()
            ))),
        };
        // All ranks come to the same result.
        fits?;
        let group = &mut state.groups[self.index].group;
        let local = group.begin_read(set, &source.shape, view, joined)?;
        let local_shape = group.shown(&local);
        Ok(ReadRequest { set, source, local, local_shape, dtype, hints: hints.clone() })
    }

    /// Collective: reads the array that [`begin_read`](Self::begin_read) found into memory of its local shape. A rank
    /// that failed before passes its error.
    pub fn read(&self, request: &ReadRequest, memory: Result<MemoryMut<'_>>) -> Result<MoveReport> {
        let mut state = self.job.state();
        self.job.timed(&mut state, Phase::Read, |state| {
            let group = &state.groups[self.index].group;
            let moved = group.read(request.set, &request.source, (&request.local, &request.hints), memory)?;
            state.report.note(&moved);
            state.groups[self.index].method.clone_from(&moved.why);
            Ok(moved)
        })
    }

    /// Takes part, as failed, in the call that the other ranks make: [`WRITE`](super::WRITE), [`READ`] or `steps`.
    /// Returns the error that the others get, too; the job goes on.
    pub fn refuse(&self, call: impl Into<Step>, error: Error) -> Error {
        refuse(&self.job.team, call, error)
    }

    /// Collective: as [`write`](Self::write), from dense memory in C order and this machine's byte order.
    pub fn write_dense(&self, name: &str, step: i64, bytes: &[u8]) -> Result<MoveReport> {
        let Some(set) = self.find_set(name) else {
            return self.write(name, step, Err(Error::internal("never read")));
        };
        let shape = self.local_shape(name);
        let shape = match shape {
            Ok(shape) => shape,
            Err(error) => return self.write(name, step, Err(error)),
        };
        let strides = dense_strides(set.dtype, &shape);
        let memory =
            Memory { bytes, dtype: set.dtype.to_native(), shape: &shape, strides: &strides, origin: 0 };
        self.write(name, step, Ok(memory))
    }

    /// Collective: as [`read`](Self::read), into new dense memory in C order and this machine's byte order.
    pub fn read_dense(&self, name: &str, step: i64, view: Option<&View>) -> Result<Vec<u8>> {
        let request = self.begin_read(name, step, view)?;
        dense(request.dtype().to_native(), request.local_shape(), |memory| {
            self.read(&request, memory).map(drop)
        })
    }

    /// The shape of this rank's part of a set by its view; if the set's first extent is unlimited, by a joined view.
    ///
    /// Errors: `NotFound` for a set that does not exist; `Invalid` for a view that does not fit.
    pub fn local_shape(&self, name: &str) -> Result<Vec<u64>> {
        let state = self.job.state();
        let group = &state.groups[self.index].group;
        let set = group.set(name)?;
        group.local_shape(set)
    }

    /// Collective: steps at which a set was flushed and is complete, ascending.
    pub fn steps(&self, name: &str) -> Result<Vec<i64>> {
        let known = self.job.state().groups[self.index].group.set(name).map(drop);
        self.job.team.agree("steps", known)?;
        self.common(&[name.to_owned()])
    }

    /// Collective: the newest step at which all sets were flushed and are complete.
    pub fn last_step(&self) -> Result<Option<i64>> {
        let names: Vec<String> = self.sets().into_iter().map(|set| set.variable.name).collect();
        Ok(self.common(&names)?.last().copied())
    }

    fn common(&self, names: &[String]) -> Result<Vec<i64>> {
        let found = match self.job.team.rank() {
            0 => common_steps(&self.job.store, &self.job.run, names, &self.job.options.session)
                .map(|steps| steps.iter().flat_map(|step| step.to_le_bytes()).collect()),
            _ => Ok(Vec::new()),
        };
        let found = self.job.team.broadcast("steps", 0, found)?;
        Ok(found.as_chunks().0.iter().map(|step| i64::from_le_bytes(*step)).collect())
    }
}
