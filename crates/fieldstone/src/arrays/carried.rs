//! Array files that a transfer makes in its target: those of arrays that were in files of the source.
//!
//! The files are those of a job of one process: in a folder of their own, at the level of the group, each array in its slab.
//! An array is written part by part, in the order of its elements.
//!
//! Invariants:
//! * the store learns of an array once its bytes are durable in their final place, and the files show it once the
//!   transaction that it belongs to is decided; if the process dies in between, the next job of the run completes them, as
//!   those of a killed job;
//! * files of a transfer that failed are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::distributed::files::group_files::GroupFiles;
use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_array::distributed::files::show as array_file;
use fieldstone_array::distributed::files::sums::BLOCK;
use fieldstone_array::distributed::group::GroupSpec;
use fieldstone_core::Result;
use fieldstone_core::dtype::{ByteOrder, DType};
use fieldstone_core::env::comm::Team;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_format::catalog::{ArrayGroup, ArrayLayout, RunName};
use fieldstone_format::location::GROWN_SINCE;
use fieldstone_store::api::{ArchiveOptions, FieldAccess, StoredArraySpec};

use super::folder::{JobFolder, new_job, of_run};
use super::source::{Key, pairs};
use super::spec;
use crate::Store;
use crate::own_files::check_owners;

/// Arrays after which files are closed, if each array has its own.
const FILES: usize = 200;

/// The place of an array: a set of a group of a run, at a step.
#[derive(Debug, Clone, Copy)]
pub struct CarriedPlace<'a> {
    pub run: &'a RunName,
    pub group: &'a ArrayGroup,
    pub set: usize,
    pub step: i64,
}

/// An array to carry over, and how the store takes it.
#[derive(Debug)]
pub struct CarriedArray {
    pub key: Vec<(String, String)>,
    pub dtype: DType,
    pub shape: Vec<u64>,
    /// One element, in the order of the file's bytes.
    pub fill: Option<Vec<u8>>,
    pub holes: u64,
    pub options: ArchiveOptions,
}

/// The files of one group that are being written.
struct OpenFiles {
    run: RunName,
    /// Its name.
    group: String,
    spec: GroupSpec,
    /// Their folder, relative to the store's.
    folder: String,
    files: GroupFiles,
    /// By set and step.
    arrays: BTreeMap<(usize, i64), CarriedArray>,
}

/// The files of a transfer.
pub struct CarriedFiles {
    store: Store,
    team: Team,
    root: PathBuf,
    job: String,
    groups: usize,
    open: Option<OpenFiles>,
    /// Files that are written, relative to the store's folder, each with the start of its last array if it has one.
    made: BTreeMap<String, Option<u64>>,
    /// Folders of jobs, relative to the store's, that hold the flag of an open job.
    flagged: BTreeSet<String>,
}

impl CarriedFiles {
    /// Files for a store; `None` if it cannot have any.
    pub fn of(store: &Store) -> Result<Option<CarriedFiles>> {
        let Some(root) = store.backend().folder() else { return Ok(None) };
        if store.backend().check_format(GROWN_SINCE, "an array in a file of the store").is_err() {
            return Ok(None);
        }
        let env = store.backend().env();
        let team = Team::new(Arc::new(SingleComm::new(env.disk.clone())));
        let job = new_job(env);
        let store = store.clone();
        let (made, flagged) = (BTreeMap::new(), BTreeSet::new());
        Ok(Some(CarriedFiles { store, team, root, job, groups: 0, open: None, made, flagged }))
    }

    /// Whether a set of a group in files can hold an array.
    pub fn fits(group: &ArrayGroup, set: usize, dtype: DType, shape: &[u64]) -> bool {
        let Some(decl) = spec::files_of(group).ok().and_then(|mut spec| spec.sets.drain(..).nth(set)) else {
            return false;
        };
        let alike = |(declared, extent): (&Option<u64>, &u64)| declared.is_none_or(|len| len == *extent);
        group.layout == ArrayLayout::Files
            && dtype == decl.dtype.with_order(ByteOrder::Big)
            && shape.len() == decl.shape.len()
            && decl.shape.iter().zip(shape).all(alike)
            && !shape.contains(&0)
    }

    /// Writes an array, which [`fits`](Self::fits): `write` passes its bytes on, in the order of the elements. If it fails,
    /// nothing of the array stays.
    pub fn write<T>(
        &mut self,
        place: CarriedPlace<'_>,
        array: CarriedArray,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        let CarriedPlace { set, step, .. } = place;
        let open = self.open(place)?;
        let is_varying = open.spec.sets.get(set).is_some_and(|decl| decl.is_varying());
        let extent = array.shape.first().copied().filter(|_| is_varying);
        let slot = open.files.slot(set, step, extent)?;
        let mut at = slot.array.offset(0);
        let written = write(&mut |bytes| {
            slot.file.write_at(bytes, at)?;
            at = at.saturating_add(bytes.len() as u64);
            Ok(())
        });
        match written {
            Ok(done) => {
                open.files.wrote((set, step), extent, slot);
                open.arrays.insert((set, step), array);
                Ok(done)
            }
            Err(error) => {
                drop(slot);
                open.files.forget(set, step)?;
                Err(error)
            }
        }
    }

    /// The open files of a place's group.
    fn open(&mut self, place: CarriedPlace<'_>) -> Result<&mut OpenFiles> {
        let goes_on = self.open.as_ref().is_some_and(|open| {
            let own = open.spec.level == Some(Level::One) || open.spec.sets[place.set].is_varying();
            (&open.run, &open.group) == (place.run, &place.group.name)
                && !open.arrays.contains_key(&(place.set, place.step))
                && !(own && open.arrays.len() >= FILES)
        });
        if !goes_on {
            self.finish()?;
        }
        let open = match self.open.take() {
            Some(open) => open,
            None => self.begin(place)?,
        };
        Ok(self.open.insert(open))
    }

    fn begin(&mut self, place: CarriedPlace<'_>) -> Result<OpenFiles> {
        self.store.backend().create()?;
        let job = self.job_of(format!("{}/{}", of_run(place.run), self.job));
        let folder = job.of_group(self.groups);
        let env = self.store.backend().env();
        check_owners(env, &self.root, &folder)?;
        let spec = spec::files_of(place.group)?;
        let level = spec.level.unwrap_or(Level::Three);
        let (sets, attrs, disk) = (spec.sets.clone(), spec.attrs.clone(), env.disk.clone());
        let path = self.root.join(&folder);
        let files = GroupFiles::new(self.team.clone(), disk, &path, &spec.name, level, sets, attrs)?;
        self.groups += 1;
        let (run, group) = (place.run.clone(), place.group.name.clone());
        Ok(OpenFiles { run, group, spec, folder, files, arrays: BTreeMap::new() })
    }

    /// Makes the written arrays durable, and gives them to the store; their flush makes them visible.
    pub fn finish(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let durable = open.files.prepare()?;
        let path = |file: &str| format!("{}/{file}", open.folder);
        self.made.extend(open.files.names().map(|name| (path(name), None)));
        if let Some((within, _)) = open.folder.rsplit_once('/')
            && self.flagged.insert(within.to_owned())
        {
            self.job_of(within.to_owned()).flag(self.store.backend().env());
        }
        for place in durable {
            let Some(array) = open.arrays.get(&(place.set, place.step)) else { continue };
            let path = path(&place.file);
            let last = self.made.entry(path.clone()).or_default();
            *last = Some(place.extent.offset).max(*last);
            let stored = StoredArraySpec {
                path: &path,
                offset: place.extent.offset,
                dtype: array.dtype,
                shape: &array.shape,
                fill: array.fill.as_deref(),
                block: BLOCK * array.dtype.size() as u64,
                sums: &place.sums,
                holes: array.holes,
            };
            self.store.archive_stored(&pairs(key(array)), &stored, &array.options)?;
        }
        open.files.close()
    }

    /// Lets the files show their arrays, whose transaction is decided. The next job of a run completes a file that cannot be
    /// changed now.
    pub fn show(self) {
        let env = self.store.backend().env();
        let mut left = false;
        for (path, last) in self.made.iter().filter_map(|(path, last)| last.map(|last| (path, last))) {
            if let Err(error) = array_file::show(&*env.disk, &self.root.join(path), last) {
                tracing::warn!(path, %error, "a file of arrays shows less than was carried over");
                left = true;
            }
        }
        for within in self.flagged.iter().filter(|_| !left) {
            self.job_of(within.clone()).unflag(env);
        }
    }

    fn job_of(&self, within: String) -> JobFolder {
        JobFolder {
            root: self.root.clone(),
            within,
            writer: self.store.backend().env().identity.writer_name(),
        }
    }

    /// Removes all files.
    pub fn discard(mut self) {
        if let Some(mut open) = self.open.take() {
            // Files that stay show nothing.
            let _ = open.files.discard();
            let _ = open.files.close();
            self.remove_folder(&self.root.join(&open.folder));
        }
        for within in &self.flagged {
            self.job_of(within.clone()).unflag(self.store.backend().env());
        }
        for path in self.made.keys().map(|path| self.root.join(path)) {
            // A file that stays is marked as unfinished, or has no steps.
            let _ = self.store.backend().env().disk.unlink(&path);
            path.parent().into_iter().for_each(|folder| self.remove_folder(folder));
        }
    }

    /// Removes a folder of a group, the job's and the run's, as far as they are empty.
    fn remove_folder(&self, folder: &Path) {
        let disk = &self.store.backend().env().disk;
        let removed = |folder: &&Path| disk.remove_dir(folder).is_ok();
        folder.ancestors().take(3).take_while(removed).for_each(drop);
    }
}

fn key(array: &CarriedArray) -> &Key {
    &array.key
}
