//! Transactions across processes that fail, meet and part.

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::{Fault, OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;

/// The visible fields of a decided transaction, out of those prepared: all or none.
fn all_or_none(store: &Store, prepared: usize) -> bool {
    let seen = listed(store).len();
    assert!(seen == 0 || seen == prepared, "{seen} of {prepared} fields are visible");
    seen > 0
}

fn prepare(stores: &[Store], id: Id) -> usize {
    for (i, store) in stores.iter().enumerate() {
        for step in 0..3 {
            put_in(store, &format!("run=r{i},variable=t,step={step}"), &pattern(500, step), id).unwrap();
        }
        store.flush(&Session::from(id)).unwrap();
    }
    3 * stores.len()
}

#[test]
fn a_prepared_flush_and_a_decision_cost_one_sync_each() {
    let world = SimWorld::new(1);
    let stores = [open(&world, "a"), open(&world, "b")];
    stores.iter().for_each(|s| flush_one(s, "run=first,variable=t", b"x"));
    let id = stores[0].begin().unwrap();
    put_in(&stores[1], "run=a,variable=t", b"x", id).unwrap();
    world.clear_trace();
    stores[1].flush(&Session::from(id)).unwrap();
    assert_eq!(world.counters().count(OpKind::SyncData), 1);
    world.clear_trace();
    stores[0].decide(id, true, &Session::default()).unwrap();
    assert_eq!(world.counters().count(OpKind::SyncData), 1);
    assert_eq!(calls(&world, OpKind::Write, "/logs/").len(), 1);
}

#[test]
fn an_opener_that_dies_leaves_an_open_transaction_with_its_owner() {
    let world = SimWorld::new(1);
    let env = world.process("a");
    let opener = open_in(&env, &Opening::default()).unwrap();
    let joined = open(&world, "b");
    let id = opener.begin().unwrap();
    prepare(&[opener.clone(), joined.clone()], id);
    world.kill(&env);
    let reader = open(&world, "a");
    assert_eq!(listed(&reader).len(), 0);
    let open = reader.status().unwrap().transactions;
    assert_eq!((open.len(), open[0].id, open[0].fields), (1, id, 6));
    assert!(open[0].owners.iter().any(|o| o.contains("@a") && o.contains("gone")), "{open:?}");
    assert!(open[0].owners.iter().any(|o| o.contains("@b") && o.contains("open")), "{open:?}");
    // Any process that knows the id may still decide.
    joined.decide(id, true, &Session::default()).unwrap();
    assert!(all_or_none(&reader, 6));
}

/// A decision that fails, or whose process dies, at each of its calls: the whole transaction is decided or the whole
/// transaction is open, even after a power cut.
#[test]
fn a_decision_takes_effect_whole_or_not_at_all() {
    for fault in [Fault::Io, Fault::Kill, Fault::NoSpace] {
        let mut decided = [0, 0];
        for n in 1.. {
            let world = SimWorld::new(n);
            let env = world.process("a");
            let opener = open_in(&env, &Opening::default()).unwrap();
            let stores = [opener.clone(), open(&world, "b"), open(&world, "a")];
            let id = opener.begin().unwrap();
            let prepared = prepare(&stores, id);
            let before = world.counters().total();
            world.schedule(fieldstone_core::env::sim::Plan::new(fault).host("a").nth(n));
            let outcome = opener.decide(id, true, &Session::default());
            let done = world.counters().total() - before < n;
            world.clear_faults();
            let seen = all_or_none(&open(&world, "c"), prepared);
            assert!(seen || outcome.is_err(), "{fault:?} at call {n}: decided, but not visible");
            decided[usize::from(seen)] += 1;
            for seed in 0..3 {
                let after = world.power_cut(seed);
                let kept = all_or_none(&open(&after, "c"), prepared);
                assert!(kept || outcome.is_err(), "{fault:?} at call {n}: lost by a power cut");
            }
            // If it is not decided, another decision takes effect.
            if !seen {
                stores[1].decide(id, true, &Session::default()).unwrap();
                assert!(all_or_none(&open(&world, "c"), prepared), "{fault:?} at call {n}");
            }
            if done {
                break;
            }
        }
        assert!(decided[0] > 0 && decided[1] > 0, "{fault:?}: {decided:?}");
    }
}

/// Contradictory decisions of two processes that did not see each other: the older one holds for all.
#[test]
fn of_two_decisions_the_first_holds() {
    let world = SimWorld::new(1);
    let stores = [open(&world, "a"), open(&world, "b")];
    let id = stores[0].begin().unwrap();
    let prepared = prepare(&stores, id);
    stores[0].decide(id, true, &Session::default()).unwrap();
    error(stores[1].decide(id, false, &Session::default()), ErrorKind::Conflict);
    assert!(all_or_none(&stores[1], prepared));
    stores[1].decide(id, true, &Session::default()).unwrap();
}

#[test]
fn many_transactions_at_once() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let stores: Vec<Store> = (0..5).map(|i| open(&world, ["a", "b"][i % 2])).collect();
    let ids: Vec<Id> = (0..20).map(|i| stores[i % 5].begin().unwrap()).collect();
    for (i, id) in ids.iter().enumerate() {
        for store in &stores {
            put_in(store, &format!("run=t{i},variable=all"), format!("{i}").as_bytes(), *id).unwrap();
            put_in(store, "run=shared,variable=t", format!("{i}").as_bytes(), *id).unwrap();
            store.flush(&Session::from(*id)).unwrap();
        }
    }
    let reader = open(&world, "c");
    assert_eq!(listed(&reader).len(), 0);
    assert_eq!(reader.status().unwrap().transactions.len(), 20);
    // Decided in another order than flushed: of equal keys the last decision wins.
    for (n, i) in (0..20).map(|n| (n, n * 7 % 20)).collect::<Vec<_>>() {
        stores[n % 5].decide(ids[i], i % 2 == 0, &Session::default()).unwrap();
        let last = (0..=n).map(|m| m * 7 % 20).rfind(|i| i % 2 == 0);
        if let Some(last) = last {
            assert_eq!(get(&reader, "run=shared,variable=t").unwrap(), format!("{last}").as_bytes());
        }
    }
    assert_eq!(listed(&reader).len(), 11);
    assert_eq!(reader.status().unwrap().transactions.len(), 0);
    let fresh = open(&world, "b");
    assert_eq!(listed(&fresh), listed(&reader));
    assert!(fresh.verify(&Request::new()).unwrap().ok());
}

/// A failed prepared flush names its batch; the transaction continues with later flushes.
#[test]
fn a_failed_prepared_flush_is_no_part_of_its_transaction() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let id = store.begin().unwrap();
    put_in(&store, "run=a,variable=kept", b"x", id).unwrap();
    store.flush(&Session::from(id)).unwrap();
    put_in(&store, "run=a,variable=lost", b"x", id).unwrap();
    world.fail_nth(OpKind::SyncData, 1, Fault::Io);
    let failed = error(store.flush(&Session::from(id)), ErrorKind::Unavailable);
    assert!(failed.message().contains("variable=lost"), "{failed}");
    put_in(&store, "run=a,variable=next", b"x", id).unwrap();
    store.decide(id, true, &Session::default()).unwrap();
    for world in [&world, &world.power_cut(1)] {
        let reader = open(world, "b");
        assert_eq!(listed(&reader), ["{run=a}{variable=kept}{}", "{run=a}{variable=next}{}"]);
    }
}

/// An abort before the first flush is reported to processes that join, or have joined, and flush later.
#[test]
fn an_abort_of_nothing_is_told_to_those_who_flush_later() {
    let world = SimWorld::new(1);
    let (opener, joined) = (open(&world, "a"), open(&world, "b"));
    let id = opener.begin().unwrap();
    put_in(&joined, "run=a,variable=t", b"x", id).unwrap();
    opener.decide(id, false, &Session::default()).unwrap();
    for _ in 0..2 {
        let failure = error(joined.flush(&Session::from(id)), ErrorKind::Conflict);
        assert!(failure.message().contains("aborted"), "{failure}");
    }
    error(joined.decide(id, true, &Session::default()), ErrorKind::Conflict);
    opener.decide(id, false, &Session::default()).unwrap();
    let late = open(&world, "c");
    put_in(&late, "run=a,variable=t", b"x", id).unwrap();
    error(late.flush(&Session::from(id)), ErrorKind::Conflict);
    assert_eq!(listed(&open(&world, "c")).len(), 0);
    assert_eq!(opener.status().unwrap().transactions.len(), 0);
}

/// A transaction without any flush never left its handle, and leaves no record.
#[test]
fn a_transaction_that_nobody_else_knows_is_abandoned_without_a_trace() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let id = store.begin().unwrap();
    put_in(&store, "run=a,variable=t", b"x", id).unwrap();
    store.abandon(id, &Session::default()).unwrap();
    assert_eq!((world.files().len(), store.unflushed()), (0, 0));
    let id = store.begin().unwrap();
    put_in(&store, "run=a,variable=t", b"x", id).unwrap();
    store.flush(&Session::from(id)).unwrap();
    store.abandon(id, &Session::default()).unwrap();
    error(store.decide(id, true, &Session::default()), ErrorKind::Conflict);
    assert_eq!(open(&world, "b").status().unwrap().transactions.len(), 0);
}
