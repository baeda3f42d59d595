//! Files beside the logs: arrays, meshes, histories. Jobs write them in place, so that a file which changed is compared with
//! its copy, and only what differs is written.

use std::collections::BTreeMap;
use std::io::ErrorKind::NotFound;

use fieldstone_core::env::{FileKind, create_dirs_alike};
use fieldstone_core::{Error, Result};
use fieldstone_format::copy_mark::BesideFile;

use super::Beside;
use super::copier::Copier;
use crate::medium::posix::array_files::is_note;

/// The folders of such files.
pub const FOLDERS: [&str; 3] = ["arrays", "meshes", "histories"];
/// A file that changed less than this long ago may change again without a new time, nanoseconds.
const FRESH: i64 = 2_000_000_000;

/// Copies files that changed since they were copied; the files that are there now.
pub fn copy(copier: &mut Copier<'_>, known: &Beside) -> Result<Beside> {
    let known: BTreeMap<&str, &BesideFile> = known.iter().map(|file| (file.path.as_str(), file)).collect();
    let mut files = find(copier)?;
    for file in &mut files {
        let to = copier.target.1.root().join(&file.path);
        let is_there = copier.target.0.disk.stat(&to).is_ok_and(|stat| stat.len == file.bytes);
        if is_there && known.get(file.path.as_str()).is_some_and(|known| **known == *file) {
            continue;
        }
        if let Some(folder) = to.parent() {
            let made = create_dirs_alike(&*copier.target.0.disk, copier.target.1.root(), folder);
            made.map_err(|e| Error::io("make", folder, e))?;
        }
        copier.equal(&file.path)?;
        // The folders above may be new, too.
        let root = copier.target.1.root();
        for folder in to.ancestors().skip(1).take_while(|folder| folder.starts_with(root)) {
            copier.target.0.disk.sync_dir(folder).map_err(|e| Error::io("sync", folder, e))?;
        }
        if copier.source.0.clock.now().saturating_sub(file.changed) < FRESH {
            // Another change within the same tick would not show.
            file.changed = 0;
        }
    }
    Ok(files)
}

/// The files of the source, by path. Those that are being made, and flags of jobs, are left out.
fn find(copier: &Copier<'_>) -> Result<Beside> {
    let ((env, layout), mut files) = (copier.source, Vec::new());
    let mut folders: Vec<String> = FOLDERS.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(folder) = folders.pop() {
        let path = layout.root().join(&folder);
        let names = match env.disk.list_dir(&path) {
            Ok(names) => names,
            Err(e) if e.kind() == NotFound => continue,
            Err(e) => return Err(Error::io("list", &path, e)),
        };
        for (name, kind) in names {
            let path = format!("{folder}/{name}");
            match kind {
                FileKind::Directory => folders.push(path),
                FileKind::File if !(name.ends_with(".part") || is_note(&name) || name.contains('\n')) => {
                    let whole = layout.root().join(&path);
                    match env.disk.stat_with_time(&whole) {
                        Ok((stat, changed)) => files.push(BesideFile { path, bytes: stat.len, changed }),
                        Err(e) if e.kind() == NotFound => {}
                        Err(e) => return Err(Error::io("look at", &whole, e)),
                    }
                }
                _ => {}
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
