//! Meshes and kept partitions that nothing names any more go with a purge (mesh-files.md, 4; R37).
//!
//! A mesh goes once something has named it, and nothing does any more: a mesh that nobody ever named was kept for its own
//! sake. A partition goes with its mesh or its import; one of arrays that a job had in memory goes when it is 30 days old. So
//! do files that no declaration that counts has named for a day.
//!
//! A purge condemns such a file by a note beside it, looks again, deletes the declarations of the file, and looks once more
//! (R53). A later purge unlinks the file when the note is a grace old. Invariants:
//! * nothing goes while a process says that it may name a mesh, while a log with a declaration of the file has not ended, or
//!   while a transaction may still count that speaks of it;
//! * a file that a declaration has is never unlinked; where something came to name a mesh after all, it is declared again;
//! * only this user's files and declarations go.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind::{AlreadyExists, NotFound, PermissionDenied, StorageFull};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_catalog::engine::FileDecl;
use fieldstone_catalog::file_use::{DeclaredFile, FileNames, FileUse};
use fieldstone_catalog::live::{Catalog, CatalogSettings};
use fieldstone_core::env::Env;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_journal::session::SessionId;
use fieldstone_store::api::{PurgeReport, Purging, Transactions};

use super::composed::Composed;
use crate::Session;
use crate::naming::{NamedFolders, OwnFile, hex, note_of};
use crate::transfer::meshes::{key_of, keys_of_import};

/// A file without a declaration is nobody's if it did not change for so long, nanoseconds.
const SILENT: i64 = 86_400_000_000_000;
/// How long a partition of arrays stays that no mesh and no import has, nanoseconds.
const KEPT: i64 = 30 * SILENT;
/// The session of the deletions: nothing else is in their commit.
const OWN: u64 = u64::MAX;

/// Frees what nothing names, and what earlier calls condemned; adds it to the report of the purge.
pub fn free(store: &Arc<Composed>, what: &Purging, report: &mut PurgeReport) -> Result<()> {
    let Some(root) = store.fields.folder() else { return Ok(()) };
    let env = store.journal.env().clone();
    let Some(grace) = store.journal.maintenance().grace_of(what.grace) else { return Ok(()) };
    let found = NamedFolders::look(&env, &root)?;
    if found.is_empty() {
        return Ok(());
    }
    if report.kept.is_some() {
        report.waiting += found.condemned.len() as u64;
        return Ok(());
    }
    let freeing = Freeing {
        store,
        catalog: Catalog::new(
            store.clone(),
            store.journal.clone(),
            CatalogSettings { engine: what.engine.clone() },
        ),
        user: store.journal.access().user(&what.session),
        session: Session::new(SessionId::of(OWN)),
        env,
        root,
        grace,
    };
    freeing.parts(&found, what.doit, report);
    if found.files.is_empty() && found.condemned.is_empty() {
        return Ok(());
    }
    match what.doit {
        true => freeing.act(found, report),
        false => freeing.estimate(&found, report),
    }
}

struct Freeing<'a> {
    store: &'a Arc<Composed>,
    catalog: Catalog,
    user: u32,
    session: Session,
    env: Env,
    root: PathBuf,
    grace: u64,
}

impl Freeing<'_> {
    /// Counts what would go.
    fn estimate(&self, found: &NamedFolders, report: &mut PurgeReport) -> Result<()> {
        report.waiting += found.condemned.len() as u64;
        let used = self.catalog.file_use()?;
        if found.is_open || used.blocked.is_some() {
            return Ok(());
        }
        for file in self.unnamed(found, &used, false).values() {
            count(file, report);
        }
        Ok(())
    }

    fn act(&self, found: NamedFolders, report: &mut PurgeReport) -> Result<()> {
        // Declarations of this process can go once its log has ended.
        self.store.journal.committer().leave_log();
        let used = self.catalog.file_use()?;
        if found.is_open || used.blocked.is_some() {
            report.waiting += found.condemned.len() as u64;
            return Ok(());
        }
        let unnamed = self.unnamed(&found, &used, false);
        let (mut condemned, mut used) = (found.condemned, used);
        if !unnamed.is_empty() {
            for file in self.condemn(&unnamed)? {
                count(file, report);
            }
            let now = NamedFolders::look(&self.env, &self.root)?;
            condemned = now.condemned;
            if now.is_open {
                report.waiting += condemned.len() as u64;
                return Ok(());
            }
            used = self.catalog.file_use()?;
        }
        let now = self.env.clock.now();
        for (path, since) in condemned {
            let age = u64::try_from(now.saturating_sub(since)).unwrap_or(0);
            if self.is_named(&path, &used)? {
                self.unlink(&note_of(&self.root.join(&path)))?;
            } else if age < self.grace || used.undecided.contains(&path) {
                report.waiting += 1;
            } else {
                // The note goes last: until then nobody takes the file for a whole one.
                self.unlink(&self.root.join(&path))?;
                self.unlink(&note_of(&self.root.join(&path)))?;
            }
        }
        Ok(())
    }

    /// Condemns files, and deletes their declarations; those that stay condemned.
    fn condemn<'b>(&self, unnamed: &'b BTreeMap<String, OwnFile>) -> Result<Vec<&'b OwnFile>> {
        for path in unnamed.keys() {
            let note = note_of(&self.root.join(path));
            match self.env.disk.create_alike(&note) {
                Ok(_) => {}
                Err(e) if matches!(e.kind(), AlreadyExists | NotFound | PermissionDenied | StorageFull) => {}
                Err(e) => return Err(Error::io("make", &note, e)),
            }
        }
        // R53: the notes are there, and only now the looks count.
        let (found, used) = (NamedFolders::look(&self.env, &self.root)?, self.catalog.file_use()?);
        let noted: BTreeSet<&str> = found.condemned.iter().map(|(path, _)| path.as_str()).collect();
        let still = match found.is_open || used.blocked.is_some() {
            true => BTreeMap::new(),
            false => self.unnamed(&found, &used, true),
        };
        let (going, staying): (Vec<&OwnFile>, Vec<&OwnFile>) =
            unnamed.values().partition(|file| still.contains_key(&file.path) && noted.contains(&*file.path));
        for file in staying {
            self.unlink(&note_of(&self.root.join(&file.path)))?;
        }
        let is_going = |declared: &&DeclaredFile| going.iter().any(|file| file.path == declared.decl.path());
        let declared: Vec<&DeclaredFile> = used.declared.iter().filter(is_going).collect();
        if declared.is_empty() {
            return Ok(going);
        }
        let ids: Vec<_> = declared.iter().map(|declared| declared.id).collect();
        self.catalog.remove_files(&ids, &self.session)?;
        self.store.flush(&self.session)?;
        self.store.journal.committer().leave_log();
        // A process that came in between saw the declarations: they count again.
        if NamedFolders::look(&self.env, &self.root)?.is_open {
            declared.iter().try_for_each(|declared| self.declare_again(&declared.decl))?;
            self.store.flush(&self.session)?;
            for file in going {
                self.unlink(&note_of(&self.root.join(&file.path)))?;
            }
            return Ok(Vec::new());
        }
        Ok(going)
    }

    /// Whether a condemned file has a name after all. A mesh without a declaration, whose name something gives, is declared
    /// again.
    fn is_named(&self, path: &str, used: &FileUse) -> Result<bool> {
        if used.declared.iter().any(|declared| declared.decl.path() == path) {
            return Ok(true);
        }
        let is_missing = |mesh: &str| {
            used.now.meshes.contains(mesh)
                && !used
                    .declared
                    .iter()
                    .any(|other| matches!(&other.decl, FileDecl::Mesh(of) if of.name == mesh))
        };
        let again =
            used.once.iter().rev().find(
                |decl| matches!(decl, FileDecl::Mesh(mesh) if mesh.path == path && is_missing(&mesh.name)),
            );
        let Some(decl) = again.filter(|_| self.env.disk.stat(&self.root.join(path)).is_ok()) else {
            return Ok(false);
        };
        self.declare_again(decl)?;
        self.store.flush(&self.session)?;
        Ok(true)
    }

    fn declare_again(&self, decl: &FileDecl) -> Result<()> {
        match self.catalog.declare_files(vec![decl.clone()], &self.session) {
            // Somebody gave the name to other content meanwhile.
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(()),
            declared => declared,
        }
    }

    /// The files that nothing names; `again`: also those that are condemned and have no declaration any more.
    fn unnamed(&self, found: &NamedFolders, used: &FileUse, again: bool) -> BTreeMap<String, OwnFile> {
        let mut of_file: BTreeMap<&str, Vec<&DeclaredFile>> = BTreeMap::new();
        for declared in &used.declared {
            of_file.entry(declared.decl.path()).or_default().push(declared);
        }
        let rows_of = |path: &str| of_file.get(path).map_or(&[][..], Vec::as_slice);
        let is_condemned = |path: &str| !again && found.condemned.iter().any(|(known, _)| known == path);
        let now = self.env.clock.now();
        let may_go = |file: &&OwnFile| {
            let rows = rows_of(&file.path);
            !used.undecided.contains(&file.path)
                && match rows.is_empty() {
                    true => !is_condemned(&file.path) && now.saturating_sub(file.changed) >= SILENT,
                    false => rows.iter().all(|row| row.user == self.user && row.has_ended),
                }
        };
        let candidates: Vec<&OwnFile> = found.files.iter().filter(may_go).collect();
        let mut unnamed = BTreeMap::new();
        for file in &candidates {
            let rows = rows_of(&file.path);
            let meshes: Vec<&str> = rows.iter().filter_map(|row| mesh_name(&row.decl)).collect();
            let was_named = meshes.iter().all(|mesh| used.ever.meshes.contains(*mesh));
            let is_named = meshes.iter().any(|mesh| used.now.meshes.contains(*mesh));
            if (rows.is_empty() || !meshes.is_empty()) && was_named && !is_named {
                unnamed.insert(file.path.clone(), (*file).clone());
            }
        }
        // With a mesh its partitions go, unless another file of the store has its content.
        let stays = |declared: &&DeclaredFile| !unnamed.contains_key(declared.decl.path());
        let staying = keys_of(&used.now, used.declared.iter().filter(stays).map(|declared| &declared.decl));
        let known = keys_of(&used.ever, used.once.iter());
        for file in candidates {
            let is_history = rows_of(&file.path).iter().any(|row| mesh_name(&row.decl).is_none());
            let key = key_of(&file.path);
            let is_old = || now.saturating_sub(file.changed) >= KEPT;
            if is_history && !staying.contains(key) && (known.contains(key) || is_old()) {
                unnamed.insert(file.path.clone(), file.clone());
            }
        }
        unnamed
    }

    /// Removes what writers left unfinished, and flags of processes that have ended.
    fn parts(&self, found: &NamedFolders, doit: bool, report: &mut PurgeReport) {
        let flags = found.stale.iter().filter(|_| doit);
        for flag in flags {
            let _ = self.env.disk.unlink(&self.root.join(flag));
        }
        for part in &found.parts {
            if !doit || self.env.disk.unlink(&self.root.join(&part.path)).is_ok() {
                count(part, report);
            }
        }
    }

    fn unlink(&self, path: &Path) -> Result<()> {
        match self.env.disk.unlink(path) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == NotFound => Ok(()),
            Err(e) => Err(Error::io("remove", path, e)),
        }
    }
}

fn count(file: &OwnFile, report: &mut PurgeReport) {
    report.condemned += 1;
    report.nbytes += file.bytes;
}

fn mesh_name(decl: &FileDecl) -> Option<&str> {
    match decl {
        FileDecl::Mesh(mesh) => Some(&mesh.name),
        FileDecl::History(_) => None,
    }
}

/// The beginnings of names of partitions that belong to meshes or imports.
fn keys_of<'a>(names: &FileNames, decls: impl Iterator<Item = &'a FileDecl>) -> BTreeSet<String> {
    let meshes = decls.filter_map(|decl| match decl {
        FileDecl::Mesh(mesh) => Some(hex(&mesh.checksum)),
        FileDecl::History(_) => None,
    });
    meshes.chain(names.imports.iter().flat_map(keys_of_import)).collect()
}
