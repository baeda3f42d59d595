//! Meshes and kept partitions of a transfer: their files, and what the catalog says of them.
//!
//! A mesh goes along if a group or a variable of the transfer names it, a partition if its mesh or an import of a run does;
//! by a request for the whole store, all of them. The source keeps them: other data may need them, and purge removes those
//! that nothing names.
//!
//! Invariants:
//! * a file is durable in the target under its own name before the target's catalog names it, and is compared with the bytes
//!   that were read; a file that the target's catalog names already is not touched;
//! * a mesh that the target has under the same name with other content is Conflict, before any field moves;
//! * memory holds a megabyte of a file.

use std::collections::BTreeSet;
use std::path::Path;

use fieldstone_core::dtype::DType;
use fieldstone_core::env::{read_exact_at, write_all_at};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{HistoryDecl, ImportDecl, MeshDecl};
use xxhash_rust::xxh3::Xxh3;

use super::declared::{DeclaredRun, mesh_names};
use super::left::Left;
use crate::Session;
use crate::Store;
use crate::arrays::{check_mesh_of, edges_of_import};
use crate::naming::{Naming, hex};
use crate::own_files::{HISTORIES, MESHES, PART, make_folder};

/// Bytes of a file in memory at once.
const PART_BYTES: usize = 1 << 20;
/// Integer variables of an import beyond which pairs of them are not looked up.
const PAIRS: usize = 64;
/// Why they stay.
const NO_FOLDER: &str = "the target has no folder for its file";
const NO_SOURCE: &str = "its file is not in a folder that this process reaches";

/// Meshes and partitions to carry over.
#[derive(Debug, Default)]
pub struct Meshes {
    meshes: Vec<MeshDecl>,
    histories: Vec<HistoryDecl>,
    /// Those that stay, by kind, with the reason.
    stay: Vec<(&'static str, Vec<String>, &'static str)>,
}

impl Meshes {
    /// Those of the runs of a transfer; `everything`: all of the store.
    pub fn of(from: &Store, to: &Store, runs: &[DeclaredRun], everything: bool) -> Result<Meshes> {
        let (catalog, session) = (from.catalog(), Session::default());
        let all = catalog.meshes(&session)?;
        let named = mesh_names(runs);
        let meshes: Vec<MeshDecl> =
            all.into_iter().filter(|mesh| everything || named.contains(&mesh.name)).collect();
        let mut of = Meshes { meshes, ..Meshes::default() };
        let keys: Vec<String> = of.meshes.iter().map(|mesh| hex(&mesh.checksum)).collect();
        let imports = runs.iter().flat_map(|of| &of.imports);
        let keys: BTreeSet<String> = keys.into_iter().chain(imports.flat_map(keys_of_import)).collect();
        let wanted = |history: &HistoryDecl| everything || keys.contains(key_of(&history.path));
        of.histories = catalog.histories(&session)?.into_iter().filter(wanted).collect();
        let why = match (to.backend().folder(), from.backend().folder()) {
            (None, _) => NO_FOLDER,
            (_, None) => NO_SOURCE,
            _ => return of.sound(from, to),
        };
        let there = to.catalog().meshes(&session)?;
        let stay = std::mem::take(&mut of.meshes).into_iter().map(|mesh| mesh.name);
        let stay = stay.filter(|name| !there.iter().any(|mesh| mesh.name == *name)).collect();
        of.stay.push(("mesh", stay, why));
        let stay = std::mem::take(&mut of.histories).into_iter().map(|history| history.path).collect();
        of.stay.push(("history", stay, why));
        Ok(of)
    }

    /// Leaves meshes whose files are damaged.
    fn sound(mut self, from: &Store, to: &Store) -> Result<Meshes> {
        let mut damaged = Vec::new();
        let known = to.catalog().meshes(&Session::default())?;
        self.meshes.retain(|mesh| {
            let is_there = known.iter().any(|other| other.path == mesh.path);
            let sound = is_there || check_mesh_of(from, mesh).is_ok();
            damaged.extend((!sound).then(|| mesh.name.clone()));
            sound
        });
        self.stay.push(("mesh", damaged, "its file cannot be read, or is another one; verify says more"));
        Ok(self)
    }

    /// Reports those that stay.
    pub fn report(&self, left: &mut Left) {
        for (kind, names, why) in &self.stay {
            left.add(kind, names.len(), names.clone(), why);
        }
    }

    /// Says to purges of the target that it may name them, until the transfer has ended.
    pub fn naming(&self, to: &Store) -> Result<Option<Naming>> {
        let within = match (self.meshes.is_empty(), self.histories.is_empty()) {
            (true, true) => return Ok(None),
            (true, false) => HISTORIES,
            (false, _) => MESHES,
        };
        let Some(root) = to.backend().folder() else { return Ok(None) };
        let env = to.backend().env();
        to.backend().create()?;
        let folder = make_folder(env, &root, within)?;
        Naming::of_job(env, &folder, &crate::arrays::new_job(env))
    }

    /// Gives the target what it lacks, in a transaction.
    pub fn put(&self, from: &Store, to: &Store, transaction: Id) -> Result<()> {
        let (catalog, session) = (to.catalog(), Session::from(transaction));
        let known = catalog.meshes(&session)?;
        let mut meshes = Vec::with_capacity(self.meshes.len());
        for mesh in &self.meshes {
            let mut mesh = mesh.clone();
            match known.iter().find(|other| other.path == mesh.path) {
                // The same content; the bytes of the file may differ by attributes.
                Some(there) => mesh.sums.clone_from(&there.sums),
                None => copy_file(from, to, &mesh.path)?,
            }
            if let Some(there) = known.iter().find(|other| other.name == mesh.name) {
                // The name keeps the attributes that it has.
                mesh.attrs.clone_from(&there.attrs);
            }
            meshes.push(mesh);
        }
        catalog.create_meshes(meshes, &session)?;
        let known = catalog.histories(&session)?;
        let is_new = |history: &&HistoryDecl| !known.iter().any(|other| other.path == history.path);
        let histories: Vec<HistoryDecl> = self.histories.iter().filter(is_new).cloned().collect();
        histories.iter().try_for_each(|history| copy_file(from, to, &history.path))?;
        catalog.create_histories(histories, &session)
    }
}

/// The part of a partition's path that says whose edges it has: what stands before its vector, or its suffix.
pub fn key_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split(['-', '.']).next().unwrap_or(name)
}

/// The names of partitions whose edges are two variables of an import.
pub fn keys_of_import(import: &ImportDecl) -> Vec<String> {
    let is_row =
        |dtype: DType, shape: &[u64]| [DType::I4, DType::I8].contains(&dtype.to_native()) && shape.len() == 1;
    let rows = import.variables.iter().filter(|variable| is_row(variable.dtype, &variable.shape));
    let rows: Vec<&str> = rows.map(|variable| variable.name.as_str()).take(PAIRS).collect();
    let pairs = rows.iter().flat_map(|first| rows.iter().map(move |second| (*first, *second)));
    let both = pairs.flat_map(|pair| [(pair, 0), (pair, 1)]);
    both.map(|((first, second), base)| edges_of_import(import.clone(), first, second, base)).collect()
}

/// Copies a file of the store under its name, and compares it.
fn copy_file(from: &Store, to: &Store, path: &str) -> Result<()> {
    let folders = from.backend().folder().zip(to.backend().folder());
    let (source, target) =
        folders.ok_or_else(|| Error::internal("a file goes to a store without a folder"))?;
    let (source_env, env) = (from.backend().env(), to.backend().env());
    let (within, name) = path.rsplit_once('/').unwrap_or(("", path));
    to.backend().create()?;
    let folder = make_folder(env, &target, within)?;
    let (source, place) = (source.join(path), folder.join(name));
    let job = crate::arrays::new_job(env);
    let part = folder.join(format!("{name}.{job}.{}{PART}", env.identity.writer_name()));
    let copied = copy_bytes(&*source_env.disk, &source, &*env.disk, &part).and_then(|()| {
        env.disk.rename(&part, &place).map_err(|e| Error::io("name", &place, e))?;
        env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))
    });
    if copied.is_err() {
        let _ = env.disk.unlink(&part);
    }
    copied
}

fn copy_bytes(
    from: &dyn fieldstone_core::env::Disk,
    source: &Path,
    to: &dyn fieldstone_core::env::Disk,
    target: &Path,
) -> Result<()> {
    let file = from.open_read(source).map_err(|e| Error::io("open", source, e))?;
    let made = to.create_alike(target).map_err(|e| Error::io("create", target, e))?;
    let len = file.stat().map_err(|e| Error::io("look at", source, e))?.len;
    let mut bytes = vec![0; PART_BYTES];
    let mut sums = [Xxh3::new(), Xxh3::new()];
    for reads in [true, false] {
        let mut at = 0;
        while at < len {
            let part = &mut bytes[..(len - at).min(PART_BYTES as u64) as usize];
            if reads {
                read_exact_at(&*file, part, at).map_err(|e| Error::io("read", source, e))?;
                write_all_at(&*made, part, at).map_err(|e| Error::io("write", target, e))?;
            } else {
                read_exact_at(&*made, part, at).map_err(|e| Error::io("read", target, e))?;
            }
            sums[usize::from(reads)].update(part);
            at += part.len() as u64;
        }
        if reads {
            made.sync_data().map_err(|e| Error::io("sync", target, e))?;
        }
    }
    match sums[0].digest128() == sums[1].digest128() {
        true => Ok(()),
        false => Err(Code::CopyDiffers
            .error(format!("{} does not return the bytes that were written", target.display()))
            .with_hint("nothing was copied; look at the disk of the target")),
    }
}
