//! The tests of a file system, each named by the need of the store that it checks.

use std::io;
use std::path::Path;

use fieldstone::env::{Env, write_all_at};

use super::{Finding, Mount, Outcome};
use crate::output::size;
use crate::time;

/// Syncs that are timed.
const SYNCS: usize = 9;
/// Threads that race for a name or append to one file.
const RACERS: usize = 4;
/// Records that each of them appends.
const RECORDS: usize = 64;
/// Length of a record; a slot of a board is as small.
const RECORD: usize = 64;
const MINUTE: i64 = 60_000_000_000;

type Tried = io::Result<(Outcome, String)>;

/// Runs every test in an empty folder.
pub(super) fn all(env: &Env, folder: &Path, mount: Option<&Mount>) -> Vec<Finding> {
    let finding = |name, store, tried: Tried| {
        let (outcome, detail) = tried.unwrap_or_else(|e| (Outcome::Failed, e.to_string()));
        Finding { name, outcome, detail, store }
    };
    vec![
        finding(
            "medium",
            "what is flushed outlives a crash of the program, and a power cut if the medium does",
            medium(mount),
        ),
        finding(
            "fsync",
            "a flush of up to 1 MiB waits for one of these, and for nothing else",
            fsync(env, folder),
        ),
        finding(
            "fsync folder",
            "new files are entered in their folder before a flush returns",
            sync_dir(env, folder),
        ),
        finding("fresh reads", "readers see a flush at their next read", fresh(env, folder)),
        finding("O_EXCL", "every writer makes files of its own under random names", exclusive(env, folder)),
        finding(
            "hard link",
            "the first of several first writers makes the store, the others join it",
            link(env, folder),
        ),
        finding("rename", "used where there are no hard links", rename(env, folder)),
        finding(
            "append",
            "the writers of a host share one board, so that readers look at one file per host",
            append(env, folder),
        ),
        finding("listing", "opening a store finds its logs by listing a folder", listing(env, folder)),
        finding(
            "clocks",
            "the order of flushes does not rest on clocks; the times that are shown do",
            clocks(env, folder),
        ),
        finding("owner", "a dataset belongs to the user who owns its writer's log", owner(env, folder)),
        finding(
            "free space",
            "a flush that does not fit fails whole, and archived data can be flushed again",
            space(env, folder),
        ),
        finding("free inodes", "a writer makes a log and at most a few data files", inodes(env, folder)),
        finding("locks", "no file is ever locked, so that no lock service is needed", unused()),
        finding(
            "memory map",
            "no file is ever mapped, so that a truncated file cannot kill a reader",
            unused(),
        ),
    ]
}

fn ok(detail: impl Into<String>) -> Tried {
    Ok((Outcome::Ok, detail.into()))
}

fn warning(detail: impl Into<String>) -> Tried {
    Ok((Outcome::Warning, detail.into()))
}

fn failed(detail: impl Into<String>) -> Tried {
    Ok((Outcome::Failed, detail.into()))
}

fn unused() -> Tried {
    Ok((Outcome::Unused, "not needed, not tested".into()))
}

fn medium(mount: Option<&Mount>) -> Tried {
    match mount.map(|m| m.kind.as_str()) {
        None => warning("the kind of the file system cannot be known"),
        Some("tmpfs" | "ramfs") => warning("kept in memory: everything is lost when the machine stops"),
        Some(kind @ ("nfs" | "nfs4" | "lustre" | "gpfs" | "beegfs" | "ceph" | "cifs" | "smb3" | "9p")) => {
            warning(format!("{kind}: shared between hosts; other hosts may see a flush a little later"))
        }
        Some(kind) => ok(kind),
    }
}

fn fsync(env: &Env, folder: &Path) -> Tried {
    let file = env.disk.create_new(&folder.join("sync"))?;
    let data = vec![0x5a; 64 << 10];
    let mut times = Vec::with_capacity(SYNCS);
    for i in 0..SYNCS {
        write_all_at(&*file, &data, (i * data.len()) as u64)?;
        let start = env.clock.monotonic();
        file.sync_data()?;
        times.push(env.clock.monotonic().saturating_sub(start));
    }
    times.sort_unstable();
    let median = times[SYNCS / 2] as f64 / 1e6;
    let detail = format!("64 KiB in {median:.2} ms (median of {SYNCS})");
    if median > 100.0 { warning(detail + ", which is slow: flush seldom") } else { ok(detail) }
}

fn sync_dir(env: &Env, folder: &Path) -> Tried {
    let start = env.clock.monotonic();
    env.disk.sync_dir(folder)?;
    let taken = env.clock.monotonic().saturating_sub(start);
    ok(format!("{:.2} ms", taken as f64 / 1e6))
}

fn fresh(env: &Env, folder: &Path) -> Tried {
    let path = folder.join("fresh");
    let writer = env.disk.create_new(&path)?;
    let reader = env.disk.open_read(&path)?;
    let mut at = 0;
    for i in 0..RECORDS {
        let record = [i as u8; RECORD];
        write_all_at(&*writer, &record, at)?;
        let mut seen = [0xff; RECORD];
        let n = reader.read_at(&mut seen, at)?;
        at += RECORD as u64;
        if n != RECORD || seen != record {
            return failed("a second handle does not read what was just written");
        }
        if env.disk.stat(&path)?.len != at {
            return failed("the length of a file is wrong after a write");
        }
    }
    ok("a second handle reads what was just written")
}

fn exclusive(env: &Env, folder: &Path) -> Tried {
    for round in 0..RECORDS {
        let path = folder.join(format!("race-{round}"));
        let made: Vec<io::Result<()>> = std::thread::scope(|scope| {
            let racer = || env.disk.create_new(&path).map(drop);
            let racers: Vec<_> = (0..RACERS).map(|_| scope.spawn(racer)).collect();
            let gone = |_| Err(io::Error::other("a thread of the test ended"));
            racers.into_iter().map(|racer| racer.join().unwrap_or_else(gone)).collect()
        });
        env.disk.unlink(&path)?;
        let winners = made.iter().filter(|m| m.is_ok()).count();
        let other =
            made.iter().filter_map(|m| m.as_ref().err()).find(|e| e.kind() != io::ErrorKind::AlreadyExists);
        if winners != 1 {
            return failed(format!("{winners} of {RACERS} made one name at the same time"));
        }
        if let Some(other) = other {
            return failed(format!("a taken name is refused by the wrong error: {other}"));
        }
    }
    ok(format!("of {RACERS} at the same time one makes a name, {RECORDS} times"))
}

fn link(env: &Env, folder: &Path) -> Tried {
    let (from, to) = (folder.join("link-from"), folder.join("link-to"));
    env.disk.create_new(&from)?;
    match env.disk.link(&from, &to) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::Unsupported => {
            return warning("there are none: a rename is used, and one of several first writers is refused");
        }
        Err(e) => return Err(e),
    }
    match env.disk.link(&from, &to) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => ok("made, and refused where the name is taken"),
        Err(e) => failed(format!("a taken name is refused by the wrong error: {e}")),
        Ok(()) => failed("a link replaced a name that was taken"),
    }
}

fn rename(env: &Env, folder: &Path) -> Tried {
    let (from, to) = (folder.join("rename-from"), folder.join("rename-to"));
    write_all_at(&*env.disk.create_new(&from)?, b"new", 0)?;
    write_all_at(&*env.disk.create_new(&to)?, b"older", 0)?;
    env.disk.rename(&from, &to)?;
    match (env.disk.stat(&from), env.disk.stat(&to)?.len) {
        (Err(_), 3) => ok("replaces the name that was there"),
        _ => failed("the old name remains, or the new one has the old content"),
    }
}

fn append(env: &Env, folder: &Path) -> Tried {
    let path = folder.join("append");
    let appended: Vec<io::Result<Vec<(u64, u8)>>> = std::thread::scope(|scope| {
        let path = &path;
        let writer = |id: u8| {
            let file = env.disk.open_append(path)?;
            (0..RECORDS).map(|_| Ok((file.append(&[id; RECORD])?, id))).collect::<io::Result<Vec<_>>>()
        };
        let writers: Vec<_> = (0..RACERS).map(|id| scope.spawn(move || writer(id as u8))).collect();
        let gone = |_| Err(io::Error::other("a thread of the test ended"));
        writers.into_iter().map(|w| w.join().unwrap_or_else(gone)).collect()
    });
    let mut places = Vec::new();
    for of_one in appended {
        match of_one {
            Ok(of_one) => places.extend(of_one),
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                return warning(
                    "not supported: every writer has a board of its own, and opening lists more files",
                );
            }
            Err(e) => return Err(e),
        }
    }
    let file = env.disk.open_read(&path)?;
    for &(offset, id) in &places {
        let mut record = [0xff; RECORD];
        if file.read_at(&mut record, offset)? != RECORD || record != [id; RECORD] {
            return failed(format!("a record that was appended at {offset} is not there"));
        }
    }
    let expected = (places.len() * RECORD) as u64;
    match env.disk.stat(&path)?.len {
        found if found == expected => {
            ok(format!("{} appends by {RACERS} at the same time, none lost", places.len()))
        }
        found => failed(format!("{expected} bytes were appended and {found} are there")),
    }
}

fn listing(env: &Env, folder: &Path) -> Tried {
    let inner = folder.join("listing");
    env.disk.create_dir_all(&inner)?;
    for i in 0..RECORDS {
        env.disk.create_new(&inner.join(format!("f{i}")))?;
        if env.disk.list_dir(&inner)?.len() != i + 1 {
            return failed("a file that was just made is not listed");
        }
    }
    env.disk.unlink(&inner.join("f0"))?;
    match env.disk.list_dir(&inner)?.iter().any(|(name, _)| name == "f0") {
        true => failed("a file that was removed is still listed"),
        false => ok("made files are listed at once, removed ones are not"),
    }
}

fn clocks(env: &Env, folder: &Path) -> Tried {
    let path = folder.join("clock");
    let before = env.clock.now();
    write_all_at(&*env.disk.create_new(&path)?, b"now", 0)?;
    let after = env.clock.now();
    let (_, written) = env.disk.stat_with_time(&path)?;
    // File times are coarse: kernels stamp with the last tick.
    let off =
        if written > after { written.saturating_sub(after) } else { written.saturating_sub(before).min(0) };
    match off {
        -2_000_000_000..=2_000_000_000 => ok("this host's clock and the file system's agree within 2 s"),
        off if off.saturating_abs() < MINUTE => {
            ok(format!("the file system's clock is {} ahead", time::span(off)))
        }
        off => warning(format!(
            "the file system's clock is {} ahead of this host's: status will say so",
            time::span(off)
        )),
    }
}

fn owner(env: &Env, folder: &Path) -> Tried {
    let path = folder.join("owner");
    env.disk.create_new(&path)?;
    let (found, own) = (env.disk.stat(&path)?.uid, env.identity.uid());
    let name = |uid| env.identity.user_name(uid);
    match found == own {
        true => ok(format!("new files belong to {}", name(own))),
        false => warning(format!(
            "new files of {} belong to {}: all whom the file system makes {} share what they own",
            name(own),
            name(found),
            name(found)
        )),
    }
}

fn space(env: &Env, folder: &Path) -> Tried {
    let free = env.disk.space(folder)?.free_bytes;
    let detail = size(free);
    if free < 1 << 30 { warning(detail) } else { ok(detail) }
}

fn inodes(env: &Env, folder: &Path) -> Tried {
    match env.disk.space(folder)?.free_inodes {
        // Several file systems make inodes as they need them and report 0 or all ones.
        0 | u64::MAX => ok("made as they are needed"),
        free @ ..10_000 => warning(format!("{free}")),
        free => ok(format!("{free}")),
    }
}
