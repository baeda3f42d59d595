//! Counts summed up by owner, dataset, writer and keyword: visible fields, and the bytes that newer versions hide.

use crate::common::*;
use crate::takeovers::{close, compact};
use crate::wipe::wipe;
use fieldstone_core::Code;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::hide::set_hidden;

fn by(store: &Store, name: &str) -> Vec<(String, [u64; 4])> {
    let rows = store.stats_by(&Request::new(), &StatsBy::parse(name)).unwrap();
    let row = |row: StatsRow| {
        (row.name.unwrap_or_else(|| "-".to_owned()), [row.fields, row.nbytes, row.stored, row.dead])
    };
    rows.into_iter().map(row).collect()
}

fn named<const N: usize>(rows: [(&str, [u64; 4]); N]) -> Vec<(String, [u64; 4])> {
    rows.map(|(name, counts)| (name.to_owned(), counts)).to_vec()
}

/// Two users; alice overwrites a field and removes one.
fn filled() -> (SimWorld, Store) {
    let world = SimWorld::new(1);
    for (host, user) in [("alice", 501), ("bob", 502)] {
        world.set_uid(host, user);
    }
    let alice = open(&world, "alice");
    for (key, bytes) in
        [("run=a,variable=t,step=2", 10), ("run=a,variable=t,step=10", 20), ("run=a,variable=u", 5)]
    {
        flush_one(&alice, key, &pattern(bytes, 1));
    }
    flush_one(&alice, "run=a,variable=t,step=2", &pattern(7, 2));
    alice.remove(&Request::parse("run=a,variable=u").unwrap(), &RemoveOptions::default()).unwrap();
    close(&alice);
    let bob = open(&world, "bob");
    flush_one(&bob, "run=b,variable=t,step=2", &pattern(100, 3));
    close(&bob);
    (world, bob)
}

#[test]
fn rows_sum_up_by_owner_dataset_and_keyword() {
    let (world, _) = filled();
    let check = |store: &Store| {
        let alice = [2, 27, 27, 15];
        let bob = [1, 100, 100, 0];
        let owners: Vec<[u64; 4]> = by(store, "owner").into_iter().map(|(_, counts)| counts).collect();
        assert_eq!(owners, [alice, bob]);
        assert_eq!(by(store, "dataset"), named([("{run=a}", alice), ("{run=b}", bob)]));
        // Numbers are in the order of numbers; the removed field has no step.
        let steps = named([("-", [0, 0, 0, 5]), ("2", [2, 107, 107, 10]), ("10", [1, 20, 20, 0])]);
        assert_eq!(by(store, "step"), steps);
        let one = store.stats_by(&Request::parse("run=b").unwrap(), &StatsBy::parse("variable")).unwrap();
        assert_eq!(one.len(), 1);
        let all = store.stats(&Request::new()).unwrap();
        for group in ["owner", "dataset", "writer", "variable", "step"] {
            let rows = by(store, group);
            let sum = |at: usize| rows.iter().map(|(_, counts)| counts[at]).sum::<u64>();
            assert_eq!((sum(0), sum(1), sum(2)), (all.fields, all.bytes, all.stored_bytes), "{group}");
        }
    };
    check(&open(&world, "c"));
    // After takeovers as before.
    let writers = by(&open(&world, "c"), "writer");
    for host in ["alice", "bob"] {
        compact(&open(&world, host));
    }
    check(&open(&world, "c"));
    assert_eq!(by(&open(&world, "c"), "writer"), writers);
    assert_eq!(writers.len(), 2);
}

#[test]
fn a_keyword_that_the_schema_lacks_is_invalid() {
    let (_, store) = filled();
    let failure = store.stats_by(&Request::new(), &StatsBy::parse("varable")).unwrap_err();
    assert_eq!(failure.code(), Code::KeywordUnknown, "{failure}");
    assert!(failure.hint().is_some_and(|hint| hint.contains("variable")), "{failure:?}");
}

/// The room of wiped fields counts as dead until a purge; that of hidden ones does not.
#[test]
fn wiped_fields_are_dead_and_hidden_ones_are_not() {
    let (world, _bob) = filled();
    let alice = open(&world, "alice");
    wipe(&alice, "run=a,variable=t");
    assert_eq!(by(&alice, "dataset"), named([("{run=a}", [0, 0, 0, 42]), ("{run=b}", [1, 100, 100, 0])]));
    let bob = open(&world, "bob");
    let hiding = Hiding { hides: true, session: Session::default() };
    set_hidden(bob.journal(), &Request::parse("run=b").unwrap(), &hiding).unwrap();
    assert_eq!(by(&bob, "dataset"), named([("{run=a}", [0, 0, 0, 42])]));
}
