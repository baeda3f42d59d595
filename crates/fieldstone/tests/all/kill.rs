//! Real processes on a real disk: killed, stopped, and out of space. Acknowledged flushes are there for every reader;
//! no process waits for a dead or stopped one.
//!
//! `FIELDSTONE_CRASH=full` kills more often and holds a stopped writer for a minute.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::processes::{Folder, acknowledged, check_clean, check_run, have_strace, open, start};
use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, Env, FieldStore, ListOptions, OpenOptions, ReadOptions, Request, Value};
use fieldstone_testkit::require::{full, require};
use fieldstone_testkit::seeded;

/// Calls of a writer that strace can strike, each with a minimum number.
const CALLS: [(&str, u64); 16] = [
    ("openat", 40),
    ("pread64", 20),
    // The twelfth write to the board reports that the writer has closed: all flushes are acknowledged then.
    ("pwrite64", 11),
    ("pwritev", 9),
    ("write", 9),
    ("fdatasync", 11),
    ("fsync", 5),
    ("mkdir", 4),
    ("linkat", 1),
    ("unlinkat", 1),
    ("newfstatat", 15),
    ("statx", 40),
    // A folder is listed again for 20 ms after it changed: the number depends on the speed.
    ("getdents64", 8),
    ("close", 30),
    ("fcntl", 20),
    ("sync_file_range", 2),
];

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap();
    assert!(status.success(), "kill -{name} {process}");
}

#[test]
fn a_killed_writer_loses_nothing_it_acknowledged() {
    let folder = Folder::new("kill");
    let mut runs = Vec::new();
    let mut random = seeded(1);
    for round in 0..if full() { 50 } else { 10 } {
        // Every fourth round strikes the making of a store.
        let url = if round % 4 == 3 { format!("{}-{round}", folder.store()) } else { folder.store() };
        let run = format!("r{round}");
        let large: &[&str] = if round % 2 == 0 { &["large"] } else { &[] };
        let mut child = start(&[], &[&["write", url.as_str(), run.as_str(), "100000"], large].concat());
        pause(random.below(if round % 4 == 3 { 12 } else { 80 }));
        child.kill().unwrap();
        let count = acknowledged(child);
        runs.push((url.clone(), run, count));
        let store = open(&url);
        for (_, run, count) in runs.iter().filter(|(u, _, _)| *u == url) {
            check_run(&store, run, *count);
        }
        check_clean(&store);
    }
    let flushes: u64 = runs.iter().map(|(_, _, count)| count).sum();
    println!("{} kills, {flushes} acknowledged flushes", runs.len());
    assert!(flushes > 0, "no writer came as far as a flush");
}

#[test]
fn a_writer_killed_at_any_system_call_loses_nothing_it_acknowledged() {
    if !have_strace() {
        return;
    }
    let folder = Folder::new("inject");
    let mut random = seeded(7);
    for (call, times) in CALLS {
        let mut killed = 0;
        for round in 0..if full() { 20 } else { 3 } {
            let url = format!("{}-{call}-{round}", folder.store());
            let n = 1 + if round == 0 { 0 } else { random.below(times) };
            let inject = format!("inject={call}:signal=SIGKILL:when={n}");
            let options = ["-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject];
            let child = start(&options, &["write", &url, "r", "9", "large"]);
            let count = acknowledged(child);
            killed += u64::from(count < 9);
            let store = open(&url);
            check_run(&store, "r", count);
            check_clean(&store);
            let key = [("run", "later"), ("variable", "v"), ("step", "1")];
            store.archive(&key, Value::Bytes(b"later"), &ArchiveOptions::default()).unwrap();
            store.flush(None).unwrap();
            check_run(&open(&url), "r", count);
        }
        println!("{call:<16} {killed} kills");
        assert!(killed > 0, "no writer died in {call}");
    }
}

/// The work of other processes while a writer is stopped; it must not take long.
fn go_on_without(url: &str, what: &str, hold: Duration) {
    let clock = Env::real().clock;
    let now = || Duration::from_nanos(clock.monotonic());
    let begin = now();
    let mut slowest = Duration::ZERO;
    for round in 0.. {
        let single = now();
        let store = open(url);
        let step = round.to_string();
        let key = [("run", "other"), ("variable", "v"), ("step", step.as_str())];
        store.archive(&key, Value::Bytes(&[1; 300]), &ArchiveOptions::default()).unwrap();
        store.flush(None).unwrap();
        assert!(store.list(&Request::new(), &ListOptions::default()).unwrap().all(|entry| entry.is_ok()));
        assert_eq!(store.get(&key, &ReadOptions::default()).unwrap().read().unwrap(), [1; 300]);
        store.status().unwrap();
        slowest = slowest.max(now() - single);
        if round >= 3 && now() - begin >= hold {
            break;
        }
        if round >= 3 {
            pause(200);
        }
    }
    // Normal is a few milliseconds; a loaded machine may take many, but never waits for the writer.
    assert!(slowest < Duration::from_secs(3), "{what}: another process took {slowest:?}");
}

#[test]
fn a_stopped_writer_delays_nobody() {
    let folder = Folder::new("stop");
    let mut random = seeded(3);
    for round in 0..if full() { 30 } else { 5 } {
        let run = format!("r{round}");
        let mut child = start(&[], &["write", &folder.store(), &run, "100000", "large"]);
        pause(20 + random.below(60));
        signal(child.id(), "STOP");
        let hold = if full() && round == 0 { 60 } else { 0 };
        go_on_without(&folder.store(), &run, Duration::from_secs(hold));
        signal(child.id(), "CONT");
        child.kill().unwrap();
        let count = acknowledged(child);
        check_run(&open(&folder.store()), &run, count);
    }
    check_clean(&open(&folder.store()));
}

#[test]
fn a_writer_stopped_at_any_system_call_delays_nobody() {
    if !have_strace() {
        return;
    }
    let folder = Folder::new("stop-inject");
    // All at once: the test measures the waiting.
    std::thread::scope(|scope| {
        for (call, times) in CALLS {
            let folder = &folder;
            scope.spawn(move || {
                let mut places =
                    if full() { vec![1, times.div_ceil(2), times] } else { vec![times.div_ceil(2)] };
                places.dedup();
                for n in places {
                    let hold = if full() && n == times { 60 } else { 0 };
                    stop_at(folder, call, n, Duration::from_secs(hold));
                }
            });
        }
    });
}

/// Stops a writer at its n-th call, and lets others go on for at least `hold`.
fn stop_at(folder: &Folder, call: &str, n: u64, hold: Duration) {
    let url = format!("{}-{call}-{n}", folder.store());
    let inject = format!("inject={call}:signal=SIGSTOP:when={n}");
    let options = ["-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject];
    let mut child = start(&options, &["write", &url, "r", "9", "large"]);
    pause(600);
    go_on_without(&url, call, hold);
    // strace and the writer below it.
    let tree = format!("/proc/{0}/task/{0}/children", child.id());
    for process in std::fs::read_to_string(tree).unwrap_or_default().split_whitespace() {
        signal(process.parse().unwrap(), "KILL");
    }
    let _ = child.kill();
    let count = acknowledged(child);
    assert!(count < 9, "the writer was not stopped at {call} {n}");
    check_run(&open(&url), "r", count);
}

/// A small file system in memory, mounted while this value lives.
struct Mount<'a>(&'a Path);

impl Mount<'_> {
    fn new(path: &Path, bytes: u64) -> Option<Mount<'_>> {
        let options = format!("size={bytes}");
        let arguments = ["-t", "tmpfs", "-o", &options, "fieldstone-test", path.to_str().unwrap()];
        let mounted = Command::new("mount").args(arguments).stderr(std::process::Stdio::null()).status();
        let mounted = mounted.is_ok_and(|status| status.success());
        require("tmpfs", mounted, "mounting a tmpfs needs root").then_some(Mount(path))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_loses_only_what_it_says_and_the_handle_goes_on() {
    for (name, length) in [("full-small", 20_000), ("full-large", 300_000), ("full-huge", 1_500_000)] {
        let folder = Folder::new(name);
        let Some(_mount) = Mount::new(&folder.0, 8 << 20) else { return };
        let ballast = folder.0.join("ballast");
        std::fs::write(&ballast, vec![0; 4 << 20]).unwrap();
        let store = fieldstone::open(&folder.store(), &OpenOptions::default()).unwrap();
        let value = vec![7; length];
        let put = |step: u64| {
            let step = step.to_string();
            let key = [("run", "r"), ("variable", "v"), ("step", step.as_str())];
            store
                .archive(&key, Value::Bytes(&value), &ArchiveOptions::default())
                .and_then(|()| store.flush(None))
        };
        let (first, error) =
            (0..).find_map(|step| put(step).err().map(|e| (step, e))).expect("the disk is full at some time");
        let text = error.to_string();
        assert!(text.contains(&format!("{{step={first}}}")), "{text}");
        // A failed write releases its room, and the zeros after it, so that a little more may fit.
        let lost = (first..).find(|step| put(*step).is_err()).expect("the disk is full at some time");
        assert!((lost - first) * length as u64 <= 1 << 20, "{first} {lost}");
        let holds = |store: &dyn FieldStore, steps: &mut dyn Iterator<Item = u64>| {
            for step in steps {
                let step = step.to_string();
                let key = [("run", "r"), ("variable", "v"), ("step", step.as_str())];
                let field = store.get(&key, &ReadOptions::default()).unwrap();
                assert!(field.read().unwrap() == value, "step {step}");
            }
        };
        let visible = |store: &dyn FieldStore| {
            store.list(&Request::new(), &ListOptions::default()).unwrap().filter(|e| e.is_ok()).count() as u64
        };
        // Earlier data are there, for this handle and for a new one; lost data are not.
        for store in [&store, &open(&folder.store())] {
            holds(store, &mut (0..lost));
            assert_eq!(visible(store), lost);
            check_clean(store);
        }
        // The room that a failure released may hold a few more.
        assert!((0..1_000).any(|_| put(lost).is_err()), "the disk is still full");
        std::fs::remove_file(&ballast).unwrap();
        put(lost).unwrap();
        put(lost + 1).unwrap();
        for store in [&store, &open(&folder.store())] {
            holds(store, &mut (0..lost + 2));
            assert_eq!(visible(store), lost + 2);
            check_clean(store);
        }
        println!("{name}: full at flush {lost}: {text}");
    }
}
