//! Rules of retention: they are kept in the store, survive every takeover, and say who made them.

use crate::common::*;
use crate::purge::{at_once, try_purge};
use crate::takeovers::{close, compact, open_at};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};
use fieldstone_store::retain;

pub const DAY: u64 = 24 * 3_600 * SECOND;

pub fn try_retain(store: &Store, request: &str, how: Retaining) -> Result<RetentionRule> {
    store.retain(&Request::parse(request).unwrap(), &how)
}

pub fn older(days: u64) -> Retaining {
    Retaining { older_than: Some(days * DAY), ..Retaining::default() }
}

pub fn versions(n: u64) -> Retaining {
    Retaining { versions: Some(n), ..Retaining::default() }
}

/// Request, days and versions of each rule.
fn rules(store: &Store) -> Vec<(String, Option<u64>, Option<u64>)> {
    let rules = retain::rules(store.journal()).unwrap().into_iter();
    rules.map(|rule| (rule.request, rule.older_than.map(|age| age / DAY), rule.versions)).collect()
}

#[test]
fn r23_a_rule_survives_compaction_and_purges_until_it_is_replaced() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, "run=a,variable=t,step=1", b"first");
    flush_one(&store, "run=a,variable=t,step=1", b"second");
    try_retain(&store, "variable=u/t, run=b/a/b", older(5)).unwrap();
    try_retain(&store, "run=c", versions(2)).unwrap();
    let version = store.version().unwrap();
    // Another order of words is the same rule.
    try_retain(&store, "run=a/b,variable=t/u", Retaining { versions: Some(3), ..older(6) }).unwrap();
    let made = ("run=a/b,variable=t/u".to_owned(), Some(6), Some(3));
    let both = vec![made.clone(), ("run=c".to_owned(), None, Some(2))];
    assert_eq!(rules(&store), both);
    close(&store);
    for round in 0..3 {
        let reader = open(&world, "b");
        assert_eq!(rules(&reader), both, "{round}");
        assert_eq!(
            rules(&open_at(&world, &version))[0],
            ("run=a/b,variable=t/u".into(), Some(5), None),
            "{round}"
        );
        let store = open(&world, "a");
        if round == 1 {
            let report = try_purge(&store, &at_once()).unwrap();
            assert_eq!(report.versions, 1);
        }
        compact(&store);
        close(&store);
    }
    let store = open(&world, "a");
    let ended = try_retain(&store, "run=c", Retaining { drop: true, ..Retaining::default() }).unwrap();
    assert_eq!((&ended.request[..], ended.versions), ("run=c", Some(2)));
    close(&store);
    compact(&open(&world, "a"));
    assert_eq!(rules(&open(&world, "b")), [made]);
    let again = try_retain(&open(&world, "a"), "run=c", Retaining { drop: true, ..Retaining::default() });
    error(again, ErrorKind::NotFound);
}

#[test]
fn a_rule_that_a_wipe_would_refuse_is_refused() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, "run=a,variable=t,step=1", b"x");
    let deep = error(try_retain(&store, "run=a,step=1", older(1)), ErrorKind::Invalid);
    assert!(deep.to_string().contains("step"), "{deep}");
    for (request, how) in [
        ("run=a", Retaining::default()),
        ("run=a", versions(0)),
        ("", older(1)),
        ("run=*", older(1)),
        ("run=!*", older(1)),
    ] {
        error(try_retain(&store, request, how), ErrorKind::Invalid);
    }
    assert_eq!(rules(&store), []);
    let all = try_retain(&store, "", Retaining { all: true, ..older(1) }).unwrap();
    assert_eq!((&all.request[..], all.older_than), ("", Some(DAY)));
    let reading =
        open_in(&world.process("b"), &Opening { access: Access::Read, ..Opening::default() }).unwrap();
    error(try_retain(&reading, "run=a", older(1)), ErrorKind::Denied);
    let older_version = open_at(&world, &store.version().unwrap());
    error(try_retain(&older_version, "run=a", older(1)), ErrorKind::Denied);
    error(older_version.maintain(&Maintaining::default(), &mut |_| Ok(())), ErrorKind::Denied);
}

#[test]
fn a_rule_counts_for_whom_a_wipe_counts() {
    let world = shared_folder();
    let (alice, bob) = (open(&world, "alice"), open(&world, "bob"));
    flush_one(&alice, "run=alice,variable=t,step=1", b"x");
    flush_one(&bob, "run=bob,variable=t,step=1", b"x");
    let denied = error(try_retain(&bob, "run=alice", older(1)), ErrorKind::Denied);
    assert!(denied.to_string().contains("owned by"), "{denied}");
    // Of later datasets, each maintainer passes over those of others.
    try_retain(&bob, "run=bob/later", older(1)).unwrap();
    flush_one(&alice, "run=later,variable=t,step=1", b"x");
    world.advance(2 * DAY);
    let report = bob.maintain(&Maintaining::default(), &mut |_| Ok(())).unwrap();
    assert!(report.failed().is_none(), "{report}");
    let left = ["{run=alice}{variable=t}{step=1}", "{run=later}{variable=t}{step=1}"];
    assert_eq!(listed(&bob), left);
    let rules = retain::rules(bob.journal()).unwrap();
    assert!(rules.len() == 1 && rules[0].owner.contains(&BOB.to_string()), "{rules:?}");
}
