//! Declarations of distributed arrays: groups and imports of runs, meshes and histories of the store.
//!
//! There are few of them, and one rank of a job declares each: they are compared with the engine's rows and
//! with unflushed records, and nothing is cached.

use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{
    ArrayGroup, ArraySet, AttributeId, HistoryDecl, ImportDecl, MeshDecl, Record, Removal, RunName,
    merge_group, mesh_difference,
};
use fieldstone_journal::Session;

use super::delete::IDS;
use crate::engine::{self, Index};
use crate::reader::Visibility;
use crate::registry::{Registry, run_text};

/// The new ones among some declarations. Conflict if one differs from an earlier declaration, or from another
/// one in the list.
fn fresh<T: Clone>(
    mut there: Vec<T>,
    declared: Vec<T>,
    same_name: fn(&T, &T) -> bool,
    conflict: impl Fn(&T, &T) -> Option<Error>,
) -> Result<Vec<T>> {
    let mut fresh = Vec::new();
    for decl in declared {
        match there.iter().find(|known| same_name(known, &decl)) {
            Some(known) => conflict(known, &decl).map_or(Ok(()), Err)?,
            None => {
                there.push(decl.clone());
                fresh.push(decl);
            }
        }
    }
    Ok(fresh)
}

/// Rows of the engine, in everything that a session may see.
fn listed<T>(registry: &Registry, session: &Session, list: impl Fn(&mut Index) -> Result<T>) -> Result<T> {
    registry.reader.raise_apply_error()?;
    registry.reader.look(Visibility::All(session), &mut |index| list(index))
}

/// Groups of a run, by name.
pub fn array_groups(registry: &Registry, run: &RunName, session: &Session) -> Result<Vec<ArrayGroup>> {
    registry.need_run(session, run)?;
    listed(registry, session, |index| engine::array_groups(index.database(), run))
}

/// A group of a run.
pub fn array_group(registry: &Registry, run: &RunName, name: &str, session: &Session) -> Result<ArrayGroup> {
    let all = array_groups(registry, run, session)?;
    let missing = || {
        let error = Code::VariableNotFound.error(format!("run {} has no group '{name}'", run_text(run)));
        match did_you_mean(name, all.iter().map(|group| group.name.as_str())) {
            Some(hint) => error.with_hint(hint),
            None => error.with_hint("declare it with its sets"),
        }
    };
    all.iter().find(|group| group.name == name).cloned().ok_or_else(missing)
}

/// Imports of a run, by name.
pub fn imports(registry: &Registry, run: &RunName, session: &Session) -> Result<Vec<ImportDecl>> {
    registry.need_run(session, run)?;
    listed(registry, session, |index| engine::imports(index.database(), run))
}

/// Meshes, by name.
pub fn meshes(registry: &Registry, session: &Session) -> Result<Vec<MeshDecl>> {
    listed(registry, session, |index| engine::meshes(index.database()))
}

/// A mesh.
pub fn mesh(registry: &Registry, name: &str, session: &Session) -> Result<MeshDecl> {
    let all = meshes(registry, session)?;
    let missing = || {
        let error = Code::VariableNotFound.error(format!("the store has no mesh '{name}'"));
        match did_you_mean(name, all.iter().map(|mesh| mesh.name.as_str())) {
            Some(hint) => error.with_hint(hint),
            None => error.with_hint("create it from arrays, or ingest its file"),
        }
    };
    all.iter().find(|mesh| mesh.name == name).cloned().ok_or_else(missing)
}

/// Histories, by path.
pub fn histories(registry: &Registry, session: &Session) -> Result<Vec<HistoryDecl>> {
    listed(registry, session, |index| engine::histories(index.database()))
}

/// Hands new declarations to a session; those of a run only if its user owns the run.
fn declare_arrays(
    registry: &Registry,
    session: &Session,
    run: Option<&RunName>,
    record: Record,
) -> Result<()> {
    let parts = record.split();
    if parts.is_empty() {
        return Ok(());
    }
    run.map_or(Ok(()), |run| registry.need_own(session, run))?;
    registry.reader.pending.emit(session, parts)
}

/// Declares groups of a run.
pub fn create_groups(
    registry: &Registry,
    run: &RunName,
    groups: Vec<ArrayGroup>,
    session: &Session,
) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    Record::Groups(run.clone(), groups.clone()).check()?;
    let _declaring = registry.declaring();
    let mut there = array_groups(registry, run, session)?;
    let mut fresh = Vec::new();
    for mut group in groups {
        let Some(known) = there.iter_mut().find(|known| known.name == group.name) else {
            there.push(group.clone());
            fresh.push(group);
            continue;
        };
        let before = known.sets.clone();
        merge_group(known, &group).map_err(|what| {
            let (name, run) = (&group.name, run_text(run));
            Code::VariableDiffers
                .error(format!("group '{name}' of run {run} was declared with another {what}"))
                .with_hint("use it as declared, or declare a group with another name")
        })?;
        let is_there = |set: &ArraySet| {
            before.iter().any(|other| other.variable == set.variable && other.view == set.view)
        };
        group.sets = known.sets.iter().filter(|set| !is_there(set)).cloned().collect();
        if !group.sets.is_empty() {
            fresh.push(group);
        }
    }
    declare_arrays(registry, session, Some(run), Record::Groups(run.clone(), fresh))
}

/// Declares imports of a run.
pub fn create_imports(
    registry: &Registry,
    run: &RunName,
    imports: Vec<ImportDecl>,
    session: &Session,
) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    Record::Imports(run.clone(), imports.clone()).check()?;
    let _declaring = registry.declaring();
    let there = self::imports(registry, run, session)?;
    let fresh = fresh(
        there,
        imports,
        |a, b| a.name == b.name,
        |known, decl| {
            (known != decl).then(|| {
                let (name, run) = (&decl.name, run_text(run));
                Code::VariableDiffers
                    .error(format!("import '{name}' of run {run} has another file or other variables"))
                    .with_hint("choose another name: imports do not change")
            })
        },
    )?;
    declare_arrays(registry, session, Some(run), Record::Imports(run.clone(), fresh))
}

/// Declares meshes.
pub fn create_meshes(registry: &Registry, meshes: Vec<MeshDecl>, session: &Session) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    Record::Meshes(meshes.clone()).check()?;
    let _declaring = registry.declaring();
    let there = self::meshes(registry, session)?;
    // A file that was lost and made again has other checksums if its attributes differ.
    let is_made_again = |decl: &&MeshDecl| {
        let known = there.iter().find(|known| known.name == decl.name);
        decl.sums.is_some() && known.is_some_and(|known| known.path == decl.path && known.sums != decl.sums)
    };
    let again: Vec<MeshDecl> = meshes.iter().filter(is_made_again).cloned().collect();
    let mut fresh = fresh(
        there,
        meshes,
        |a, b| a.name == b.name,
        |known, decl| {
            mesh_difference(known, decl).map(|what| {
                Code::VariableDiffers
                    .error(format!("mesh '{}' exists with another {what}", decl.name))
                    .with_hint("choose another name: meshes do not change")
            })
        },
    )?;
    fresh.extend(again);
    declare_arrays(registry, session, None, Record::Meshes(fresh))
}

/// Declares histories.
pub fn create_histories(registry: &Registry, histories: Vec<HistoryDecl>, session: &Session) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    Record::Histories(histories.clone()).check()?;
    let _declaring = registry.declaring();
    let fresh = fresh(
        self::histories(registry, session)?,
        histories,
        |a, b| a.path == b.path,
        |known, decl| {
            (known != decl).then(|| {
                Code::VariableDiffers
                    .error(format!("history '{}' exists with other content", decl.path))
                    .with_hint("write another file: the name of a history is that of its file")
            })
        },
    )?;
    declare_arrays(registry, session, None, Record::Histories(fresh))
}

/// Deletes declarations of meshes and histories, by their places in the logs.
pub fn remove_files(registry: &Registry, ids: &[AttributeId], session: &Session) -> Result<()> {
    registry.store.journal.access().check_writable()?;
    let records = ids.chunks(IDS).map(|ids| Record::Remove(vec![Removal::Attributes(ids.to_vec())]));
    registry.reader.pending.emit(session, records.collect())?;
    registry.declarations().note_deletion(session.key());
    Ok(())
}
