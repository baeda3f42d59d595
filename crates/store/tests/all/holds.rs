//! Holds: while one stands, a purge drops nothing and no replaced file goes (takeovers.md, 6.4; R31, R38).

use crate::common::*;
use crate::purge::purge;
use crate::takeovers::{close, compact};
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};
use fieldstone_store::holds::{hold, holds, release};

const T1: &str = "run=a,variable=t,step=1";

fn set(store: &Store, name: &str, seconds: u64, why: &str) -> HoldInfo {
    let how = Holding {
        name: name.to_owned(),
        lasts: seconds * SECOND,
        why: why.to_owned(),
        session: Session::default(),
    };
    hold(store.journal(), &how).unwrap()
}

fn two_versions(world: &SimWorld) {
    for value in [b"first", b"other"] {
        let store = open(world, "a");
        flush_one(&store, T1, value);
        close(&store);
    }
}

#[test]
fn r31_a_hold_delays_purge_until_it_is_released_or_expires() {
    let world = SimWorld::new(1);
    two_versions(&world);
    let store = open(&world, "a");
    let held = set(&store, "", 100, "the copy to tape runs");
    assert!(!held.name.is_empty() && held.until - held.since <= 100 * SECOND as i64, "{held:?}");
    assert!(store.list_since(&Request::new(), &held.version, &ListOptions::default()).is_ok());
    assert_eq!(holds(store.journal()).unwrap(), std::slice::from_ref(&held));
    let report = purge(&world);
    assert_eq!(report.versions, 0);
    let why = report.kept.unwrap();
    assert!(why.contains(&held.name) && why.contains("until 20") && why.contains("tape"), "{why}");
    // It survives a takeover of its log, and is released from another process.
    close(&store);
    compact(&open(&world, "b"));
    let other = open(&world, "b");
    assert_eq!(holds(other.journal()).unwrap(), std::slice::from_ref(&held));
    release(other.journal(), &held.name, &Session::default()).unwrap();
    assert!(holds(other.journal()).unwrap().is_empty());
    let again = release(other.journal(), &held.name, &Session::default()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
    close(&other);
    assert_eq!(purge(&world).versions, 1);
}

#[test]
fn a_hold_is_extended_by_its_name_and_expires() {
    let world = SimWorld::new(2);
    two_versions(&world);
    let store = open(&world, "a");
    set(&store, "nightly", 10, "");
    world.advance(8 * SECOND);
    set(&store, "nightly", 10, "");
    world.advance(8 * SECOND);
    assert_eq!(holds(store.journal()).unwrap().len(), 1);
    world.advance(3 * SECOND);
    assert!(holds(store.journal()).unwrap().is_empty());
    close(&store);
    assert_eq!(purge(&world).versions, 1);
}

#[test]
fn r38_replaced_files_stay_while_a_hold_stands() {
    let world = SimWorld::new(3);
    two_versions(&world);
    let store = open(&world, "a");
    set(&store, "tape", 7200, "");
    let before = files(&world, "logs");
    compact(&store);
    // The grace of an hour is over, the hold is not.
    world.advance(3700 * SECOND);
    compact(&open(&world, "b"));
    let logs =
        |world: &SimWorld| files(world, "logs").into_iter().filter(|path| before.contains(path)).count();
    assert_eq!(logs(&world), before.len());
    world.advance(3700 * SECOND);
    compact(&open(&world, "b"));
    assert!(logs(&world) < before.len());
}

#[test]
fn wrong_holds_are_refused() {
    let world = SimWorld::new(4);
    two_versions(&world);
    let store = open(&world, "a");
    let kind = |store: &Store, lasts: u64, name: &str| {
        let how = Holding { name: name.to_owned(), lasts, ..Holding::default() };
        hold(store.journal(), &how).map_err(|e| e.kind())
    };
    assert_eq!(kind(&store, 0, "").unwrap_err(), ErrorKind::Invalid);
    assert_eq!(kind(&store, 400 * 86_400 * SECOND, "").unwrap_err(), ErrorKind::Invalid);
    assert_eq!(kind(&store, SECOND, &"n".repeat(5000)).unwrap_err(), ErrorKind::Invalid);
    let how = Opening { access: Access::Read, ..Opening::default() };
    let reader = open_in(&world.process("b"), &how).unwrap();
    assert_eq!(kind(&reader, SECOND, "").unwrap_err(), ErrorKind::Denied);
}
