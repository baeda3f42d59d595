//! Hides: readers pass over hidden fields until somebody shows them again, and nothing that gives space back takes them.

use crate::common::*;
use crate::purge::{at_once, try_purge};
use crate::takeovers::{close, compact};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::store_record::RangeAction;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::hide;

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn at(world: &SimWorld, version: &str) -> Store {
    open_in(&world.process("b"), &Opening { at: Some(version.to_owned()), ..Opening::default() }).unwrap()
}

fn set(store: &Store, text: &str, hides: bool) -> Result<u64> {
    hide::set_hidden(store.journal(), &request(text), &Hiding { hides, session: Session::default() })
}

fn hide(store: &Store, text: &str) -> u64 {
    set(store, text, true).unwrap()
}

fn unhide(store: &Store, text: &str) -> u64 {
    set(store, text, false).unwrap()
}

fn hidden(store: &Store) -> Vec<String> {
    hide::hidden(store.journal()).unwrap().into_iter().map(|one| one.request).collect()
}

/// Runs a and b, each with variables t and u of two steps, the first of them written twice.
fn written(world: &SimWorld) -> Store {
    let store = open(world, "a");
    for round in 1..3 {
        for run in ["a", "b"] {
            for (variable, step) in [("t", 0), ("t", 6), ("u", 0), ("u", 6)] {
                if round == 1 || step == 0 {
                    let key = format!("run={run},variable={variable},step={step}");
                    flush_one(&store, &key, format!("{round} {key}").as_bytes());
                }
            }
        }
    }
    store
}

fn all(store: &Store) -> Vec<String> {
    let list = store.list(&Request::new(), &ListOptions::default()).unwrap();
    list.map(|entry| entry.unwrap().key.to_string()).collect()
}

/// Every visible field with its bytes.
fn content(store: &Store) -> Vec<(String, Vec<u8>)> {
    all(store).into_iter().map(|key| (key.clone(), get(store, &key).unwrap())).collect()
}

#[test]
fn b28_hidden_fields_are_not_there_until_they_are_shown_again() {
    let world = SimWorld::new(1);
    let (store, other) = (written(&world), open(&world, "b"));
    let (before, version) = (content(&store), store.version().unwrap());
    assert_eq!(hide(&store, "run=a"), 4);
    for reader in [&store, &other, &open(&world, "b")] {
        reader.refresh().unwrap();
        assert_eq!(all(reader).len(), 4);
        assert_eq!(get(reader, "run=a,variable=t,step=0").unwrap_err().kind(), ErrorKind::NotFound);
        let axes = reader.axes(&Request::new(), &ReadOptions::default()).unwrap();
        assert!(!format!("{axes:?}").contains("\"a\""), "{axes:?}");
        assert_eq!(hidden(reader), ["run=a"]);
        // They are gone for the request, so that nothing is hidden twice.
        assert_eq!(hide(reader, "run=a"), 0);
    }
    assert_eq!(content(&at(&world, &version)), before);
    // A later value under a hidden key is there; a second hide takes it, and one call shows both again.
    flush_one(&other, "run=a,variable=t,step=6", b"later");
    assert_eq!(get(&store, "run=a,variable=t,step=6").unwrap(), b"later");
    assert_eq!(hide(&other, "run=a"), 1);
    assert_eq!((all(&store).len(), hidden(&store).len()), (4, 2));
    assert_eq!(unhide(&other, "run=a"), 4);
    assert_eq!((all(&store).len(), hidden(&store).len()), (8, 0));
    assert_eq!(get(&store, "run=a,variable=t,step=6").unwrap(), b"later");
    assert_eq!(get(&store, "run=a,variable=t,step=0").unwrap(), b"2 run=a,variable=t,step=0");
    assert_eq!(unhide(&store, "run=a"), 0);
}

#[test]
fn a_hide_ends_as_a_whole_and_by_name() {
    let world = SimWorld::new(1);
    let store = written(&world);
    assert_eq!(hide(&store, "run=a/b,variable=t"), 4);
    for part in ["run=a", "run=a,variable=t", "variable=t,run=b"] {
        let failure = set(&store, part, false).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Invalid);
        assert!(failure.message().contains("run=a/b,variable=t"), "{failure}");
    }
    for other in ["run=c", "variable=u", "run=c,variable=t"] {
        assert_eq!(unhide(&store, other), 0, "{other}");
    }
    assert_eq!(hidden(&store), ["run=a/b,variable=t"]);
    assert_eq!(hide(&store, "run=b"), 2);
    assert_eq!(unhide(&store, "run=a/b/c,variable=t/v"), 4 - 2, "those of b stay hidden by the other one");
    assert_eq!(hidden(&store), ["run=b"]);
    assert_eq!(unhide(&store, ""), 4);
    assert_eq!(all(&store).len(), 8);
    // Refused: deeper keywords, everything, keys without a keyword.
    for (text, says) in [("run=a,step=0", "step"), ("", "everything")] {
        let failure = set(&store, text, true).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Invalid, "{failure}");
        assert!(failure.message().contains(says), "{failure}");
    }
    assert_eq!(set(&store, "run=a,step=0", false).unwrap_err().kind(), ErrorKind::Invalid);
    let reader = at(&world, &store.version().unwrap());
    assert_eq!(set(&reader, "run=a", true).unwrap_err().kind(), ErrorKind::Denied);
}

/// Nothing that gives space back takes hidden fields, and hides outlive the logs that they stand in.
#[test]
fn purge_and_compact_leave_hidden_fields() {
    for ends_first in [false, true] {
        let world = SimWorld::new(1);
        let store = written(&world);
        let before = content(&store);
        assert_eq!(hide(&store, "run=a"), 4);
        assert_eq!(hide(&store, "run=b,variable=t"), 2);
        if ends_first {
            assert_eq!(unhide(&store, "run=b"), 2);
        }
        close(&store);
        for _ in 0..2 {
            compact(&open(&world, "a"));
            let store = open(&world, "a");
            let report = try_purge(&store, &at_once()).unwrap();
            assert!(report.waiting == 0, "{report:?}");
            close(&store);
        }
        let store = open(&world, "a");
        assert_eq!(hidden(&store).len(), if ends_first { 1 } else { 2 });
        assert_eq!(all(&store).len(), if ends_first { 4 } else { 2 });
        assert_eq!(unhide(&store, ""), if ends_first { 4 } else { 6 });
        assert_eq!(content(&store), before);
        assert_eq!(content(&open(&world, "b")), before);
    }
}

#[test]
fn a_wipe_takes_hidden_fields_for_good() {
    let world = SimWorld::new(1);
    let store = written(&world);
    assert_eq!(hide(&store, "run=a"), 4);
    let how = |doit| Wiping { doit, ..Wiping::default() };
    assert_eq!(store.wipe(&request("run=a"), &how(false)).unwrap().fields, 4);
    assert_eq!(store.wipe(&request("run=a"), &how(true)).unwrap().fields, 4);
    assert_eq!(unhide(&store, "run=a"), 0);
    assert_eq!((all(&store).len(), hidden(&store).len()), (4, 0));
    assert_eq!(store.wipe(&request("run=a"), &how(false)).unwrap().fields, 0);
}

/// Others hide nothing of a dataset, and what they end shows their own entries alone.
#[test]
fn owners_hide_and_unhide() {
    let world = shared_folder();
    let (alice, bob, admin) = (open(&world, "alice"), open(&world, "bob"), open(&world, "admin"));
    for step in 0..3 {
        flush_one(&alice, &format!("run=a,variable=t,step={step}"), b"alice's");
        flush_one(&bob, &format!("run=b,variable=t,step={step}"), b"bob's");
    }
    let failure = set(&bob, "run=a", true).unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Denied, "{failure}");
    assert!(failure.message().contains("run=a") && failure.message().contains("hide"), "{failure}");
    assert_eq!(hide(&admin, "run=a/b"), 6);
    for store in [&alice, &bob] {
        assert_eq!(all(store).len(), 0);
        let failure = set(store, "run=a/b", false).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Denied, "{failure}");
    }
    // A record in a log of his speaks of his own entries.
    let snapshot = bob.journal().looks().snapshot().unwrap();
    let hides = snapshot.wipes.hides();
    assert_eq!(hides[0].range.action, RangeAction::Hide);
    bob.journal().ranges().end_hides(&hides, &Session::default()).unwrap();
    for reader in [&alice, &bob, &admin, &open(&world, "bob")] {
        reader.refresh().unwrap();
        assert_eq!(all(reader).len(), 3, "bob's");
        assert_eq!(get(reader, "run=b,variable=t,step=1").unwrap(), b"bob's");
    }
    assert_eq!(unhide(&admin, "run=a/b"), 3);
    assert_eq!(all(&bob).len(), 6);
}
