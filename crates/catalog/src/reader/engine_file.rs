//! The engine's file as a file: one process at a time opens it, sets it aside or clears it.
//!
//! Invariants:
//! * the file and its write-ahead log belong together: a lock on the file `lock` next to them ensures that
//!   opening, setting aside, and clearing the remains of a deleted file exclude each other;
//! * a wait for a lock takes no longer than the caller allows;
//! * all files here are created for this user alone; a file that others can access is removed, never opened;
//! * the database is created and closed here before anybody can have it open: closing a file of SQLite loses
//!   all locks that this process has on it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fieldstone_core::env::Clock;
use fieldstone_core::{Code, Error, Result};
use rustix::fs::{FlockOperation, OFlags};

use fieldstone_core::env::real::trusted_folder;

use super::lock_holders;
use crate::engine::Busy;

/// The pause between two attempts to take the lock, in nanoseconds.
const PAUSE: u64 = 5_000_000;

/// The user of the files, and the clock and limit of waits.
#[derive(Debug, Clone, Copy)]
pub struct LockTerms<'a> {
    /// The user who owns the files.
    pub uid: u32,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Maximum wait for a lock.
    pub limit: Duration,
}

/// Keeps others from setting the file aside, or from opening it.
#[derive(Debug)]
pub struct FileGuard(File);

impl Drop for FileGuard {
    fn drop(&mut self) {
        // A child that was forked since has the same open file, and the lock with it: closing ours would not
        // release it.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

fn guard(path: &Path, alone: bool, terms: LockTerms<'_>) -> Result<FileGuard> {
    let lock = path.with_file_name("lock");
    let failed = |e| Error::io("lock", &lock, e);
    if !trusted_folder::is_own_file(&lock, terms.uid).map_err(failed)? {
        remove(&lock)?;
    }
    let file = new_file().truncate(false).open(&lock).map_err(failed)?;
    let operation =
        if alone { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::NonBlockingLockShared };
    let begun = terms.clock.monotonic();
    loop {
        match rustix::fs::flock(&file, operation) {
            Ok(()) => return Ok(FileGuard(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(e) => return Err(failed(e.into())),
        }
        if u128::from(terms.clock.monotonic().saturating_sub(begun)) >= terms.limit.as_nanos() {
            let holders = lock_holders::named(&lock, None);
            return Err(Code::EngineBusy
                .error(format!("cannot lock {}: {holders}", lock.display()))
                .with_hint("end or resume that process, or try again")
                .with_source(Busy(holders)));
        }
        terms.clock.sleep(PAUSE);
    }
}

/// Options for files of this user alone.
fn new_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    // A pipe under this name must not make us wait.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    options.create(true).write(true).mode(0o600).custom_flags(flags);
    options
}

/// Prepares a file for opening, until the guard is dropped: the file exists, belongs to this user alone, and
/// no write-ahead log of a deleted file is next to it.
pub fn prepare(path: &Path, terms: LockTerms<'_>) -> Result<FileGuard> {
    let shared = guard(path, false, terms)?;
    if path.exists() && all_own(path, terms.uid)? {
        return Ok(shared);
    }
    drop(shared);
    let alone = guard(path, true, terms)?;
    if !all_own(path, terms.uid)? {
        remove(path)?;
    }
    if !path.exists() {
        for file in companions(path) {
            remove(&file)?;
        }
        // An empty file is a new database; the next process finds it and leaves the write-ahead log alone.
        new_file().create_new(true).open(path).map_err(|e| Error::io("create", path, e))?;
    }
    drop(alone);
    guard(path, false, terms)
}

/// Whether a database and its companions belong to this user alone.
fn all_own(path: &Path, uid: u32) -> Result<bool> {
    let [wal, shm] = companions(path);
    for file in [path, &wal, &shm] {
        if !trusted_folder::is_own_file(file, uid).map_err(|e| Error::io("check", file, e))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sets a damaged file aside if it still has this inode. Replaces a file that was set aside before.
pub fn set_aside(path: &Path, inode: Option<u64>, terms: LockTerms<'_>) -> Result<()> {
    let _alone = guard(path, true, terms)?;
    if inode_of(path) != inode {
        return Ok(());
    }
    let mut files = vec![path.to_owned()];
    files.extend(companions(path));
    for file in files {
        let mut aside = file.clone().into_os_string();
        aside.push(".damaged");
        match fs::rename(&file, &aside) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("set aside", &file, e)),
        }
    }
    Ok(())
}

/// Removes a file with all that belongs to it, and what was set aside before. A process that has it open opens a new one for
/// its next read.
pub fn discard(path: &Path, terms: LockTerms<'_>) -> Result<()> {
    let _alone = guard(path, true, terms)?;
    let mut files = vec![path.to_owned()];
    files.extend(companions(path));
    files.iter().try_for_each(|file| {
        let mut aside = file.clone().into_os_string();
        aside.push(".damaged");
        remove(file)?;
        remove(Path::new(&aside))
    })
}

/// SQLite's write-ahead log and its index.
pub fn companions(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, e)),
        _ => Ok(()),
    }
}

/// The inode of the file that a path leads to now.
pub fn inode_of(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|facts| facts.ino())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::{PermissionsExt, symlink};

    use fieldstone_core::env::Env;

    use super::*;

    struct Setting {
        folder: tempfile::TempDir,
        path: PathBuf,
        env: Env,
    }

    impl Setting {
        fn new() -> Setting {
            let folder = tempfile::tempdir().unwrap();
            Setting { path: folder.path().join("index.sqlite"), folder, env: Env::real() }
        }

        fn terms(&self) -> LockTerms<'_> {
            LockTerms {
                uid: self.env.identity.uid(),
                clock: &*self.env.clock,
                limit: Duration::from_millis(20),
            }
        }
    }

    #[test]
    fn a_journal_without_its_file_is_cleared_and_damage_is_set_aside() {
        let at = Setting::new();
        let [wal, shm] = companions(&at.path);
        fs::write(&wal, b"old").unwrap();
        fs::write(&shm, b"old").unwrap();
        drop(prepare(&at.path, at.terms()).unwrap());
        assert!(!wal.exists() && !shm.exists() && at.path.exists());
        for file in [at.path.clone(), at.folder.path().join("lock")] {
            assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
        }
        fs::write(&at.path, b"broken").unwrap();
        set_aside(&at.path, Some(1), at.terms()).unwrap();
        assert!(at.path.exists(), "another file stands there by now");
        set_aside(&at.path, inode_of(&at.path), at.terms()).unwrap();
        assert!(!at.path.exists() && at.folder.path().join("index.sqlite.damaged").exists());
    }

    #[test]
    fn what_is_not_ours_alone_is_taken_away_and_never_opened() {
        let at = Setting::new();
        let precious = at.folder.path().join("precious");
        let [wal, shm] = companions(&at.path);
        let lock = at.folder.path().join("lock");
        for name in [&at.path, &wal, &shm, &lock] {
            for kind in 0..3 {
                for file in [&at.path, &wal, &shm, &lock] {
                    let _ = fs::remove_file(file);
                }
                fs::write(&precious, b"mine").unwrap();
                if *name != at.path {
                    fs::write(&at.path, b"").unwrap();
                }
                match kind {
                    0 => symlink(&precious, name).unwrap(),
                    1 => fs::hard_link(&precious, name).unwrap(),
                    _ => {
                        fs::write(name, b"forged").unwrap();
                        fs::set_permissions(name, fs::Permissions::from_mode(0o666)).unwrap();
                    }
                }
                drop(prepare(&at.path, at.terms()).unwrap());
                let context = format!("{} of kind {kind}", name.display());
                assert_eq!(fs::read(&precious).unwrap(), b"mine", "{context}");
                assert_eq!(fs::read(&at.path).unwrap(), b"", "{context}");
                assert!(!wal.exists() && !shm.exists(), "{context}");
                assert!(trusted_folder::is_own_file(&lock, at.terms().uid).unwrap(), "{context}");
                fs::remove_file(&precious).unwrap();
            }
        }
        // A link to a missing file is not followed either.
        fs::remove_file(&lock).unwrap();
        symlink(&precious, &lock).unwrap();
        drop(prepare(&at.path, at.terms()).unwrap());
        assert!(!precious.exists());
    }

    #[test]
    fn a_lock_that_another_holds_is_waited_for_a_while_and_its_holder_named() {
        let at = Setting::new();
        drop(prepare(&at.path, at.terms()).unwrap());
        let lock = at.folder.path().join("lock");
        let held = File::open(&lock).unwrap();
        rustix::fs::flock(&held, FlockOperation::LockExclusive).unwrap();
        let error = prepare(&at.path, at.terms()).unwrap_err();
        assert!(crate::engine::is_busy(&error), "{error}");
        let me = format!("process {}", std::process::id());
        assert!(error.message().contains(&me) || !Path::new("/proc/locks").exists(), "{error}");
        drop(held);
        drop(prepare(&at.path, at.terms()).unwrap());
    }

    #[test]
    fn a_guard_that_a_child_inherited_is_given_up_by_its_owner() {
        let at = Setting::new();
        let guard = prepare(&at.path, at.terms()).unwrap();
        // A forked child has this: the same open file.
        let inherited = guard.0.try_clone().unwrap();
        drop(guard);
        set_aside(&at.path, inode_of(&at.path), at.terms()).unwrap();
        drop(inherited);
    }
}
