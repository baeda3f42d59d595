//! Lists: of several requests, and their cost.

use std::path::Path;

use fieldstone::catalog::query::text::parse;
use fieldstone::env::sim::SimWorld;
use fieldstone::prelude::*;
use fieldstone::unpacked::unpacked;
use fieldstone::{
    ArchiveOptions, DType, ListOptions, OpenOptions, ReadOptions, Request, Store, Value, open_in,
};

fn open(world: &SimWorld) -> Store {
    open_in(world.process("a"), "/store", Path::new("/store"), &OpenOptions::default()).unwrap()
}

fn put(store: &Store, run: &str, variable: &str) {
    let value = Value::Array { data: &[1; 24], dtype: DType::F8, shape: &[3] };
    let key = [("run", run), ("variable", variable), ("step", "0")];
    store.archive(&key, value, &ArchiveOptions::default()).unwrap();
    store.flush(None).unwrap();
}

/// Calls to the disk for the extremes of a list of `runs` runs, each of a writer of its own.
fn calls_for(runs: u64) -> u64 {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    for run in 0..runs {
        put(&open(&world), &format!("r{run}"), "t");
    }
    let reader = open(&world);
    let all = [Request::new()];
    let listing = reader.list(&all[0], &ListOptions::default()).unwrap();
    // Hints are trusted for a second: a later request must look again.
    let before = world.counters().total();
    let listed = unpacked(&reader, &all, listing).map(|entry| {
        world.advance(2_000_000_000);
        entry.unwrap()
    });
    assert_eq!(listed.filter(|entry| entry.summary.is_some()).count() as u64, runs);
    world.counters().total() - before
}

#[test]
fn a_list_of_arrays_does_not_look_at_all_logs_for_each_run() {
    let (few, many) = (calls_for(12), calls_for(48));
    assert!(many < 6 * few, "{few} calls for 12 runs of 12 writers, {many} for 48 of 48");
}

#[test]
fn several_requests_are_listed_one_after_another() {
    let world = SimWorld::new(1);
    let store = open(&world);
    for (run, variable) in [("a", "t"), ("a", "u"), ("b", "t"), ("c", "t")] {
        put(&store, run, variable);
    }
    let requests = Request::parse_many("run=c\nrun=a,variable=u\n\n{run=b}{variable=t}").unwrap();
    let listed = store.all_of(&requests).list(&ListOptions::default()).unwrap();
    let runs: Vec<_> =
        listed.map(|entry| entry.unwrap().key.get("run").unwrap().text().into_owned()).collect();
    assert_eq!(runs, ["c", "a", "b"]);
    let axes = store.all_of(&requests).axes(&ReadOptions::default()).unwrap();
    let axes: Vec<_> = axes.into_iter().map(|(name, values)| (name.to_string(), values.len())).collect();
    assert_eq!(axes, [("run".to_owned(), 3), ("variable".to_owned(), 2), ("step".to_owned(), 1)]);
    let stats = store.all_of(&requests).stats().unwrap();
    assert_eq!((stats.datasets, stats.indexes, stats.fields, stats.bytes), (3, 3, 3, 72));
    assert_eq!(store.all_of(&requests).verify().unwrap().fields, 3);
    // A request that does not fit the schema fails before anything is listed.
    let wrong = Request::parse_many("run=a\nstep=x").unwrap();
    assert!(store.all_of(&wrong).list(&ListOptions::default()).is_err());
}

/// A run that only fields name was created when the first of them was flushed.
#[test]
fn runs_that_only_fields_name_are_found_by_their_age() {
    let world = SimWorld::new(1);
    let store = open(&world);
    put(&store, "old", "t");
    let first = world.now();
    world.advance(3_600_000_000_000);
    put(&store, "old", "u");
    put(&store, "new", "t");
    store.create_run("declared").created(first + 7).create().unwrap();
    store.flush(None).unwrap();
    let found = |store: &Store, text: &str| -> Vec<String> {
        let runs = store.catalog().runs(&parse(text).unwrap()).unwrap();
        runs.into_iter().map(|run| run.decl.run.name).collect()
    };
    let later = fieldstone::catalog::value::Value::DateTime(first + 1_000_000_000);
    for store in [&store, &open(&world)] {
        assert_eq!(found(store, &format!("created<{later}")), ["declared", "old"]);
        assert_eq!(found(store, &format!("created>{later}")), ["new"]);
    }
    store.catalog().rebuild().unwrap();
    assert_eq!(found(&store, &format!("created<{later}")), ["declared", "old"]);
}
