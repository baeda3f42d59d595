//! Counts of wipes: a takeover says how many fields a dataset has, and the count is the one that a walk finds.

use crate::common::*;
use crate::takeovers::{act, close, compact};
use crate::wipe::{wipe, wipe_with};
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::schema::Schema;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_testkit::random::seeded;

/// Fields and bytes that a wipe would hide. With an age that all have, a walk counts them.
fn counts(store: &Store, request: &str, walks: bool) -> (u64, u64) {
    let older_than = walks.then_some(i64::MAX / 2);
    let how = Wiping { older_than, all: true, ..Wiping::default() };
    let report = wipe_with(store, request, &how).unwrap();
    (report.fields, report.nbytes)
}

/// Reads of a wipe.
fn reads(world: &SimWorld, store: &Store, request: &str, walks: bool) -> u64 {
    let before = world.counters().count(OpKind::Read);
    counts(store, request, walks);
    world.counters().count(OpKind::Read) - before
}

#[test]
fn whole_datasets_are_counted_without_a_walk() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let writer = open(&world, "a");
    for n in 0..60_000 {
        put(&writer, &format!("run={},variable=t,step={n}", ["a", "b"][n % 2]), b"12345678").unwrap();
    }
    writer.flush(&Session::default()).unwrap();
    close(&writer);
    compact(&open(&world, "a"));
    for (request, fields) in [("run=a", 30_000), ("run=a/b", 60_000), ("", 60_000), ("run=c", 0)] {
        let walk = open(&world, "b");
        let walked = reads(&world, &walk, request, true);
        let store = open(&world, "b");
        let counted = reads(&world, &store, request, false);
        assert_eq!(counts(&store, request, false), (fields, fields * 8));
        assert!(fields == 0 || counted * 3 < walked, "{request}: {counted} reads, a walk needs {walked}");
    }
    // An index is walked through, and so is a dataset in which somebody has written since.
    let store = open(&world, "a");
    assert_eq!(counts(&store, "variable=t", false), (60_000, 480_000));
    flush_one(&store, "run=a,variable=t,step=0", b"1");
    assert_eq!(counts(&store, "run=a", false), (30_000, 239_993));
    assert_eq!(wipe(&store, "run=b").fields, 30_000);
    assert_eq!(counts(&store, "run=b", false), (0, 0));
}

/// The dataset has a year and month, and its indexes the days: a request for days selects some of them.
#[test]
fn a_keyword_at_two_levels_selects_by_the_deeper_one() {
    let world = SimWorld::new(1);
    let schema =
        Schema::parse("date: Date; [ run, date:YearMonth [ date:Date [ variable, step? ] ] ]").unwrap();
    let again = || {
        let how = Opening { schema: Some(schema.clone()), ..Opening::default() };
        open_in(&world.process("a"), &how).unwrap()
    };
    let store = again();
    for date in ["20240102", "20240103", "20240104"] {
        put(&store, &format!("run=a,date={date},variable=t"), b"1").unwrap();
    }
    store.flush(&Session::default()).unwrap();
    close(&store);
    compact(&again());
    let store = again();
    for (request, fields) in [("date=20240102", 1), ("date=20240102/20240103", 2), ("run=a", 3)] {
        assert_eq!(counts(&store, request, false), (fields, fields), "{request}");
    }
    assert_eq!(wipe(&store, "date=20240102/20240103").fields, 2);
    assert_eq!(listed(&store), ["{run=a,date=202401}{date=20240104}{variable=t}"]);
}

#[test]
fn a_count_is_that_of_a_walk_whatever_was_done() {
    let count = if std::env::var_os("FIELDSTONE_CRASH").is_some() { 400 } else { 20 };
    for seed in fieldstone_testkit::random::seeds(count) {
        let mut random = seeded(seed);
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        let mut open_transactions = Vec::new();
        let mut store = open(&world, "a");
        store.create().unwrap();
        for n in 0..40 {
            act(&mut random, &store, &mut open_transactions, n);
            match random.below(8) {
                0 => {
                    close(&store);
                    compact(&open(&world, "a"));
                    store = open(&world, "a");
                }
                1 => drop(wipe(&store, &format!("run=r{},variable=z", random.below(3)))),
                2 => drop(wipe(&store, &format!("run=r{}", random.below(3)))),
                _ => {}
            }
            for request in ["run=r0", "run=r1", "run=r0/r1/r2", "run=r2,variable=t", ""] {
                let walked = counts(&store, request, true);
                assert_eq!(counts(&store, request, false), walked, "seed {seed}, step {n}: {request}");
            }
        }
    }
}
