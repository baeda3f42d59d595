//! System calls: no locks, no file with two writing processes except a board, one sync for a small flush.

use std::collections::{BTreeMap, BTreeSet};

use crate::processes::{Folder, acknowledged, check_clean, check_run, have_strace, open, start};

#[test]
fn eight_writers_and_eight_readers_take_no_lock_and_share_no_file_but_the_board() {
    if !have_strace() {
        return;
    }
    let folder = Folder::new("strace");
    let url = folder.store();
    // Data to read from the start.
    acknowledged(start(&[], &["write", &url, "first", "2"]));
    let traces: Vec<_> =
        (0..16).map(|i| folder.0.join(format!("trace{i}")).to_str().unwrap().to_owned()).collect();
    let mut children = Vec::new();
    for (i, trace) in traces.iter().enumerate() {
        let options = ["-o", trace, "-e", "trace=openat,open,openat2,creat,flock,fcntl"];
        let name = format!("w{i}");
        let arguments: &[&str] =
            if i < 8 { &["write", &url, &name, "12", "large"] } else { &["read", &url, "4"] };
        children.push(start(&options, arguments));
    }
    for (i, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "process {i}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut writers: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let mut calls = 0;
    for (i, trace) in traces.iter().enumerate() {
        for line in std::fs::read_to_string(trace).unwrap().lines() {
            calls += 1;
            let locks = ["flock(", "lockf(", "F_SETLK", "F_OFD_SETLK", "F_SETLEASE", "O_EXLOCK"];
            assert!(!locks.iter().any(|lock| line.contains(lock)), "process {i} locks: {line}");
            let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC"];
            let failed = line.contains(" = -1 ");
            if writes.iter().any(|flag| line.contains(flag)) && !failed {
                let path = line.split('"').nth(1).unwrap().to_owned();
                assert!(i < 8, "a reader opens {path} for writing: {line}");
                writers.entry(path).or_default().insert(i);
            }
        }
    }
    assert!(calls > 16 * 10, "only {calls} calls were traced");
    let shared: Vec<&String> =
        writers.iter().filter(|(_, who)| who.len() > 1).map(|(path, _)| path).collect();
    assert!(shared.iter().all(|path| path.ends_with(".board")), "written by several: {shared:?}");
    // Each writer has its log and its data log.
    let logs = |part: &str| writers.keys().filter(|path| path.contains(part)).count();
    assert_eq!((logs("/logs/"), logs("/data/")), (8, 8), "{writers:?}");
    let store = open(&url);
    (0..8).for_each(|i| assert_eq!(check_run(&store, &format!("w{i}"), 12), 12));
    check_clean(&store);
    println!("{calls} calls of 16 processes; {} files written, shared: {shared:?}", writers.len());
}

#[test]
fn a_small_flush_makes_one_sync_and_one_write_to_the_log() {
    if !have_strace() {
        return;
    }
    let folder = Folder::new("syncs");
    let counts = |flushes: &str| {
        let trace = folder.0.join(format!("trace{flushes}"));
        let url = format!("{}{flushes}", folder.store());
        let trace_to = trace.to_str().unwrap();
        let calls = "trace=fdatasync,fsync,sync,syncfs,sync_file_range,msync,pwrite64,pwritev,ftruncate,rename,linkat,mkdir";
        acknowledged(start(&["-o", trace_to, "-y", "-e", calls], &["write", &url, "r", flushes]));
        let text = std::fs::read_to_string(&trace).unwrap();
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for line in text.lines() {
            let call = line.split_once('(').map_or("", |(call, _)| call);
            let name = call.rsplit(' ').next().unwrap();
            let name = match name {
                "pwrite64" if line.contains(".board") => "write to the board",
                "pwritev" if line.contains(".log") => "write to the log",
                "fdatasync" => "fdatasync",
                "fsync" => "fsync",
                "ftruncate" => "cut of the log",
                _ => "other",
            };
            *counts.entry(name).or_default() += i64::from(!line.contains("+++"));
        }
        counts
    };
    let (few, many) = (counts("3"), counts("13"));
    let per_ten = |name: &str| many.get(name).unwrap_or(&0) - few.get(name).unwrap_or(&0);
    assert_eq!(per_ten("fdatasync"), 10);
    assert_eq!(per_ten("fsync"), 0);
    assert_eq!(per_ten("write to the log"), 10);
    assert_eq!(per_ten("write to the board"), 10);
    // Zeros that later flushes would have filled, by a writer that made more than three.
    assert_eq!(per_ten("cut of the log"), 1);
    assert_eq!(per_ten("other"), 0);
}

/// J-29: after its times were read, a file gets new ones with its next write, and so its next sync writes the inode.
#[test]
fn a_small_flush_asks_for_the_times_of_no_file_that_it_writes() {
    if !have_strace() {
        return;
    }
    let folder = Folder::new("times");
    let counts = |flushes: &str| {
        let trace = folder.0.join(format!("trace{flushes}"));
        let url = format!("{}{flushes}", folder.store());
        let calls = "trace=statx,newfstatat,fstat,stat,lstat";
        let write = ["write", &url, "r", flushes];
        acknowledged(start(&["-o", trace.to_str().unwrap(), "-y", "-e", calls], &write));
        let text = std::fs::read_to_string(&trace).unwrap();
        let of_ours = || text.lines().filter(|line| line.contains(".log") || line.contains(".board"));
        let without = |line: &&str| line.contains("statx(") && line.contains("STATX_INO");
        let times = ["STATX_ALL", "STATX_BASIC_STATS", "STATX_MTIME", "STATX_CTIME"];
        let timed = |line: &&str| {
            !line.contains("statx(")
                || times.iter().any(|name| line.split("{stx_mask").next().unwrap().contains(name))
        };
        (of_ours().filter(timed).count(), of_ours().filter(without).count())
    };
    let (few, many) = (counts("3"), counts("13"));
    // A run that takes seconds, on a machine with other work, looks around in between.
    assert!(many.0 < few.0 + 5, "ten more flushes ask {} times more often", many.0 - few.0);
    assert!(many.1 - few.1 >= 10, "each flush looks whether its log is still there: {few:?}, {many:?}");
}
