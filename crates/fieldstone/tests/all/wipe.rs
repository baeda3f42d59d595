//! Wipes: the catalog and the graph keep what they hold, and show no wiped fields, however their indexes got there.

use std::path::Path;
use std::time::{Duration, SystemTime};

use fieldstone::catalog::{CatalogSettings, Query};
use fieldstone::prelude::*;
use fieldstone::{
    CompactOptions, Env, EraseOptions, ErrorKind, ListOptions, Mode, OpenOptions, PurgeOptions, Request,
    Session, Store, WipeOptions, loopback,
};

use crate::shared::Both;

const DO_IT: WipeOptions = WipeOptions { older_than: None, doit: true, all: false };

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn open(folder: &Path, at: Option<String>) -> Both {
    Both::open(&folder.display().to_string(), &OpenOptions { mode: Mode::Read, at, ..OpenOptions::default() })
}

/// Declared and undeclared runs with arrays and bytes, and attributes.
fn written(folder: &Path) -> Both {
    let both = Both::at(folder);
    both.prepare("a");
    for run in ["a", "b", "c"] {
        for step in ["0", "6", "12"] {
            both.archive(&[("run", run), ("variable", "t"), ("step", step)], &[8, 8], None);
            both.archive(&[("run", run), ("variable", "u"), ("step", step)], &[4], None);
        }
    }
    both.annotate("a", "peak", 6, [0, 0], 1.5);
    both.flush();
    both
}

#[test]
fn the_catalog_shows_no_wiped_fields_whether_it_follows_or_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let both = written(folder.path());
    let (before, version) = (both.answers(), both.store.version().unwrap());
    assert!(before.contains("run ") && before.matches("\nstep ").count() == 9, "{before}");
    // A variable of one run, all of another, and part of a third, which is written again.
    both.store.wipe(&request("run=a,variable=u"), &DO_IT).unwrap();
    both.store.wipe(&request("run=b"), &DO_IT).unwrap();
    both.store.wipe(&request("run=c,variable=t"), &DO_IT).unwrap();
    both.archive(&[("run", "c"), ("variable", "t"), ("step", "18")], &[3, 5], None);
    both.flush();
    let after = both.answers();
    // The undeclared run is gone, and so are its steps; declarations and attributes stay.
    assert!(!after.contains("name: \"b\""), "{after}");
    assert_eq!(after.matches("\nvariable ").count(), 3, "{after}");
    assert_eq!(after.matches("\nstep ").count(), 3 + 4, "{after}");
    assert!(after.contains("peak") && after.contains("[3, 5]"), "{after}");
    for round in 0..3 {
        let reader = open(folder.path(), None);
        assert_eq!(reader.answers(), after, "{round}");
        reader.catalog.rebuild().unwrap();
        assert_eq!(reader.answers(), after, "rebuilt, {round}");
        let check = reader.catalog.verify().unwrap();
        assert!(check.ok(), "{check:?}");
        let older = open(folder.path(), Some(version.clone()));
        assert_eq!(older.answers(), before, "{round}");
        if round == 0 {
            both.store.close().unwrap();
        }
        let store = Both::open(&folder.path().display().to_string(), &OpenOptions::default()).store;
        let at_once = CompactOptions { grace: Duration::ZERO, ..CompactOptions::default() };
        store.compact(&at_once).unwrap();
        store.close().unwrap();
    }
}

#[test]
fn an_age_hides_old_fields_from_the_catalog_alone() {
    let folder = tempfile::tempdir().unwrap();
    let both = written(folder.path());
    let _ = both.answers();
    std::thread::sleep(Duration::from_millis(20));
    let now = SystemTime::UNIX_EPOCH + Duration::from_nanos(Env::real().clock.now().unsigned_abs());
    std::thread::sleep(Duration::from_millis(20));
    both.archive(&[("run", "b"), ("variable", "t"), ("step", "6")], &[8, 8], None);
    both.flush();
    let report = both.store.wipe(&request("run=b"), &WipeOptions { older_than: Some(now), ..DO_IT }).unwrap();
    assert_eq!((report.fields, report.done), (5, true));
    let after = both.answers();
    assert_eq!(after.matches("\nstep ").count(), 7, "{after}");
    let reader = open(folder.path(), None);
    reader.catalog.rebuild().unwrap();
    assert_eq!(reader.answers(), after);
}

#[test]
fn a_store_at_the_far_end_is_wiped_alike() {
    let near = Both::memory().store;
    for far in [near.clone(), Store::over(loopback(near.backend().clone()), CatalogSettings::default())] {
        let both = Both { catalog: far.catalog_with(CatalogSettings::default()), store: far };
        both.archive(&[("run", "a"), ("variable", "t"), ("step", "0")], &[2], None);
        both.flush();
        let report = both.store.wipe(&request("run=a"), &WipeOptions::default()).unwrap();
        assert_eq!((report.fields, report.done), (1, false));
        for (text, kind) in [("run=a,step=0", ErrorKind::Invalid), ("", ErrorKind::Invalid)] {
            assert_eq!(both.store.wipe(&request(text), &DO_IT).unwrap_err().kind(), kind);
        }
        assert_eq!(both.store.wipe(&Request::new(), &WipeOptions { all: true, ..DO_IT }).unwrap().fields, 1);
        assert_eq!(both.store.list(&Request::new(), &ListOptions::default()).unwrap().count(), 0);
        both.store.flush(Session::default()).unwrap();
    }
}

/// The field that both attempts of [`two_attempts`] write.
const ATTEMPTED: [(&str, &str); 3] = [("run", "c"), ("variable", "t"), ("step", "0")];

fn of_attempt(folder: &Path, attempt: &str) -> Both {
    let options = OpenOptions { attempt: Some(attempt.to_owned()), ..OpenOptions::default() };
    Both::open(&folder.display().to_string(), &options)
}

/// An older attempt, which has written another step, and a newer one, which has written the field.
fn two_attempts(folder: &Path) -> (Both, Both) {
    let old = of_attempt(folder, "one");
    old.archive(&[("run", "z"), ("variable", "t"), ("step", "7")], &[4], None);
    old.flush();
    let new = of_attempt(folder, "two");
    new.archive(&ATTEMPTED, &[4], None);
    new.flush();
    (old, new)
}

/// A wiped entry of a newer attempt goes on hiding those of older ones, in a transaction and outside.
#[test]
fn an_older_attempt_shows_nothing_behind_what_a_wipe_hid() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = two_attempts(folder.path());
    let id = old.store.begin().unwrap();
    old.archive(&ATTEMPTED, &[4], Some(id));
    old.store.flush(Some(id)).unwrap();
    new.store.wipe(&request("run=c"), &DO_IT).unwrap();
    let check = |transaction: Option<fieldstone::Id>| {
        for both in [&old, &new, &open(folder.path(), None)] {
            both.store.refresh().unwrap();
            let query = Query { session: Session::from(transaction), ..Query::all() };
            let steps = both.catalog.steps(&query).unwrap();
            assert_eq!(steps.iter().map(|step| step.step).collect::<Vec<_>>(), [7]);
        }
    };
    check(None);
    check(Some(id));
    old.store.decide(id, true).unwrap();
    check(None);
    old.archive(&ATTEMPTED, &[4], None);
    old.flush();
    check(None);
    // The field of a newer one stands.
    let newer = of_attempt(folder.path(), "three");
    newer.archive(&ATTEMPTED, &[4], None);
    newer.flush();
    assert_eq!(newer.catalog.steps(&Query::all()).unwrap().len(), 2);
}

#[test]
fn an_older_attempt_shows_nothing_behind_what_a_purge_left_of_a_newer_one() {
    let purge = PurgeOptions { all: true, doit: true, grace: Duration::ZERO, ..PurgeOptions::default() };
    type End = fn(&Both);
    let ends: [End; 3] = [
        |both| assert_eq!(both.remove("run=c"), 1),
        |both| assert!(both.store.wipe(&request("run=c"), &DO_IT).unwrap().fields == 1),
        |both| {
            both.remove("run=c");
            both.flush();
            both.store.erase(&[request("run=c")], &EraseOptions { doit: true }).unwrap();
        },
    ];
    for (is_transaction, end) in ends.iter().flat_map(|end| [(false, end), (true, end)]) {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = two_attempts(folder.path());
        end(&new);
        new.flush();
        new.store.close().unwrap();
        Both::at(folder.path()).store.purge(&purge).unwrap();
        let id = is_transaction.then(|| old.store.begin().unwrap());
        old.archive(&ATTEMPTED, &[4], id);
        old.store.flush(id).unwrap();
        if let Some(id) = id {
            old.store.decide(id, true).unwrap();
        }
        let steps = |both: &Both| -> Vec<i64> {
            both.store.refresh().unwrap();
            both.catalog.steps(&Query::all()).unwrap().into_iter().map(|step| step.step).collect()
        };
        let reader = open(folder.path(), None);
        assert_eq!((steps(&old), steps(&reader)), (vec![7], vec![7]));
        reader.catalog.rebuild().unwrap();
        assert_eq!((steps(&old), steps(&reader)), (vec![7], vec![7]));
    }
}
