//! Locks on datasets: behaviour 31 of FDB, and what a lock must not change.

use crate::common::*;
use crate::purge::{at_once, try_purge};
use crate::takeovers::{close, compact};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::locks;

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

/// The store as it was at a version.
fn at(world: &SimWorld, version: &str) -> Store {
    open_in(&world.process("b"), &Opening { at: Some(version.to_owned()), ..Opening::default() }).unwrap()
}

fn set(store: &Store, text: &str, what: LockKind, locks: bool) -> fieldstone_core::Result<u64> {
    locks::set_lock(store.journal(), &request(text), &Locking { what, locks, session: Session::default() })
}

fn in_force(store: &Store) -> Vec<DatasetLock> {
    locks::locks(store.journal()).unwrap()
}

fn lock(store: &Store, text: &str, what: LockKind) {
    assert_eq!(set(store, text, what, true).unwrap(), 1, "{text}");
}

fn unlock(store: &Store, text: &str, what: LockKind) -> u64 {
    set(store, text, what, false).unwrap()
}

fn is_locked<T: std::fmt::Debug>(outcome: fieldstone_core::Result<T>) {
    let failure = outcome.unwrap_err();
    assert_eq!((failure.code(), failure.kind()), (Code::DatasetLocked, ErrorKind::Denied), "{failure}");
    assert!(failure.message().contains("run=a"), "{failure}");
}

/// Runs a and b, with two fields each.
fn written(world: &SimWorld) -> Store {
    let store = open(world, "a");
    for run in ["a", "b"] {
        for variable in ["t", "u"] {
            flush_one(&store, &format!("run={run},variable={variable}"), b"1");
        }
    }
    store
}

fn all(store: &Store) -> fieldstone_core::Result<usize> {
    let list = store.list(&Request::new(), &ListOptions::default())?;
    Ok(list.collect::<fieldstone_core::Result<Vec<_>>>()?.len())
}

#[test]
fn behaviour_31_a_lock_refuses_archives_and_leaves_lists() {
    let world = SimWorld::new(1);
    let (store, other) = (written(&world), open(&world, "b"));
    lock(&store, "run=a", LockKind::Archive);
    // Locking again adds nothing.
    lock(&store, "run=a", LockKind::Archive);
    for store in [&store, &other] {
        store.refresh().unwrap();
        is_locked(put(store, "run=a,variable=t", b"2"));
        is_locked(store.remove(&request("run=a"), &RemoveOptions::default()));
        assert_eq!(all(store).unwrap(), 4);
        assert_eq!(get(store, "run=a,variable=t").unwrap(), b"1");
        flush_one(store, "run=b,variable=t", b"2");
        let locks = in_force(store);
        let lock = |lock: &DatasetLock| (lock.dataset.clone(), lock.what);
        assert_eq!(locks.iter().map(lock).collect::<Vec<_>>(), [("run=a".to_owned(), LockKind::Archive)]);
    }
    assert_eq!(unlock(&other, "run=a/b", LockKind::Archive), 1);
    assert_eq!(unlock(&other, "run=a/b", LockKind::Archive), 0);
    assert!(in_force(&store).is_empty());
    flush_one(&store, "run=a,variable=t", b"3");
    assert_eq!(get(&other, "run=a,variable=t").unwrap(), b"3");
}

/// A handle that has not seen the lock gets the refusal at its flush, and nothing of it becomes visible.
#[test]
fn a_lock_refuses_a_flush_of_a_handle_that_had_not_seen_it() {
    let world = SimWorld::new(1);
    let (store, other) = (written(&world), open(&world, "b"));
    put(&other, "run=a,variable=t", b"2").unwrap();
    lock(&store, "run=a", LockKind::Archive);
    is_locked(other.flush(&Session::default()));
    assert_eq!(get(&store, "run=a,variable=t").unwrap(), b"1");
    drop(other.discard(&Session::default()));
    assert_eq!(unlock(&store, "run=a", LockKind::Archive), 1);
    flush_one(&other, "run=a,variable=t", b"2");
    assert_eq!(get(&store, "run=a,variable=t").unwrap(), b"2");
}

#[test]
fn locks_on_lists_and_reads_refuse_them_or_are_passed() {
    let world = SimWorld::new(1);
    let store = written(&world);
    let version = store.version().unwrap();
    lock(&store, "run=a", LockKind::List);
    is_locked(all(&store));
    is_locked(store.axes(&Request::new(), &ReadOptions::default()));
    assert_eq!(store.axes(&request("run=b"), &ReadOptions::default()).unwrap().len(), 2);
    let since = |text| {
        let (list, _) = store.list_since(&request(text), &version, &ListOptions::default())?;
        list.collect::<fieldstone_core::Result<Vec<_>>>()
    };
    assert_eq!(since("run=b").unwrap().len(), 0);
    assert_eq!(get(&store, "run=a,variable=t").unwrap(), b"1");
    assert_eq!(unlock(&store, "", LockKind::List), 1);
    lock(&store, "run=a", LockKind::Retrieve);
    assert_eq!(all(&store).unwrap(), 4);
    is_locked(get(&store, "run=a,variable=t"));
    let retrieve = |text: &str, strict| {
        let options = RetrieveOptions { strict, ..RetrieveOptions::default() };
        store.retrieve(&request(text), &options)
    };
    // Looked up by key, and found in the index.
    for text in ["run=a/b,variable=t/u", "run=a/b", ""] {
        is_locked(retrieve(text, true).map(|fields| fields.len()));
        assert_eq!(retrieve(text, false).unwrap().len(), 2, "{text}");
    }
    assert_eq!(retrieve("run=b", true).unwrap().len(), 2);
    // An older version is locked as well.
    let old = at(&world, &version);
    is_locked(get(&old, "run=a,variable=t"));
    assert_eq!(unlock(&store, "run=a", LockKind::Retrieve), 1);
    assert_eq!(retrieve("", true).unwrap().len(), 4);
}

#[test]
fn a_lock_refuses_wipes_and_purges() {
    let world = SimWorld::new(1);
    let store = written(&world);
    flush_one(&store, "run=a,variable=t", b"2");
    lock(&store, "run=a", LockKind::Wipe);
    let wipe = |text: &str| {
        store.wipe(&request(text), &Wiping { doit: true, ..Wiping::default() }).map(|report| report.fields)
    };
    is_locked(wipe("run=a"));
    is_locked(wipe("run=a/b"));
    assert_eq!(all(&store).unwrap(), 4);
    let what = Purging { requests: vec![request("run=a")], doit: true, ..Purging::default() };
    is_locked(store.purge(&what, &mut |_| Ok(())).map(|report| report.versions));
    assert_eq!(wipe("run=b").unwrap(), 2);
    assert_eq!(unlock(&store, "run=a", LockKind::Wipe), 1);
    assert_eq!(wipe("run=a").unwrap(), 2);
    // A dataset without fields can be unlocked, too.
    flush_one(&store, "run=a,variable=t", b"2");
    lock(&store, "run=a", LockKind::Archive);
    assert_eq!(wipe("run=a").unwrap(), 1);
    assert_eq!(unlock(&store, "run=a", LockKind::Archive), 1);
    flush_one(&store, "run=a,variable=t", b"3");
}

/// A purge of everything passes over a locked dataset.
#[test]
fn a_purge_of_all_leaves_locked_datasets() {
    let world = SimWorld::new(1);
    let store = written(&world);
    for run in ["a", "b"] {
        flush_one(&store, &format!("run={run},variable=t"), b"2");
    }
    lock(&store, "run=a", LockKind::Wipe);
    close(&store);
    let next = open(&world, "a");
    let masked = || {
        let options = ListOptions { masked: true, ..ListOptions::default() };
        next.list(&Request::new(), &options).unwrap().filter(|entry| entry.as_ref().unwrap().masked).count()
    };
    assert_eq!(masked(), 2);
    assert_eq!(try_purge(&next, &at_once()).unwrap().versions, 1);
    assert_eq!(masked(), 1);
    assert_eq!(unlock(&next, "run=a", LockKind::Wipe), 1);
    assert_eq!(try_purge(&next, &at_once()).unwrap().versions, 1);
    assert_eq!(masked(), 0);
}

/// Locks and their ends survive the logs that they stand in.
#[test]
fn r23_locks_are_taken_over() {
    let world = SimWorld::new(1);
    let store = written(&world);
    lock(&store, "run=a", LockKind::Archive);
    lock(&store, "run=b", LockKind::Archive);
    close(&store);
    let next = open(&world, "a");
    assert_eq!(unlock(&next, "run=b", LockKind::Archive), 1);
    close(&next);
    let last = open(&world, "a");
    for _ in 0..3 {
        compact(&last);
        world.advance(3_700 * SECOND);
        let fresh = open(&world, "b");
        is_locked(put(&fresh, "run=a,variable=t", b"2").and_then(|()| fresh.flush(&Session::default())));
        drop(fresh.discard(&Session::default()));
        flush_one(&fresh, "run=b,variable=t", b"2");
        assert_eq!(in_force(&fresh).len(), 1);
    }
}

#[test]
fn a_lock_takes_whole_datasets_that_exist() {
    let world = SimWorld::new(1);
    let store = written(&world);
    let failure = set(&store, "run=a,variable=t", LockKind::List, true).unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Invalid);
    assert!(failure.message().contains("variable"), "{failure}");
    let failure = set(&store, "run=z", LockKind::List, true).unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::NotFound, "{failure}");
    assert_eq!(set(&store, "run=z", LockKind::List, false).unwrap(), 0);
    assert_eq!(set(&store, "", LockKind::List, true).unwrap(), 2);
    assert_eq!(in_force(&store).len(), 2);
    is_locked(all(&store));
    let failure = set(&at(&world, &store.version().unwrap()), "run=a", LockKind::List, true);
    assert_eq!(failure.unwrap_err().kind(), ErrorKind::Denied);
}

/// In a shared folder only the owner of a dataset locks it; a record that somebody else forges does not count.
#[test]
fn a_lock_counts_of_the_owner_alone() {
    let world = shared_folder();
    let (alice, bob) = (open(&world, "alice"), open(&world, "bob"));
    flush_one(&alice, "run=a,variable=t", b"1");
    let failure = set(&bob, "run=a", LockKind::Archive, true).unwrap_err();
    assert_eq!(failure.code(), Code::DatasetOwned, "{failure}");
    let key = alice.schema().resolve(&[("run", "a"), ("variable", "t")]).unwrap();
    let forged = [((*key.levels[0]).clone(), LockKind::Archive.bit())];
    bob.journal().ranges().lock(&forged, true, &Session::default()).unwrap();
    flush_one(&alice, "run=a,variable=t", b"2");
    lock(&alice, "run=a", LockKind::List);
    bob.journal()
        .ranges()
        .lock(&[(forged[0].0.clone(), LockKind::List.bit())], false, &Session::default())
        .unwrap();
    is_locked(all(&bob));
    is_locked(all(&alice));
    assert_eq!(unlock(&alice, "run=a", LockKind::List), 1);
    assert_eq!(all(&bob).unwrap(), 1);
}
