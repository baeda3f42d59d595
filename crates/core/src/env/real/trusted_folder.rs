//! Folders that may hold files derived from a store's logs, such as the catalog's engine: they must belong to this
//! user alone. A user who can put a file there, or lock one, could falsify or delay answers.
//!
//! | object | used if it |
//! |---|---|
//! | the folder | is a folder, not a link; is ours; is not writable for others. This module also takes others' right to read it |
//! | its parent folder | is ours or root's; is not writable for others, or is sticky, so that no other user can replace the folder |
//! | all folders above | obey the same rule, for folders in the user's cache and the temporary folder, with links resolved first. A user who can replace the store's own folder controls the store anyway |
//! | a file in it | is a regular file, not a link; is ours; has no second name; is not writable for others. Otherwise it is removed, with the rest |
//!
//! This module examines files by name and never opens them: closing a file of SQLite would release all locks that
//! this process has on it.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags};

use super::{is_network, user_cache};

/// Mode bits by which other users may write.
const OTHERS_WRITE: u32 = 0o022;
/// Mode bits that give other users any access.
const OTHERS: u32 = 0o077;
/// The sticky bit: only owners rename and remove the entries of the folder.
const STICKY: u32 = 0o1000;

/// Finds a folder for files derived from the logs of a store: one with this name in the store's own folder, else
/// below folders with the names `below` in the user's cache, else in the system's temporary folder. `None` if no
/// place is suitable; the derived data are then kept in memory.
pub fn for_index(store: &Path, name: &str, below: &[&str], uid: u32) -> Option<PathBuf> {
    // A folder that this process makes would not be another user's.
    if uid != rustix::process::geteuid().as_raw() {
        return None;
    }
    let temporary = || {
        let user = format!("fieldstone-{uid}");
        usable(of_user(&std::env::temp_dir(), &[&[user.as_str()], below].concat(), uid)?)
    };
    beside(store, name, uid).or_else(|| in_cache(store, below, uid)).or_else(temporary)
}

/// A folder inside the store's, if that is on a local file system.
pub fn beside(store: &Path, name: &str, uid: u32) -> Option<PathBuf> {
    if is_network(store) { None } else { usable(in_store(store, name, uid)?) }
}

fn in_cache(store: &Path, below: &[&str], uid: u32) -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let cache = match named("XDG_CACHE_HOME") {
        Some(folder) if folder.is_absolute() => folder,
        _ => named("HOME")?.join(".cache"),
    };
    let folder = usable(of_user(&cache, &[&["fieldstone"], below].concat(), uid)?)?;
    // The first name is the store's id, which also names its entry.
    let entry = folder.ancestors().nth(below.len().saturating_sub(1));
    if let (Some(entry), Ok(store)) = (entry, store.canonicalize()) {
        user_cache::note_use(entry, &store, uid);
    }
    Some(folder)
}

/// Returns the folder if it is ours and we may write to it.
fn usable(folder: PathBuf) -> Option<PathBuf> {
    let may = rustix::fs::access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    (may && !is_network(&folder)).then_some(folder)
}

/// Whether `folder` is a folder, not a link, that belongs to this user and that no other user may write to.
pub fn is_own(folder: &Path, uid: u32) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|facts| facts.is_dir() && facts.uid() == uid && facts.mode() & OTHERS_WRITE == 0)
}

/// Whether only this user and root can remove this user's entries from a folder.
fn keeps(facts: &Metadata, uid: u32) -> bool {
    let mode = facts.mode();
    facts.is_dir() && [uid, 0].contains(&facts.uid()) && (mode & OTHERS_WRITE == 0 || mode & STICKY != 0)
}

/// A folder inside the store's; created if the store's folder is ours and lacks it.
pub fn in_store(store: &Path, name: &str, uid: u32) -> Option<PathBuf> {
    let store = store.canonicalize().ok()?;
    let facts = fs::symlink_metadata(&store).ok()?;
    if !keeps(&facts, uid) {
        return None;
    }
    let folder = store.join(name);
    if facts.uid() == uid {
        make(&folder).ok()?;
    }
    close(&folder, uid).then_some(folder)
}

/// A folder below a place of the user; creates all missing levels.
pub fn of_user(base: &Path, below: &[&str], uid: u32) -> Option<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(base).ok()?;
    let mut folder = base.canonicalize().ok()?;
    if !folder.ancestors().all(|above| fs::symlink_metadata(above).is_ok_and(|facts| keeps(&facts, uid))) {
        return None;
    }
    for name in below {
        folder.push(name);
        make(&folder).ok()?;
        if !close(&folder, uid) {
            return None;
        }
    }
    Some(folder)
}

fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Closes a folder of ours to other users, who might take locks in it; `false` if it is not ours, or others could
/// write to it.
fn close(folder: &Path, uid: u32) -> bool {
    let Ok(facts) = fs::symlink_metadata(folder) else { return false };
    if !is_own(folder, uid) {
        return false;
    }
    if facts.mode() & OTHERS == 0 {
        return true;
    }
    // Change the opened folder, not its name, so that a folder that replaces it in between is left alone.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(folder, flags, Mode::empty()) else { return false };
    let same = rustix::fs::fstat(&opened)
        .is_ok_and(|now| now.st_ino == facts.ino() && now.st_dev == facts.dev() && now.st_uid == uid);
    // If that is refused (a file system without modes), the worst that others can do is make us wait a little.
    let _ = same.then(|| rustix::fs::fchmod(&opened, Mode::RWXU));
    same
}

/// Whether a file belongs to this user alone. A missing file counts as such.
pub fn is_own_file(file: &Path, uid: u32) -> io::Result<bool> {
    match fs::symlink_metadata(file) {
        Ok(facts) => Ok(facts.is_file()
            && facts.uid() == uid
            && facts.nlink() == 1
            && facts.mode() & OTHERS_WRITE == 0),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode_of(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn me() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn a_folder_in_the_store_is_ours_alone() {
        let root = tempfile::tempdir().unwrap();
        let store = root.path().join("S");
        fs::create_dir(&store).unwrap();
        for (given, taken) in
            [(0o755, true), (0o700, true), (0o1777, true), (0o1775, true), (0o777, false), (0o775, false)]
        {
            mode(&store, given);
            let found = in_store(&store, "catalog", me());
            assert_eq!(found.is_some(), taken, "{given:o}");
            if let Some(folder) = found {
                assert_eq!(mode_of(&folder), 0o700);
                fs::remove_dir(folder).unwrap();
            }
            assert!(!store.join("catalog").exists(), "{given:o}: nothing is made where it is not used");
        }
    }

    #[test]
    fn another_user_has_no_folder_in_it() {
        let root = tempfile::tempdir().unwrap();
        mode(root.path(), 0o1777);
        let other = me() + 1;
        // Only root can own a folder in which other users keep files.
        assert_eq!(in_store(root.path(), "catalog", other), None);
        assert!(!root.path().join("catalog").exists());
        fs::create_dir(root.path().join("catalog")).unwrap();
        assert_eq!(in_store(root.path(), "catalog", other), None, "this one is not theirs");
    }

    #[test]
    fn a_folder_that_others_could_write_to_is_not_used_and_one_that_they_could_read_is_closed() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("catalog");
        fs::create_dir(&folder).unwrap();
        for given in [0o777, 0o1777, 0o770, 0o702] {
            mode(&folder, given);
            assert_eq!(in_store(root.path(), "catalog", me()), None, "{given:o}");
            assert_eq!(mode_of(&folder), given);
        }
        mode(&folder, 0o755);
        assert!(in_store(root.path(), "catalog", me()).is_some());
        assert_eq!(mode_of(&folder), 0o700);
    }

    #[test]
    fn links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let store = root.path().join("S");
        let private = root.path().join("private");
        fs::create_dir(&store).unwrap();
        fs::create_dir(&private).unwrap();
        symlink(&private, store.join("catalog")).unwrap();
        assert_eq!(in_store(&store, "catalog", me()), None);
        symlink(&private, root.path().join("fieldstone")).unwrap();
        assert_eq!(of_user(root.path(), &["fieldstone", "id"], me()), None);
        assert_eq!(fs::read_dir(&private).unwrap().count(), 0);
        // The user's own link to the cache.
        symlink(&private, root.path().join("cache")).unwrap();
        let found = of_user(&root.path().join("cache"), &["fieldstone", "id"], me()).unwrap();
        assert_eq!(found, private.canonicalize().unwrap().join("fieldstone/id"));
    }

    #[test]
    fn nobody_else_can_replace_what_is_above_a_cache() {
        let root = tempfile::tempdir().unwrap();
        let cache = root.path().join("a/b");
        assert!(of_user(&cache, &["fieldstone", "id"], me()).is_some());
        assert_eq!(mode_of(&cache.join("fieldstone/id")), 0o700);
        mode(&root.path().join("a"), 0o777);
        assert_eq!(of_user(&cache, &["fieldstone", "id"], me()), None);
        mode(&root.path().join("a"), 0o1777);
        assert!(of_user(&cache, &["fieldstone", "id"], me()).is_some());
        assert_eq!(
            of_user(&cache, &["fieldstone", "id"], me() + 1),
            None,
            "all of it belongs to another user"
        );
    }

    #[test]
    fn files_of_others_links_and_second_names_are_noticed() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        let own = |path: &Path| is_own_file(path, me()).unwrap();
        assert!(own(&file), "a missing file");
        fs::write(&file, b"").unwrap();
        mode(&file, 0o644);
        assert!(own(&file));
        assert!(!is_own_file(&file, me() + 1).unwrap());
        symlink(&file, root.path().join("link")).unwrap();
        assert!(!own(&root.path().join("link")));
        mode(&file, 0o664);
        assert!(!own(&file));
        mode(&file, 0o600);
        fs::hard_link(&file, root.path().join("second")).unwrap();
        assert!(!own(&file));
        fs::create_dir(root.path().join("folder")).unwrap();
        assert!(!own(&root.path().join("folder")));
    }
}
