//! Rewrites the arrays of a run: at another level, and into one file per group or set, whatever the number of jobs that
//! wrote them.
//!
//! One process copies array by array into files of a new job; one commit makes them the newest versions of their
//! fields. If the process is killed before that, its files show nothing and the run is unchanged. The old files stay:
//! they hold older versions.

use std::sync::Arc;

use fieldstone_array::distributed::files::organisation::Level;
use fieldstone_array::distributed::group::Group;
use fieldstone_array::distributed::view::View;
use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::{Code, Result};
use fieldstone_format::catalog::{ArrayLayout, RunName};
use fieldstone_store::api::{FieldAccess, IfExists, Pairs, ReadOptions};

use super::group::ArrayGroup;
use super::inner::{JobInner, JobOptions, OpenGroup};
use super::inventory::{GroupInventory, groups_of};
use super::job::ArrayJob;
use super::source::pairs;
use super::spec;
use crate::Session;
use crate::Store;

/// Report of a rewritten group.
#[derive(Debug, Clone)]
pub struct RewrittenGroup {
    /// Its name.
    pub name: String,
    /// The level of its files now.
    pub level: Level,
    /// Arrays.
    pub arrays: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of files that held them before.
    pub files_before: u64,
    /// Paths of the files that hold them now, relative to the store's folder.
    pub files: Vec<String>,
}

/// Rewrites all arrays of a run that are in files, at `level`, or at the level of their group. No job may write the run
/// at the same time. Memory is that of one array.
///
/// Errors: `NotFound` for a run that does not exist or has no such arrays; those of reading and writing. A failed
/// rewrite changes nothing.
pub fn rewrite(store: &Store, run: &RunName, level: Option<Level>) -> Result<Vec<RewrittenGroup>> {
    crate::run::Run::find(store, Some(&run.project), &run.name, &Session::default())?;
    let found = groups_of(store, run)?;
    let in_files: Vec<GroupInventory> = found.into_iter().filter(is_in_files).collect();
    if in_files.is_empty() {
        return Err(Code::VariableNotFound
            .error(format!("run {} has no distributed arrays in files", run.name))
            .with_hint("list the store's arrays with fieldstone arrays STORE"));
    }
    // The same arrays, in other files.
    let options =
        JobOptions { project: run.project.clone(), if_exists: Some(IfExists::New), ..JobOptions::default() };
    let job = ArrayJob::open(store, None, Some(&run.name), &options)?;
    let written = in_files.iter().map(|found| rewrite_group(&job.inner, found, level));
    match written.collect::<Result<Vec<_>>>() {
        Ok(mut written) => {
            job.close()?;
            let now = groups_of(store, run)?;
            for group in &mut written {
                let found = now.iter().filter(|found| found.group.name == group.name);
                group.files = found.flat_map(|found| &found.files).map(|file| file.path.clone()).collect();
            }
            Ok(written)
        }
        Err(error) => {
            // The first error is the one to report.
            let _ = job.discard();
            let _ = job.close();
            Err(error)
        }
    }
}

fn is_in_files(found: &GroupInventory) -> bool {
    found.group.layout == ArrayLayout::Files && found.arrays > 0
}

/// Opens a group whose files have another level than its declaration.
fn open_at_level(
    job: &Arc<JobInner>,
    found: &GroupInventory,
    level: Option<Level>,
) -> Result<(ArrayGroup, Level)> {
    let mut state = job.state();
    let mut files = spec::files_of(&found.group)?;
    let level = level.or(files.level).unwrap_or(Level::Three);
    files.level = Some(level);
    let folder = job.folder()?;
    let folder = folder.root.join(folder.of_group(state.groups.len()));
    let settings = job.settings(&found.group, Hints::default())?;
    let group = Group::new(job.team.clone(), job.env().disk.clone(), &folder, files, settings)?;
    state.groups.push(OpenGroup {
        record: found.group.clone(),
        group,
        declared: true,
        level: format!("level {}: for rewriting it", level.number()),
        method: String::new(),
        hints: Hints::default(),
    });
    let index = state.groups.len() - 1;
    Ok((ArrayGroup::new(job.clone(), index, &state.groups[index]), level))
}

fn rewrite_group(
    job: &Arc<JobInner>,
    found: &GroupInventory,
    level: Option<Level>,
) -> Result<RewrittenGroup> {
    let (group, level) = open_at_level(job, found, level)?;
    let index = group.index();
    let (mut arrays, mut bytes) = (0, 0);
    // The sets of a step go together, as a job writes them.
    for (&step, sets) in &found.steps {
        for &set in sets {
            let kept = &found.group.sets[set];
            let name = kept.variable.name.as_str();
            let key = job.key(name, step)?;
            bytes += rewrite_array(job, &group, (index, set, step), name, &pairs(&key))?;
            arrays += 1;
        }
    }
    let files_before = found.files.len() as u64;
    Ok(RewrittenGroup {
        name: found.group.name.clone(),
        level,
        arrays,
        bytes,
        files_before,
        files: Vec::new(),
    })
}

fn rewrite_array(
    job: &JobInner,
    group: &ArrayGroup,
    (index, set, step): (usize, usize, i64),
    name: &str,
    key: &Pairs<'_>,
) -> Result<u64> {
    let field = job.store.get(key, &ReadOptions::default())?;
    let (shape, holes) = (field.shape()?.unwrap_or_default(), field.holes()?);
    if let (Some(None), Some(extent)) = (group.sets()[set].shape.first(), shape.first()) {
        group.view(&View::joined(*extent), Some(&[name]))?;
    }
    let elements = group.read_dense(name, step, None)?;
    group.write_dense(name, step, &elements)?;
    job.state().groups[index].group.note_holes((set, step), holes);
    Ok(elements.len() as u64)
}
