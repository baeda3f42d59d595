//! The user's cache of what is made from stores' logs: an entry for each store, in a folder called after its id.
//!
//! Each entry notes where its store is and, by that note's time, when it was used last. Entries that are of no use any
//! more go: those whose store is gone, and those that nobody used for long. They are made again from the logs where that is wrong.
//!
//! Invariants:
//! * nothing but folders of this user, called after an id, is removed;
//! * an entry that was used within a day stays;
//! * no failure here keeps anybody from using the cache.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The file of an entry that names its store: the path.
const NOTE: &str = "store";
/// The file whose time says when the cache was cleaned last.
const CLEANED: &str = "cleaned";
/// The file that a store has.
const MARKER: &str = "fieldstone.store";
const DAY: Duration = Duration::from_secs(86_400);
/// How long an entry stays that nobody uses.
const UNUSED: Duration = Duration::from_secs(90 * 86_400);

/// Notes that the entry of a store, a folder of the cache, is used, and cleans the cache once a day.
pub fn note_use(entry: &Path, store: &Path, uid: u32) {
    #[allow(clippy::disallowed_methods)] // here is the real world
    let now = SystemTime::now();
    // The cache stays usable if any of this fails.
    let _ = fs::write(entry.join(NOTE), store.as_os_str().as_bytes());
    let Some(cache) = entry.parent() else { return };
    if age(&cache.join(CLEANED), now).is_none_or(|age| age >= DAY)
        && File::create(cache.join(CLEANED)).is_ok()
    {
        let _ = clean(cache, uid, now);
    }
}

/// How long ago a file was changed; `None` where it is not there.
fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    let changed = fs::symlink_metadata(path).and_then(|facts| facts.modified()).ok()?;
    Some(now.duration_since(changed).unwrap_or_default())
}

/// Removes the entries that are of no use.
fn clean(cache: &Path, uid: u32, now: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(cache)?.flatten() {
        let path = entry.path();
        let is_id = entry.file_name().to_str().is_some_and(|name| {
            name.len() == 32
                && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        });
        let is_own = fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_dir() && facts.uid() == uid);
        if is_id && is_own && is_useless(&path, now) {
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

fn is_useless(entry: &Path, now: SystemTime) -> bool {
    let used = age(&entry.join(NOTE), now);
    // An entry without a note is of an earlier release: its engine's time, or its own, says when it was used.
    let idle = used
        .or_else(|| age(&entry.join("index.sqlite"), now))
        .or_else(|| age(entry, now))
        .unwrap_or_default();
    let is_gone = || {
        let Ok(store) = fs::read(entry.join(NOTE)) else { return false };
        let marker = Path::new(std::ffi::OsStr::from_bytes(&store)).join(MARKER);
        fs::symlink_metadata(marker).is_err_and(|e| e.kind() == io::ErrorKind::NotFound)
    };
    idle >= UNUSED || (idle >= DAY && is_gone())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]

    use super::*;

    fn set_age(path: &Path, age: Duration) {
        File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn what_is_of_no_use_goes_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let (cache, stores) = (root.path().join("cache"), root.path().join("stores"));
        let uid = rustix::process::geteuid().as_raw();
        let name = |n: u8| format!("{n:032x}");
        for (n, store) in [(1, "there"), (2, "gone"), (3, "there"), (4, "fresh")] {
            fs::create_dir_all(cache.join(name(n)).join("graph")).unwrap();
            note_use(&cache.join(name(n)), &stores.join(store), uid);
        }
        fs::create_dir_all(stores.join("there")).unwrap();
        fs::write(stores.join("there").join(MARKER), "").unwrap();
        for other in ["notes", "0123", &name(5)] {
            fs::create_dir(cache.join(other)).unwrap();
        }
        set_age(&cache.join(name(1)).join(NOTE), 2 * DAY);
        set_age(&cache.join(name(2)).join(NOTE), 2 * DAY);
        set_age(&cache.join(name(3)).join(NOTE), 2 * UNUSED);
        set_age(&cache.join(name(5)), 2 * UNUSED);
        set_age(&cache.join("notes"), 2 * UNUSED);
        let there = || {
            let mut names: Vec<String> = fs::read_dir(&cache)
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort_unstable();
            names
        };
        let before = there();
        // Cleaned today: not again.
        note_use(&cache.join(name(1)), &stores.join("there"), uid);
        assert_eq!(there(), before);
        set_age(&cache.join(CLEANED), 2 * DAY);
        note_use(&cache.join(name(1)), &stores.join("there"), uid);
        assert_eq!(there(), [&*name(1), &name(4), "0123", "cleaned", "notes"].map(str::to_owned));
    }
}
