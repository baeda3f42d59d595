//! The files of a group, on all ranks: created, written, shown.
//!
//! Between two flushes, data go into records that no file shows. A flush has three parts:
//! [`prepare`](GroupFiles::prepare) makes data durable in their final place, then the caller records the writes in a
//! store, and [`show`](GroupFiles::show) makes them visible in the files. A job killed between these leaves files
//! that show less than the store.
//!
//! Invariants:
//! * only this group creates its files: an existing file is an error, and nothing is written into it;
//! * all calls are collective, and a failure on one rank fails all, with its number;
//! * data that others may know are never rewritten or removed;
//! * deferred writes are in their file before a flush, or any call that uses the file, continues;
//! * a file shows a step only after [`show`](GroupFiles::show), and then all of its variables at that step.

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

/// Bytes copied at a time when a slab moves.
const PIECE: u64 = 4 << 20;
/// Limit on the folders created for a file, plus the one that contains them.
const FOLDERS: usize = 4;
/// Limit on the part of a file's name that consists of names of sets.
const NAME: usize = 120;

/// An open file.
#[derive(Debug)]
struct OpenFile {
    file: TeamFile,
    /// The file through which slots are written: the file itself, or a layer that bypasses the page cache.
    through: TeamFile,
    is_direct: bool,
    /// Hints that nothing followed.
    untaken: Hints,
    /// The layer that defers writes, after the first deferred write.
    deferred: Option<(TeamFile, Arc<DeferredFile>)>,
    name: String,
    image: FileImage,
    variables: Vec<SetVariable>,
    has_records: bool,
    /// Number of steps that it shows.
    shown: u64,
}

impl OpenFile {
    /// Completes deferred writes and ignores their errors, because the file is abandoned.
    fn forget_deferred(&self) {
        if let Some((_, deferred)) = &self.deferred {
            deferred.discard();
        }
    }
}

/// The place of a set at a step, for writing.
#[derive(Debug)]
pub struct WriteSlot {
    /// The file; writes through it are checksummed.
    pub file: TeamFile,
    /// The elements of the set in it.
    pub array: FileArray,
    sums: Arc<SummedFile>,
    deferred: Option<Arc<DeferredFile>>,
}

/// A set that a flush has made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurableSet {
    /// The set, by its number in the group.
    pub set: usize,
    /// The step.
    pub step: i64,
    /// Name of the file in the group's folder.
    pub file: String,
    /// Its position in the file.
    pub extent: Extent,
    /// First extent of the set at the step, if that varies.
    pub varying: Option<u64>,
    /// Checksums of its blocks, in order; only on rank 0.
    pub sums: Vec<u32>,
}

/// The writes since the last flush.
#[derive(Debug)]
struct Written {
    varying: Option<u64>,
    sums: Arc<SummedFile>,
}

/// The files of one group in one attempt. See the module's documentation.
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
    /// Names of files that were left as they were.
    left: Vec<String>,
    written: BTreeMap<(usize, i64), Written>,
    /// Whether a file was created whose name is not durable yet.
    made: bool,
    /// Hints for opening files, in addition to the communicator's.
    hints: Hints,
    /// The organisation before each flush that was prepared and is not shown.
    before: Vec<Organisation>,
}

/// Lets every user who may read the folder read a new file.
pub(in crate::distributed) fn make_alike(disk: &dyn Disk, path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    disk.copy_permissions(folder, path).map_err(|e| Error::io("set the permissions of", path, e))
}

impl GroupFiles {
    /// Prepares the files of a group in a folder on `disk`, which must not have any of them. Creates nothing yet.
    ///
    /// Errors: `Invalid` for sets that no file can hold, or that cannot be in one file together.
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

    /// Appends further sets: they go to files that are created from now on.
    ///
    /// Errors: `Invalid` for sets that no file can hold, or that cannot be in one file with the others. Then none is
    /// added.
    pub fn add_sets(&mut self, more: &[SetDecl]) -> Result<()> {
        let all = [&self.sets[..], more].concat();
        check_together(&all)?;
        self.sets = all;
        for organisation in self.before.iter_mut().chain([&mut self.organisation]) {
            organisation.add_sets(more.iter().map(SetDecl::is_varying));
        }
        Ok(())
    }

    /// Sets hints for opening files that are created from now on, in addition to the communicator's; equal on all
    /// ranks.
    pub fn set_hints(&mut self, hints: Hints) {
        self.hints = hints;
    }

    /// Hints that neither the communicator nor our own algorithms followed for an open file.
    pub fn untaken_hints(&self) -> Hints {
        let files = self.files.iter().flatten();
        files.fold(Hints::default(), |all, file| all.with(&file.untaken))
    }

    /// The team.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Names of the files in their folder, in the order of creation.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.left.iter().map(String::as_str).chain(self.files.iter().flatten().map(|file| &*file.name))
    }

    /// Collective: the place at which a set is to be written at a step; creates a file if one is needed. `extent` is
    /// the first extent of a set that varies. The caller reports the write with [`wrote`](Self::wrote); before a
    /// flush, the set may be written again in place, unless its extent has changed.
    pub fn slot(&mut self, set: usize, step: i64, extent: Option<u64>) -> Result<WriteSlot> {
        self.slot_by(set, step, extent, None)
    }

    /// Collective: as [`slot`](Self::slot), but `writer` makes the writes while the job continues: those by offset,
    /// which the methods direct and exchange make. Writes in collective calls are still made in the call. The next
    /// call raises an error of the writer.
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
        // Results of declarations and of calls that are equal on all ranks need no agreement.
        let known = self.sets.get(set).ok_or_else(|| Error::internal("the group does not have this set"))?;
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

    /// Collective: the file through which a slot is written.
    fn ready(
        &mut self,
        number: usize,
        is_rewritten: bool,
        writer: Option<&Arc<DeferredWriter>>,
    ) -> Result<TeamFile> {
        let team = self.team.clone();
        let open = self.open(number)?;
        // Writes of several ranks have no order, so data about to be replaced must be written first.
        if let Some((_, deferred)) = open.deferred.as_ref().filter(|_| is_rewritten || writer.is_none()) {
            open.file.visibility_barrier("slot", deferred.settle())?;
        }
        let Some(writer) = writer else { return Ok(open.through.clone()) };
        if let Some((file, deferred)) = &open.deferred {
            // This call raises a failure that came after the previous one, on all ranks.
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

    /// Collective: returns when all deferred writes are in their files, for ranks that are about to read them. Raises
    /// failures; the flush raises them again.
    pub fn settle(&self) -> Result<()> {
        for open in self.files.iter().flatten() {
            if let Some((_, deferred)) = &open.deferred {
                open.file.visibility_barrier("settle", deferred.settle())?;
            }
        }
        Ok(())
    }

    /// Records that all ranks have written a slot; `extent` is the first one of a set that varies. A slot that is not
    /// written has no bytes, and makes a flush fail.
    pub fn wrote(&mut self, (set, step): (usize, i64), extent: Option<u64>, slot: WriteSlot) {
        if let Some(deferred) = &slot.deferred {
            deferred.sync_soon();
        }
        self.written.insert((set, step), Written { varying: extent, sums: slot.sums });
    }

    /// Collective: makes the writes since the last flush durable in their final place, and returns that place. If it
    /// fails, nothing of them is left.
    pub fn prepare(&mut self) -> Result<Vec<DurableSet>> {
        self.before.push(self.organisation.clone());
        let prepared = self.prepare_all();
        if prepared.is_err() {
            // Report the first error; the end of the process closes a file that cannot be closed here.
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
        // Files to which slabs move are created first.
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
            let lacks =
                || Error::internal(format!("set {set} has a slot at step {step}, but was not written"));
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

    /// Makes the names of files durable, and those of the folders that contain them.
    fn sync_names(&self) -> Result<()> {
        if self.team.rank() != 0 {
            return Ok(());
        }
        let mut folders =
            self.folder.ancestors().take(FOLDERS).filter(|folder| !folder.as_os_str().is_empty());
        folders.try_for_each(|folder| self.disk.sync_dir(folder).map_err(|e| Error::io("sync", folder, e)))
    }

    /// Collective: completes deferred writes.
    fn finish(&self) -> Result<()> {
        let layers = || self.files.iter().flatten().filter_map(|open| open.deferred.as_ref());
        if layers().next().is_none() {
            return Ok(());
        }
        // Wait for each file, whatever the result of the others.
        let mut outcome = Ok(());
        for (_, file) in layers() {
            outcome = outcome.and(file.finish());
        }
        self.team.agree("flush", outcome)
    }

    /// Collective: makes the files show everything that was prepared, which cannot be taken back from here on. If it
    /// failed, a repeated call continues.
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

    /// Collective: closes all files as they are, and continues in new ones. Others may know about prepared data, so
    /// no byte of them is rewritten or removed.
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

    /// Collective: discards the writes since the last flush. Removes files that then show nothing, if possible.
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

    /// Collective: closes all files; removes those that show nothing.
    pub fn close(&mut self) -> Result<()> {
        let mut outcome = Ok(());
        for (number, file) in std::mem::take(&mut self.files).into_iter().enumerate() {
            let Some(file) = file else { continue };
            file.forget_deferred();
            // A file that was to show a step but could not still contains it.
            let closed = match self.is_empty(number) {
                true => self.remove(file),
                false => file.file.close("close", Ok(())),
            };
            outcome = outcome.and(closed);
        }
        outcome
    }

    /// Called after the team has ended, which has closed its files: removes those that show nothing, if possible.
    pub fn abandon(&mut self) {
        self.written.clear();
        for (number, file) in std::mem::take(&mut self.files).into_iter().enumerate() {
            let Some(file) = file else { continue };
            if self.is_empty(number) && self.team.rank() == 0 {
                // A file that stays is marked as unfinished, or has no steps.
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
            // A file that stays is marked as unfinished, or has no steps.
            let _ = self.disk.unlink(&self.folder.join(&file.name));
        }
        Ok(())
    }

    fn open(&self, number: usize) -> Result<&OpenFile> {
        let open = self.files.get(number).and_then(Option::as_ref);
        open.ok_or_else(|| Error::internal("a file of the group is not open"))
    }

    /// Whether a set was written at a step since the last flush, and its first extent if that varies.
    pub fn written(&self, set: usize, step: i64) -> Option<Option<u64>> {
        self.written.get(&(set, step)).map(|written| written.varying)
    }

    /// Whether nothing was written since the last flush.
    pub fn is_flushed(&self) -> bool {
        self.organisation.is_flushed()
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Collective: discards one set at one step that is not flushed, because its data are incomplete.
    pub fn forget(&mut self, set: usize, step: i64) -> Result<()> {
        self.written.remove(&(set, step));
        match self.organisation.forget(set, step).and_then(|file| self.files.get_mut(file)?.take()) {
            // Its file was created for that one step; the name is not used again.
            Some(file) => self.remove(file),
            None => Ok(()),
        }
    }

    /// Creates a file, with a header that shows nothing.
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
            // MPI-IO or the disk created it with the umask.
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

    /// Creates the folder of the files, and its parents inside the store.
    fn make_folders(&self) -> Result<()> {
        let made = match self.folder.ancestors().nth(FOLDERS).filter(|root| !root.as_os_str().is_empty()) {
            Some(root) => create_dirs_alike(&*self.disk, root, &self.folder),
            None => self.disk.create_dir_all(&self.folder),
        };
        made.map_err(|e| Error::io("make", &self.folder, e))
    }

    /// A name for a file that no other file of the group has.
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

    /// Copies slabs to their final place; each rank copies some of them.
    fn make_moves(&mut self, moves: &[SlabMove]) -> Result<()> {
        let touched: BTreeSet<usize> =
            moves.iter().flat_map(|moved| [moved.from.file, moved.to.file]).collect();
        for (i, moved) in moves.iter().enumerate() {
            for number in &touched {
                // Another rank may have written or moved the slab before.
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
                return Err(Error::corrupt(format!("{} ends inside the data written to it", source.name)));
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
