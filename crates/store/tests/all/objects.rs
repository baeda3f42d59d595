//! Behaviour specific to an object medium: one object per commit, and puts that fail.

use std::sync::Arc;

use crate::common::{self, Store, get, listed};
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_journal::medium::objects::{Fault, ObjectMedium, Objects};
use fieldstone_store::LocalStore;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;

fn open(world: &SimWorld, objects: &Arc<Objects>) -> Store {
    let env = world.process("a");
    let medium = Arc::new(ObjectMedium::new(env.clone(), objects.clone()));
    Arc::new(LocalStore::open_in(env, medium, Opening::default().local("objects:")).unwrap())
}

fn key(step: u64) -> String {
    format!("run=r,variable=t,step={step}")
}

fn put(store: &Store, step: u64, value: &[u8]) {
    common::put(store, &key(step), value).unwrap();
}

fn steps(store: &Store) -> usize {
    listed(store).len()
}

#[test]
fn a_commit_is_one_object_and_a_large_flush_two() {
    let (world, objects) = (SimWorld::new(1), Arc::<Objects>::default());
    let store = open(&world, &objects);
    put(&store, 0, b"a");
    store.flush(&Session::default()).unwrap();
    // The marker, the claim on the run, the commit.
    assert_eq!(objects.list("", None).len(), 3, "{:?}", objects.list("", None));
    for step in 1..10 {
        put(&store, step, b"a");
        store.flush(&Session::default()).unwrap();
    }
    assert_eq!(objects.list("logs/", None).len(), 10);
    put(&store, 10, &vec![7; 3 << 20]);
    store.flush(&Session::default()).unwrap();
    assert_eq!((objects.list("logs/", None).len(), objects.list("data/", None).len()), (11, 1));
    let other = open(&world, &objects);
    assert_eq!(steps(&other), 11);
    assert_eq!(get(&other, &key(10)).unwrap(), vec![7; 3 << 20]);
    let report = other.verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty() && report.fields == 11, "{report:?}");
}

#[test]
fn a_put_that_is_refused_is_told_and_the_next_flush_begins_another_log() {
    let (world, objects) = (SimWorld::new(1), Arc::<Objects>::default());
    let store = open(&world, &objects);
    put(&store, 0, b"a");
    store.flush(&Session::default()).unwrap();
    objects.fail_next("logs/", Fault::Refused);
    put(&store, 1, b"b");
    assert_eq!(store.flush(&Session::default()).unwrap_err().kind(), ErrorKind::Unavailable);
    put(&store, 2, b"c");
    store.flush(&Session::default()).unwrap();
    assert_eq!(objects.folders("logs/").len(), 2);
    assert_eq!(steps(&open(&world, &objects)), 2);
}

/// The object appears after the writer got an error: it lies beyond the end that the next log names.
#[test]
fn a_put_whose_answer_was_lost_never_counts() {
    let (world, objects) = (SimWorld::new(1), Arc::<Objects>::default());
    let store = open(&world, &objects);
    put(&store, 0, b"a");
    store.flush(&Session::default()).unwrap();
    let reader = open(&world, &objects);
    objects.fail_next("logs/", Fault::Unanswered);
    put(&store, 1, b"b");
    assert_eq!(store.flush(&Session::default()).unwrap_err().kind(), ErrorKind::Unavailable);
    put(&store, 2, b"c");
    store.flush(&Session::default()).unwrap();
    assert_eq!(objects.list("logs/", None).len(), 3, "it is there");
    for reader in [reader, open(&world, &objects)] {
        assert_eq!(steps(&reader), 2);
        assert!(get(&reader, &key(1)).is_err());
    }
}

/// The same before the first commit of a log.
#[test]
fn a_first_put_whose_answer_was_lost_never_counts() {
    let (world, objects) = (SimWorld::new(1), Arc::<Objects>::default());
    let store = open(&world, &objects);
    put(&store, 0, b"a");
    objects.fail_next("logs/", Fault::Unanswered);
    assert_eq!(store.flush(&Session::default()).unwrap_err().kind(), ErrorKind::Unavailable);
    put(&store, 1, b"b");
    store.flush(&Session::default()).unwrap();
    assert_eq!((steps(&open(&world, &objects)), objects.folders("logs/").len()), (1, 2));
}

#[test]
fn a_lost_put_of_payloads_takes_the_flush_with_it() {
    let (world, objects) = (SimWorld::new(1), Arc::<Objects>::default());
    let store = open(&world, &objects);
    objects.fail_next("data/", Fault::Unanswered);
    put(&store, 0, &vec![1; 2 << 20]);
    assert_eq!(store.flush(&Session::default()).unwrap_err().kind(), ErrorKind::Unavailable);
    put(&store, 1, &vec![2; 2 << 20]);
    store.flush(&Session::default()).unwrap();
    let reader = open(&world, &objects);
    assert_eq!(get(&reader, &key(1)).unwrap(), vec![2; 2 << 20]);
    assert_eq!(steps(&reader), 1);
}
