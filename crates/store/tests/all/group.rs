//! Threads that share a handle: only a thread that flushes waits for a sync, and flushes that wait at the same time
//! become one commit.

use std::thread;

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::{Fault, OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::*;

/// More than fits in a frame: it goes through the data log.
const LARGE: usize = (1 << 20) + 5;

fn key(name: &str) -> String {
    format!("run=a,variable={name}")
}

fn commits_of(store: &Store) -> u64 {
    store.status().unwrap().writers.iter().map(|writer| writer.commits).sum()
}

#[test]
fn others_archive_and_read_while_a_flush_waits_for_the_disk() {
    for size in [10, LARGE] {
        let world = SimWorld::new(1);
        let store = open(&world, "a");
        flush_one(&store, &key("old"), b"old");
        put(&store, &key("first"), &pattern(size, 1)).unwrap();
        let stall = world.stall(OpKind::SyncData, "");
        thread::scope(|scope| {
            let flush = scope.spawn(|| store.flush(&Session::default()));
            stall.wait_for(1);
            // The sync takes long. All calls here return anyway.
            put(&store, &key("small"), b"small").unwrap();
            put(&store, &key("large"), &pattern(LARGE, 2)).unwrap();
            let id = store.begin().unwrap();
            put_in(&store, &key("other"), b"x", id).unwrap();
            assert_eq!(field(&store, &key("old"), None).unwrap().read().unwrap(), b"old");
            assert!(store.list(&Request::new(), &ListOptions::default()).unwrap().count() > 0);
            assert_eq!(store.unflushed(), 4, "a flush in progress does not count yet");
            store.discard(&Session::from(id)).unwrap();
            drop(stall);
            flush.join().unwrap().unwrap();
        });
        assert_eq!(store.unflushed(), 2);
        let reader = open(&world, "b");
        assert_eq!(field(&reader, &key("first"), None).unwrap().read().unwrap(), pattern(size, 1));
        assert_eq!(
            error(field(&reader, &key("small"), None), ErrorKind::NotFound).kind(),
            ErrorKind::NotFound
        );
        store.flush(&Session::default()).unwrap();
        let reader = open(&world, "b");
        assert_eq!(field(&reader, &key("small"), None).unwrap().read().unwrap(), b"small");
        assert_eq!(field(&reader, &key("large"), None).unwrap().read().unwrap(), pattern(LARGE, 2));
    }
}

#[test]
fn flushes_that_wait_at_once_are_one_commit() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, &key("old"), b"old");
    let before = commits_of(&store);
    put(&store, &key("first"), b"first").unwrap();
    let stall = world.stall(OpKind::SyncData, "logs");
    let syncs = world.counters().count(OpKind::SyncData);
    thread::scope(|scope| {
        let first = scope.spawn(|| store.flush(&Session::default()));
        stall.wait_for(1);
        let others: Vec<_> = (0..7)
            .map(|n| {
                let store = &store;
                scope.spawn(move || {
                    put(store, &key(&format!("v{n}")), &[n; 100]).unwrap();
                    store.flush(&Session::default()).unwrap();
                    // It is visible once its own flush has returned.
                    let got = field(store, &key(&format!("v{n}")), None).unwrap().read().unwrap();
                    assert_eq!(got, [n; 100]);
                })
            })
            .collect();
        while store.unflushed() < 8 {
            thread::yield_now();
        }
        // All of them wait now, or are about to.
        thread::sleep(std::time::Duration::from_millis(50));
        drop(stall);
        first.join().unwrap().unwrap();
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    let commits = commits_of(&store) - before;
    assert!((2..=3).contains(&commits), "{commits} commits for eight flushes");
    assert_eq!(world.counters().count(OpKind::SyncData) - syncs, commits);
}

#[test]
fn a_transactions_flush_is_a_commit_of_its_own() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, &key("old"), b"old");
    let before = commits_of(&store);
    let id = store.begin().unwrap();
    put(&store, &key("first"), b"first").unwrap();
    let stall = world.stall(OpKind::SyncData, "logs");
    thread::scope(|scope| {
        let first = scope.spawn(|| store.flush(&Session::default()));
        stall.wait_for(1);
        put_in(&store, &key("in"), b"in", id).unwrap();
        put(&store, &key("out"), b"out").unwrap();
        let prepared = scope.spawn(|| store.flush(&Session::from(id)));
        let plain = scope.spawn(|| store.flush(&Session::default()));
        thread::sleep(std::time::Duration::from_millis(50));
        drop(stall);
        for flush in [first, prepared, plain] {
            flush.join().unwrap().unwrap();
        }
    });
    assert_eq!(commits_of(&store) - before, 3);
    let reader = open(&world, "b");
    assert!(field(&reader, &key("out"), None).is_ok() && field(&reader, &key("in"), None).is_err());
    store.decide(id, true, &Session::default()).unwrap();
    reader.refresh().unwrap();
    assert!(field(&reader, &key("in"), None).is_ok());
}

#[test]
fn who_waits_for_a_flush_that_fails_is_told_of_his_own() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, &key("old"), b"old");
    let stall = world.stall(OpKind::SyncData, "logs");
    let (failure, waited, kept) = thread::scope(|scope| {
        put(&store, &key("mine"), b"mine").unwrap();
        let (archived, has_archived) = std::sync::mpsc::channel();
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let other = {
            let store = &store;
            scope.spawn(move || {
                put(store, &key("yours"), b"yours").unwrap();
                archived.send(()).unwrap();
                wait.recv().unwrap();
                store.flush(&Session::default())
            })
        };
        has_archived.recv().unwrap();
        let flush = {
            let store = &store;
            scope.spawn(move || store.flush(&Session::default()))
        };
        stall.wait_for(1);
        go.send(()).unwrap();
        // Archived during the sync: it belongs to the next commit, which goes into another log.
        let later = {
            let store = &store;
            scope.spawn(move || {
                put(store, &key("later"), b"later").unwrap();
                store.flush(&Session::default())
            })
        };
        while store.unflushed() < 3 {
            thread::yield_now();
        }
        thread::sleep(std::time::Duration::from_millis(50));
        world.fail_nth(OpKind::SyncData, 1, Fault::Io);
        drop(stall);
        (flush.join().unwrap(), other.join().unwrap(), later.join().unwrap())
    });
    let failure = error(failure, ErrorKind::Unavailable);
    assert!(
        failure.message().contains("variable=mine") && failure.message().contains("variable=yours"),
        "{failure}"
    );
    let waited = error(waited, ErrorKind::Unavailable);
    assert!(waited.message().contains("variable=yours") && !waited.message().contains("variable=mine"));
    // It also waited for the commit that failed; its own fields are durable anyway.
    let kept = error(kept, ErrorKind::Unavailable);
    assert!(kept.message().contains("variable=mine") && !kept.message().contains("variable=later"), "{kept}");
    assert!(field(&open(&world, "b"), &key("later"), None).is_ok());
    // This thread archived `mine`, and another one flushed it.
    let mine = error(store.flush(&Session::default()), ErrorKind::Unavailable);
    assert!(mine.message().contains("variable=mine"), "{mine}");
    store.flush(&Session::default()).unwrap();
    let reader = open(&world, "b");
    assert!(field(&reader, &key("later"), None).is_ok());
    assert!(field(&reader, &key("mine"), None).is_err() && field(&reader, &key("yours"), None).is_err());
}

/// The log has not begun, either before the first commit or after a failure. A flush then checks the store without
/// the lock, and another thread loses its batch during the check.
#[test]
fn a_flush_that_finds_its_batch_lost_does_not_return_well() {
    for failures in 0..3 {
        let world = SimWorld::new(1);
        let store = open(&world, "a");
        for _ in 0..failures {
            put(&store, &key("old"), b"old").unwrap();
            world.fail_nth(OpKind::SyncData, 1, Fault::Io);
            error(store.flush(&Session::default()), ErrorKind::Unavailable);
        }
        // The owner of the dataset and the schema are checked before.
        put(&store, &key("mine"), b"mine").unwrap();
        store.discard(&Session::default()).unwrap();
        let journal = store.journal();
        let (looks, held) = (journal.looks().count(), journal.looks().refresher().lock());
        thread::scope(|scope| {
            let store = &store;
            let flush = scope.spawn(move || {
                put(store, &key("yours"), b"yours").unwrap();
                store.flush(&Session::default())
            });
            // It has seen that its value waits, and now waits for the lock of snapshots.
            while store.journal().looks().count() == looks {
                thread::yield_now();
            }
            world.fail_nth(OpKind::Create, 1, Fault::NoSpace);
            let failure = error(put(store, &key("mine"), &pattern(LARGE, 2)), ErrorKind::Unavailable);
            assert!(failure.message().contains("variable=yours"), "{failure}");
            drop(held);
            let failure = error(flush.join().unwrap(), ErrorKind::Unavailable);
            assert!(failure.message().contains("variable=yours"), "after {failures} failures: {failure}");
        });
        store.flush(&Session::default()).unwrap();
    }
}

/// A thread that archived nothing flushes the fields of others, as a timer does, or the thread that started them.
#[test]
fn who_flushes_for_others_hears_of_the_commit_that_failed() {
    for transaction in [false, true] {
        let world = SimWorld::new(1);
        let store = open(&world, "a");
        flush_one(&store, &key("old"), b"old");
        let session = transaction.then(|| store.begin().unwrap());
        let options = ArchiveOptions { session: Session::from(session), ..ArchiveOptions::default() };
        let stall = world.stall(OpKind::SyncData, "logs");
        thread::scope(|scope| {
            let store = &store;
            let timer = scope.spawn(move || {
                archive(store, &key("yours"), Value::Bytes(b"yours"), &options).unwrap();
                store.flush(&Session::from(session))
            });
            stall.wait_for(1);
            let (begun, begins) = std::sync::mpsc::channel();
            let other = scope.spawn(move || {
                begun.send(()).unwrap();
                store.flush(&Session::from(session))
            });
            begins.recv().unwrap();
            thread::sleep(std::time::Duration::from_millis(200));
            world.fail_nth(OpKind::SyncData, 1, Fault::Io);
            drop(stall);
            error(timer.join().unwrap(), ErrorKind::Unavailable);
            let failure = error(other.join().unwrap(), ErrorKind::Unavailable);
            assert!(failure.message().contains("variable=yours"), "{failure}");
        });
        store.close(&Session::default()).unwrap();
    }
}

#[test]
fn a_value_that_cannot_be_spilled_does_not_end_the_flush_under_way() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, &key("old"), b"old");
    put(&store, &key("first"), b"first").unwrap();
    let stall = world.stall(OpKind::SyncData, "logs");
    thread::scope(|scope| {
        let flush = scope.spawn(|| store.flush(&Session::default()));
        stall.wait_for(1);
        let large = scope.spawn(|| {
            world.fail_nth(OpKind::Create, 1, Fault::NoSpace);
            put(&store, &key("large"), &pattern(LARGE, 2))
        });
        thread::sleep(std::time::Duration::from_millis(50));
        drop(stall);
        flush.join().unwrap().unwrap();
        let failure = error(large.join().unwrap(), ErrorKind::Unavailable);
        assert!(failure.message().contains("variable=large"), "{failure}");
    });
    let reader = open(&world, "b");
    assert!(field(&reader, &key("first"), None).is_ok(), "its flush has returned");
    put(&store, &key("large"), &pattern(LARGE, 2)).unwrap();
    store.flush(&Session::default()).unwrap();
    reader.refresh().unwrap();
    assert_eq!(field(&reader, &key("large"), None).unwrap().read().unwrap(), pattern(LARGE, 2));
}

#[test]
fn a_read_that_is_asked_for_after_a_flush_sees_it() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    let reader = open(&world, "b");
    flush_one(&writer, &key("n0"), b"x");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (stop, reader) = (&stop, &reader);
    thread::scope(|scope| {
        // Other threads ask all the time, so there is always a refresh that began too early.
        for _ in 0..3 {
            scope.spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    reader.version().unwrap();
                }
            });
        }
        for n in 1..300 {
            flush_one(&writer, &key(&format!("n{n}")), b"x");
            let found = field(reader, &key(&format!("n{n}")), None).is_ok();
            if !found {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
            assert!(found, "flush {n}");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn a_read_joins_no_refresh_that_began_before_it() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    let reader = open(&world, "b");
    flush_one(&writer, &key("n0"), b"x");
    reader.refresh().unwrap();
    flush_one(&writer, &key("n1"), b"x");
    // The first refresh has read the boards and is about to read the log.
    let stall = world.stall(OpKind::OpenRead, ".log");
    thread::scope(|scope| {
        let first = scope.spawn(|| reader.version());
        stall.wait_for(1);
        flush_one(&writer, &key("n2"), b"x");
        let second = scope.spawn(|| reader.list(&Request::new(), &ListOptions::default()).unwrap().count());
        thread::sleep(std::time::Duration::from_millis(50));
        drop(stall);
        first.join().unwrap().unwrap();
        assert_eq!(second.join().unwrap(), 3, "data flushed before the read are visible");
    });
}
