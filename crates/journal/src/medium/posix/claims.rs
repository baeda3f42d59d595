//! Claims: files that say who owns a dataset or a run, by the user whom the file system names as theirs (J-22).
//!
//! Invariants:
//! * nothing that a user writes into a claim, and no date, makes him an owner: only that he was the first to
//!   make a file of that name, in a folder where nobody removes another's (the sticky bit);
//! * a claim is durable before the commit that it is made for;
//! * exclusive creation decides, also where names show late: a name that is taken and does not show is somebody's.
//!
//! A folder of logs that only its owner may write to needs none, and gets none.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind::{AlreadyExists, InvalidInput, NotFound, PermissionDenied};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::{Disk, DiskFile, Env, creation_failed, write_all_at};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Error, Result};
use fieldstone_format::claim;
use fieldstone_format::keys::level_text;

use super::layout::Layout;
use crate::medium::Claims;

/// The first pause before a claim that does not show is looked for again, nanoseconds; each is twice the one before, up to
/// the greatest.
const PAUSE: u64 = 50_000_000;
const PAUSE_MAX: u64 = 3_200_000_000;

/// The claims of a store as a listing of its logs shows them; each is read when it is asked for.
#[derive(Debug)]
pub struct ListedClaims {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    names: BTreeSet<String>,
    /// Owner and level of claims that were read, by name.
    read: Mutex<BTreeMap<String, Claim>>,
}

/// A claim: its owner, and its level where it says one.
type Claim = (u32, Option<Vec<u8>>);

impl ListedClaims {
    /// The claims among these names of the folder of logs.
    pub fn new(disk: Arc<dyn Disk>, layout: &Layout, names: &[String]) -> ListedClaims {
        let names = names.iter().filter(|name| claim::is_file_name(name)).cloned().collect();
        ListedClaims { disk, folder: layout.logs(), names, read: Mutex::default() }
    }
}

impl Claims for ListedClaims {
    /// A claim that cannot be read is none.
    fn owner(&self, level: &[u8]) -> Option<u32> {
        if self.names.is_empty() {
            return None;
        }
        for number in 0..claim::NAMES {
            let name = claim::file_name(level, number);
            if !self.names.contains(&name) {
                return None;
            }
            let mut read = self.read.lock();
            let (owner, of) = match read.get(&name) {
                Some(seen) => seen,
                None => {
                    let claim =
                        read_claim(&*self.disk.open_plain(&self.folder.join(&name), false).ok()?).ok()?;
                    read.entry(name).or_insert(claim)
                }
            };
            if of.as_ref().is_none_or(|of| of == level) {
                return Some(*owner);
            }
        }
        None
    }
}

fn read_claim(file: &dyn DiskFile) -> std::io::Result<Claim> {
    let stat = file.stat()?;
    let mut bytes = vec![0; stat.len.min(claim::CLAIM_MAX) as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    // Its maker may have died before it was whole: then its name says what it is for.
    Ok((stat.uid, claim::decode(&bytes[..filled]).ok()))
}

/// Makes claims on encoded first levels for this process's user, durable when it returns, where others may
/// write into the folder of logs; `false` where that cannot be seen yet. The owner of the first level that is
/// claimed by somebody else is the inner error.
pub fn claim_levels<'a>(
    env: &Env,
    layout: &Layout,
    levels: impl IntoIterator<Item = &'a Vec<u8>>,
) -> Result<std::result::Result<bool, (Vec<u8>, u32)>> {
    let folder = layout.logs();
    match env.disk.stat(&folder) {
        Ok(stat) if stat.is_shared() => {}
        Ok(_) => return Ok(Ok(true)),
        // Another host's folder shows late. A claim too many harms nobody; without one, what this commit holds might
        // belong to somebody else, and nobody would say so.
        Err(e) if e.kind() == NotFound && env.disk.lags(&folder) => {}
        Err(e) if e.kind() == NotFound => return Ok(Ok(false)),
        Err(e) => return Err(Error::io("look at", &folder, e)),
    }
    let mut made = false;
    for level in levels {
        match claim_level(env, &folder, level)? {
            Outcome::Made => made = true,
            Outcome::Ours => {}
            Outcome::Of(owner) => return Ok(Err((level.clone(), owner))),
        }
    }
    if made {
        env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
    }
    Ok(Ok(true))
}

/// Reads a claim whose name is taken; waits a little where it does not show yet.
fn read_there(env: &Env, path: &Path) -> std::io::Result<Claim> {
    let mut pause = PAUSE;
    loop {
        let read = env.disk.open_plain(path, false).and_then(|file| read_claim(&*file));
        match read {
            Err(e) if e.kind() == NotFound && pause <= PAUSE_MAX => {
                env.clock.sleep(pause);
                pause *= 2;
            }
            read => return read,
        }
    }
}

enum Outcome {
    Made,
    Ours,
    Of(u32),
}

fn claim_level(env: &Env, folder: &Path, level: &[u8]) -> Result<Outcome> {
    for number in 0..claim::NAMES {
        let path = folder.join(claim::file_name(level, number));
        match env.disk.create_alike(&path) {
            Ok(file) => {
                let written = write_all_at(&*file, &claim::encode(level), 0).and_then(|()| file.sync_data());
                return written.map(|()| Outcome::Made).map_err(|e| Error::io("write", &path, e));
            }
            Err(e) if e.kind() == AlreadyExists => {}
            Err(e) => return Err(creation_failed(&*env.disk, &path, e)),
        }
        let there = match read_there(env, &path) {
            Ok(there) => there,
            // The name is taken by a file that is not a claim, or that this user may not read: the next name says who
            // owns it.
            Err(e) if matches!(e.kind(), PermissionDenied | InvalidInput) => continue,
            // It is somebody's, and shows late: to take the next name would make two owners.
            Err(e) if e.kind() == NotFound => {
                let text = level_text(level);
                return Err(Error::unavailable(format!(
                    "another process claims dataset {text} at this moment, and {} does not show here yet",
                    path.display()
                ))
                .with_hint("flush again: what was archived waits for that"));
            }
            Err(e) => return Err(Error::io("read", &path, e)),
        };
        if there.1.as_ref().is_none_or(|of| of == level) {
            let ours = there.0 == env.identity.uid();
            return Ok(if ours { Outcome::Ours } else { Outcome::Of(there.0) });
        }
    }
    Err(Error::denied(format!("all names of a claim are taken in {}", folder.display()))
        .with_hint("there are other files than claims: ask who owns the folder to remove them"))
}
