//! A run belongs to the user who made it; others may only annotate it under their own names.

use std::path::Path;
use std::sync::Arc;

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{CatalogSettings, Deletion, Query};
use fieldstone::env::sim::SimWorld;
use fieldstone::prelude::*;
use fieldstone::{Error, ErrorKind, Result, Store};
use fieldstone_format::catalog::*;
use fieldstone_journal::Journal;
use fieldstone_store::LocalStore;
use fieldstone_store::local::LocalOptions;

const ALICE: u32 = 501;
const BOB: u32 = 502;
const DAVE: u32 = 503;

fn world() -> SimWorld {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    world.set_uid("alice", ALICE);
    world.set_uid("bob", BOB);
    world.set_uid("dave", DAVE);
    world
}

fn open(world: &SimWorld, host: &str) -> Both {
    with_journal(world, host).0
}

/// A handle, and its journal, which takes records without any checks.
pub fn with_journal(world: &SimWorld, host: &str) -> (Both, Arc<Journal>) {
    let options = LocalOptions { url: "/s".into(), writable: true, ..LocalOptions::default() };
    let local = LocalStore::open(world.process(host), Path::new("/s"), options).unwrap();
    let journal = local.journal().clone();
    let store = Store::of(local, CatalogSettings::default(), false);
    let settings = CatalogSettings { engine: Some("memory:".into()) };
    let catalog = store.catalog_with(settings);
    (Both { store, catalog }, journal)
}

/// Alice's run with a variable, two attributes and bob's own at the cell of one of them.
fn both(world: &SimWorld) -> (Both, Both) {
    let (alice, bob) = (open(world, "alice"), open(world, "bob"));
    alice.prepare("a");
    alice.catalog.annotate(on_run("a", "q", 1.5), &Session::default()).unwrap();
    alice.annotate("a", "max", 1, [0, 0], 2.0);
    alice.flush();
    bob.catalog.annotate(on_run("a", "q", 99.0), &Session::default()).unwrap();
    (alice, bob)
}

/// User and value of all hits.
fn said(both: &Both) -> Vec<(u32, String)> {
    let table = both.catalog.attributes(&Query::all()).unwrap();
    let mut all: Vec<(u32, String)> =
        (0..).map_while(|row| table.hit(row)).map(|hit| (hit.user, hit.value.to_string())).collect();
    all.sort();
    all
}

fn denied<T: std::fmt::Debug>(outcome: Result<T>, name: &str) -> Error {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.message().contains(name), "{error}");
    assert!(error.hint().unwrap().contains(name), "{:?}", error.hint());
    error
}

fn check(all: &[&Both]) {
    for both in all {
        let check = both.catalog.verify().unwrap();
        assert!(check.ok(), "{check:#?}");
    }
}

fn pair(user: u32, value: &str) -> (u32, String) {
    (user, value.to_owned())
}

#[test]
fn two_users_at_one_place_say_two_things() {
    let world = world();
    let (alice, bob) = both(&world);
    let all = [pair(ALICE, "1.5"), pair(ALICE, "2.0"), pair(BOB, "99.0")];
    assert_eq!(said(&bob), all, "before the flush");
    bob.flush();
    for both in [&alice, &bob, &open(&world, "carol")] {
        assert_eq!(said(both), all);
    }
    // Each user corrects only his own.
    alice.catalog.annotate(on_run("a", "q", 1.25), &Session::default()).unwrap();
    alice.flush();
    bob.catalog.annotate(on_run("a", "q", 98.0), &Session::default()).unwrap();
    bob.flush();
    for both in [&alice, &bob] {
        assert_eq!(said(both), [pair(ALICE, "1.25"), pair(ALICE, "2.0"), pair(BOB, "98.0")]);
    }
    assert_eq!(alice.catalog.user_name(BOB), "user502");
    check(&[&alice, &bob]);
}

#[test]
fn what_stands_in_a_run_is_declared_by_its_owner() {
    let world = world();
    let (alice, bob) = both(&world);
    bob.flush();
    let id = bob.store.begin().unwrap();
    let step = vec![StepDecl { number: 3, time: Some(0.5) }];
    for session in [None, Some(id)] {
        let error =
            denied(bob.catalog.create_steps(&run("a"), step.clone(), &Session::from(session)), "user501");
        assert!(error.message().contains("run 'a'"), "{error}");
        denied(
            bob.catalog.create_variables(&run("a"), vec![variable("u", &[2])], &Session::from(session)),
            "user501",
        );
        // Declaring it again unchanged is allowed.
        bob.catalog
            .create_variables(&run("a"), vec![variable("t", &[8, 8])], &Session::from(session))
            .unwrap();
        bob.catalog.create_run(RunDecl::named(run("a")), true, &Session::from(session)).unwrap();
        let taken =
            bob.catalog.create_run(RunDecl::named(run("a")), false, &Session::from(session)).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::Conflict);
        let more = RunDecl { params: vec![("nx".into(), Value::Int(1))], ..RunDecl::named(run("a")) };
        assert!(bob.catalog.create_run(more, true, &Session::from(session)).is_err());
    }
    // A run also belongs to its owner if only fields name it.
    alice.archive(&[("run", "fields"), ("variable", "t"), ("step", "1")], &[2, 2], None);
    alice.flush();
    denied(bob.catalog.create_run(RunDecl::named(run("fields")), false, &Session::default()), "user501");
    denied(bob.catalog.create_steps(&run("fields"), step.clone(), &Session::default()), "user501");
    bob.catalog.annotate(on_run("fields", "q", 5.0), &Session::default()).unwrap();
    bob.flush();
    alice.catalog.create_steps(&run("a"), step, &Session::default()).unwrap();
    alice.flush();
    // Bob's own runs are his.
    bob.prepare("b");
    bob.flush();
    denied(
        alice.catalog.create_steps(&run("b"), vec![StepDecl { number: 1, time: None }], &Session::default()),
        "user502",
    );
    assert_eq!(alice.catalog.runs(&Query::all()).unwrap().len(), 3);
    check(&[&alice, &bob]);
}

#[test]
fn a_run_may_be_annotated_by_its_owner_alone() {
    let world = world();
    let (alice, bob) = (open(&world, "alice"), open(&world, "bob"));
    let closed = RunDecl { annotate: Annotate::Owner, ..RunDecl::named(run("a")) };
    alice.catalog.create_run(closed.clone(), false, &Session::default()).unwrap();
    alice.catalog.annotate(on_run("a", "q", 1.5), &Session::default()).unwrap();
    alice.flush();
    let id = bob.store.begin().unwrap();
    for session in [None, Some(id)] {
        let error = denied(bob.catalog.annotate(on_run("a", "q", 9.0), &Session::from(session)), "user501");
        assert!(error.message().contains("run 'a'"), "{error}");
    }
    // Declared again unchanged it is the same; a change is a contradiction.
    alice.catalog.create_run(closed.clone(), true, &Session::default()).unwrap();
    alice.catalog.create_run(RunDecl::named(run("a")), true, &Session::default()).unwrap();
    alice.create_run("open");
    let other = alice
        .catalog
        .create_run(RunDecl { run: run("open"), ..closed }, true, &Session::default())
        .unwrap_err();
    assert!(other.message().contains("who may annotate"), "{other}");
    // Another process of the owner annotates.
    let again = open(&world, "alice");
    again.catalog.annotate(on_run("a", "q", 2.5), &Session::default()).unwrap();
    again.flush();
    assert_eq!(said(&bob), [pair(ALICE, "2.5")]);
    check(&[&alice, &bob]);
}

#[test]
fn everybody_deletes_what_is_his() {
    let world = world();
    let (alice, bob) = both(&world);
    bob.annotate("a", "max", 2, [0, 0], 3.0);
    bob.flush();
    let everything = || Query::all();
    for doit in [false, true] {
        for what in [
            Deletion::Runs(everything()),
            Deletion::Steps(everything()),
            Deletion::Variables(everything()),
            Deletion::Tags(all_of(vec![tag_is("q")])),
        ] {
            denied(bob.catalog.delete(&what, false, doit, &Session::default()), "user501");
        }
        let theirs =
            all_of(vec![tag_is("max"), above(1.0), fieldstone::catalog::query::Term::Step(vec![(1, 1)])]);
        let error = denied(
            bob.catalog.delete(&Deletion::Attributes(theirs), false, doit, &Session::default()),
            "user501",
        );
        assert!(error.message().starts_with("1 attributes"), "{error}");
    }
    assert_eq!(said(&alice).len(), 4);
    let report =
        bob.catalog.delete(&Deletion::Attributes(everything()), false, true, &Session::default()).unwrap();
    assert_eq!((report.attributes, report.others), (2, 2));
    bob.flush();
    for both in [&alice, &bob] {
        assert_eq!(said(both), [pair(ALICE, "1.5"), pair(ALICE, "2.0")]);
    }
    // The owner of a run deletes others' attributes of it.
    bob.catalog.annotate(on_run("a", "q", 7.0), &Session::default()).unwrap();
    bob.flush();
    let q = || Deletion::Attributes(all_of(vec![tag_is("q"), above(5.0)]));
    let report = alice.catalog.delete(&q(), false, true, &Session::default()).unwrap();
    assert_eq!((report.attributes, report.others), (1, 0));
    alice.flush();
    assert_eq!(said(&bob), [pair(ALICE, "1.5"), pair(ALICE, "2.0")]);
    bob.catalog.annotate(on_run("a", "q", 8.0), &Session::default()).unwrap();
    bob.flush();
    let report =
        alice.catalog.delete(&Deletion::Runs(everything()), false, true, &Session::default()).unwrap();
    assert_eq!((report.runs, report.attributes), (1, 3));
    alice.flush();
    for both in [&alice, &bob] {
        assert_eq!((said(both).len(), both.catalog.runs(&everything()).unwrap().len()), (0, 0));
    }
    // The name still belongs to its owner.
    let again = open(&world, "bob");
    denied(again.catalog.create_run(RunDecl::named(run("a")), false, &Session::default()), "user501");
    check(&[&alice, &bob]);
}

/// Records that calls would refuse do not count even if they are in a log.
#[test]
fn what_others_write_past_the_calls_does_not_count() {
    let world = world();
    let (alice, bob) = both(&world);
    bob.flush();
    let (bob, journal) = with_journal(&world, "bob");
    let closed = RunDecl { annotate: Annotate::Owner, ..RunDecl::named(run("closed")) };
    alice.catalog.create_run(closed, false, &Session::default()).unwrap();
    alice.catalog.annotate(on_run("closed", "q", 1.0), &Session::default()).unwrap();
    alice.flush();
    let id = alice.catalog.attributes(&all_of(vec![run_is("a"), above(1.8)])).unwrap();
    let ids: Vec<AttributeId> =
        id.id.iter().zip(&id.user).filter(|(_, user)| **user == ALICE).map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), 1);
    let before = (alice.answers(), said(&alice));
    let forged = [
        Record::Runs(vec![RunDecl {
            params: vec![("nx".into(), Value::Int(7))],
            ..RunDecl::named(run("a"))
        }]),
        Record::Steps(run("a"), vec![StepDecl { number: 40, time: Some(1.0) }]),
        Record::Variables(run("a"), vec![variable("z", &[3])]),
        Record::Attributes(on_run("closed", "q", 66.0)),
        Record::Remove(vec![
            Removal::Attributes(ids),
            Removal::Step(run("a"), 1),
            Removal::Variable(run("a"), variable_name("t")),
            Removal::Tag(float_tag("max")),
        ]),
    ];
    let side = forged.iter().map(Record::encode).collect();
    journal.unflushed().add(side, &Session::default()).unwrap();
    assert_eq!((bob.answers(), said(&bob)), before, "before the flush");
    bob.flush();
    for both in [&alice, &bob, &open(&world, "carol")] {
        assert_eq!((both.answers(), said(both)), before);
    }
    let conflicts = alice.catalog.conflicts().unwrap();
    assert_eq!(conflicts.len(), 3, "{conflicts:#?}");
    assert!(conflicts.iter().all(|text| text.contains("user 502, who does not own")), "{conflicts:#?}");
    // The run's deletion removes bob's attribute of it, which he may delete.
    journal
        .unflushed()
        .add(vec![Record::Remove(vec![Removal::Run(run("a"))]).encode()], &Session::default())
        .unwrap();
    bob.flush();
    for both in [&alice, &bob, &open(&world, "carol")] {
        assert_eq!(said(both), [pair(ALICE, "1.0"), pair(ALICE, "1.5"), pair(ALICE, "2.0")]);
    }
    check(&[&alice, &bob]);
}

/// A log that comes late and is older makes another owner, and the result is as if it had been known before.
#[test]
fn an_older_log_that_comes_late_changes_the_owner() {
    let world = world();
    let alice = open(&world, "alice");
    alice.prepare("a");
    alice.catalog.annotate(on_run("a", "q", 1.5), &Session::default()).unwrap();
    alice.store.close().unwrap();
    let disk = world.process("carol").disk;
    let logs = |world: &SimWorld| -> Vec<std::path::PathBuf> {
        world.files().into_iter().filter(|file| file.starts_with("/s/logs")).collect()
    };
    let log = logs(&world).remove(0);
    disk.rename(&log, Path::new("/aside")).unwrap();
    for board in world.files().into_iter().filter(|file| file.starts_with("/s/boards")) {
        disk.unlink(&board).unwrap();
    }
    // As far as anyone sees, only bob made the run.
    let bob = open(&world, "bob");
    bob.prepare("a");
    bob.catalog
        .create_steps(&run("a"), vec![StepDecl { number: 5, time: Some(0.5) }], &Session::default())
        .unwrap();
    bob.catalog.annotate(on_run("a", "q", 99.0), &Session::default()).unwrap();
    bob.flush();
    let dave = open(&world, "dave");
    dave.catalog.annotate(on_run("a", "q", 7.0), &Session::default()).unwrap();
    dave.flush();
    bob.catalog
        .delete(&Deletion::Attributes(all_of(vec![above(5.0)])), false, true, &Session::default())
        .unwrap();
    bob.flush();
    let carol = open(&world, "carol");
    for both in [&bob, &dave, &carol] {
        assert_eq!((said(both).len(), both.catalog.steps(&Query::all()).unwrap().len()), (0, 1));
    }
    disk.rename(Path::new("/aside"), &log).unwrap();
    for both in [&bob, &dave, &carol, &open(&world, "eve")] {
        both.store.refresh().unwrap();
        // Bob deleted his own data; dave's stay, and the step does not count.
        assert_eq!(said(both), [pair(ALICE, "1.5"), pair(DAVE, "7.0")]);
        assert_eq!(both.catalog.steps(&Query::all()).unwrap().len(), 0);
    }
    denied(steps_of(&bob), "user501");
    check(&[&bob, &dave, &carol]);
}

fn steps_of(both: &Both) -> Result<()> {
    both.catalog.create_steps(&run("a"), vec![StepDecl { number: 6, time: None }], &Session::default())
}

/// Everybody may add files to the folders, and only a file's owner may remove it.
fn share(world: &SimWorld, host: &str) {
    let disk = world.process(host).disk;
    for folder in ["/s", "/s/logs", "/s/data", "/s/boards"] {
        disk.create_dir_all(Path::new(folder)).unwrap();
        world.permissions().set_mode(Path::new(folder), 0o1777).unwrap();
    }
}

#[test]
fn no_date_makes_an_owner_where_others_may_write() {
    let world = world();
    share(&world, "carol");
    world.set_clock_offset("bob", -40 * 365 * 86_400_000_000_000);
    let alice = open(&world, "alice");
    alice.prepare("a");
    alice.catalog.annotate(on_run("a", "q", 1.5), &Session::default()).unwrap();
    // Bob declares the same run, forty years earlier, also directly in the journal.
    let (bob, journal) = with_journal(&world, "bob");
    let older = RunDecl { params: vec![("nx".into(), Value::Int(7))], ..RunDecl::named(run("a")) };
    journal.unflushed().add(vec![Record::Runs(vec![older]).encode()], &Session::default()).unwrap();
    let steps = Record::Steps(run("a"), vec![StepDecl { number: 40, time: Some(1.0) }]);
    journal.unflushed().add(vec![steps.encode()], &Session::default()).unwrap();
    bob.flush();
    alice.flush();
    denied(
        open(&world, "bob").catalog.create_steps(
            &run("a"),
            vec![StepDecl { number: 1, time: None }],
            &Session::default(),
        ),
        "user501",
    );
    for both in [&alice, &bob, &open(&world, "carol")] {
        let runs = both.catalog.runs(&Query::all()).unwrap();
        assert_eq!((runs.len(), runs[0].decl.params.len()), (1, 0));
        assert_eq!(both.catalog.steps(&Query::all()).unwrap().len(), 0);
    }
    // The first flush decides the owner of the name.
    let (first, second) = (open(&world, "alice"), open(&world, "bob"));
    first.create_run("c");
    second.create_run("c");
    second.flush();
    assert_eq!(first.store.flush(None).unwrap_err().kind(), ErrorKind::Denied);
    first.store.discard(None).unwrap();
    denied(
        open(&world, "alice").catalog.create_steps(
            &run("c"),
            vec![StepDecl { number: 1, time: None }],
            &Session::default(),
        ),
        "user502",
    );
    check(&[&alice, &bob]);
}

/// Runs without fields, of a folder that was opened to others later, have no claims.
#[test]
fn what_the_owner_of_the_folder_declared_stays_his_when_it_is_shared() {
    let world = world();
    let alice = open(&world, "alice");
    alice.prepare("a");
    alice.flush();
    share(&world, "alice");
    let bob = open(&world, "bob");
    bob.archive(&[("run", "a"), ("variable", "u"), ("step", "1")], &[2, 2], None);
    bob.flush();
    denied(steps_of(&bob), "user501");
    steps_of(&alice).unwrap();
    alice.flush();
    for both in [&alice, &bob, &open(&world, "carol")] {
        let steps = both.catalog.steps(&Query::all()).unwrap();
        assert_eq!(steps.iter().map(|step| step.step).collect::<Vec<_>>(), [1, 6]);
    }
    check(&[&alice, &bob]);
}
