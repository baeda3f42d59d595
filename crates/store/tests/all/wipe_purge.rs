//! Purges after wipes: wiped fields go like hidden versions, once the wipe is confirmed and a grace old.

use crate::common::*;
use crate::purge::{at_once, purge, try_purge, visible};
use crate::takeovers::{close, compact, open_at};
use crate::wipe::{wipe, wipe_with};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_journal::Session;
use fieldstone_journal::writer::INLINE_MAX;
use fieldstone_store::api::*;

/// Bytes of all files of a folder.
fn bytes_in(world: &SimWorld, folder: &str) -> u64 {
    files(world, folder).iter().map(|path| world.read(path).unwrap().len() as u64).sum()
}

fn write(world: &SimWorld, key: &str, value: &[u8]) {
    let store = open(world, "a");
    flush_one(&store, key, value);
    close(&store);
}

/// Two runs with large and small fields, by several writers, some of which are taken over; one field is an older version.
fn two_runs(world: &SimWorld) {
    for run in ["a", "b"] {
        for n in 0..3 {
            write(world, &format!("run={run},variable=small,step={n}"), b"a value");
            write(world, &format!("run={run},variable=large,step={n}"), &pattern(2 * INLINE_MAX, n));
        }
        write(world, &format!("run={run},variable=small,step=0"), b"written again");
        compact(&open(world, "a"));
    }
}

#[test]
fn what_a_wipe_hides_gives_back_its_room() {
    let world = SimWorld::new(1);
    two_runs(&world);
    let store = open(&world, "a");
    let (version, before) = (store.version().unwrap(), bytes_in(&world, "data"));
    let kept = visible(&open(&world, "b"), None);
    assert_eq!(wipe(&store, "run=a").fields, 6);
    close(&store);
    let dry = try_purge(&open(&world, "a"), &Purging { doit: false, ..at_once() }).unwrap();
    let report = purge(&world);
    assert_eq!((report.versions, report.versions), (dry.versions, 7 + 1), "seven of the wiped run");
    let after = bytes_in(&world, "data");
    assert!(after < before * 6 / 10, "{before} bytes, now {after}");
    let now = visible(&open(&world, "b"), None);
    assert!(now.len() == 6 && now.iter().all(|(key, bytes)| kept[key] == *bytes), "{now:?}");
    let older = open_at(&world, &version);
    let gone = error(get(&older, "run=a,variable=small,step=1"), ErrorKind::NotFound);
    assert_eq!(gone.code(), Code::VersionPurged);
    assert_eq!(get(&older, "run=b,variable=small,step=1").unwrap(), b"a value");
    // The wipe stays on record, and does not concern what comes later.
    write(&world, "run=a,variable=small,step=1", b"a new life");
    assert_eq!(purge(&world).versions, 0);
    assert_eq!(get(&open(&world, "b"), "run=a,variable=small,step=1").unwrap(), b"a new life");
    let verified = open(&world, "b").verify(&Request::new()).unwrap();
    assert!(verified.damaged.is_empty(), "{verified:?}");
}

#[test]
fn a_young_wipe_and_one_that_nothing_confirms_keep_what_they_hide() {
    let world = SimWorld::new(1);
    two_runs(&world);
    // The older versions of both runs go whatever is wiped.
    assert_eq!(purge(&world).versions, 2);
    let store = open(&world, "a");
    wipe(&store, "run=a");
    assert_eq!(purge(&world).versions, 0, "the last commit of a living log");
    close(&store);
    let hour = Purging { grace: HOUR as u64, ..at_once() };
    let with_grace = || try_purge(&open(&world, "a"), &hour).unwrap().versions;
    assert_eq!(with_grace(), 0, "younger than the grace");
    world.advance(HOUR as u64 + SECOND);
    assert_eq!(with_grace(), 6);
    assert_eq!(listed(&open(&world, "b")).len(), 6);
}

#[test]
fn a_wipe_with_an_age_lets_the_young_stay() {
    let world = SimWorld::new(1);
    write(&world, "run=a,variable=t,step=0", b"old");
    write(&world, "run=a,variable=t,step=1", b"old");
    world.advance(2 * HOUR as u64);
    write(&world, "run=a,variable=t,step=1", b"young");
    let store = open(&world, "a");
    let older_than = Some(store.journal().env().clock.now() - HOUR);
    let how = Wiping { doit: true, older_than, ..Wiping::default() };
    assert_eq!(wipe_with(&store, "run=a", &how).unwrap().fields, 1);
    store.flush(&Session::default()).unwrap();
    close(&store);
    assert_eq!(purge(&world).versions, 2);
    assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=t}{step=1}"]);
    assert_eq!(get(&open(&world, "b"), "run=a,variable=t,step=1").unwrap(), b"young");
}
