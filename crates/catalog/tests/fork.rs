//! SQLite as an engine in a process that forks: the child has free mutexes, and its own locks of files.
//!
//! The children here only use the engine and end by `_exit`, so that the test's other threads do not matter
//! to them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fieldstone_catalog::engine::{Cell, Database, Flow, Sqlite, Wait};
use fieldstone_core::Result;

/// One test forks at a time, so that the file descriptors of one are not in the children of another.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that runs `work` and ends.
struct Child(libc::pid_t);

impl Child {
    fn of(work: impl FnOnce() -> bool) -> Child {
        // SAFETY: the child runs `work` and nothing else, and ends without leaving this function.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(false);
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(i32::from(!done)) };
        }
        Child(pid)
    }

    /// Whether it ended well; a child that hangs is killed.
    fn ended_well(self) -> bool {
        let mut status = 0;
        for _ in 0..60_000 {
            // SAFETY: a child of ours that nobody has waited for; the status is a place for an int.
            if unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG) } == self.0 {
                return status == 0;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: as above.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, &raw mut status, 0);
        }
        eprintln!("the child {} hung", self.0);
        false
    }
}

/// Makes parent and child wait for each other in turn.
struct Turns {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Turns {
    fn new() -> Turns {
        let (reader, writer) = std::io::pipe().unwrap();
        Turns { reader, writer }
    }

    fn give(&self) {
        (&self.writer).write_all(b"x").unwrap();
    }

    fn take(&self) {
        let mut asked = libc::pollfd { fd: self.reader.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, as the count says.
        let given = unsafe { libc::poll(&raw mut asked, 1, 20_000) };
        assert_eq!(given, 1, "the other process did not get so far");
        (&self.reader).read_exact(&mut [0]).unwrap();
    }
}

fn table(path: &Path) -> Sqlite {
    let mut db = Sqlite::open(path).unwrap();
    db.batch("CREATE TABLE IF NOT EXISTS t (a INTEGER)").unwrap();
    db
}

fn insert(db: &mut Sqlite, value: i64) -> Result<()> {
    db.execute("INSERT INTO t VALUES ($1)", &[Cell::Int(value)]).map(drop)
}

fn count(db: &mut Sqlite) -> i64 {
    let mut found = 0;
    db.query("SELECT COUNT(*) FROM t", &[], &mut |row| {
        found = row[0].int()?;
        Ok(Flow::Stop)
    })
    .unwrap();
    found
}

#[test]
fn a_child_has_locks_of_its_own_beside_its_parents() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.sqlite");
    let mut db = table(&path);
    // The parent is inside a transaction that writes when it forks.
    assert!(db.begin(true, Wait::No).unwrap());
    insert(&mut db, 1).unwrap();
    let (to_child, to_parent) = (Turns::new(), Turns::new());
    let child = Child::of(|| {
        let mut own = Sqlite::open(&path).unwrap();
        let refused = !own.begin(true, Wait::No).unwrap();
        to_parent.give();
        to_child.take();
        // The parent is done now, and this process must see that.
        let taken = own.begin(true, Wait::No).unwrap();
        let seen = count(&mut own);
        insert(&mut own, 2).unwrap();
        to_parent.give();
        to_child.take();
        own.commit().unwrap();
        to_parent.give();
        refused && taken && seen == 1
    });
    to_parent.take();
    db.commit().unwrap();
    to_child.give();
    to_parent.take();
    assert!(!db.begin(true, Wait::No).unwrap(), "the child writes");
    to_child.give();
    to_parent.take();
    assert!(db.begin(true, Wait::No).unwrap());
    assert_eq!(count(&mut db), 2);
    db.rollback().unwrap();
    assert!(child.ended_well());
}

#[test]
fn a_parent_that_closes_last_leaves_the_journal_to_its_child() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.sqlite");
    let mut db = table(&path);
    insert(&mut db, 1).unwrap();
    let (to_child, to_parent) = (Turns::new(), Turns::new());
    let child = Child::of(|| {
        let mut own = Sqlite::open(&path).unwrap();
        let before = count(&mut own);
        to_parent.give();
        to_child.take();
        insert(&mut own, 2).unwrap();
        before == 1 && count(&mut own) == 2
    });
    to_parent.take();
    drop(db);
    assert!(folder.path().join("db.sqlite-wal").exists(), "the child has it open");
    to_child.give();
    assert!(child.ended_well());
    assert_eq!(count(&mut Sqlite::open(&path).unwrap()), 2, "the child's row is there");
}

#[test]
fn a_child_of_busy_threads_uses_the_engine() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.sqlite");
    drop(table(&path));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (path, stop) = (&path, &stop);
            scope.spawn(move || {
                // Opening and closing uses most of SQLite's mutexes.
                while !stop.load(Ordering::SeqCst) {
                    let mut db = if thread % 2 == 0 { table(path) } else { Sqlite::memory().unwrap() };
                    let _ = db.batch("CREATE TABLE IF NOT EXISTS t (a INTEGER)");
                    let _ = count(&mut db);
                }
            });
        }
        let well = (0..150).all(|_| {
            let work = || {
                let mut memory = Sqlite::memory().unwrap();
                memory.batch("CREATE TABLE t (a INTEGER)").unwrap();
                insert(&mut memory, 1).unwrap();
                count(&mut memory) == 1 && count(&mut Sqlite::open(&path).unwrap()) >= 0
            };
            Child::of(work).ended_well()
        });
        stop.store(true, Ordering::SeqCst);
        assert!(well);
    });
}

#[test]
fn a_child_of_a_child_uses_the_engine() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db.sqlite");
    let mut db = table(&path);
    insert(&mut db, 1).unwrap();
    let child = Child::of(|| {
        let mut own = Sqlite::open(&path).unwrap();
        assert!(own.begin(true, Wait::No).unwrap());
        let grandchild = Child::of(|| !Sqlite::open(&path).unwrap().begin(true, Wait::No).unwrap());
        let refused = grandchild.ended_well();
        own.commit().unwrap();
        let grandchild = Child::of(|| Sqlite::open(&path).unwrap().begin(true, Wait::No).unwrap());
        std::mem::forget(own);
        refused && grandchild.ended_well()
    });
    assert!(child.ended_well());
    assert!(db.begin(true, Wait::Yes).unwrap());
}
