//! Hand-overs (J-55) in the catalog, and at both ends of a connection.

use crate::catalog_owners::with_journal;
use crate::shared::*;
use fieldstone::catalog::{CatalogSettings, Deletion, Query};
use fieldstone::env::sim::SimWorld;
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, ErrorKind, ListOptions, OpenOptions, Request, Result, Session, Store, Value, loopback,
};
use fieldstone_format::catalog::*;

const ALICE: u32 = 501;
const BOB: u32 = 502;
const DAVE: u32 = 503;

/// A store of a user who owns nothing else, and hands over.
fn world() -> (SimWorld, Both) {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    for (host, user) in [("ops", 500), ("alice", ALICE), ("bob", BOB), ("dave", DAVE)] {
        world.set_uid(host, user);
    }
    let ops = open(&world, "ops");
    ops.create_run("of ops");
    ops.flush();
    (world, ops)
}

fn open(world: &SimWorld, host: &str) -> Both {
    with_journal(world, host).0
}

fn over(ops: &Both, from: u32, to: u32) -> u64 {
    ops.store.hand_over(&from.to_string(), &to.to_string()).unwrap().datasets
}

/// User and value of all hits.
fn said(both: &Both) -> Vec<(u32, String)> {
    let table = both.catalog.attributes(&Query::all()).unwrap();
    let mut all: Vec<(u32, String)> =
        (0..).map_while(|row| table.hit(row)).map(|hit| (hit.user, hit.value.to_string())).collect();
    all.sort();
    all
}

fn denied<T: std::fmt::Debug>(outcome: Result<T>, name: &str) {
    let error = outcome.unwrap_err();
    assert!(error.kind() == ErrorKind::Denied && error.message().contains(name), "{error}");
}

fn pair(user: u32, value: &str) -> (u32, String) {
    (user, value.to_owned())
}

fn steps(number: i64) -> Vec<StepDecl> {
    vec![StepDecl { number, time: Some(0.5) }]
}

/// Alice's run a with fields, her closed run, and an attribute of Bob in a.
fn written(world: &SimWorld) -> (Both, Both) {
    let (alice, bob) = (open(world, "alice"), open(world, "bob"));
    alice.prepare("a");
    alice.archive(&[("run", "a"), ("variable", "t"), ("step", "1")], &[8, 8], None);
    alice.catalog.annotate(on_run("a", "q", 1.5), &Session::default()).unwrap();
    let closed = RunDecl { annotate: Annotate::Owner, ..RunDecl::named(run("closed")) };
    alice.catalog.create_run(closed, false, &Session::default()).unwrap();
    alice.catalog.annotate(on_run("closed", "q", 3.5), &Session::default()).unwrap();
    alice.flush();
    bob.catalog.annotate(on_run("a", "q", 99.0), &Session::default()).unwrap();
    bob.flush();
    (alice, bob)
}

#[test]
fn r77_runs_go_with_what_their_owner_said_in_them() {
    let (world, ops) = world();
    let (alice, bob) = written(&world);
    let before = (alice.answers(), said(&alice));
    assert_eq!(before.1, [pair(ALICE, "1.5"), pair(ALICE, "3.5"), pair(BOB, "99.0")]);
    assert_eq!(over(&ops, ALICE, BOB), 1);
    for both in [&alice, &bob, &open(&world, "carol")] {
        both.store.refresh().unwrap();
        assert_eq!((both.answers(), said(both)), before);
    }
    let (again, session) = (open(&world, "alice"), Session::default());
    denied(again.catalog.create_steps(&run("a"), steps(3), &session), "user502");
    denied(again.catalog.create_steps(&run("closed"), steps(3), &session), "user502");
    denied(again.catalog.annotate(on_run("closed", "q", 4.5), &session), "user502");
    bob.catalog.create_steps(&run("a"), steps(3), &session).unwrap();
    bob.catalog.create_steps(&run("closed"), steps(4), &session).unwrap();
    bob.catalog.annotate(on_run("closed", "q", 4.5), &session).unwrap();
    bob.catalog.annotate(on_run("a", "q", 2.5), &session).unwrap();
    bob.flush();
    alice.create_run("of her own");
    alice.flush();
    for both in [&alice, &bob, &open(&world, "carol")] {
        both.store.refresh().unwrap();
        assert_eq!(said(both), [pair(BOB, "2.5"), pair(BOB, "4.5")], "he corrects what is his by now");
        assert_eq!(both.catalog.steps(&Query::all()).unwrap().len(), 3);
        assert!(both.catalog.verify().unwrap().ok() && both.catalog.conflicts().unwrap().is_empty());
    }
    denied(bob.catalog.create_steps(&run("of her own"), steps(1), &session), "user501");
    let runs = Deletion::Runs(all_of(vec![run_is("a")]));
    denied(again.catalog.delete(&runs, false, true, &session), "user502");
    assert_eq!(bob.catalog.delete(&runs, false, true, &session).unwrap().runs, 1);
    bob.flush();
    assert_eq!(said(&open(&world, "carol")), [pair(BOB, "4.5")]);
}

/// Records that did not count when they were written do not count after a hand-over, in whichever direction.
#[test]
fn r77_what_others_wrote_past_the_calls_counts_as_little_as_before() {
    let (world, ops) = world();
    let (alice, bob) = written(&world);
    let (dave, journal) = with_journal(&world, "dave");
    dave.catalog.annotate(on_run("a", "q", 7.0), &Session::default()).unwrap();
    dave.flush();
    let hits = alice.catalog.attributes(&all_of(vec![run_is("a")])).unwrap();
    let ids: Vec<AttributeId> =
        hits.id.iter().zip(&hits.user).filter(|(_, user)| **user != DAVE).map(|(id, _)| *id).collect();
    let before = (alice.answers(), said(&alice));
    let forged = [
        Record::Runs(vec![RunDecl { created: 7, ..RunDecl::named(run("a")) }]),
        Record::Steps(run("a"), steps(40)),
        Record::Variables(run("a"), vec![variable("z", &[3])]),
        Record::Attributes(on_run("closed", "q", 66.0)),
        Record::Remove(vec![
            Removal::Attributes(ids),
            Removal::Step(run("a"), 1),
            Removal::Variable(run("a"), variable_name("t")),
        ]),
    ];
    journal.unflushed().add(forged.iter().map(Record::encode).collect(), &Session::default()).unwrap();
    dave.flush();
    let check = |what: &str| {
        for both in [&alice, &bob, &dave, &open(&world, "carol")] {
            both.store.refresh().unwrap();
            assert_eq!((both.answers(), said(both)), before, "{what}");
        }
    };
    check("as written");
    for (from, to) in [(DAVE, ALICE), (ALICE, DAVE), (DAVE, BOB), (BOB, ALICE)] {
        over(&ops, from, to);
        check(&format!("{from} to {to}"));
    }
    // A deletion by the owner of now takes all of it.
    let everything = Deletion::Runs(all_of(vec![run_is("a")]));
    alice.catalog.delete(&everything, false, true, &Session::default()).unwrap();
    alice.flush();
    assert_eq!(said(&open(&world, "carol")), [pair(ALICE, "3.5")]);
}

#[test]
fn r77_a_store_at_the_far_end_hands_over_alike() {
    let near = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    let me = near.backend().env().identity.uid().to_string();
    let key = [("run", "a"), ("variable", "t"), ("step", "0")];
    let put = |store: &Store| store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default());
    put(&near).unwrap();
    near.flush(None).unwrap();
    for far in [near.clone(), Store::over(loopback(near.backend().clone()), CatalogSettings::default())] {
        let known = far.hand_overs().unwrap().len();
        assert_eq!(far.hand_over(&me, "4242").unwrap().datasets, 1);
        denied(put(&far).and_then(|()| far.flush(None)), "4242");
        far.discard(None).unwrap();
        let rows = far.hand_overs().unwrap();
        assert_eq!((rows.len(), &*rows[known].to), (known + 1, "4242"));
        assert_eq!(far.hand_over(&me, &me).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(far.hand_over("no such user", &me).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(far.hand_over("4242", &me).unwrap().datasets, 1);
        put(&far).and_then(|()| far.flush(None)).unwrap();
        assert_eq!(far.list(&Request::new(), &ListOptions::default()).unwrap().count(), 1);
    }
    let part = near.filtered(Request::parse("run=a").unwrap()).unwrap();
    assert!(part.hand_over(&me, "4242").is_err());
    assert_eq!(part.hand_overs().unwrap().len(), 4);
}
