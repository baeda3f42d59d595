//! The files that a store owns besides its logs: those of arrays, meshes and kept partitions.
//!
//! Their folders are made like those of logs: with the group and the mode of the store's folder, so that all users who
//! may write logs may write them, whatever the umask.

use std::io;
use std::path::{Path, PathBuf};

use fieldstone_core::env::{Disk, Env, FileKind, create_dirs_alike};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::netcdf::write::UNFINISHED;
pub use fieldstone_journal::medium::posix::array_files::is_gone;
use fieldstone_journal::medium::posix::array_files::{is_mark, is_note};

/// The folder of array files in a store's.
pub const ARRAYS: &str = "arrays";
/// The folder of meshes in a store's.
pub const MESHES: &str = "meshes";
/// The folder of kept partitions in a store's.
pub const HISTORIES: &str = "histories";
/// All of them.
pub const FOLDERS: [&str; 3] = [ARRAYS, MESHES, HISTORIES];
/// Suffix of a file that is being written.
pub const PART: &str = ".part";
/// Maximum depth of folders that are searched.
const DEPTH: usize = 16;
/// Permission bit of a folder in which only its owner and a file's owner can remove a file.
const STICKY: u32 = 0o1000;

/// Prefix of the flag of an open job.
const FLAG: &str = "open-";

/// The name of the flag that a writer leaves in the folder of its job.
pub fn flag_of(writer: &str) -> String {
    format!("{FLAG}{writer}")
}

/// Removes unfinished files of ended writers: this user's files in the folders of meshes and kept partitions. Files
/// that cannot be removed stay, and `verify` names them.
pub fn remove_left(env: &Env, root: &Path) {
    for folder in [MESHES, HISTORIES].map(|folder| root.join(folder)) {
        for (name, kind) in env.disk.list_dir(&folder).unwrap_or_default() {
            let path = folder.join(&name);
            let is_left = kind == FileKind::File && name.ends_with(PART) && is_gone(env, &path);
            if is_left && env.disk.stat(&path).is_ok_and(|stat| stat.uid == env.identity.uid()) {
                let removed = env.disk.unlink(&path);
                tracing::info!(path = %path.display(), ?removed, "removing a file that its writer left unfinished");
            }
        }
    }
}

/// Makes a folder in the store at `root`, if it is absent.
///
/// Errors: as of [`check_owners`].
pub fn make_folder(env: &Env, root: &Path, within: &str) -> Result<PathBuf> {
    let folder = root.join(within);
    create_dirs_alike(&*env.disk, root, &folder).map_err(|e| Error::io("make", &folder, e))?;
    check_owners(env, root, within)?;
    Ok(folder)
}

/// Checks a folder in the store and the folders above it there: fails if its owner could remove other users' files,
/// because the owner is neither the store's nor the process's, and the folder lacks the sticky bit. Absent folders
/// pass.
///
/// Errors: `Denied`, naming the folder and its owner.
pub fn check_owners(env: &Env, root: &Path, within: &str) -> Result<()> {
    let failed = |path: &Path, e| Error::io("look at", path, e);
    let trusted = match env.disk.stat(root) {
        Ok(stat) => [stat.uid, env.identity.uid(), 0],
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(root, e)),
    };
    let mut folder = root.to_owned();
    for part in within.split('/') {
        folder.push(part);
        let stat = match env.disk.stat(&folder) {
            Ok(stat) => stat,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(failed(&folder, e)),
        };
        if !trusted.contains(&stat.uid) && stat.mode & STICKY == 0 {
            let owner = env.identity.user_name(stat.uid);
            return Err(Code::PermissionDenied
                .error(format!(
                    "the folder {} belongs to {owner}, who could remove the files that others write into it",
                    folder.display()
                ))
                .with_hint("set the sticky bit (chmod +t), or give the folder to the store's owner"));
        }
    }
    Ok(())
}

/// The content of the folders of a store's own files.
#[derive(Debug, Default)]
pub struct OwnFiles {
    /// Paths in the store, with bytes; also entries that are not plain files, which have none.
    pub files: Vec<(String, u64)>,
    /// Paths that could not be examined, and why.
    pub unread: Vec<(String, io::Error)>,
    /// Whether any of the folders exists.
    pub exist: bool,
}

impl OwnFiles {
    /// The files of the store in the folder `root`.
    pub fn of(disk: &dyn Disk, root: &Path) -> OwnFiles {
        let mut found = OwnFiles::default();
        FOLDERS.iter().for_each(|folder| found.look(disk, root, folder, DEPTH));
        found.files.sort();
        found
    }

    fn look(&mut self, disk: &dyn Disk, root: &Path, folder: &str, depth: usize) {
        let names = match disk.list_dir(&root.join(folder)) {
            Ok(names) => names,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return,
            Err(e) => return self.unread.push((folder.to_owned(), e)),
        };
        self.exist = true;
        for (name, kind) in names {
            let path = format!("{folder}/{name}");
            match kind {
                FileKind::Directory if depth > 0 => self.look(disk, root, &path, depth - 1),
                FileKind::File => match disk.stat(&root.join(&path)) {
                    Ok(stat) => self.files.push((path, stat.len)),
                    // Removed after the folder was read.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    Err(e) => self.unread.push((path, e)),
                },
                _ => self.files.push((path, 0)),
            }
        }
    }
}

/// Whether a file is the flag of an open job in its folder, keeps account of who writes there, or condemns another one.
pub fn is_flag(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    is_note(name) || path.starts_with(ARRAYS) && is_mark(name)
}

/// Whether a netCDF file is marked as unfinished.
pub fn shows_nothing(disk: &dyn Disk, path: &Path) -> bool {
    let mut magic = [0; UNFINISHED.len()];
    let read = disk.open_plain(path, false).and_then(|file| file.read_at(&mut magic, 0));
    read.is_ok() && magic == UNFINISHED
}
