//! The processes that hold locks on files, as far as the system reveals them: for naming them in an error,
//! and for distinguishing a process that works from one that is idle.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Position of the processor time in user mode in `/proc/N/stat`, counted from the state; the time in the
/// kernel is next.
const USER_TIME: usize = 11;

/// Processes that hold a lock of any kind on a file, or on some of its bytes (first and last). Empty if the
/// system does not reveal them.
fn of(file: &Path, bytes: Option<(u64, u64)>) -> BTreeSet<u32> {
    let Ok(facts) = fs::symlink_metadata(file) else { return BTreeSet::new() };
    let table = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut found: BTreeSet<u32> =
        table.lines().filter_map(|line| holder(line, facts.ino(), bytes)).collect();
    // File systems may use the same inode number. If we may look, the process must have the file open.
    found.retain(|process| {
        let Ok(opened) = fs::read_dir(format!("/proc/{process}/fd")) else { return true };
        let mut opened = opened.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        opened.any(|target| target == file)
    });
    found
}

/// The process in a line like `1: POSIX ADVISORY WRITE 1234 08:01:5678 0 EOF`, if the line is about this
/// file.
fn holder(line: &str, inode: u64, bytes: Option<(u64, u64)>) -> Option<u32> {
    let mut words = line.split_ascii_whitespace().skip(1);
    // Waiting processes have an arrow here.
    let kind = words.next().filter(|kind| *kind != "->")?;
    let process = words.nth(2)?.parse().ok()?;
    let place = words.next()?;
    let (first, last) = (words.next()?.parse::<u64>().ok()?, words.next()?.parse().unwrap_or(u64::MAX));
    let touches = bytes.is_none_or(|(from, to)| kind != "FLOCK" && first <= to && from <= last);
    (touches && place.rsplit(':').next()?.parse() == Ok(inode)).then_some(process)
}

/// The holders of locks on a file, or on some of its bytes, as text.
pub fn named(file: &Path, bytes: Option<(u64, u64)>) -> String {
    let name = |process: &u32| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        match name.trim() {
            "" => format!("process {process}"),
            // The process that holds the lock chose the name.
            name => format!("process {process} ('{}')", name.escape_debug()),
        }
    };
    let names: Vec<String> = of(file, bytes).iter().map(name).collect();
    match names.len() {
        0 => "another process holds it".to_owned(),
        1 => format!("{} holds it", names.join("")),
        _ => format!("{} hold it", names.join(", ")),
    }
}

/// Processor time, in ticks, of processes of a user that hold locks on a file, or on some of its bytes.
pub fn work(file: &Path, bytes: Option<(u64, u64)>, uid: u32) -> u64 {
    let ticks = |process: u32| {
        if fs::metadata(format!("/proc/{process}")).ok()?.uid() != uid {
            return None;
        }
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name before it may contain spaces and parentheses.
        let (_, rest) = text.rsplit_once(')')?;
        let mut words = rest.split_ascii_whitespace().skip(USER_TIME);
        let mut number = || words.next()?.parse::<u64>().ok();
        Some(number()? + number()?)
    };
    of(file, bytes).into_iter().filter_map(ticks).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lines_of_the_table_are_read() {
        let line = "1: POSIX  ADVISORY  WRITE 1234 08:01:5678 120 120";
        assert_eq!(holder(line, 5678, None), Some(1234));
        assert_eq!(holder(line, 5678, Some((120, 122))), Some(1234));
        assert_eq!(holder(line, 5678, Some((121, 122))), None);
        assert_eq!(holder(line, 567, None), None);
        let all = "12: FLOCK  ADVISORY  READ 77 00:2f:9 0 EOF";
        assert_eq!((holder(all, 9, None), holder(all, 9, Some((120, 122)))), (Some(77), None));
        let whole = "2: OFDLCK ADVISORY  READ -1 00:2f:9 0 EOF";
        assert_eq!(holder(whole, 9, None), None, "no process has it");
        let waits = "12: -> FLOCK  ADVISORY  WRITE 78 00:2f:9 0 EOF";
        assert_eq!(holder(waits, 9, None), None);
        for damaged in ["", "1:", "1: POSIX ADVISORY WRITE 1 08:01:5", "x y z a b c d e"] {
            assert_eq!(holder(damaged, 5, None), None, "{damaged}");
        }
    }

    #[test]
    fn a_holder_is_named_and_its_work_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("file");
        let file = fs::File::create(&path).unwrap();
        assert_eq!(named(&path, None), "another process holds it");
        assert_eq!(of(&path, None).len(), 0);
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
        if of(&path, None).is_empty() {
            return; // this system does not have the table
        }
        let me = std::process::id();
        assert_eq!(of(&path, None), BTreeSet::from([me]));
        assert!(named(&path, None).starts_with(&format!("process {me} ('")), "{}", named(&path, None));
        let uid = rustix::process::geteuid().as_raw();
        let before = work(&path, None, uid);
        let mut n = 1u64;
        while work(&path, None, uid) == before {
            n = std::hint::black_box((0..100_000).fold(n, |n, i| n.wrapping_mul(31).wrapping_add(i)));
        }
        assert_eq!(work(&path, None, uid + 1), 0, "another user's");
    }
}
