//! The user's cache of files derived from stores' logs: an entry for each store, in a folder named after the store's
//! id.
//!
//! Each entry has a note that names the store's folder; the time of the note shows the last use of the entry. The
//! cache removes entries that are no longer useful: those whose store is gone, and those unused for a long time. If
//! it removes one by mistake, the entry is built again from the logs.
//!
//! Invariants:
//! * only folders of this user that are named after an id are removed;
//! * an entry used in the last day stays;
//! * no failure here prevents a process from using the cache.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The file in an entry that holds the path of its store.
const NOTE: &str = "store";
/// The file whose time shows when the cache was last cleaned.
const CLEANED: &str = "cleaned";
/// A file that every store has.
const MARKER: &str = "fieldstone.store";
const DAY: Duration = Duration::from_secs(86_400);
/// How long an unused entry stays.
const UNUSED: Duration = Duration::from_secs(90 * 86_400);

/// Records a use of the entry of a store, which is a folder of the cache, and cleans the cache once a day.
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

/// The time since a file was changed; `None` if it does not exist.
fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    let changed = fs::symlink_metadata(path).and_then(|facts| facts.modified()).ok()?;
    Some(now.duration_since(changed).unwrap_or_default())
}

/// Removes the entries that are no longer useful.
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
    // An entry without a note comes from an earlier release: the time of its engine, or its own, shows its last use.
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
        // Already cleaned today.
        note_use(&cache.join(name(1)), &stores.join("there"), uid);
        assert_eq!(there(), before);
        set_age(&cache.join(CLEANED), 2 * DAY);
        note_use(&cache.join(name(1)), &stores.join("there"), uid);
        assert_eq!(there(), [&*name(1), &name(4), "0123", "cleaned", "notes"].map(str::to_owned));
    }
}
