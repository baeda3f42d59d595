//! The check of a whole store: its fields, and the files that it owns besides its logs.

use std::collections::BTreeSet;
use std::path::Path;

use fieldstone_array::distributed::partition::history::verify_history;
use fieldstone_core::request::Request;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_store::api::{Damage, VerifyReport};

use super::Store;
use crate::Session;
use crate::arrays::check_mesh_of;
use crate::naming::note_of;
use crate::own_files::{ARRAYS, HISTORIES, MESHES, OwnFiles, PART, is_flag, shows_nothing};

/// Verifies the fields that a request selects; for the empty request also meshes and kept partitions, and lists
/// unreferenced files.
pub fn verify(store: &Store, request: &Request) -> Result<VerifyReport> {
    let mut report = store.backend().verify(request)?;
    let Some(root) = store.backend().folder().filter(|_| request.is_empty()) else { return Ok(report) };
    let found = OwnFiles::of(&*store.backend().env().disk, &root);
    // A store with only fields is verified without its catalog.
    if !found.exist && found.unread.is_empty() && !store.uses_catalog() {
        return Ok(report);
    }
    let mut named = report.array_files.clone();
    match verify_declared(store, &root, &mut report) {
        Ok(mut declared) => named.append(&mut declared),
        // The logs report damage that keeps the catalog from answering.
        Err(error) => {
            report.notes.push(format!("cannot read meshes and kept partitions: {}", error.message()));
            named.extend(
                found.files.iter().map(|(path, _)| path.clone()).filter(|path| !path.starts_with(ARRAYS)),
            );
        }
    }
    note_own_files(store, found, &named, &mut report);
    Ok(report)
}

/// Refuses to give up a mesh or a kept partition that can be read, or that nothing names.
pub fn check_lost(store: &Store, name: &str) -> Result<()> {
    let folder = [MESHES, HISTORIES].into_iter().find(|folder| name.contains(&format!("{folder}/")));
    let Some(at) = folder.and_then(|folder| name.rfind(&format!("{folder}/"))) else { return Ok(()) };
    let root = store.backend().folder().ok_or_else(|| Error::invalid("the store has no folder"))?;
    let (path, mut report) = (&name[at..], VerifyReport::default());
    verify_declared(store, &root, &mut report)?;
    match report.damaged.iter().any(|damage| damage.file == path) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "there is no loss of {path} to accept: it can be read, or nothing names it"
        ))
        .with_hint("fieldstone verify STORE names the files that lost something")),
    }
}

/// Reads all meshes and kept partitions; returns the paths of their files.
fn verify_declared(store: &Store, root: &Path, report: &mut VerifyReport) -> Result<BTreeSet<String>> {
    let disk = &*store.backend().env().disk;
    let (catalog, session) = (store.catalog(), Session::default());
    let (meshes, histories) = (catalog.meshes(&session)?, catalog.histories(&session)?);
    let mut named = BTreeSet::new();
    // A mesh with two names is one file.
    for decl in meshes.into_iter().filter(|decl| named.insert(decl.path.clone())) {
        note(report, &decl.path, check_mesh_of(store, &decl))?;
        if decl.sums.is_none() {
            report.notes.push(format!(
                "{}: an earlier release wrote it: its content was compared, but its header was not checked",
                decl.path
            ));
        }
    }
    for decl in histories {
        match verify_history(disk, &root.join(&decl.path)) {
            Err(e) if e.kind() == ErrorKind::NotFound => report
                .notes
                .push(format!("{}: the kept partition is missing; its next use recomputes it", decl.path)),
            outcome => note(report, &decl.path, outcome)?,
        }
        named.insert(decl.path);
    }
    Ok(named)
}

/// Notes files in the folders of own files that nothing refers to, and files that show nothing.
fn note_own_files(store: &Store, found: OwnFiles, named: &BTreeSet<String>, report: &mut VerifyReport) {
    let (disk, root) = (&*store.backend().env().disk, store.backend().folder());
    for (path, bytes) in &found.files {
        if report.array_files.contains(path) {
            report.files += 1;
            if root.as_ref().is_some_and(|root| shows_nothing(disk, &root.join(path))) {
                report.notes.push(format!(
                    "{path}: other programs see none of its steps, because its job was killed; \
                     fieldstone arrays STORE RUN --show shows them"
                ));
            }
        } else if !named.contains(path) && !is_flag(path) {
            let note = note_of(Path::new(path));
            let is_condemned = found.files.iter().any(|(other, _)| Path::new(other) == note);
            report.notes.push(unnamed(path, *bytes, is_condemned));
        }
    }
    for (path, error) in found.unread {
        report.damaged.push(Damage { key: None, file: path, why: error.to_string() });
    }
}

fn unnamed(path: &str, bytes: u64, is_condemned: bool) -> String {
    match path.ends_with(PART) {
        _ if is_condemned => {
            format!(
                "{path}: {bytes} bytes that nothing refers to: a purge removes them when its grace is over"
            )
        }
        true => format!(
            "{path}: {bytes} bytes that a job is writing, or that a killed job left; its owner's next job removes it"
        ),
        false => format!(
            "{path}: {bytes} bytes that nothing refers to: a job is writing them, or ended before it flushed them"
        ),
    }
}

/// Counts the bytes read of a file, and keeps its error.
fn note(report: &mut VerifyReport, path: &str, outcome: Result<u64>) -> Result<()> {
    report.files += 1;
    match outcome {
        Ok(bytes) => {
            report.bytes += bytes;
            Ok(())
        }
        Err(e)
            if [ErrorKind::Corrupt, ErrorKind::NotFound, ErrorKind::Denied, ErrorKind::Invalid]
                .contains(&e.kind()) =>
        {
            // A loss that was accepted is in the report already.
            if !report.accepted.iter().any(|loss| loss.file == path) {
                let why = e.message().to_owned();
                report.damaged.push(Damage { key: None, file: path.to_owned(), why });
            }
            Ok(())
        }
        Err(e) => Err(e),
    }
}
