//! The cost of reading unflushed data depends on the new ones alone, a query looks at the logs once, and the next read
//! reports a background failure.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::{By, CatalogSettings, Deletion, Query};
use fieldstone::env::Identity;
use fieldstone::env::sim::{Fault, OpKind, SimWorld};
use fieldstone::prelude::*;
use fieldstone::{Env, ErrorKind, Id, Store};
use fieldstone_catalog::engine::{Database, Sqlite};
use fieldstone_format::catalog::*;
use fieldstone_journal::Journal;
use fieldstone_store::LocalStore;
use fieldstone_store::local::LocalOptions;

/// A handle, and its journal.
fn with_journal(env: Env, native: bool, folder: &Path) -> (Both, Arc<Journal>) {
    let options = LocalOptions { writable: true, native, ..LocalOptions::default() };
    let local = LocalStore::open(env, folder, options).unwrap();
    let journal = local.journal().clone();
    let store = Store::of(local, CatalogSettings::default(), false);
    let catalog = store.catalog_with(CatalogSettings::default());
    (Both { store, catalog }, journal)
}

fn all_in(transaction: Option<Id>) -> Query {
    Query { session: Session::from(transaction), ..Query::all() }
}

/// Records that are overlaid on the engine while a run is repeatedly looked up, annotated and counted.
fn overlaid(both: &Both, rounds: u64, transaction: Option<Id>) -> u64 {
    let before = both.catalog.overlaid();
    let found = both.catalog.count(&all_in(transaction)).unwrap();
    for round in 0..rounds {
        both.catalog.run(None, "a", &Session::from(transaction)).unwrap();
        both.try_annotate("a", "max", round as i64, [0, 0], 1.0, transaction).unwrap();
        assert_eq!(both.catalog.count(&all_in(transaction)).unwrap(), found + round + 1);
    }
    both.catalog.overlaid() - before
}

#[test]
fn what_was_read_before_is_not_laid_over_again() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    both.prepare("a");
    both.flush();
    for transaction in [None, Some(both.store.begin().unwrap())] {
        let laid = [100, 300].map(|rounds| {
            let laid = overlaid(&both, rounds, transaction);
            both.store.discard(transaction).unwrap();
            laid
        });
        // Until a copy of the engine pays off, everything is overlaid again: fewer records than the engine has pages.
        assert!(laid[1] - laid[0] <= 200 + 20, "{laid:?} records in 100 and in 300 rounds, {transaction:?}");
        assert!(laid[0] < 100 + 200, "{laid:?}");
    }
}

#[test]
fn a_run_that_was_asked_for_is_known_until_something_may_have_changed_it() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    both.prepare("a");
    both.flush();
    let transaction = Some(both.store.begin().unwrap());
    let declare = |name: &str, project: &str| {
        let run = RunName { project: project.into(), name: name.into() };
        both.catalog.create_run(RunDecl::named(run), false, &Session::from(transaction)).unwrap();
    };
    both.catalog.run(None, "a", &Session::from(transaction)).unwrap();
    let before = both.catalog.overlaid();
    for step in 0..50 {
        both.try_annotate("a", "max", step, [0, 0], 1.0, transaction).unwrap();
        assert!(both.catalog.run(None, "a", &Session::from(transaction)).unwrap().declared);
    }
    assert!(both.catalog.overlaid() - before <= 1, "nothing is overlaid for it");
    // Another catalog of the same store gives records of the same session.
    let other = both.store.catalog_with(CatalogSettings::default());
    let run = RunName { project: "p".into(), name: "a".into() };
    other.create_run(RunDecl::named(run), false, &Session::from(transaction)).unwrap();
    let error = both.catalog.run(None, "a", &Session::from(transaction)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    both.catalog.run(Some(""), "a", &Session::from(transaction)).unwrap();
    declare("b", "");
    both.catalog.run(None, "b", &Session::from(transaction)).unwrap();
    let what = Deletion::Runs(Query { session: Session::from(transaction), ..all_of(vec![run_is("b")]) });
    other.delete(&what, false, true, &Session::from(transaction)).unwrap();
    assert_eq!(
        both.catalog.run(None, "b", &Session::from(transaction)).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    both.store.discard(transaction).unwrap();
    assert_eq!(
        both.catalog.run(Some("p"), "a", &Session::from(transaction)).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    both.catalog.run(None, "a", &Session::from(transaction)).unwrap();
    // Another handle's commit.
    let elsewhere = Both::at(folder.path());
    let run = RunName { project: "q".into(), name: "a".into() };
    elsewhere.catalog.create_run(RunDecl::named(run), false, &Session::default()).unwrap();
    elsewhere.flush();
    both.store.refresh().unwrap();
    assert_eq!(
        both.catalog.run(None, "a", &Session::from(transaction)).unwrap_err().kind(),
        ErrorKind::Invalid
    );
}

/// A call that uses the catalog.
type Ask<'a> = &'a dyn Fn(&Query);

#[test]
fn a_query_looks_at_the_logs_once() {
    let folder = tempfile::tempdir().unwrap();
    let (both, journal) = with_journal(Env::real(), true, folder.path());
    both.prepare("a");
    both.annotate("a", "max", 1, [0, 0], 1.0);
    both.flush();
    let catalog = &both.catalog;
    catalog.count(&Query::all()).unwrap();
    let transaction = both.store.begin().unwrap();
    let kinds: [(&str, Ask<'_>); 11] = [
        ("attributes", &|query| drop(catalog.attributes(query).unwrap())),
        ("stream", &|query| catalog.stream(query).unwrap().for_each(|hit| drop(hit.unwrap()))),
        ("count", &|query| assert!(catalog.count(query).unwrap() > 0)),
        ("aggregate", &|query| drop(catalog.aggregate(query, &[By::Tag]).unwrap())),
        ("boxes", &|query| drop(catalog.boxes(query).unwrap())),
        ("runs", &|query| drop(catalog.runs(query).unwrap())),
        ("steps", &|query| drop(catalog.steps(query).unwrap())),
        ("variables", &|query| drop(catalog.variables(query).unwrap())),
        ("tags", &|query| drop(catalog.tags(query).unwrap())),
        ("explain", &|query| drop(catalog.explain(query).unwrap())),
        ("run", &|query| drop(catalog.run(None, "a", &query.session).unwrap())),
    ];
    // Without unflushed data, with them, in a transaction; the second time over a copy.
    for round in 0..4 {
        let query = all_in((round >= 2).then_some(transaction));
        for (name, ask) in &kinds {
            let before = journal.looks().count();
            ask(&query);
            assert_eq!(journal.looks().count() - before, 1, "{name}, round {round}");
        }
        both.try_annotate("a", "max", 2, [0, 0], 1.0, query.session.transaction()).unwrap();
        catalog.copy_overlays_at(0);
    }
    // The owner of a run is taken from the moment of its lookup; the claim of a run without an owner looks again,
    // because others may claim it in between.
    let claim = {
        let before = journal.looks().count();
        journal.datasets().claim(b"some level".to_vec(), &Session::default()).unwrap();
        journal.looks().count() - before
    };
    for (n, session) in [None, Some(transaction), None].into_iter().enumerate() {
        let before = journal.looks().count();
        catalog.create_run(RunDecl::named(run(&format!("new{n}"))), false, &Session::from(session)).unwrap();
        assert_eq!(journal.looks().count() - before, 1 + claim, "create_run in {session:?}");
    }
    let fresh = both.store.catalog_with(CatalogSettings::default());
    fresh.variable(&run("a"), "t", None, &Session::default()).unwrap();
    let declare = |step: i64| {
        let before = journal.looks().count();
        fresh
            .create_steps(&run("a"), vec![StepDecl { number: step, time: None }], &Session::default())
            .unwrap();
        journal.looks().count() - before
    };
    let first = declare(1);
    assert!(first <= 3 + claim, "{first} looks: for the run, its steps and its owner");
    assert_eq!(declare(2), 1, "for its steps");
}

#[test]
fn what_goes_wrong_beside_the_caller_is_told_by_the_next_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let both = Both::at(folder.path());
    both.prepare("a");
    both.catalog.annotate(columns("a", "max", 100), &Session::default()).unwrap();
    both.flush();
    let asks: [&dyn Fn() -> fieldstone::Result<()>; 4] = [
        &|| both.catalog.count(&Query::all()).map(drop),
        &|| both.catalog.stream(&Query::all()).map(drop),
        &|| both.catalog.run(None, "a", &Session::default()).map(drop),
        &|| both.catalog.sql("SELECT 1").map(drop),
    ];
    let mut rows = both.catalog.count(&Query::all()).unwrap();
    for (n, ask) in asks.iter().enumerate() {
        // The engine refuses attributes while the background thread is at work.
        let mut engine = Sqlite::open(&Both::engine(folder.path())).unwrap();
        engine
            .batch("CREATE TRIGGER fault BEFORE INSERT ON attr BEGIN SELECT RAISE(ABORT, 'a fault'); END")
            .unwrap();
        both.catalog.annotate(columns("a", &format!("tag{n}"), 20_000), &Session::default()).unwrap();
        both.flush();
        both.catalog.join_applying();
        engine.batch("DROP TRIGGER fault").unwrap();
        drop(engine);
        rows += 20_000;
        // Writers go on.
        both.annotate("a", "min", n as i64, [0, 0], 1.0);
        rows += 1;
        let error = ask().unwrap_err();
        assert!(error.message().contains("a fault"), "{error}");
        assert!(error.message().starts_with("while an earlier flush was applied"), "{error}");
        ask().unwrap();
        assert_eq!(both.catalog.count(&Query::all()).unwrap(), rows, "it follows again");
    }
    // A success is not reported, and a retry clears the earlier failure.
    both.catalog.annotate(columns("a", "fine", 20_000), &Session::default()).unwrap();
    both.flush();
    both.catalog.join_applying();
    assert_eq!(both.catalog.count(&Query::all()).unwrap(), rows + 20_000);
}

/// This machine, on which tests simulate a forked process.
#[derive(Debug)]
struct Forked(Arc<dyn Identity>, AtomicU32);

impl Identity for Forked {
    fn host(&self) -> String {
        self.0.host()
    }

    fn process(&self) -> u32 {
        self.0.process() + self.1.load(Ordering::Relaxed)
    }

    fn uid(&self) -> u32 {
        self.0.uid()
    }

    fn user_name(&self, uid: u32) -> String {
        self.0.user_name(uid)
    }

    fn alive(&self, process: u32) -> bool {
        process == self.process() || self.0.alive(process)
    }
}

#[test]
fn a_child_has_nothing_of_what_its_parent_has_not_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let identity = Arc::new(Forked(Env::real().identity, AtomicU32::new(0)));
    let (both, _) = with_journal(Env { identity: identity.clone(), ..Env::real() }, true, folder.path());
    both.prepare("a");
    both.flush();
    both.catalog.copy_overlays_at(0);
    for step in 0..5 {
        both.annotate("a", "max", step, [0, 0], 1.0);
        assert_eq!(both.hits(vec![]).len() as i64, step + 1);
    }
    identity.1.store(1, Ordering::Relaxed);
    assert_eq!(both.hits(vec![]).len(), 0);
    both.catalog.copy_overlays_at(0);
    both.annotate("a", "min", 1, [0, 0], 1.0);
    assert_eq!(both.hits(vec![]).len(), 1);
    both.flush();
    identity.1.store(0, Ordering::Relaxed);
    both.store.refresh().unwrap();
    assert_eq!(both.hits(vec![]).len(), 6, "the parent has its own still, and the child's commit");
    both.flush();
    assert_eq!(both.hits(vec![]).len(), 6);
}

/// Data that a session lost in a failure, or discarded, are not read from an earlier overlay; nor in another session
/// whose overlay also holds them.
#[test]
fn what_was_lost_or_discarded_is_gone_from_every_overlay() {
    for fails in [false, true] {
        let world = SimWorld::new(1);
        let (both, _) = with_journal(world.process("a"), false, Path::new("/s"));
        both.prepare("a");
        both.flush();
        both.catalog.copy_overlays_at(0);
        let transaction = Some(both.store.begin().unwrap());
        let steps = |transaction| {
            let found = both.catalog.attributes(&all_in(transaction)).unwrap();
            let mut steps: Vec<i64> = found.step.iter().flatten().copied().collect();
            steps.sort_unstable();
            steps
        };
        both.try_annotate("a", "max", 0, [0, 0], 1.0, transaction).unwrap();
        for step in 1..4 {
            both.annotate("a", "max", step, [0, 0], 1.0);
            assert_eq!(steps(None).len() as i64, step);
            assert_eq!(steps(transaction).len() as i64, 1 + step);
        }
        if fails {
            world.fail_nth(OpKind::SyncData, 1, Fault::Io);
            both.store.flush(None).unwrap_err();
        } else {
            both.store.discard(None).unwrap();
        }
        for step in 10..14 {
            both.annotate("a", "max", step, [0, 0], 1.0);
        }
        assert_eq!(steps(transaction), [0, 10, 11, 12, 13]);
        assert_eq!(steps(None), [10, 11, 12, 13]);
        both.flush();
        assert_eq!(steps(transaction), [0, 10, 11, 12, 13]);
        both.store.discard(transaction).unwrap();
        assert_eq!(steps(transaction), [10, 11, 12, 13]);
    }
}

/// A reader next to a thread that flushes repeatedly sees each attribute once, misses none that existed when it began,
/// and does not wait until the other one rests.
#[test]
fn a_reader_beside_a_thread_that_flushes_sees_everything_once() {
    // In memory a flush is much faster than following the logs.
    let both = Both::memory();
    both.prepare("a");
    both.flush();
    for copies in [false, true] {
        if copies {
            both.catalog.copy_overlays_at(0);
        }
        let (given, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let tag = if copies { "max" } else { "min" };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) == 0 && given.load(Ordering::Relaxed) < 10_000 {
                    let step = i64::from(given.load(Ordering::SeqCst));
                    both.annotate("a", tag, step, [0, 0], 1.0);
                    given.fetch_add(1, Ordering::SeqCst);
                    both.flush();
                }
            });
            for read in 0..100 {
                let before = given.load(Ordering::SeqCst);
                let found = both.catalog.attributes(&all_of(vec![tag_is(tag)]));
                // The flushing thread also ends if this one fails.
                let steps = found.map(|found| found.step);
                let ends = steps.is_err();
                done.fetch_add(u32::from(ends), Ordering::Relaxed);
                let mut steps: Vec<i64> = steps.unwrap().into_iter().flatten().collect();
                steps.sort_unstable();
                let after = given.load(Ordering::SeqCst);
                let all = steps.iter().copied().eq(0..steps.len() as i64);
                let right = all && (before..=after + 1).contains(&(steps.len() as u32));
                done.fetch_add(u32::from(!right), Ordering::Relaxed);
                // Attributes of the flushing thread after a missing one, or duplicates.
                let odd = steps.iter().zip(0..).find(|(step, due)| **step != *due);
                assert!(
                    right,
                    "read {read}, copies {copies}: {} of {before} to {after}, {odd:?}",
                    steps.len()
                );
            }
            done.store(1, Ordering::Relaxed);
        });
    }
}
