//! Erasures: no file holds an erased byte, and nothing else changes (R36).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fieldstone::catalog::query::{Expr, NameTest, Term};
use fieldstone::catalog::{CatalogSettings, Deletion, Query};
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, CompactOptions, EraseOptions, ErasureReport, ErrorKind, ListOptions, Mode, OpenOptions,
    PurgeOptions, RemoveOptions, Request, Session, Store, Target, Value, WipeOptions, loopback,
};
use fieldstone_testkit::seeded;

const DO_IT: EraseOptions = EraseOptions { doit: true };
/// Recorded by mistake: in values, and in keys.
const SECRET: &[u8] = b"MARKER-of-a-value";
const NAME: &str = "MARKER-of-a-key";

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn open(folder: &Path) -> Store {
    fieldstone::open(&folder.display().to_string(), &OpenOptions::default()).unwrap()
}

fn archive(store: &Store, key: &str, bytes: &[u8]) {
    let pairs = request(key).single_pairs().unwrap();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (&**k, &**v)).collect();
    store.archive(&pairs, Value::Bytes(bytes), &ArchiveOptions::default()).unwrap();
}

fn remove(store: &Store, text: &str) {
    assert!(store.remove(&request(text), &RemoveOptions::default()).unwrap() > 0);
    store.flush(None).unwrap();
}

fn erase(store: &Store, text: &str) -> ErasureReport {
    store.erase(&[request(text)], &DO_IT).unwrap()
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

/// Files that hold a text.
fn holding(folder: &Path, text: &[u8]) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window == text)
    };
    files(folder).into_iter().filter(holds).collect()
}

/// A value of a size that holds the secret, and cannot be compressed.
fn value(length: usize) -> Vec<u8> {
    let mut random = seeded(7);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
    bytes[length / 2..][..SECRET.len()].copy_from_slice(SECRET);
    bytes
}

fn fields(store: &Store) -> BTreeMap<String, usize> {
    let list = store.list(&Request::new(), &ListOptions::default()).unwrap();
    let entries = list.map(|entry| entry.unwrap());
    entries.map(|entry| (entry.key.to_string(), entry.nbytes as usize)).collect()
}

fn is_sound(folder: &Path) {
    let report = open(folder).verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
    let check = open(folder).catalog().verify().unwrap();
    assert!(check.damaged.is_empty() && check.different.is_empty(), "{check:?}");
}

#[test]
fn r36_removed_wiped_and_replaced_fields_go_from_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    // A small value, one in a data log that is alive for the most part, one replaced, and one whose key is the mistake.
    archive(&store, "run=a,variable=t,step=0", SECRET);
    archive(&store, "run=a,variable=t,step=12", SECRET);
    store.flush(None).unwrap();
    archive(&store, "run=a,variable=t,step=6", &value(40_000));
    archive(&store, "run=b,variable=t,step=6", &vec![3; 40_000]);
    for step in 0..8 {
        let mut other = value(1 << 20);
        let at = other.len() / 2;
        other[at..at + SECRET.len()].fill(7);
        archive(&store, &format!("run=b,variable=big,step={step}"), &other);
    }
    archive(&store, &format!("run=a,variable=t,step=0,ensemble={NAME}"), b"a value");
    store.flush(None).unwrap();
    store.close().unwrap();
    let store = open(folder.path());
    archive(&store, "run=a,variable=t,step=12", b"what was meant");
    store.flush(None).unwrap();
    remove(&store, "run=a,variable=t,step=0/6");
    let before = fields(&store);
    assert!(holding(folder.path(), SECRET).len() >= 2 && !holding(folder.path(), NAME.as_bytes()).is_empty());

    let dry = store.erase(&[request("run=a")], &EraseOptions::default()).unwrap();
    assert_eq!((dry.fields, dry.versions, dry.visible, dry.done), (4, 7, 1, false), "{dry:?}");
    assert!(!holding(folder.path(), SECRET).is_empty());
    assert_eq!(fields(&store), before);
    let report = erase(&store, "run=a");
    assert_eq!((report.fields, report.versions, report.visible, report.done), (4, 7, 1, true), "{report:?}");
    assert_eq!(report.left, [], "{report:?}");
    assert_eq!(holding(folder.path(), SECRET), Vec::<PathBuf>::new());
    assert_eq!(holding(folder.path(), NAME.as_bytes()), Vec::<PathBuf>::new());
    assert_eq!(fields(&store), before);
    drop(store);
    is_sound(folder.path());
    let again = erase(&open(folder.path()), "run=a");
    assert_eq!((again.fields, again.versions, again.files), (0, 0, 0), "{again:?}");
}

#[test]
fn r36_bytes_that_an_earlier_purge_left_go_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for step in 0..4 {
        archive(&store, &format!("run=b,variable=t,step={step}"), &vec![step; 1 << 20]);
    }
    archive(&store, "run=a,variable=t,step=6", &value(2_000));
    store.flush(None).unwrap();
    store.close().unwrap();
    let store = open(folder.path());
    remove(&store, "run=a");
    store.close().unwrap();
    let store = open(folder.path());
    let all =
        PurgeOptions { all: true, doit: true, grace: std::time::Duration::ZERO, ..PurgeOptions::default() };
    assert_eq!(store.purge(&all).unwrap().versions, 2);
    assert_eq!(holding(folder.path(), SECRET).len(), 1, "its data log is alive for the most part");
    let report = erase(&store, "run=a");
    assert!(report.versions == 0 && report.files > 0, "{report:?}");
    assert_eq!(holding(folder.path(), SECRET), Vec::<PathBuf>::new());
    is_sound(folder.path());
}

#[test]
fn an_older_version_says_that_it_is_not_whole_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    archive(&store, "run=a,variable=t,step=0", SECRET);
    store.flush(None).unwrap();
    let version = store.version().unwrap();
    let options = OpenOptions { mode: Mode::Read, at: Some(version), ..OpenOptions::default() };
    let pinned = fieldstone::open(&folder.path().display().to_string(), &options).unwrap();
    remove(&store, "run=a");
    erase(&store, "run=a");
    let key = [("run", "a"), ("variable", "t"), ("step", "0")];
    let error = pinned.get(&key, &fieldstone::ReadOptions::default()).unwrap_err();
    assert_eq!(error.code(), fieldstone::Code::VersionPurged, "{error}");
}

#[test]
fn r36_what_a_living_log_holds_is_named_and_goes_later() {
    let folder = tempfile::tempdir().unwrap();
    let other = open(folder.path());
    archive(&other, "run=a,variable=t,step=0", SECRET);
    other.flush(None).unwrap();
    let store = open(folder.path());
    remove(&store, "run=a");
    let report = erase(&store, "run=a");
    assert_eq!(report.versions, 0, "the removal stays above what it hides");
    assert!(report.left.iter().any(|left| left.why.contains("still writes")), "{report:?}");
    let [held] = &holding(folder.path(), SECRET)[..] else { panic!("one log") };
    assert!(report.left.iter().any(|left| held.ends_with(&left.file)), "{report:?}");
    other.close().unwrap();
    let report = erase(&store, "run=a");
    assert_eq!((report.versions, &report.left[..]), (2, &[][..]));
    assert_eq!(holding(folder.path(), SECRET), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_erased_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    archive(&store, "run=a,variable=t,step=0", SECRET);
    store.flush(None).unwrap();
    let kind = |requests: &[Request]| store.erase(requests, &DO_IT).unwrap_err().kind();
    for all in [&[][..], &[Request::new()]] {
        assert_eq!(kind(all), ErrorKind::Invalid);
    }
    for text in ["run=*", "run=a*", "run=a,step=?*"] {
        assert_eq!(kind(&[request(text)]), ErrorKind::Invalid, "{text}");
    }
    // Visible content stays.
    let report = erase(&store, "run=a");
    assert_eq!((report.versions, report.visible), (0, 1));
    assert_eq!(fields(&store).len(), 1);
    store.close().unwrap();
    let reader = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let reader = fieldstone::open(&folder.path().display().to_string(), &reader).unwrap();
    let refused = |store: &Store| store.erase(&[request("run=a")], &DO_IT).unwrap_err().kind();
    assert_eq!(refused(&reader), ErrorKind::Denied);
    let memory = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    archive(&memory, "run=a,variable=t,step=0", SECRET);
    memory.flush(None).unwrap();
    assert_eq!(refused(&memory), ErrorKind::Invalid);
}

/// Annotates run and steps: one note is deleted, one replaced, one stays.
fn annotated(store: &Store) {
    let run = store.create_run("a").create().unwrap();
    let other = store.create_run("b").create().unwrap();
    let secret = std::str::from_utf8(SECRET).unwrap();
    run.annotate("note", secret, &Target::run()).unwrap();
    run.annotate("note", format!("{secret}, replaced"), &Target::run().step(6)).unwrap();
    run.annotate("note", "stays", &Target::run().step(12)).unwrap();
    other.annotate("note", "of another run", &Target::run()).unwrap();
    store.flush(None).unwrap();
    run.annotate("note", "what was meant", &Target::run().step(6)).unwrap();
    store.flush(None).unwrap();
}

fn notes(store: &Store) -> Vec<String> {
    let hits = store.catalog().stream(&Query::all()).unwrap().map(|hit| hit.unwrap());
    let mut notes: Vec<String> =
        hits.map(|hit| format!("{} {:?} {}", hit.run, hit.step, hit.value)).collect();
    notes.sort();
    notes
}

fn delete_note(store: &Store) {
    let of_run = Expr::Term(Term::Run(NameTest::Is("a".into())));
    let text = Expr::Term(Term::Tag(NameTest::Is("note".into())));
    let no_step = Expr::Not(Box::new(Expr::Term(Term::Step(vec![(i64::MIN + 1, i64::MAX)]))));
    let query = Query { expr: Expr::All(vec![of_run, text, no_step]), ..Query::all() };
    let report =
        store.catalog().delete(&Deletion::Attributes(query), false, true, &Session::default()).unwrap();
    assert_eq!(report.attributes, 1);
    store.flush(None).unwrap();
}

#[test]
fn r36_deleted_and_replaced_attributes_go_from_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    annotated(&store);
    delete_note(&store);
    let before = notes(&store);
    assert_eq!(before.len(), 3, "{before:?}");
    let dry = store.erase(&[request("run=a")], &EraseOptions::default()).unwrap();
    assert_eq!((dry.attributes, dry.visible, dry.done), (2, 2, false), "{dry:?}");
    let report = erase(&store, "run=a");
    assert_eq!((report.attributes, report.visible, &report.left[..]), (2, 2, &[][..]), "{report:?}");
    assert_eq!(holding(folder.path(), SECRET), Vec::<PathBuf>::new());
    // The engine that follows, and one that is built again.
    assert_eq!(notes(&store), before);
    drop(store);
    let store = open(folder.path());
    assert_eq!(notes(&store), before);
    store.catalog().rebuild().unwrap();
    assert_eq!(notes(&store), before);
    // A later takeover carries what is left, and a second erasure finds nothing.
    store.compact(&CompactOptions { grace: std::time::Duration::ZERO, ..CompactOptions::default() }).unwrap();
    let again = erase(&store, "run=a");
    assert_eq!((again.attributes, &again.left[..]), (0, &[][..]), "{again:?}");
    assert_eq!(notes(&store), before);
    drop(store);
    is_sound(folder.path());
}

#[test]
fn r36_an_erased_row_goes_on_hiding_what_it_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let secret = std::str::from_utf8(SECRET).unwrap();
    // The oldest value lies in a log that goes on.
    let living = open(folder.path());
    let run = living.create_run("a").create().unwrap();
    run.annotate("note", "an old value", &Target::run()).unwrap();
    living.flush(None).unwrap();
    archive(&living, "run=x,variable=t,step=0", b"confirms it");
    living.flush(None).unwrap();
    let store = open(folder.path());
    store.run("a").unwrap().annotate("note", secret, &Target::run()).unwrap();
    store.flush(None).unwrap();
    delete_note(&store);
    assert_eq!(notes(&store), Vec::<String>::new());
    let report = erase(&store, "run=a");
    assert_eq!(report.attributes, 1, "{report:?}");
    assert!(report.left.iter().any(|left| left.why.contains("still writes")), "{report:?}");
    assert_eq!(holding(folder.path(), SECRET), Vec::<PathBuf>::new());
    assert_eq!(notes(&store), Vec::<String>::new());
    store.catalog().rebuild().unwrap();
    assert_eq!(notes(&store), Vec::<String>::new());
}

#[test]
fn the_other_end_of_a_connection_erases() {
    let folder = tempfile::tempdir().unwrap();
    let near = open(folder.path());
    let store = Store::over(loopback(near.backend().clone()), CatalogSettings::default());
    annotated(&store);
    archive(&store, "run=a,variable=t,step=0", SECRET);
    store.flush(None).unwrap();
    delete_note(&store);
    store.wipe(&request("run=a"), &WipeOptions { doit: true, ..WipeOptions::default() }).unwrap();
    let report = erase(&store, "run=a");
    assert_eq!((report.fields, report.attributes, &report.left[..]), (1, 2, &[][..]), "{report:?}");
    assert_eq!(holding(folder.path(), SECRET), Vec::<PathBuf>::new());
}
