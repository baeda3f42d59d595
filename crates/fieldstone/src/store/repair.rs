//! Repair: damaged and missing parts of a store's files are mended by a backup of it, or by what the store itself has twice.
//!
//! The store is first looked at as it would be (J-56): a dry run and a repair find the same, and a repair writes what was found.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, BackupOptions, OpenOptions, RepairOptions, Request, Value, backup, open, repair};
//!
//! let folder = tempfile::tempdir()?;
//! let (at, copy) = (folder.path().join("s"), folder.path().join("copy"));
//! let store = open(&at.display().to_string(), &OpenOptions::default())?;
//! store.archive(&[("run", "a"), ("variable", "t"), ("step", "0")], Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! backup(&store, &copy, &BackupOptions::default())?;
//! store.close()?;
//! std::fs::remove_file(at.join("fieldstone.store"))?;
//! let mut options = RepairOptions { source: Some(&copy), ..RepairOptions::default() };
//! let found = repair(&store, &[Request::new()], &options)?;
//! assert_eq!((found.mended[0].file.as_str(), found.left.len(), found.done), ("fieldstone.store", 0, false));
//! options.doit = true;
//! assert!(repair(&store, &[Request::new()], &options)?.done && at.join("fieldstone.store").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::Path;

use fieldstone_array::distributed::partition::history::verify_history;
use fieldstone_core::env::Env;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Error, Result};
use fieldstone_journal::journal::repair::mend_index;
use fieldstone_journal::medium::posix::repair::Bench;
use fieldstone_store::api::Damage;
use fieldstone_store::local::{LocalOptions, LocalStore};
use fieldstone_store::repair::mend_fields;

use super::Store;
use super::composed::Composed;
use super::verify::verify;
use crate::Session;
use crate::arrays::check_mesh_of;
use crate::catalog::CatalogSettings;
use crate::own_files::{HISTORIES, MESHES};

pub use fieldstone_journal::medium::posix::repair::MendedPart;

/// Options of [`repair`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RepairOptions<'a> {
    /// A backup of the store, or another copy of its folder.
    pub source: Option<&'a Path>,
    /// Mends; otherwise the call only says what it would mend.
    pub doit: bool,
}

/// The result of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// The parts that are mended, or would be.
    pub mended: Vec<MendedPart>,
    /// The damage that stays, as [`verify`](fieldstone_store::api::Admin::verify) names it, and why parts of the backup were not
    /// taken.
    pub left: Vec<Damage>,
    /// Bytes that were written.
    pub nbytes: u64,
    /// Whether it was done.
    pub done: bool,
}

/// Mends damaged and missing parts of a store's files, byte for byte, by a backup of it; without one, by what the store has
/// twice, and what follows from other files. A byte of the backup counts only where a checksum covers it, and where nothing whole
/// in the store contradicts. Of fields, those are mended that one of the
/// requests selects, and in any case the index, in which they are found.
///
/// Nothing is written without `doit`. Bytes that match are never written, so that the call may end at any moment, and others may
/// read and write meanwhile. The store's other handles see mended files when they are opened again. The report names in
/// `left` what cannot be mended; [`Store::accept`] gives it up.
///
/// Errors: `Conflict` if `source` is of another store; `Invalid` for a store in memory; `Denied` if all that could be mended is
/// in files of other users: the owner of a file mends it, or root.
pub fn repair(store: &Store, requests: &[Request], options: &RepairOptions<'_>) -> Result<RepairReport> {
    let folder = store.backend().native_folder().ok_or_else(|| {
        Error::invalid(format!("the store at {} is not in a folder of this machine", store.backend().url()))
            .with_hint("mend the store where its folder is")
    })?;
    let report = repair_in(&Env::real(), &folder, requests, options)?;
    // Indexes passed over what could not be read.
    if report.done && report.mended.iter().any(|part| part.file.starts_with("logs/")) {
        store.catalog().rebuild()?;
        store.graph().rebuild()?;
    }
    Ok(report)
}

/// The same in a folder of an environment, without its indexes: for tests and simulations.
pub fn repair_in(
    env: &Env,
    folder: &Path,
    requests: &[Request],
    options: &RepairOptions<'_>,
) -> Result<RepairReport> {
    let mut bench = Bench::new(env, folder, options.source)?;
    mend_index(&mut bench)?;
    requests.iter().try_for_each(|request| mend_fields(&mut bench, request))?;
    let others = bench.leave_others();
    if options.doit
        && bench.mended().is_empty()
        && let Some(first) = others.first()
    {
        return Err(Code::PermissionDenied
            .error(format!("{first} and all other files that could be mended belong to other users"))
            .with_hint("their owners mend them, or root"));
    }
    let seen = store_of(&bench)?;
    let mut left: Vec<Damage> = Vec::new();
    for request in requests {
        let found = verify(&seen, request)?.damaged;
        left.extend(found.into_iter().filter(|damage| !left.contains(damage)).collect::<Vec<_>>());
    }
    if options.source.is_some() {
        mend_own_files(&mut bench, &seen, &mut left)?;
    }
    let unmended = bench.unmended().iter();
    left.extend(unmended.map(|part| Damage { key: None, file: part.file.clone(), why: part.why.clone() }));
    let nbytes = if options.doit { bench.apply()? } else { 0 };
    Ok(RepairReport { mended: bench.mended().to_vec(), left, nbytes, done: options.doit })
}

/// The store as a bench shows it.
fn store_of(bench: &Bench) -> Result<Store> {
    let url = bench.root().display().to_string();
    let options = LocalOptions { url, must_exist: true, ..LocalOptions::default() };
    let fields = LocalStore::open(bench.world(), bench.root(), options)?;
    Ok(Store::over(Composed::new(fields, false), CatalogSettings::default()))
}

/// Mends damaged meshes and kept partitions, each of which says itself whether it is whole; those that are leave the list.
fn mend_own_files(bench: &mut Bench, seen: &Store, damaged: &mut Vec<Damage>) -> Result<()> {
    let is_own =
        |file: &str| [MESHES, HISTORIES].iter().any(|folder| file.starts_with(&format!("{folder}/")));
    if !damaged.iter().any(|damage| is_own(&damage.file)) {
        return Ok(());
    }
    let meshes = seen.catalog().meshes(&Session::default())?;
    let disk = bench.world().disk;
    let mut left = Vec::new();
    for damage in damaged.drain(..) {
        let path = damage.file.clone();
        let before = bench.changes(&path);
        if !is_own(&path) || !bench.take_alike(&path) {
            left.push(damage);
            continue;
        }
        let decl = meshes.iter().find(|decl| decl.path == path);
        let checked = match decl {
            Some(decl) => check_mesh_of(seen, decl).map(drop),
            None => verify_history(&*disk, &bench.root().join(&path)).map(drop),
        };
        match checked {
            Ok(()) => {
                let how = bench.of_source("damaged parts");
                bench.note(None, &path, how);
            }
            Err(_) => {
                bench.put_back(&path, before);
                left.push(damage);
            }
        }
    }
    *damaged = left;
    bench.leave_others();
    Ok(())
}
