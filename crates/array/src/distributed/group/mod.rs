//! A group of sets on the ranks of a job: each rank declares once which part it holds, then writes and reads by set
//! and step.
//!
//! Writes go to the group's [files](super::files) and stay private to the group until a flush. The caller of the
//! flush learns the places of flushed data, and reads them through [`read`](Group::read) with these places.
//!
//! Invariants:
//! * all calls are collective: ranks name the same set and step, otherwise the call is a Conflict that names the
//!   ranks and their arguments;
//! * a failure on one rank fails all, and leaves nothing of the write;
//! * elements that no rank writes get the set's fill, or else the missing value of their type, and are counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::dtype::{ByteOrder, DType};
use fieldstone_core::env::Disk;
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::env::comm::{Step, Team, TeamReader};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::Attrs;

use super::files::deferred::DeferredWriter;
use super::files::group_files::{DurableSet, GroupFiles};
use super::files::organisation::Level;
use super::files::sets::SetDecl;
use super::plan::pieces::PieceSink;
use super::plan::{FileArray, Method, MoveReport, PastFileEnd, Planner, Read, RoundMemory, Settings, Write};
use super::view::{LocalView, View};

/// The step of writing arrays, as [`READ`] is that of reading them: if a rank cannot begin it, the job continues.
pub const WRITE: Step = Step::repeatable("write");
/// See [`WRITE`].
pub const READ: Step = Step::repeatable("read");

pub mod agreement;

mod memory;

pub use agreement::Joined;
pub use memory::{Memory, MemoryMut, dense_strides};

/// The definition of a group.
#[derive(Debug, Clone)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// The distribution of its steps over files; `None` if it has no files and writes only with
    /// [`Group::write_pieces`].
    pub level: Option<Level>,
    /// Its sets, in the order of their declaration.
    pub sets: Vec<SetDecl>,
    /// Attributes of its files.
    pub attrs: Attrs,
    /// Whether the first dimension varies fastest in the callers' memory: it is then the last one in files, and the
    /// sets here are declared as they are in files.
    pub reversed: bool,
}

/// Settings for moving elements; equal on all ranks, except for the memory.
#[derive(Debug, Clone)]
pub struct GroupSettings {
    /// The method.
    pub method: Method,
    /// Bytes that a rank may use for moving elements.
    pub buffer: usize,
    /// Number of ranks that write; `None` for all.
    pub writers: Option<usize>,
    /// Number of ranks that read; `None` for all.
    pub readers: Option<usize>,
    /// Hints for opening its files, in addition to the communicator's.
    pub hints: Hints,
    /// Memory for exchanges, which the groups of a job share.
    pub memory: RoundMemory,
}

impl Default for GroupSettings {
    fn default() -> GroupSettings {
        let (writers, readers, hints, memory) = (None, None, Hints::default(), RoundMemory::default());
        GroupSettings { method: Method::Auto, buffer: Settings::BUFFER, writers, readers, hints, memory }
    }
}

impl GroupSettings {
    /// Settings for a write, with the hints of a call added to the group's.
    fn to_write(&self, call: &Hints) -> Settings {
        let aggregators = self.hints.with(call).aggregators().or(self.writers);
        Settings { method: self.method, buffer: self.buffer, aggregators }
    }

    fn to_read(&self, call: &Hints) -> Settings {
        let aggregators = self.hints.with(call).aggregators().or(self.readers);
        Settings { method: self.method, buffer: self.buffer, aggregators }
    }
}

/// A set that a flush has made durable, and the number of its unwritten elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableArray {
    /// The set's place.
    pub set: DurableSet,
    /// Its global shape.
    pub shape: Vec<u64>,
    /// Number of elements that no rank wrote, for a set without a fill.
    pub holes: u64,
}

/// A set, and the part of it that this rank holds.
#[derive(Debug)]
struct GroupSet {
    decl: SetDecl,
    view: Option<View>,
    /// The view, resolved for the shape that was last used.
    resolved: Option<(Vec<u64>, LocalView)>,
}

/// The place of an array to read.
#[derive(Debug, Clone)]
pub struct ArraySource {
    /// The file; it verifies the bytes read, if there are checksums.
    pub file: TeamReader,
    /// The elements in it.
    pub array: FileArray,
    /// The global shape.
    pub shape: Vec<u64>,
    /// Element type in the file, with its byte order.
    pub dtype: DType,
    /// The treatment of bytes beyond the file's end.
    pub past_end: PastFileEnd,
}

/// The sets of a group. See the module's documentation.
#[derive(Debug)]
pub struct Group {
    team: Team,
    files: Option<GroupFiles>,
    planner: Planner,
    settings: GroupSettings,
    sets: Vec<GroupSet>,
    reversed: bool,
    holes: BTreeMap<(usize, i64), u64>,
}

impl Group {
    /// Makes a group with its files in a folder on `disk`, which must not have any of them. Creates nothing yet.
    ///
    /// Errors: `Invalid` for sets that no file can hold, or that cannot be in one file together.
    pub fn new(
        team: Team,
        disk: Arc<dyn Disk>,
        folder: &Path,
        spec: GroupSpec,
        settings: GroupSettings,
    ) -> Result<Group> {
        let (sets, reversed) = (spec.sets.clone(), spec.reversed);
        let files = match spec.level {
            Some(level) => {
                let GroupSpec { name, sets, attrs, .. } = spec;
                Some(GroupFiles::new(team.clone(), disk, folder, &name, level, sets, attrs)?)
            }
            None => None,
        };
        let sets = sets.into_iter().map(|decl| GroupSet { decl, view: None, resolved: None }).collect();
        let planner = Planner::in_memory(settings.memory.clone());
        Ok(Group { team, files, planner, settings, sets, reversed, holes: BTreeMap::new() })
    }

    /// Appends further sets; equal on all ranks. Each rank declares its part of them as for any set.
    ///
    /// Errors: as for [`new`](Self::new). Then none is added.
    pub fn add_sets(&mut self, more: Vec<SetDecl>) -> Result<()> {
        if let Some(files) = &mut self.files {
            files.add_sets(&more)?;
        }
        self.sets.extend(more.into_iter().map(|decl| GroupSet { decl, view: None, resolved: None }));
        Ok(())
    }

    /// The files, if it has some.
    pub fn files(&self) -> Option<&GroupFiles> {
        self.files.as_ref()
    }

    fn files_mut(&mut self) -> Result<&mut GroupFiles> {
        self.files.as_mut().ok_or_else(|| Error::internal("a group without files is written to files"))
    }

    fn team(&self) -> &Team {
        &self.team
    }

    /// The number of the set with a name.
    ///
    /// Errors: `NotFound`, with the nearest name.
    pub fn set(&self, name: &str) -> Result<usize> {
        let place = self.sets.iter().position(|set| set.decl.name == name);
        place.ok_or_else(|| agreement::no_set(name, self.sets.iter().map(|set| &*set.decl.name)))
    }

    /// The number of its sets.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Whether it has no sets.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// A set as it was declared.
    pub fn decl(&self, set: usize) -> &SetDecl {
        &self.sets[set].decl
    }

    /// Sets the part of some sets that this rank holds from now on. Writes and reads check whether it fits.
    pub fn set_view(&mut self, view: &View, sets: &[usize]) {
        for set in sets {
            let set = &mut self.sets[*set];
            (set.view, set.resolved) = (Some(view.clone()), None);
        }
    }

    /// The part of a set that this rank holds; `None` if it was not declared.
    pub fn view(&self, set: usize) -> Option<&View> {
        self.sets[set].view.as_ref()
    }

    /// Collective: writes a set at a step from this rank's memory. A rank that failed before passes its error. With
    /// `writer`, the writer's thread writes the bytes while the job continues, and a later call raises its
    /// failures. `hints` are for this call only: for its exchange, and for a file that it creates.
    ///
    /// Errors: `Invalid` for memory of another type or shape, or views that do not fit; `Conflict` if ranks name
    /// different sets or steps, or write different bytes to one element. Then nothing of the step is left.
    pub fn write(
        &mut self,
        set: usize,
        step: i64,
        memory: Result<Memory<'_>>,
        (writer, hints): (Option<&Arc<DeferredWriter>>, &Hints),
    ) -> Result<MoveReport> {
        let waits = if writer.is_some() { ", later" } else { "" };
        let call = format!("writes step {step} of set {}{waits}{}", self.sets[set].decl.name, with(hints));
        let (extent, local) = self.begin_write(set, &call, memory.as_ref().map(drop))?;
        let for_new_files = self.settings.hints.with(hints);
        self.files_mut()?.set_hints(for_new_files);
        let slot = match writer {
            Some(writer) => self.files_mut()?.slot_deferred(set, step, extent, writer)?,
            None => self.files_mut()?.slot(set, step, extent)?,
        };
        let decl = &self.sets[set].decl;
        let fill = file_fill(decl);
        let shown = self.shown(&local);
        let buffer = memory.and_then(|memory| memory.buffer(decl, ByteOrder::Big, &shown, self.reversed));
        let write = buffer.as_ref().map_err(Error::replicate).map(|buffer| Write {
            view: &local,
            array: slot.array,
            from: buffer,
            fill: Some(&fill),
            settings: self.settings.to_write(hints),
        });
        match self.planner.write(&slot.file, WRITE, write) {
            Ok(report) => {
                let holes = if decl.fill.is_some() { 0 } else { report.holes };
                self.holes.insert((set, step), holes);
                self.files_mut()?.wrote((set, step), extent, slot);
                Ok(report)
            }
            Err(error) => {
                drop(slot);
                self.holes.remove(&(set, step));
                // Report the error of the write; discarding may fail, too, but its error is less useful.
                let _ = self.files_mut()?.forget(set, step);
                Err(error)
            }
        }
    }

    /// Collective: passes the boxes of a set that this rank is to keep to `sink`, in this machine's byte order; no
    /// file has any of it. A rank that failed before passes its error. If a set has no fill, elements that no rank
    /// writes are in no box.
    ///
    /// Also returns the global shape. Errors: as for [`write`](Self::write).
    pub fn write_pieces(
        &mut self,
        set: usize,
        step: i64,
        memory: Result<Memory<'_>>,
        (sink, hints): (&Arc<dyn PieceSink>, &Hints),
    ) -> Result<(MoveReport, Vec<u64>)> {
        let call = format!("writes step {step} of set {}{}", self.sets[set].decl.name, with(hints));
        let (extent, local) = self.begin_write(set, &call, memory.as_ref().map(drop))?;
        let decl = &self.sets[set].decl;
        let shape: Vec<u64> = decl.shape.iter().map(|len| len.or(extent).unwrap_or(0)).collect();
        let shown = self.shown(&local);
        let native = decl.dtype.to_native();
        let buffer =
            memory.and_then(|memory| memory.buffer(decl, native.byte_order(), &shown, self.reversed));
        let write = buffer.as_ref().map_err(Error::replicate).map(|buffer| Write {
            view: &local,
            array: FileArray::dense(0, native.size() as u64),
            from: buffer,
            fill: decl.fill.as_deref(),
            settings: self.settings.to_write(hints),
        });
        let moved = self.planner.write_pieces(self.team(), WRITE, (&shape, sink), write)?;
        Ok((moved, shape))
    }

    /// Collective: checks that all ranks make the same write; returns the first extent of a set that varies, and this
    /// rank's part.
    fn begin_write(
        &mut self,
        set: usize,
        call: &str,
        before: std::result::Result<(), &Error>,
    ) -> Result<(Option<u64>, LocalView)> {
        let count = self.sets[set].view.as_ref().and_then(View::joined_count).unwrap_or(0);
        let count = before.map(|()| count).map_err(Error::replicate);
        let is_varying = self.sets[set].decl.is_varying();
        // If nothing is joined, this rank's part is known, and one agreement confirms that all have theirs.
        let known = match &count {
            Ok(0) if !is_varying => self.local(set, (None, 0)).map(Some),
            _ => Ok(None),
        };
        let count = count.and_then(|count| known.as_ref().map(|_| count).map_err(Error::replicate));
        let joined = agreement::same_call(self.team(), WRITE, call, count)?;
        if let (Ok(Some(local)), false, 0) = (known, is_varying, joined.total) {
            return Ok((None, local));
        }
        let extent = is_varying.then_some(joined.total);
        let local = self.local(set, (extent, joined.before));
        Ok((extent, self.team().agree(WRITE, local)?))
    }

    /// This rank's part of a set by its view; for a set that varies, with this first extent.
    fn local(&mut self, set: usize, (extent, before): (Option<u64>, u64)) -> Result<LocalView> {
        let shape: Vec<u64> =
            self.sets[set].decl.shape.iter().map(|len| len.or(extent).unwrap_or(0)).collect();
        let local = self.resolved(set, &shape, None, before)?;
        self.sets[set].resolved = Some((shape, local.clone()));
        Ok(local)
    }

    /// This rank's part of an array with a shape as in files, by `view` or the set's own.
    fn resolved(&self, set: usize, shape: &[u64], view: Option<&View>, before: u64) -> Result<LocalView> {
        let set = &self.sets[set];
        let asked = view.or(set.view.as_ref());
        let joins = asked.is_some_and(|view| view.joined_count().is_some());
        match &set.resolved {
            Some((known, local)) if view.is_none() && !joins && known == shape => Ok(local.clone()),
            _ => {
                let ranks = (self.team().rank(), self.team().size());
                let local = resolve(asked, &self.turned(shape), ranks, before, &set.decl.name)?;
                Ok(if self.reversed { local.transposed() } else { local })
            }
        }
    }

    /// Converts extents from the files' order of dimensions to the callers', and back.
    fn turned(&self, shape: &[u64]) -> Vec<u64> {
        let mut shape = shape.to_vec();
        if self.reversed {
            shape.reverse();
        }
        shape
    }

    /// The shape of this rank's memory, in the callers' order.
    pub fn shown(&self, local: &LocalView) -> Vec<u64> {
        self.turned(local.local_shape())
    }

    /// The place of a set that was written since the last flush.
    pub fn written(&mut self, set: usize, step: i64) -> Result<Option<ArraySource>> {
        let Some(files) = &mut self.files else { return Ok(None) };
        let Some(extent) = files.written(set, step) else { return Ok(None) };
        let slot = files.slot(set, step, extent)?;
        let decl = &self.sets[set].decl;
        let source = ArraySource {
            file: slot.file.reader(),
            array: slot.array,
            shape: decl.shape.iter().map(|len| len.or(extent).unwrap_or(0)).collect(),
            dtype: decl.dtype.with_order(ByteOrder::Big),
            past_end: PastFileEnd::Zeros,
        };
        slot.file.visibility_barrier(READ, Ok(()))?;
        Ok(Some(source))
    }

    /// Collective: checks that all ranks are about to read the same set and step, and combines their counts. A rank
    /// that failed before passes its error.
    pub fn agree_read(
        &self,
        (set, step): (usize, i64),
        (view, hints): (Option<&View>, &Hints),
        before: Result<()>,
    ) -> Result<Joined> {
        let asked = view.or(self.sets[set].view.as_ref());
        let count = before.map(|()| asked.and_then(View::joined_count).unwrap_or(0));
        let call = format!("reads step {step} of set {}{}", self.sets[set].decl.name, with(hints));
        agreement::same_call(self.team(), READ, &call, count)
    }

    /// Collective: the part that this rank will hold of an array of this shape that is about to be read, by `view` or
    /// the set's own.
    pub fn begin_read(
        &mut self,
        set: usize,
        shape: &[u64],
        view: Option<&View>,
        joined: Joined,
    ) -> Result<LocalView> {
        let local = self.resolved(set, shape, view, joined.before);
        if let (Ok(local), None) = (&local, view) {
            self.sets[set].resolved = Some((shape.to_vec(), local.clone()));
        }
        self.team().agree(READ, local)
    }

    /// The shape of this rank's part of a set by its view; for a set whose first extent is open, by a joined view.
    ///
    /// Errors: `Invalid` for a view that does not fit.
    pub fn local_shape(&self, set: usize) -> Result<Vec<u64>> {
        let joined = self.sets[set].view.as_ref().and_then(View::joined_count);
        let extents = self.sets[set].decl.shape.iter();
        let shape: Vec<u64> = extents.map(|len| len.or(joined).unwrap_or(0)).collect();
        Ok(self.shown(&self.resolved(set, &shape, None, 0)?))
    }

    /// Collective: reads the part that [`begin_read`](Self::begin_read) returned into memory of its local shape.
    pub fn read(
        &self,
        set: usize,
        source: &ArraySource,
        (local, hints): (&LocalView, &Hints),
        memory: Result<MemoryMut<'_>>,
    ) -> Result<MoveReport> {
        let (decl, order) = (&self.sets[set].decl, source.dtype.byte_order());
        let mut buffer =
            memory.and_then(|memory| memory.buffer(decl, order, &self.shown(local), self.reversed));
        let read = match &mut buffer {
            Ok(into) => Ok(Read {
                view: local,
                array: source.array,
                into,
                past_end: source.past_end,
                settings: self.settings.to_read(hints),
            }),
            Err(error) => Err(error.replicate()),
        };
        self.planner.read(&source.file, READ, read)
    }

    /// Records how many elements of a set written at a step have no writer, for an array that is copied.
    pub fn note_holes(&mut self, (set, step): (usize, i64), holes: u64) {
        self.holes.insert((set, step), holes);
    }

    /// Collective: makes all writes since the last flush durable in their final place. If it fails, nothing of them
    /// is left.
    pub fn prepare(&mut self) -> Result<Vec<DurableArray>> {
        let holes = std::mem::take(&mut self.holes);
        let durable = self.files_mut()?.prepare()?;
        let array = |set: DurableSet| {
            let shape = self.sets[set.set].decl.shape.iter();
            let shape = shape.map(|len| len.or(set.varying).unwrap_or(0)).collect();
            let holes = holes.get(&(set.set, set.step)).copied().unwrap_or(0);
            DurableArray { shape, holes, set }
        };
        Ok(durable.into_iter().map(array).collect())
    }

    /// Collective: makes the files show everything that was prepared.
    pub fn show(&mut self) -> Result<()> {
        self.files.as_mut().map_or(Ok(()), GroupFiles::show)
    }

    /// Collective: takes back everything that was prepared and is not shown.
    pub fn undo(&mut self) -> Result<()> {
        self.files.as_mut().map_or(Ok(()), GroupFiles::undo)
    }

    /// Collective: leaves all files as they are, and continues in others, because it is unknown whether the prepared
    /// writes were recorded.
    pub fn leave_files(&mut self) -> Result<()> {
        self.holes.clear();
        self.files.as_mut().map_or(Ok(()), GroupFiles::leave)
    }

    /// Collective: discards the writes since the last flush.
    pub fn discard(&mut self) -> Result<()> {
        self.holes.clear();
        self.files.as_mut().map_or(Ok(()), GroupFiles::discard)
    }

    /// Collective: closes all files; discards writes that were not flushed.
    pub fn close(&mut self) -> Result<()> {
        self.holes.clear();
        self.files.as_mut().map_or(Ok(()), GroupFiles::close)
    }

    /// After the team has ended: removes files that show nothing, if possible.
    pub fn abandon(&mut self) {
        self.holes.clear();
        if let Some(files) = &mut self.files {
            files.abandon();
        }
    }

    /// Number of plans of exchanges in the cache.
    pub fn plans(&self) -> usize {
        self.planner.kept()
    }
}

/// The part that a rank holds by a view; without a view, a single process holds everything, one of several ranks
/// nothing.
pub fn resolve(
    view: Option<&View>,
    shape: &[u64],
    (rank, size): (usize, usize),
    before: u64,
    name: &str,
) -> Result<LocalView> {
    let whole = View::block(&vec![0; shape.len()], shape);
    let nothing = View::block(&vec![0; shape.len()], &vec![0; shape.len()]);
    let view = view.unwrap_or(if size == 1 { &whole } else { &nothing });
    if size > 1 && shape.is_empty() && view == &nothing {
        return Err(Code::Shape
            .error(format!("set {name} is a scalar, but several ranks hold it"))
            .with_hint("give it the shape (1,), and a view by which only one rank holds it"));
    }
    view.resolve_joined(shape, rank, size, before).map_err(|error| error.context(format_args!("set {name}")))
}

/// Hints of a call, for comparing the calls of ranks.
fn with(hints: &Hints) -> String {
    match hints.is_empty() {
        true => String::new(),
        false => format!(" with the hints {hints}"),
    }
}

/// The value of elements that no rank writes: one element as it is in the file.
fn file_fill(decl: &SetDecl) -> Vec<u8> {
    let (native, file) = (decl.dtype.to_native(), decl.dtype.with_order(ByteOrder::Big));
    let mut fill = decl.fill.clone().unwrap_or_else(|| native.default_fill());
    if !file.is_native() {
        file.swap_bytes(&mut fill);
    }
    fill
}
