//! Completes files of a run whose job was killed between its commit and the bytes by which a file shows the commit.
//!
//! A job that writes files leaves a flag in its folder until it is closed, so that the next job need not look at the
//! files of all earlier jobs. A flag names the process that made it.

use std::collections::BTreeMap;
use std::path::Path;

use fieldstone_array::distributed::files::show as array_file;
use fieldstone_core::Result;
use fieldstone_core::env::{Env, FileKind};
use fieldstone_format::catalog::RunName;
use fieldstone_store::api::{FieldAccess, PlaceFile};

use super::folder::of_run;
use super::inventory::groups_of;
use crate::Session;
use crate::Store;
use crate::own_files::{ARRAYS, flag_of, is_gone, shows_nothing};
use crate::steps::entries;

/// Maximum number of looks at files, because a running job may flush in between.
const ROUNDS: usize = 8;

/// Report of completed files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownFiles {
    /// Paths of files that now show everything, relative to the store's folder.
    pub files: Vec<String>,
    /// Files that could not be changed, with the reason.
    pub left: Vec<(String, String)>,
}

/// Makes the files of a run show all arrays that were flushed into them; after a killed job they may show less.
///
/// Errors: `NotFound` for a run that does not exist; those of the catalog. The result names files that cannot be
/// changed.
pub fn show(store: &Store, run: &RunName) -> Result<ShownFiles> {
    crate::run::Run::find(store, Some(&run.project), &run.name, &Session::default())?;
    show_within(store, run, |_| true)
}

/// Whether other programs can open a file of the store's arrays.
pub fn opens(store: &Store, path: &str) -> bool {
    let Some(root) = store.backend().folder() else { return true };
    !shows_nothing(&*store.backend().env().disk, &root.join(path))
}

/// Whether a process that has not ended has a job of the run open, which writes files.
pub(crate) fn is_open(store: &Store, run: &RunName) -> bool {
    let (Some(root), env) = (store.backend().folder(), store.backend().env()) else { return false };
    let folder = root.join(of_run(run));
    let list = |path: &Path| env.disk.list_dir(path).unwrap_or_default();
    list(&folder).into_iter().any(|(job, _)| {
        let mut flags =
            list(&folder.join(&job)).into_iter().filter(|(name, _)| name.starts_with(&flag_of("")));
        flags.any(|(flag, _)| !is_gone(env, &folder.join(&job).join(flag)))
    })
}

fn show_within(store: &Store, run: &RunName, is_meant: impl Fn(&str) -> bool) -> Result<ShownFiles> {
    let mut shown = ShownFiles::default();
    let Some(root) = store.backend().folder() else { return Ok(shown) };
    let disk = &*store.backend().env().disk;
    // The file of a running job may show more than was known a moment ago: then look again.
    for _ in 0..ROUNDS {
        let mut changed = Vec::new();
        shown.left.clear();
        for (path, last) in last_slabs(store, run)?.into_iter().filter(|(path, _)| is_meant(path)) {
            match array_file::show(disk, &root.join(&path), last) {
                Ok(true) => changed.push(path),
                Ok(false) => {}
                Err(error) => shown.left.push((path, error.message().to_owned())),
            }
        }
        if changed.is_empty() {
            break;
        }
        shown
            .files
            .extend(changed.into_iter().filter(|path| !shown.files.contains(path)).collect::<Vec<_>>());
        store.refresh()?;
    }
    Ok(shown)
}

/// The start of the last flushed array in each file of a run.
fn last_slabs(store: &Store, run: &RunName) -> Result<BTreeMap<String, u64>> {
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for group in groups_of(store, run)? {
        for set in &group.group.sets {
            for entry in entries(store, run, &set.variable.name, &Session::default())? {
                let Some(place) = entry?.1.place else { continue };
                if let PlaceFile::Grown(path) = place.file {
                    let at = last.entry(path.to_string()).or_default();
                    *at = place.offset.max(*at);
                }
            }
        }
    }
    Ok(last)
}

/// Completes files of the run's earlier jobs, as far as this user may; a failure does not affect the job.
pub(super) fn show_left(store: &Store, run: &RunName, folder_of_run: &Path) {
    let env = store.backend().env();
    let flags = flags(env, folder_of_run);
    if flags.is_empty() {
        return;
    }
    let name = folder_of_run.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folders: Vec<String> = flags.iter().map(|(job, _)| format!("{ARRAYS}/{name}/{job}/")).collect();
    match show_within(store, run, |path| folders.iter().any(|folder| path.starts_with(folder))) {
        Ok(shown) if shown.left.is_empty() => {
            for (job, flag) in flags {
                let path = folder_of_run.join(job).join(flag);
                if is_gone(env, &path) {
                    let _ = env.disk.unlink(&path);
                }
            }
        }
        Ok(shown) => {
            tracing::warn!(left = ?shown.left, "files of an earlier job show less than was flushed")
        }
        Err(error) => tracing::warn!(%error, "files of an earlier job may show less than was flushed"),
    }
}

/// This user's flags in the folders of a run's jobs: the job's folder, and the flag's name.
fn flags(env: &Env, folder_of_run: &Path) -> Vec<(String, String)> {
    let list = |path: &Path| env.disk.list_dir(path).unwrap_or_default();
    let jobs = list(folder_of_run).into_iter().filter(|(_, kind)| *kind == FileKind::Directory);
    let flags = jobs.flat_map(|(job, _)| {
        let names = list(&folder_of_run.join(&job)).into_iter().map(|(name, _)| name);
        let flags: Vec<(String, String)> =
            names.filter(|name| name.starts_with(&flag_of(""))).map(|name| (job.clone(), name)).collect();
        flags
    });
    let uid = env.identity.uid();
    let is_own = |(job, flag): &(String, String)| {
        env.disk.stat(&folder_of_run.join(job).join(flag)).is_ok_and(|stat| stat.uid == uid)
    };
    flags.filter(is_own).collect()
}
