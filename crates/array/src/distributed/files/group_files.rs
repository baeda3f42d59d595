//! The files of a group, on all ranks: made, written into, shown.
//!
//! Between two flushes data go into records that no file shows. A flush has three parts, between which its caller makes
//! what was written known to a store: [`prepare`](GroupFiles::prepare) makes data durable where they stay,
//! [`show`](GroupFiles::show) has the files say that they are there. Who is killed between them leaves files that show
//! less than the store.
//!
//! Invariants:
//! * a file is made by this group and nobody else: one that is there is an error, and nothing is written into it;
//! * all calls are collective, and what fails on one rank fails on all, naming it;
//! * what may be known to others is never written again, nor removed;
//! * what was deferred is in its file before a flush, or anything that is done with the file in a call, goes on;
//! * a file shows a step only after [`show`](GroupFiles::show), and then all of its variables at it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::env::comm::{FileMode, Team, TeamFile};
use fieldstone_core::env::{Disk, create_dirs_alike};
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::{Attrs, paths, write};

use super::deferred::{DeferredFile, DeferredWriter};
use super::direct_io;
use super::image::{Extent, FileImage};
use super::organisation::{FilePlan, FileSlot, Level, Organisation, SlabMove};
use super::sets::{SetDecl, SetVariable, check_together};
use super::sums::{self, SummedFile};
use crate::distributed::plan::FileArray;

/// Bytes that are copied at a time where a slab is moved.
const PIECE: u64 = 4 << 20;
/// Folders that are made for a file at most, and the one that they are in.
const FOLDERS: usize = 4;
/// Longest part of a file's name that is made of names of sets.
const NAME: usize = 120;

/// A file that is open.
#[derive(Debug)]
struct OpenFile {
    file: TeamFile,
    /// What slots are written through: the file, or a layer that goes past the page cache.
    through: TeamFile,
    is_direct: bool,
    /// Hints that nobody took.
    untaken: Hints,
    /// The layer that defers writes, once a write was.
    deferred: Option<(TeamFile, Arc<DeferredFile>)>,
    name: String,
    image: FileImage,
    variables: Vec<SetVariable>,
    has_records: bool,
    /// Steps that it shows.
    shown: u64,
}

impl OpenFile {
    /// What was deferred is written, and its errors are forgotten: it is given up.
    fn forget_deferred(&self) {
        if let Some((_, deferred)) = &self.deferred {
            deferred.discard();
        }
    }
}

/// Where a set is written at a step.
#[derive(Debug)]
pub struct WriteSlot {
    /// The file; what is written through it is summed.
    pub file: TeamFile,
    /// The elements of the set in it.
    pub array: FileArray,
    sums: Arc<SummedFile>,
    deferred: Option<Arc<DeferredFile>>,
}

/// What a flush has made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableSet {
    /// The set, by its number in the group.
    pub set: usize,
    /// The step.
    pub step: i64,
    /// Name of the file in the group's folder.
    pub file: String,
    /// Where in it.
    pub extent: Extent,
    /// First extent of the set at the step, where that varies.
    pub varying: Option<u64>,
    /// Checksums of its blocks, one after another; on rank 0 alone.
    pub sums: Vec<u32>,
}

/// What is written since the last flush.
#[derive(Debug)]
struct Written {
    varying: Option<u64>,
    sums: Arc<SummedFile>,
}

/// The files of one group in one attempt. See the module.
#[derive(Debug)]
pub struct GroupFiles {
    team: Team,
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    group: String,
    attrs: Attrs,
    sets: Vec<SetDecl>,
    organisation: Organisation,
    files: Vec<Option<OpenFile>>,
    names: BTreeSet<String>,
    /// Names of those that were left as they were.
    left: Vec<String>,
    written: BTreeMap<(usize, i64), Written>,
    /// Whether a file was made whose name is not durable yet.
    made: bool,
    /// What files are opened with, beside the communicator's hints.
    hints: Hints,
    /// How it was before each flush that was prepared and is not shown.
    before: Vec<Organisation>,
}

/// Lets a new file be read by whoever may read its folder.
pub(in crate::distributed) fn make_alike(disk: &dyn Disk, path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    disk.copy_permissions(folder, path).map_err(|e| Error::io("set the permissions of", path, e))
}

impl GroupFiles {
    /// The files of a group in a folder on `disk`, where none of them is. Makes nothing yet.
    ///
    /// Errors: `Invalid` of sets that no file can hold, or that cannot stand in one.
    pub fn new(
        team: Team,
        disk: Arc<dyn Disk>,
        folder: &Path,
        group: &str,
        level: Level,
        sets: Vec<SetDecl>,
        attrs: Attrs,
    ) -> Result<GroupFiles> {
        check_together(&sets)?;
        let varying = sets.iter().map(SetDecl::is_varying).collect();
        Ok(GroupFiles {
            team,
            disk,
            folder: folder.to_owned(),
            group: group.to_owned(),
            attrs,
            sets,
            organisation: Organisation::new(level, varying),
            files: Vec::new(),
            names: BTreeSet::new(),
            left: Vec::new(),
            written: BTreeMap::new(),
            made: false,
            hints: Hints::default(),
            before: Vec::new(),
        })
    }

    /// Takes further sets in, behind the others: they go to files that are made from now on.
    ///
    /// Errors: `Invalid` of sets that no file can hold, or that cannot stand in one with the others. Then none is taken.
    pub fn add_sets(&mut self, more: &[SetDecl]) -> Result<()> {
        let all = [&self.sets[..], more].concat();
        check_together(&all)?;
        self.sets = all;
        for organisation in self.before.iter_mut().chain([&mut self.organisation]) {
            organisation.add_sets(more.iter().map(SetDecl::is_varying));
        }
        Ok(())
    }

    /// What files that are made from now on are opened with, beside the communicator's hints; equal on all ranks.
    pub fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    /// Hints that neither the communicator nor our own algorithms took for a file that is open.
    pub fn untaken_hints(&self) -> Hints {
        let files = self.files.iter().flatten();
        files.fold(Hints::default(), |all, file| all.with(&file.untaken))
    }

    /// The team.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Names of the files in their folder, in the order in which they were made.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.left.iter().map(String::as_str).chain(self.files.iter().flatten().map(|file| &*file.name))
    }

    /// Collective: where a set is to be written at a step; a file is made where one is needed. `extent` is the first
    /// extent of one that varies. What is written is reported by [`wrote`](Self::wrote); before a flush it may be
    /// written again in place, unless its extent has changed.
    pub fn slot(&mut self, set: usize, step: i64, extent: Option<u64>) -> Result<WriteSlot> {
        self.slot_by(set, step, extent, None)
    }

    /// Collective: as [`slot`](Self::slot), of which `writer` makes the writes while the job goes on: those by offset, which
    /// the methods direct and exchange make; what ranks write by a collective call is written in it. An error of the
    /// writer's is raised by the next call.
    pub fn slot_deferred(
        &mut self,
        set: usize,
        step: i64,
        extent: Option<u64>,
        writer: &Arc<DeferredWriter>,
    ) -> Result<WriteSlot> {
        self.slot_by(set, step, extent, Some(writer))
    }

    fn slot_by(
        &mut self,
        set: usize,
        step: i64,
        extent: Option<u64>,
        writer: Option<&Arc<DeferredWriter>>,
    ) -> Result<WriteSlot> {
        // What comes of declarations and of calls that are equal on all ranks needs no agreement.
        let known = self.sets.get(set).ok_or_else(|| Error::internal("a set that the group has not"))?;
        let (bytes, size) = (known.variable(extent)?.bytes, known.dtype.size() as u64);
        if self.written.get(&(set, step)).is_some_and(|written| written.varying != extent) {
            self.forget(set, step)?;
        }
        let slot = self.organisation.place(set, step);
        if self.files.get(slot.file).is_none_or(Option::is_none) {
            self.make(slot.file, extent)?;
        }
        let is_rewritten = self.written.contains_key(&(set, step));
        let file = self.ready(slot.file, is_rewritten, writer)?;
        let open = self.open(slot.file)?;
        let deferred = open.deferred.as_ref().filter(|_| writer.is_some()).map(|(_, layer)| layer.clone());
        let place = open.image.extent(slot.variable, bytes, slot.record.unwrap_or(0))?;
        let (file, sums) = SummedFile::over(&file, place, size);
        Ok(WriteSlot { file, array: FileArray::dense(place.offset, size), sums, deferred })
    }

    /// Collective: what a slot of a file is written through.
    fn ready(
        &mut self,
        number: usize,
        is_rewritten: bool,
        writer: Option<&Arc<DeferredWriter>>,
    ) -> Result<TeamFile> {
        let team = self.team.clone();
        let open = self.open(number)?;
        // Writes of several ranks are in no order: what is about to be replaced has to stand.
        if let Some((_, deferred)) = open.deferred.as_ref().filter(|_| is_rewritten || writer.is_none()) {
            open.file.visibility_barrier("slot", deferred.settle())?;
        }
        let Some(writer) = writer else { return Ok(open.through.clone()) };
        if let Some((file, deferred)) = &open.deferred {
            // What failed behind the last call is raised by this one, on all ranks.
            team.agree("slot", deferred.check())?;
            return Ok(file.clone());
        }
        let path = self.folder.join(&open.name);
        let made = direct_io::handle_to_write(&*self.disk, &path, open.is_direct)
            .map_err(|cause| Error::io("open", &path, cause))
            .map(|handle| DeferredFile::over(&open.file, writer, handle, &path));
        let made = team.agree("slot", made)?;
        let file = made.0.clone();
        if let Some(open) = self.files.get_mut(number).and_then(Option::as_mut) {
            open.deferred = Some(made);
        }
        Ok(file)
    }

    /// Collective: returns when all that was deferred stands in its files, for ranks that are about to read it. What failed
    /// is raised, and again by the flush.
    pub fn settle(&self) -> Result<()> {
        for open in self.files.iter().flatten() {
            if let Some((_, deferred)) = &open.deferred {
                open.file.visibility_barrier("settle", deferred.settle())?;
            }
        }
        Ok(())
    }

    /// Takes note that a slot was written by all ranks; `extent` is the first one of a set that varies. One that is not
    /// written has no bytes, and a flush fails.
    pub fn wrote(&mut self, (set, step): (usize, i64), extent: Option<u64>, slot: WriteSlot) {
        if let Some(deferred) = &slot.deferred {
            deferred.sync_soon();
        }
        self.written.insert((set, step), Written { varying: extent, sums: slot.sums });
    }

    /// Collective: makes what was written since the last flush durable where it stays, and says where that is. Where it
    /// fails nothing of it is left.
    pub fn prepare(&mut self) -> Result<Vec<DurableSet>> {
        self.before.push(self.organisation.clone());
        let prepared = self.prepare_all();
        if prepared.is_err() {
            // The first error is the one to be reported; what cannot be closed is closed with the process.
            let _ = self.undo();
        }
        prepared
    }

    /// Collective: takes back the last flush that was prepared and is not shown.
    pub fn undo(&mut self) -> Result<()> {
        let Some(before) = self.before.pop() else { return Ok(()) };
        self.organisation = before;
        let known = self.organisation.files().len();
        let mut outcome = Ok(());
        while self.files.len() > known {
            if let Some(file) = self.files.pop().flatten() {
                outcome = outcome.and(self.remove(file));
            }
        }
        outcome.and(self.discard())
    }

    fn prepare_all(&mut self) -> Result<Vec<DurableSet>> {
        self.finish()?;
        let shown = self.organisation.end_flush();
        // Files that moves go to are made first.
        for slot in shown.moves.iter().flat_map(|moved| [moved.from, moved.to]) {
            if self.files.get(slot.file).is_none_or(Option::is_none) {
                self.make(slot.file, None)?;
            }
        }
        self.make_moves(&shown.moves)?;
        let mut durable = Vec::with_capacity(shown.places.len());
        let mut slabs = Vec::with_capacity(shown.places.len());
        for (set, step, slot) in &shown.places {
            let written = self.written.remove(&(*set, *step));
            let lacks = || Error::internal(format!("set {set} was placed at step {step} and not written"));
            let written = written.ok_or_else(lacks)?;
            let file = self.open(slot.file)?;
            let bytes = file.variables[slot.variable].bytes;
            let extent = file.image.extent(slot.variable, bytes, slot.record.unwrap_or(0))?;
            let (name, varying) = (file.name.clone(), written.varying);
            slabs.push((written.sums, file.file.clone(), extent.offset));
            durable.push(DurableSet {
                set: *set,
                step: *step,
                file: name,
                extent,
                varying,
                sums: Vec::new(),
            });
        }
        for (durable, sums) in durable.iter_mut().zip(sums::collect(&self.team, &slabs)?) {
            durable.sums = sums;
        }
        for number in &shown.files {
            let written = self.write_steps(*number);
            self.open(*number)?.file.make_durable("flush", written)?;
        }
        if std::mem::take(&mut self.made) {
            let synced = self.sync_names();
            self.team.agree("flush", synced)?;
        }
        Ok(durable)
    }

    /// Makes the names of files durable, and those of the folders that they are in.
    fn sync_names(&self) -> Result<()> {
        if self.team.rank() != 0 {
            return Ok(());
        }
        let mut folders =
            self.folder.ancestors().take(FOLDERS).filter(|folder| !folder.as_os_str().is_empty());
        folders.try_for_each(|folder| self.disk.sync_dir(folder).map_err(|e| Error::io("sync", folder, e)))
    }

    /// Collective: what was deferred is written.
    fn finish(&self) -> Result<()> {
        let layers = || self.files.iter().flatten().filter_map(|open| open.deferred.as_ref());
        if layers().next().is_none() {
            return Ok(());
        }
        // Each is waited for, whatever came of the others.
        let mut outcome = Ok(());
        for (_, file) in layers() {
            outcome = outcome.and(file.finish());
        }
        self.team.agree("flush", outcome)
    }

    /// Collective: has files show all that was prepared, which cannot be taken back from here on. Repeated where it failed it
    /// goes on.
    pub fn show(&mut self) -> Result<()> {
        self.before.clear();
        for (number, plan) in self.organisation.files().iter().enumerate() {
            let Some(Some(open)) = self.files.get_mut(number) else { continue };
            let steps = plan.flushed().len() as u64;
            if steps == open.shown {
                continue;
            }
            let written = match (self.team.rank(), open.has_records) {
                (0, true) => {
                    let (at, count) = open.image.records(steps);
                    open.file.write_at(&count, at)
                }
                (0, false) => open.file.write_at(&write::MAGIC, 0),
                _ => Ok(()),
            };
            open.file.make_durable("show", written)?;
            open.shown = steps;
        }
        Ok(())
    }

    /// Collective: closes all files as they are, and goes on in new ones. What of them was prepared may have become known to
    /// others: no byte of it is written again, and none is removed.
    pub fn leave(&mut self) -> Result<()> {
        self.before.clear();
        self.written.clear();
        self.organisation = self.organisation.anew();
        let mut outcome = Ok(());
        for file in std::mem::take(&mut self.files).into_iter().flatten() {
            file.forget_deferred();
            self.left.push(file.name);
            outcome = outcome.and(file.file.close("leave", Ok(())));
        }
        outcome
    }

    /// Collective: forgets what was written since the last flush. Files that then show nothing are removed, as far as
    /// that is possible.
    pub fn discard(&mut self) -> Result<()> {
        self.written.clear();
        self.files.iter().flatten().for_each(OpenFile::forget_deferred);
        let empty = self.organisation.discard();
        for number in empty {
            let given_up =
                self.files.get(number).and_then(Option::as_ref).is_some_and(|file| !file.has_records);
            if given_up && let Some(file) = self.files[number].take() {
                self.remove(file)?;
            }
        }
        Ok(())
    }

    /// Collective: closes all files; those that show nothing are removed.
    pub fn close(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        for (number, file) in std::mem::take(&mut self.files).into_iter().enumerate() {
            let Some(file) = file else { continue };
            file.forget_deferred();
            // One that was to show a step and could not has it nevertheless.
            let closed = match self.is_empty(number) {
                true => self.remove(file),
                false => file.file.close("close", Ok(())),
            };
            outcome = outcome.and(closed);
        }
        outcome
    }

    /// After the team has ended, which has closed its files: removes those that show nothing, as far as that is possible.
    pub fn abandon(&mut self) {
        self.written.clear();
        for (number, file) in std::mem::take(&mut self.files).into_iter().enumerate() {
            let Some(file) = file else { continue };
            if self.is_empty(number) && self.team.rank() == 0 {
                // One that stays says of itself that it was not finished, or that it has no step.
                let _ = self.disk.unlink(&self.folder.join(&file.name));
            }
        }
    }

    /// Whether no step of a file was flushed.
    fn is_empty(&self, number: usize) -> bool {
        self.organisation.files().get(number).is_none_or(|plan| plan.flushed().is_empty())
    }

    fn remove(&self, file: OpenFile) -> Result<()> {
        file.forget_deferred();
        file.file.close("close", Ok(()))?;
        if self.team.rank() == 0 {
            // One that stays says of itself that it was not finished, or that it has no step.
            let _ = self.disk.unlink(&self.folder.join(&file.name));
        }
        Ok(())
    }

    fn open(&self, number: usize) -> Result<&OpenFile> {
        let open = self.files.get(number).and_then(Option::as_ref);
        open.ok_or_else(|| Error::internal("a file of the group is not open"))
    }

    /// Whether a set was written at a step since the last flush, and with which first extent where that varies.
    pub fn written(&self, set: usize, step: i64) -> Option<Option<u64>> {
        self.written.get(&(set, step)).map(|written| written.varying)
    }

    /// Whether nothing was written since the last flush.
    pub fn is_flushed(&self) -> bool {
        self.organisation.is_flushed()
    }

    /// The folder that the files are in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Collective: forgets one set at one step, which is not flushed: what of it was written is not whole.
    pub fn forget(&mut self, set: usize, step: i64) -> Result<()> {
        self.written.remove(&(set, step));
        match self.organisation.forget(set, step).and_then(|file| self.files.get_mut(file)?.take()) {
            // Its file was made for that one step; the name is not used again.
            Some(file) => self.remove(file),
            None => Ok(()),
        }
    }

    /// Makes a file, with a header that shows nothing.
    fn make(&mut self, number: usize, extent: Option<u64>) -> Result<()> {
        let plan = self.organisation.files()[number].clone();
        // The same on all ranks.
        let variables = plan.sets.iter().map(|set| self.sets[*set].variable(extent));
        let variables: Vec<SetVariable> = variables.collect::<Result<_>>()?;
        let image = FileImage::new(&variables, plan.has_records, &self.attrs)?;
        let name = self.new_name(&plan);
        let folder = match self.team.rank() {
            0 => self.make_folders(),
            _ => Ok(()),
        };
        self.made = true;
        let path = self.folder.join(&name);
        let file = self.team.open_with("make", &path, FileMode::CreateNew, folder.map(|()| &self.hints))?;
        let hints = self.team.hints().with(&self.hints);
        let through = direct_io::over(&file, &*self.disk, &path, &hints, true);
        let mut header = image.header(0);
        if !plan.has_records {
            header[..write::UNFINISHED.len()].copy_from_slice(&write::UNFINISHED);
        }
        let written = match self.team.rank() {
            // MPI-IO or the disk made it by the umask.
            0 => make_alike(&*self.disk, &path).and_then(|()| file.write_at(&header, 0)),
            _ => Ok(()),
        };
        let (through, is_direct) = match self.team.agree("make", written.and(through)) {
            Ok(through) => through,
            Err(error) => {
                file.give_up();
                return Err(error);
            }
        };
        let mut taken = file.taken_hints().unwrap_or_default().with(&hints.own());
        if is_direct {
            taken = taken.with(&direct_io::taken(&hints));
        }
        let untaken = hints.not_in(&taken);
        while self.files.len() <= number {
            self.files.push(None);
        }
        let has_records = plan.has_records;
        self.files[number] = Some(OpenFile {
            file,
            through,
            is_direct,
            untaken,
            deferred: None,
            name,
            image,
            variables,
            has_records,
            shown: 0,
        });
        Ok(())
    }

    /// Makes the folder of the files, and those above it within the store.
    fn make_folders(&self) -> Result<()> {
        let made = match self.folder.ancestors().nth(FOLDERS).filter(|root| !root.as_os_str().is_empty()) {
            Some(root) => create_dirs_alike(&*self.disk, root, &self.folder),
            None => self.disk.create_dir_all(&self.folder),
        };
        made.map_err(|e| Error::io("make", &self.folder, e))
    }

    /// A name for a file that no other one of the group has.
    fn new_name(&mut self, plan: &FilePlan) -> String {
        let mut base = String::new();
        if plan.has_records && plan.sets.len() > 1 {
            paths::encode(&self.group, &mut base);
        }
        if plan.sets.len() < self.sets.len() || base.is_empty() {
            for set in &plan.sets {
                if !base.is_empty() {
                    base.push('-');
                }
                paths::encode(&self.sets[*set].name, &mut base);
            }
        }
        let end = (0..=NAME.min(base.len())).rev().find(|end| base.is_char_boundary(*end)).unwrap_or(0);
        base.truncate(end);
        if let (false, Some(step)) = (plan.has_records, plan.steps.first()) {
            base += &format!("-{step}");
        }
        let nth = |n: u32| if n == 1 { format!("{base}.nc") } else { format!("{base}_{n}.nc") };
        let name = (1..).map(nth).find(|name| !self.names.contains(name)).unwrap_or_default();
        self.names.insert(name.clone());
        name
    }

    /// Copies slabs to where they belong; each rank some of them.
    fn make_moves(&mut self, moves: &[SlabMove]) -> Result<()> {
        let touched: BTreeSet<usize> =
            moves.iter().flat_map(|moved| [moved.from.file, moved.to.file]).collect();
        for (i, moved) in moves.iter().enumerate() {
            for number in &touched {
                // What was written or moved before may be another rank's.
                self.open(*number)?.file.visibility_barrier("move", Ok(()))?;
            }
            let copied = match i % self.team.size() == self.team.rank() {
                true => self.copy(moved),
                false => Ok(()),
            };
            self.team.agree("move", copied)?;
        }
        for number in &touched {
            self.open(*number)?.file.visibility_barrier("move", Ok(()))?;
        }
        Ok(())
    }

    fn copy(&self, moved: &SlabMove) -> Result<()> {
        let end = |slot: &FileSlot| {
            let file = self.open(slot.file)?;
            let bytes = file.variables[slot.variable].bytes;
            Ok((file, file.image.extent(slot.variable, bytes, slot.record.unwrap_or(0))?))
        };
        let ((source, from), (target, to)): ((&OpenFile, Extent), (&OpenFile, Extent)) =
            (end(&moved.from)?, end(&moved.to)?);
        let mut piece = vec![0; from.len.min(PIECE) as usize];
        let mut done = 0;
        while done < from.len {
            let part = &mut piece[..(from.len - done).min(PIECE) as usize];
            let n = source.file.read_at(part, from.offset + done)?;
            if n < part.len() {
                return Err(Error::corrupt(format!("{} ends within what was written", source.name)));
            }
            target.file.write_at(part, to.offset + done)?;
            done += part.len() as u64;
        }
        Ok(())
    }

    /// Writes the numbers of steps that a file does not show yet.
    fn write_steps(&self, number: usize) -> Result<()> {
        if self.team.rank() != 0 {
            return Ok(());
        }
        let (open, plan) = (self.open(number)?, &self.organisation.files()[number]);
        for (record, step) in (0..).zip(plan.flushed()).skip(open.shown as usize) {
            let extent = open.image.step_extent(record)?;
            open.file.write_at(&step.to_be_bytes(), extent.offset)?;
        }
        Ok(())
    }
}
