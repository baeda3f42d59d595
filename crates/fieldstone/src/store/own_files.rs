//! The files that a store owns beside its logs: those of arrays, meshes and kept partitions.
//!
//! Their folders are made as those of logs are: with the group and the mode of the store's folder, so that whoever may write
//! logs may write them, whatever the umask.

use std::io;
use std::path::{Path, PathBuf};

use fieldstone_core::env::{Env, create_dirs_alike};
use fieldstone_core::{Code, Error, Result};

/// The folder of array files within a store's.
pub const ARRAYS: &str = "arrays";
/// The folder of meshes within a store's.
pub const MESHES: &str = "meshes";
/// The folder of kept partitions within a store's.
pub const HISTORIES: &str = "histories";
/// All of them.
pub const FOLDERS: [&str; 3] = [ARRAYS, MESHES, HISTORIES];
/// Permission bit of a folder in which nobody but its owner and theirs removes the files of others.
const STICKY: u32 = 0o1000;

/// Makes a folder within the store in the folder `root`, where it is absent.
///
/// Errors: as of [`check_owners`].
pub fn make_folder(env: &Env, root: &Path, within: &str) -> Result<PathBuf> {
    let folder = root.join(within);
    create_dirs_alike(&*env.disk, &folder).map_err(|e| Error::io("make", &folder, e))?;
    check_owners(env, root, within)?;
    Ok(folder)
}

/// Refuses a folder within the store, or one above it there, whose owner could take away what others write into it: one who
/// owns neither the store nor the process, where the folder has not the sticky bit. Of what is absent nothing is said.
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
                    "the folder {} belongs to {owner}, who could take away what others write into it",
                    folder.display()
                ))
                .with_hint("it needs the sticky bit (chmod +t), or has to belong to the store's owner"));
        }
    }
    Ok(())
}
