//! Folders that may hold what is made from a store's logs, such as the catalog's engine: those of this user alone
//! . Whoever can put a file there, or hold a lock
//! on one, decides on answers or holds them up, so nobody else may.
//!
//! | what | is used where it |
//! |---|---|
//! | the folder | is a folder, no link; ours; not for others to write. Others lose the right to look into it, too |
//! | the folder it stands in | is ours or root's; not for others to write, or sticky: so that nobody can put another one in its place |
//! | all above it | the same, for folders in the user's cache and the temporary folder, links resolved before. Who can replace the store's own folder has the store |
//! | a file in it | is a regular file, no link; ours; without a second name; not for others to write. Another one is taken away, with the rest |
//!
//! Files are looked at by name and never opened for it: a file of SQLite's that is closed loses all
//! locks that this process has on it.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags};

use super::{is_network, user_cache};

/// Bits of a mode by which others may write.
const OTHERS_WRITE: u32 = 0o022;
/// Bits of a mode by which others may do anything.
const OTHERS: u32 = 0o077;
/// The bit by which only owners rename and remove what is in a folder.
const STICKY: u32 = 0o1000;

/// A folder for what is made from the logs of a store: of this name in the store's own folder, else below folders of
/// these names in the user's cache, else in the system's temporary folder. `None` where it may stand nowhere; what is
/// made is kept in memory then.
pub fn for_view(store: &Path, name: &str, below: &[&str], uid: u32) -> Option<PathBuf> {
    let temporary = || {
        let user = format!("fieldstone-{uid}");
        usable(of_user(&std::env::temp_dir(), &[&[user.as_str()], below].concat(), uid)?)
    };
    beside(store, name, uid).or_else(|| in_cache(store, below, uid)).or_else(temporary)
}

/// A folder in the store's own, where that is on a local file system.
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
    // The first name is the store's id, and its entry's.
    let entry = folder.ancestors().nth(below.len().saturating_sub(1));
    if let (Some(entry), Ok(store)) = (entry, store.canonicalize()) {
        user_cache::note_use(entry, &store, uid);
    }
    Some(folder)
}

/// A folder of ours, where we may write to it.
fn usable(folder: PathBuf) -> Option<PathBuf> {
    let may = rustix::fs::access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    (may && !is_network(&folder)).then_some(folder)
}

/// Whether a folder, no link to one, is this user's and nobody else may write to it.
pub fn is_own(folder: &Path, uid: u32) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|facts| facts.is_dir() && facts.uid() == uid && facts.mode() & OTHERS_WRITE == 0)
}

/// Whether nobody but this user and root can take away what this user has in a folder.
fn keeps(facts: &Metadata, uid: u32) -> bool {
    let mode = facts.mode();
    facts.is_dir() && [uid, 0].contains(&facts.uid()) && (mode & OTHERS_WRITE == 0 || mode & STICKY != 0)
}

/// A folder in the store's: made where the store's is ours and has none.
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

/// A folder at a place of the user's: all that is absent of it is made.
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

/// Keeps others from looking into a folder of ours, where they might take locks; `false` where it is not
/// ours, or others could write to it.
fn close(folder: &Path, uid: u32) -> bool {
    let Ok(facts) = fs::symlink_metadata(folder) else { return false };
    if !is_own(folder, uid) {
        return false;
    }
    if facts.mode() & OTHERS == 0 {
        return true;
    }
    // By the folder that is opened, not by its name: nothing that took its place meanwhile is changed.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(opened) = rustix::fs::open(folder, flags, Mode::empty()) else { return false };
    let same = rustix::fs::fstat(&opened)
        .is_ok_and(|now| now.st_ino == facts.ino() && now.st_dev == facts.dev() && now.st_uid == uid);
    // Where that is refused (a file system without modes), others can at worst make us wait a little.
    let _ = same.then(|| rustix::fs::fchmod(&opened, Mode::RWXU));
    same
}

/// Whether a file is this user's alone. One that is not there is.
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
        // Only root can own what others may keep things in.
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
        // The user's own link to where the cache is.
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
        assert_eq!(of_user(&cache, &["fieldstone", "id"], me() + 1), None, "all of it is another's");
    }

    #[test]
    fn files_of_others_links_and_second_names_are_noticed() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        let own = |path: &Path| is_own_file(path, me()).unwrap();
        assert!(own(&file), "one that is not there");
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
