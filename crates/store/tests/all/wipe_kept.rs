//! The kept store with wipes: this release, later ones, and the small reader that knows only spec/
//! (`tests/compat/test_wipes.py`) find the same fields in it.

use std::path::{Path, PathBuf};

use crate::common::*;
use crate::takeover_kept::{check_kept, keep, lines};
use crate::takeovers::{close, compact};
use crate::wipe::{wipe, wipe_with};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/wiped")
}

#[test]
fn r26_the_kept_store_with_wipes_reads_as_it_was_made() {
    check_kept(&kept());
}

fn piece(store: &Store, key: &str, start: u64) {
    let value = Value::Piece { data: &[7; 8], dtype: DType::I4, start: &[start], count: &[2], shape: &[4] };
    archive(store, key, value, &ArchiveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
}

/// Makes it. Kept stores of an old release are never rewritten: run this for a new release, under a new name.
#[test]
#[ignore = "writes into the sources"]
fn make_the_kept_store_with_wipes() {
    let world = SimWorld::new(1);
    let of =
        |name: &str| open_in(&world.process("a"), &Opening { attempt: name.into(), ..Opening::default() });
    let (first, second, other) = (of("1").unwrap(), of("2").unwrap(), open(&world, "b"));
    for step in 0..300 {
        put(&other, &format!("run=many,variable=t,step={step}"), b"wiped").unwrap();
        put(&other, &format!("run=many,variable=u,step={step}"), format!("stays {step}").as_bytes()).unwrap();
    }
    other.flush(&Session::default()).unwrap();
    flush_one(&second, "run=a,variable=t,step=1", b"of the second attempt");
    // Three transactions: decided before the wipe, after it, and never.
    let ids = [other.begin().unwrap(), other.begin().unwrap(), other.begin().unwrap()];
    for (n, id) in ids.iter().enumerate() {
        put_in(&other, &format!("run=a,variable=tx,step={n}"), b"prepared", *id).unwrap();
        other.flush(&Session::from(*id)).unwrap();
    }
    other.decide(ids[0], true, &Session::default()).unwrap();
    let young = "run=old,variable=array,step=1";
    piece(&other, young, 0);
    piece(&other, young, 2);
    piece(&other, "run=old,variable=done,step=1", 0);
    piece(&other, "run=old,variable=done,step=1", 2);
    let wiper = open(&world, "c");
    wipe(&wiper, "run=a");
    wipe(&wiper, "run=many,variable=t");
    close(&wiper);
    let (older, then) = (other.version().unwrap(), lines(&other));
    other.decide(ids[1], true, &Session::default()).unwrap();
    flush_one(&first, "run=a,variable=t,step=1", b"a straggler");
    flush_one(&other, "run=many,variable=t,step=7", b"again");
    world.advance(HOUR as u64);
    let age = world.process("b").clock.now();
    world.advance(HOUR as u64);
    piece(&other, young, 2);
    // On a host of its own: boards of others then have no slot of a log that is gone.
    let living = open(&world, "d");
    let how = Wiping { doit: true, older_than: Some(age), ..Wiping::default() };
    assert_eq!(wipe_with(&living, "run=old", &how).unwrap().fields, 1);
    flush_one(&living, "run=b,variable=t,step=1", b"gone");
    [first, second, other].iter().for_each(close);
    compact(&open(&world, "a"));
    wipe(&living, "run=b");
    flush_one(&living, "run=c,variable=t,step=1", b"living");
    keep(&world, &kept(), &living, (&older, &then));
}
