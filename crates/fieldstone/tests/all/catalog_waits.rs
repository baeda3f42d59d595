//! Other processes that hold the catalog's engine, or a lock of it, and make no progress: every call goes on without
//! them. They hold on until a test releases them, so an answer is the proof that no call waited for them.
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::shared::*;
use fieldstone::ErrorKind;
use fieldstone::Session;
use fieldstone::catalog::{Deletion, Query};

/// A process that uses a file, and then does nothing until it is dropped.
struct Holder(Child);

impl Holder {
    fn new(script: &str, path: &Path) -> Holder {
        let script =
            format!("import fcntl, os, sqlite3, sys\n{script}\nprint('held', flush=True)\nsys.stdin.read()");
        let mut command = Command::new("python3");
        command.arg("-c").arg(script).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0; 5];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(&line, b"held\n");
        Holder(child)
    }

    fn name(&self) -> String {
        format!("process {}", self.0.id())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

const WRITES: &str = "c = sqlite3.connect(sys.argv[1], isolation_level=None)\nc.execute('BEGIN IMMEDIATE')";
const LOCKS: &str = "f = open(sys.argv[1])\nfcntl.flock(f, fcntl.LOCK_EX)";
/// A user who may read `-shm` may keep all others from writing; the connection keeps them from making a new one.
const READS_SHM: &str = "c = sqlite3.connect(sys.argv[1])\nc.execute('SELECT 1 FROM sqlite_schema').fetchone()\n\
                         f = open(sys.argv[1] + '-shm', 'rb')\nfcntl.lockf(f, fcntl.LOCK_SH, 8, 120)";

/// A store with an attribute, all of it applied.
fn store(folder: &Path) -> Both {
    let both = Both::at(folder);
    both.prepare("a");
    both.annotate("a", "max", 1, [0, 0], 1.0);
    both.flush();
    assert_eq!(both.hits(vec![]).len(), 1);
    both
}

/// All uses of a catalog, through a handle that was open and through a new one.
fn all_goes_on(folder: &Path, open: &Both) {
    let other = Both::at(folder);
    let before = open.hits(vec![]).len();
    for (both, step) in [(open, 10), (&other, 11)] {
        both.annotate("a", "max", step, [0, 0], 2.0);
        assert_eq!(both.hits(vec![]).len(), before + 1, "what is not flushed");
        both.flush();
        assert_eq!(both.hits(vec![]).len(), before + 1);
        let streamed = both.catalog.stream(&Query::all()).unwrap().map(Result::unwrap).count();
        assert_eq!(streamed, before + 1);
        assert!(!both.catalog.catch_up().unwrap());
        assert!(both.catalog.verify().unwrap().ok());
        assert!(both.catalog.explain(&Query::all()).unwrap().starts_with("engine: memory\n"));
        // The other handle goes on from its own engine.
        both.annotate("a", "min", step, [0, 0], 2.0);
        for term in [tag_is("min"), above(1.5)] {
            let query = all_of(vec![term]);
            both.catalog.delete(&Deletion::Attributes(query), false, true, &Session::default()).unwrap();
        }
        both.flush();
        assert_eq!(both.hits(vec![]).len(), before);
    }
    other.create_run("b");
    other.flush();
    assert_eq!(
        open.catalog.runs(&Query::all()).unwrap().len(),
        other.catalog.runs(&Query::all()).unwrap().len()
    );
}

/// After the holder is gone, a new handle and (after a while) the open one have the shared engine again.
fn all_is_shared_again(folder: &Path, open: &Both) {
    let engine = format!("engine: {}\n", Both::engine(folder).canonicalize().unwrap().display());
    let explain = |both: &Both| both.catalog.explain(&Query::all()).unwrap();
    let new = Both::at(folder);
    assert!(explain(&new).starts_with(&engine), "{}", explain(&new));
    let clock = fieldstone::Env::real().clock;
    let begun = clock.monotonic();
    while !explain(open).starts_with(&engine) {
        assert!(clock.monotonic() - begun < 120_000_000_000, "the handle does not return");
        clock.sleep(200_000_000);
    }
    assert!(open.catalog.verify().unwrap().ok());
    assert_eq!(open.answers(), new.answers());
}

#[test]
fn a_process_that_writes_and_stands_still_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let both = store(folder.path());
    let holder = Holder::new(WRITES, &Both::engine(folder.path()));
    all_goes_on(folder.path(), &both);
    let error = both.catalog.rebuild().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains(&holder.name()) || !Path::new("/proc/locks").exists(), "{error}");
    drop(holder);
    all_is_shared_again(folder.path(), &both);
    both.catalog.rebuild().unwrap();
}

#[test]
fn a_reader_of_the_shared_memory_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let both = store(folder.path());
    let holder = Holder::new(READS_SHM, &Both::engine(folder.path()));
    all_goes_on(folder.path(), &both);
    assert_eq!(both.catalog.rebuild().unwrap_err().kind(), ErrorKind::Unavailable);
    drop(holder);
    all_is_shared_again(folder.path(), &both);
}

#[test]
fn who_holds_the_lock_of_the_file_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let both = store(folder.path());
    let holder = Holder::new(LOCKS, &folder.path().join("catalog/lock"));
    // A handle that has the file open does not need the lock.
    both.annotate("a", "max", 2, [0, 0], 1.0);
    both.flush();
    assert_eq!(both.hits(vec![]).len(), 2);
    let new = Both::at(folder.path());
    all_goes_on(folder.path(), &new);
    let third = Both::at(folder.path());
    let error = third.catalog.rebuild().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains(&holder.name()) || !Path::new("/proc/locks").exists(), "{error}");
    drop(holder);
    all_is_shared_again(folder.path(), &new);
}

#[test]
fn a_stopped_process_that_applies_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let both = store(folder.path());
    for _ in 0..4 {
        both.catalog.annotate(columns("a", "more", 60_000), &Session::default()).unwrap();
        both.store.flush(None).unwrap();
    }
    let expected = both.catalog.count(&all_of(vec![tag_is("more")])).unwrap();
    drop(both);
    std::fs::remove_dir_all(folder.path().join("catalog")).unwrap();
    let mut reader = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "catalog_waits::reads_for_a_while"])
        .env("FIELDSTONE_TEST_STOPPED", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // As soon as it has begun to apply commits.
    let wal = folder.path().join("catalog/index.sqlite-wal");
    while std::fs::metadata(&wal).map_or(0, |facts| facts.len()) < 100_000 {
        if reader.try_wait().unwrap().is_some() {
            break;
        }
    }
    let pid = reader.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    let both = Both::at(folder.path());
    assert_eq!(both.catalog.count(&all_of(vec![tag_is("more")])).unwrap(), expected);
    both.annotate("a", "max", 2, [0, 0], 2.0);
    both.flush();
    assert_eq!(both.hits(vec![tag_is("max")]).len(), 2);
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    assert!(reader.wait().unwrap().success());
    assert!(Both::at(folder.path()).catalog.verify().unwrap().ok());
}

/// The other process of the test above; it only runs for that test.
#[test]
fn reads_for_a_while() {
    if let Some(folder) = std::env::var_os("FIELDSTONE_TEST_STOPPED") {
        let both = Both::at(Path::new(&folder));
        both.catalog.count(&all_of(vec![tag_is("more")])).unwrap();
    }
}
