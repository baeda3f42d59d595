//! Hand-overs (J-55): what belonged to one user belongs to another from a record on, and what either of them lays into the
//! other's datasets at the wrong time counts for nobody.

use crate::common::*;
use crate::purge::{at_once, try_purge};
use crate::takeovers::{close, compact, look};
use crate::wipe::wipe;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_format::keys::encode_level;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::{hand_over, hide, locks, overlay};

const CAROL: u32 = 503;
const MALLORY: u32 = 666;
const T: &str = "run=a,variable=t";
const U: &str = "run=a,variable=u";

/// A store that all users share, with runs a and b of Alice and run c of Bob.
fn shared() -> (SimWorld, Store, Store) {
    let world = shared_folder();
    world.set_uid("carol", CAROL);
    let (alice, bob) = (open(&world, "alice"), open(&world, "bob"));
    for key in [T, U, "run=b,variable=t"] {
        flush_one(&alice, key, b"alice");
    }
    flush_one(&bob, "run=c,variable=t", b"bob");
    (world, alice, bob)
}

fn try_over(store: &Store, from: &str, to: &str) -> Result<HandOverReport> {
    let how = HandingOver { from: from.into(), to: to.into(), session: Session::default() };
    hand_over::hand_over(store.journal(), &how)
}

/// Hands over as root; the number of datasets.
fn over(world: &SimWorld, from: u32, to: u32) -> u64 {
    let admin = open(world, "admin");
    let report = try_over(&admin, &from.to_string(), &format!("user{to}")).unwrap();
    assert_eq!((report.from, report.to), (format!("user{from}"), format!("user{to}")));
    close(&admin);
    report.datasets
}

fn owner(store: &Store, key: &str) -> Option<u32> {
    let pairs = pairs(key);
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut level = Vec::new();
    encode_level(&store.schema().resolve(&pairs).unwrap().levels[0], &mut level);
    store.owner(&level).unwrap()
}

fn at(world: &SimWorld, version: &str) -> Store {
    open_in(&world.process("bob"), &Opening { at: Some(version.to_owned()), ..Opening::default() }).unwrap()
}

fn denied<T: std::fmt::Debug>(outcome: Result<T>, names: &str) {
    let refused = error(outcome, ErrorKind::Denied);
    assert!(refused.message().contains(names), "{refused}");
}

fn try_flush(store: &Store, key: &str, value: &[u8]) -> Result<()> {
    let flushed = put(store, key, value).and_then(|()| store.flush(&Session::default()));
    store.discard(&Session::default()).unwrap();
    flushed
}

/// A field that somebody lays into the logs of another user: what a program of his own could write, whatever we refuse.
fn lay(world: &SimWorld, host: &str, user: u32, key: &str, value: &[u8]) {
    let (writer, before) = (open(world, host), files(world, "logs"));
    flush_one(&writer, key, value);
    close(&writer);
    for path in files(world, "logs").into_iter().filter(|path| !before.contains(path)) {
        world.permissions().chown(&path, user).unwrap();
    }
}

#[test]
fn r77_all_that_a_user_owns_becomes_anothers() {
    let (world, alice, bob) = shared();
    let (version, before) = (alice.version().unwrap(), listed(&bob));
    denied(put(&bob, T, b"bob"), "user501");
    assert_eq!(over(&world, ALICE, BOB), 2);
    for store in [&alice, &bob, &open(&world, "alice"), &open(&world, "carol")] {
        store.refresh().unwrap();
        assert_eq!((owner(store, T), owner(store, "run=c,variable=t")), (Some(BOB), Some(BOB)));
        assert_eq!(get(store, T).unwrap(), b"alice", "what she wrote counts as before");
        assert_eq!(listed(store), before);
        let all = store.list(&Request::new(), &ListOptions::default()).unwrap();
        assert!(all.map(Result::unwrap).all(|entry| &*entry.owner == "user502"), "as the owner of now");
        let rows = store.stats_by(&Request::new(), &StatsBy::Owner).unwrap();
        assert_eq!((rows.len(), rows[0].fields), (1, 4));
    }
    flush_one(&bob, T, b"bob");
    bob.remove(&Request::parse(U).unwrap(), &RemoveOptions::default()).unwrap();
    bob.flush(&Session::default()).unwrap();
    for store in [&alice, &open(&world, "alice")] {
        denied(try_flush(store, T, b"alice again"), "user502");
        denied(try_flush(store, "run=b,variable=u", b"alice again"), "user502");
        assert_eq!(get(store, T).unwrap(), b"bob");
        error(get(store, U), ErrorKind::NotFound);
    }
    flush_one(&alice, "run=d,variable=t", b"of her own");
    denied(try_flush(&bob, "run=d,variable=t", b"bob"), "user501");
    let older = at(&world, &version);
    assert_eq!((owner(&older, T), get(&older, T).unwrap()), (Some(ALICE), b"alice".to_vec()));
    let (status, all) = (bob.status().unwrap(), hand_over::hand_overs(bob.journal()).unwrap());
    assert!(status.owners.contains(&"{run=a} user502".to_owned()), "{:?}", status.owners);
    assert!(status.problems.iter().any(|note| note.code.is_none() && note.why.contains("user501 owned")));
    assert_eq!((all.len(), &*all[0].from, &*all[0].to, &*all[0].by), (1, "user501", "user502", "user0"));
    assert!(bob.verify(&Request::new()).unwrap().ok());
}

/// The record is one commit: after a cut of the power it is there, because the call has returned.
#[test]
fn r77_a_hand_over_is_durable_when_it_returns() {
    let (world, alice, bob) = shared();
    over(&world, ALICE, BOB);
    drop((alice, bob));
    for seed in 0..8 {
        let after = world.power_cut(seed);
        let carol = open(&after, "carol");
        assert_eq!((owner(&carol, T), get(&carol, T).unwrap()), (Some(BOB), b"alice".to_vec()), "{seed}");
    }
}

#[test]
fn r77_what_the_old_owner_writes_later_does_not_count() {
    let (world, alice, bob) = shared();
    put(&alice, T, b"under way").unwrap();
    over(&world, ALICE, BOB);
    denied(alice.flush(&Session::default()), "user502");
    alice.discard(&Session::default()).unwrap();
    lay(&world, "bob", ALICE, T, b"late");
    lay(&world, "bob", ALICE, "run=a,variable=late", b"late");
    for store in [&bob, &open(&world, "carol")] {
        assert_eq!(get(store, T).unwrap(), b"alice");
        error(get(store, "run=a,variable=late"), ErrorKind::NotFound);
        assert_eq!(listed(store).len(), 4);
    }
    // Back again it is as before: what was written between counts as little.
    over(&world, BOB, ALICE);
    assert_eq!(get(&alice, T).unwrap(), b"alice");
    flush_one(&alice, T, b"again");
    assert_eq!((get(&bob, T).unwrap(), listed(&bob).len()), (b"again".to_vec(), 4));
    denied(try_flush(&bob, "run=c,variable=t", b"bob"), "user501");
}

/// Something that was laid into another's dataset does not count after a hand-over, in whichever direction.
#[test]
fn r77_nothing_that_did_not_count_appears_by_a_hand_over() {
    let (world, _alice, bob) = shared();
    lay(&world, "alice", BOB, T, b"laid in");
    lay(&world, "alice", BOB, "run=a,variable=x", b"laid in");
    lay(&world, "alice", MALLORY, U, b"poison");
    lay(&world, "alice", MALLORY, "run=a,variable=y", b"poison");
    let check = |owner_of_a: u32| {
        for store in [&bob, &open(&world, "carol")] {
            assert_eq!(owner(store, T), Some(owner_of_a));
            assert_eq!(
                (get(store, T).unwrap(), get(store, U).unwrap()),
                (b"alice".to_vec(), b"alice".to_vec())
            );
            assert_eq!(listed(store).len(), 4, "{:?}", listed(store));
        }
    };
    check(ALICE);
    over(&world, MALLORY, ALICE);
    check(ALICE);
    over(&world, ALICE, BOB);
    check(BOB);
    over(&world, BOB, CAROL);
    check(CAROL);
    flush_one(&open(&world, "carol"), T, b"carol");
    assert_eq!(get(&bob, T).unwrap(), b"carol");
}

#[test]
fn r77_hand_overs_go_on_from_user_to_user() {
    let (world, alice, bob) = shared();
    assert_eq!(over(&world, ALICE, BOB), 2);
    assert_eq!(over(&world, ALICE, BOB), 0, "nothing is hers any more");
    flush_one(&bob, T, b"bob");
    flush_one(&alice, "run=d,variable=t", b"alice");
    assert_eq!(over(&world, BOB, CAROL), 3);
    let carol = open(&world, "carol");
    assert_eq!([T, "run=b,variable=t", "run=c,variable=t"].map(|key| owner(&carol, key)), [Some(CAROL); 3]);
    assert_eq!(owner(&carol, "run=d,variable=t"), Some(ALICE));
    assert_eq!(get(&carol, T).unwrap(), b"bob");
    flush_one(&carol, "run=c,variable=u", b"carol");
    assert_eq!(over(&world, CAROL, ALICE), 3);
    flush_one(&alice, "run=c,variable=u", b"alice");
    assert_eq!(
        (get(&bob, "run=c,variable=u").unwrap(), get(&bob, T).unwrap()),
        (b"alice".to_vec(), b"bob".to_vec())
    );
    assert_eq!(hand_over::hand_overs(alice.journal()).unwrap().len(), 4);
}

#[test]
fn r77_the_stores_owner_takes_over_and_gives_away() {
    let (world, alice, bob) = shared();
    let admin = open(&world, "admin");
    flush_one(&admin, "run=r,variable=t", b"root");
    over(&world, ALICE, 0);
    flush_one(&admin, T, b"root");
    flush_one(&admin, "run=b,variable=u", b"root");
    for store in [&alice, &bob] {
        assert_eq!((get(store, T).unwrap(), get(store, U).unwrap()), (b"root".to_vec(), b"alice".to_vec()));
        assert_eq!(
            get(store, "run=b,variable=t").unwrap(),
            b"alice",
            "her fields stay beside the new owner's"
        );
    }
    assert_eq!(over(&world, 0, BOB), 3);
    flush_one(&bob, T, b"bob");
    flush_one(&bob, "run=r,variable=t", b"bob");
    assert_eq!(
        (get(&alice, T).unwrap(), get(&alice, "run=b,variable=u").unwrap()),
        (b"bob".to_vec(), b"root".to_vec())
    );
}

#[test]
fn r77_only_the_stores_owner_and_root_hand_over() {
    let (world, alice, bob) = shared();
    for store in [&alice, &bob] {
        let refused = try_over(store, "501", "502").unwrap_err();
        assert_eq!((refused.code(), refused.kind()), (Code::StoreOwned, ErrorKind::Denied), "{refused}");
    }
    let admin = open(&world, "admin");
    error(try_over(&admin, "501", "user501"), ErrorKind::Invalid);
    error(try_over(&admin, "501", "nobody knows"), ErrorKind::NotFound);
    error(try_over(&admin, "", "502"), ErrorKind::NotFound);
    assert_eq!(try_over(&admin, "777", "502").unwrap().datasets, 0);
    assert!(hand_over::hand_overs(admin.journal()).unwrap().is_empty());
    // A record of somebody else says nothing.
    let before = files(&world, "logs");
    over(&world, ALICE, BOB);
    for path in files(&world, "logs").into_iter().filter(|path| !before.contains(path)) {
        world.permissions().chown(&path, BOB).unwrap();
    }
    let reader = open(&world, "carol");
    assert_eq!(owner(&reader, T), Some(ALICE));
    assert!(hand_over::hand_overs(reader.journal()).unwrap().is_empty());
}

#[test]
fn r77_wipes_hides_and_locks_go_with_the_datasets() {
    let (world, alice, bob) = shared();
    let request = |text: &str| Request::parse(text).unwrap();
    let hides = |hides| Hiding { hides, session: Session::default() };
    let lock = |locks| Locking { what: LockKind::Archive, locks, session: Session::default() };
    hide::set_hidden(alice.journal(), &request(U), &hides(true)).unwrap();
    locks::set_lock(alice.journal(), &request("run=b"), &lock(true)).unwrap();
    flush_one(&alice, "run=e,variable=t", b"hidden later");
    over(&world, ALICE, BOB);
    // Her words hold on, and are his to end.
    error(get(&bob, U), ErrorKind::NotFound);
    assert_eq!(try_flush(&bob, "run=b,variable=t", b"bob").unwrap_err().code(), Code::DatasetLocked);
    denied(hide::set_hidden(alice.journal(), &request(U), &hides(false)), "user");
    denied(locks::set_lock(alice.journal(), &request("run=b"), &lock(false)), "user502");
    denied(alice.wipe(&request("run=a"), &Wiping { doit: true, ..Wiping::default() }), "user502");
    assert_eq!(hide::set_hidden(bob.journal(), &request(U), &hides(false)).unwrap(), 1);
    assert_eq!(locks::set_lock(bob.journal(), &request("run=b"), &lock(false)).unwrap(), 1);
    assert_eq!(get(&open(&world, "carol"), U).unwrap(), b"alice");
    flush_one(&bob, "run=b,variable=t", b"bob");
    assert_eq!(hide::set_hidden(bob.journal(), &request("run=e"), &hides(true)).unwrap(), 1);
    assert_eq!(wipe(&bob, U).fields, 1);
    assert_eq!(wipe(&bob, "run=b").fields, 1);
    let values = vec![("run".to_owned(), "shown".to_owned())];
    let how = Overlaying { values, shows: true, session: Session::default() };
    overlay::set_overlay(bob.journal(), &request("run=a"), &how).unwrap();
    for store in [&alice, &bob, &open(&world, "carol")] {
        assert_eq!(listed(store).len(), 3, "{:?}", listed(store));
        error(get(store, U), ErrorKind::NotFound);
        error(get(store, "run=e,variable=t"), ErrorKind::NotFound);
    }
    // A wipe of hers from now on concerns what she begins, and no more.
    flush_one(&alice, "run=d,variable=t", b"alice");
    assert_eq!(wipe(&alice, "run=d").fields, 1);
    over(&world, BOB, ALICE);
    assert_eq!(hide::set_hidden(alice.journal(), &request("run=e"), &hides(false)).unwrap(), 1);
    assert_eq!(get(&alice, "run=e,variable=t").unwrap(), b"hidden later");
}

#[test]
fn r77_the_new_owner_decides_on_open_transactions() {
    let (world, alice, bob) = shared();
    let ids: Vec<Id> = (0..3).map(|_| alice.begin().unwrap()).collect();
    for (number, id) in ids.iter().enumerate() {
        put_in(&alice, &format!("run=a,variable=x{number}"), b"prepared", *id).unwrap();
        alice.flush(&Session::from(*id)).unwrap();
    }
    let decide = |store: &Store, at: usize, commit: bool| store.decide(ids[at], commit, &Session::default());
    denied(decide(&bob, 0, true), "user501");
    over(&world, ALICE, BOB);
    decide(&bob, 0, true).unwrap();
    decide(&bob, 1, false).unwrap();
    for store in [&alice, &bob, &open(&world, "carol")] {
        assert_eq!(get(store, "run=a,variable=x0").unwrap(), b"prepared");
        error(get(store, "run=a,variable=x1"), ErrorKind::NotFound);
        error(get(store, "run=a,variable=x2"), ErrorKind::NotFound);
        assert_eq!(store.status().unwrap().transactions.len(), 1);
    }
    error(decide(&bob, 0, false), ErrorKind::Conflict);
    wipe(&bob, "run=a");
    assert_eq!(listed(&bob).len(), 2, "a wipe hides what he committed: {:?}", listed(&bob));
    decide(&bob, 2, true).unwrap();
    assert_eq!(get(&alice, "run=a,variable=x2").unwrap(), b"prepared", "it was open when he wiped");
}

#[test]
fn r77_a_claim_without_fields_keeps_nobody_out_of_what_is_his() {
    let (world, alice, bob) = shared();
    let level = |run: &str| {
        let mut level = Vec::new();
        let key = alice.schema().resolve(&[("run", run), ("variable", "t")]).unwrap();
        encode_level(&key.levels[0], &mut level);
        level
    };
    for run in ["e", "f"] {
        alice.claim(level(run), &Session::default()).unwrap();
    }
    flush_one(&alice, "run=d,variable=t", b"alice");
    over(&world, ALICE, BOB);
    let carol = open(&world, "carol");
    denied(try_flush(&carol, "run=e,variable=t", b"carol"), "user501");
    flush_one(&bob, "run=e,variable=t", b"bob");
    flush_one(&alice, "run=f,variable=t", b"alice");
    for store in [&alice, &bob, &carol] {
        let owners = ["run=e,variable=t", "run=f,variable=t"].map(|key| owner(store, key));
        assert_eq!(owners, [Some(BOB), Some(ALICE)]);
        assert_eq!(get(store, "run=e,variable=t").unwrap(), b"bob");
        assert_eq!(get(store, "run=f,variable=t").unwrap(), b"alice");
    }
    denied(try_flush(&alice, "run=e,variable=t", b"alice"), "user502");
    denied(try_flush(&bob, "run=f,variable=t", b"bob"), "user501");
}

/// R22, R23: takeovers keep the record, and whose they are; a purge drops nothing that only seems to be hidden.
#[test]
fn r77_compactions_and_purges_change_no_owner() {
    let (world, alice, bob) = shared();
    flush_one(&alice, T, b"newer");
    let admin = open(&world, "admin");
    try_over(&admin, "501", "502").unwrap();
    lay(&world, "bob", ALICE, T, b"late");
    flush_one(&bob, "run=b,variable=t", b"bob");
    flush_one(&bob, "run=a,variable=w", b"gone");
    wipe(&bob, "run=a,variable=w");
    [&alice, &bob, &admin].into_iter().for_each(close);
    let before = look(&open(&world, "carol"), None);
    let check = |what: &str| {
        let carol = open(&world, "carol");
        let owners = [T, "run=b,variable=t", "run=c,variable=t"].map(|key| owner(&carol, key));
        assert_eq!(owners, [Some(BOB); 3], "{what}");
        assert_eq!(
            (get(&carol, T).unwrap(), get(&carol, U).unwrap()),
            (b"newer".to_vec(), b"alice".to_vec()),
            "{what}"
        );
        assert_eq!(get(&carol, "run=b,variable=t").unwrap(), b"bob", "{what}");
        assert_eq!(look(&carol, None), before, "{what}");
        let alice = open(&world, "alice");
        denied(try_flush(&alice, U, b"alice"), "user502");
        close(&alice);
        assert!(carol.verify(&Request::new()).unwrap().ok(), "{what}");
    };
    check("as written");
    let hosts = ["alice", "bob", "admin"];
    for host in hosts {
        let store = open(&world, host);
        compact(&store);
        close(&store);
        check(&format!("after {host}'s takeover"));
    }
    for host in hosts {
        let store = open(&world, host);
        try_purge(&store, &at_once()).unwrap();
        close(&store);
        check(&format!("after {host}'s purge"));
    }
    flush_one(&open(&world, "bob"), U, b"bob");
    assert_eq!(get(&open(&world, "carol"), U).unwrap(), b"bob");
    over(&world, BOB, ALICE);
    assert_eq!(owner(&open(&world, "carol"), U), Some(ALICE));
}

#[test]
fn a_store_of_format_1_has_no_hand_overs() {
    let world = shared_folder();
    let admin = open(&world, "admin");
    admin.create().unwrap();
    admin.journal().format().pin(1, &Session::default()).unwrap();
    let refused = try_over(&admin, "501", "502").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Denied, "{refused}");
}
