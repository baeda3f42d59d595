//! Attempts: random work of several of them, their effect under a damaged header, and the kept store. The conformance
//! suite tests the behaviour that every store shows.

use std::path::{Path, PathBuf};

use crate::common::*;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, write_all_at};
use fieldstone_core::request::Request;
use fieldstone_format::attempt::Origin;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};
use fieldstone_store::local::{LocalOptions, LocalStore};
use fieldstone_testkit::random::seeds;

const KEY: &str = "run=a,variable=t,step=0";
const CELLS: usize = 12;
const NAMES: [&str; 4] = ["", "a", "b", "c"];

/// One flush: the attempt, and the change.
#[derive(Debug, Clone)]
struct Flush {
    attempt: &'static str,
    change: Change,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Piece(usize, usize, i32),
    Whole(i32),
    Create,
    Remove,
}

/// The field that the promise requires after these flushes, in order: those of the newest attempt, and those without
/// an attempt, except what an attempt's generation hid. `opened`: the attempts of the processes, in the order in which
/// they opened the store.
fn expected(history: &[Flush], opened: &[&str]) -> Option<Vec<Option<i32>>> {
    let began = |name: &str| opened.iter().position(|other| *other == name);
    let flushed = |name: &&str| history.iter().any(|flush| flush.attempt == *name);
    let newest = NAMES[1..].iter().copied().filter(flushed).max_by_key(|name| began(name));
    let counts = |flush: &&Flush| flush.attempt.is_empty() || Some(flush.attempt) == newest;
    let (mut field, mut latest) = (None, None);
    for flush in history {
        let own = began(flush.attempt).filter(|_| !flush.attempt.is_empty());
        latest = latest.max(own);
        // A value that a generation hid stays hidden, whatever hides that one; a straggler's hides nothing.
        if own.is_some() && own == latest && !matches!(flush.change, Change::Piece(..)) {
            field = None;
        }
        if !counts(&flush) {
            continue;
        }
        match flush.change {
            Change::Remove => field = None,
            Change::Whole(value) => field = Some(vec![Some(value); CELLS]),
            Change::Create => field = Some(vec![None; CELLS]),
            Change::Piece(start, count, value) => {
                let cells = field.get_or_insert(vec![None; CELLS]);
                cells[start..start + count].fill(Some(value));
            }
        }
    }
    field
}

fn put_change(store: &Store, change: Change) {
    let shape = [CELLS as u64];
    let all = |value: i32, count: usize| value.to_ne_bytes().repeat(count);
    let archive = |value| archive(store, KEY, value, &ArchiveOptions::default()).unwrap();
    match change {
        Change::Piece(start, count, value) => archive(Value::Piece {
            data: &all(value, count),
            dtype: DType::I4,
            start: &[start as u64],
            count: &[count as u64],
            shape: &shape,
        }),
        Change::Whole(value) => {
            archive(Value::Array { data: &all(value, CELLS), dtype: DType::I4, shape: &shape })
        }
        Change::Create => {
            let spec = FieldSpec { dtype: DType::I4, shape: &shape, fill: None, chunks: None };
            let pairs = pairs(KEY);
            let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            store.create_field(&pairs, &spec, &ArchiveOptions::default()).unwrap();
        }
        Change::Remove => {
            store.remove(&Request::parse(KEY).unwrap(), &RemoveOptions::default()).unwrap();
        }
    }
    store.flush(&Session::default()).unwrap();
}

/// The field as a store shows it: its elements, with 0 for missing ones.
fn seen(store: &Store) -> Option<(bool, Vec<i32>)> {
    let field = field(store, KEY, None).ok()?;
    let bytes = field.clone().lenient().read().unwrap();
    let cells = bytes.as_chunks::<4>().0.iter().map(|cell| i32::from_ne_bytes(*cell)).collect();
    Some((field.is_complete().unwrap(), cells))
}

#[test]
fn any_order_of_attempts_and_stragglers_shows_the_newest_alone() {
    let mut hidden = 0;
    for seed in seeds(60) {
        let world = SimWorld::new(seed);
        let mut rng = seeded(seed);
        let mut stores: Vec<(&str, Store)> = Vec::new();
        let (mut history, mut opened): (Vec<Flush>, Vec<&str>) = Default::default();
        for value in 1..40 {
            // A process of an attempt, which may be an existing one or a late one.
            let host = ["h", "i", "j"][rng.below(3) as usize];
            if stores.len() < 2 || rng.below(5) == 0 {
                let attempt = NAMES[rng.below(NAMES.len() as u64) as usize];
                let how = Opening { attempt: attempt.to_owned(), ..Opening::default() };
                opened.push(attempt);
                stores.push((attempt, open_in(&world.process(host), &how).unwrap()));
            }
            let (attempt, store) = &stores[rng.below(stores.len() as u64) as usize];
            let start = rng.below(CELLS as u64) as usize;
            let change = match rng.below(12) {
                0 => Change::Whole(value),
                1 => Change::Create,
                // If nothing is visible, nothing is removed.
                2 if expected(&history, &opened).is_some() => Change::Remove,
                _ => Change::Piece(start, 1 + rng.below((CELLS - start) as u64) as usize, value),
            };
            put_change(store, change);
            history.push(Flush { attempt, change });
            let should = expected(&history, &opened).map(|cells| {
                let complete = cells.iter().all(Option::is_some);
                (complete, cells.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>())
            });
            for store in [&stores[0].1, &open(&world, "reader")] {
                assert_eq!(seen(store), should, "seed {seed}: {history:#?}");
            }
            hidden += usize::from(history.iter().any(|flush| !flush.attempt.is_empty()));
        }
    }
    assert!(hidden > 1000);
}

/// The header names the attempt for people only: if it is damaged, commits still name their attempt.
#[test]
fn a_damaged_header_hides_no_attempt() {
    let world = SimWorld::new(1);
    let attempt = |name: &str| Opening { attempt: name.to_owned(), ..Opening::default() };
    let one = open_in(&world.process("a"), &attempt("one")).unwrap();
    put_change(&one, Change::Piece(0, 6, 1));
    let log = only_log(&world, &[]);
    let two = open_in(&world.process("b"), &attempt("two")).unwrap();
    put_change(&two, Change::Piece(6, 6, 2));
    put_change(&one, Change::Piece(0, 6, 3));
    let expected = (false, [[0; 6], [2; 6]].concat());
    for path in [log.clone(), only_log(&world, &[log])] {
        let reader = open(&world, "c");
        assert_eq!(seen(&reader), Some(expected.clone()));
        let whole = world.read(&path).unwrap();
        let mut damaged = whole.clone();
        damaged[70] ^= 0xff;
        replace(&world, &path, &damaged);
        let reader = open(&world, "c");
        assert_eq!(seen(&reader), Some(expected.clone()));
        let mut attempts: Vec<String> =
            reader.status().unwrap().writers.into_iter().map(|writer| writer.origin.attempt).collect();
        attempts.sort_unstable();
        assert_eq!(attempts, ["one", "two"]);
        replace(&world, &path, &whole);
    }
}

/// A log other than the known ones.
fn only_log(world: &SimWorld, known: &[PathBuf]) -> PathBuf {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|name| name == "log") && !known.contains(path);
    files(world, "logs").into_iter().find(is_log).unwrap()
}

fn replace(world: &SimWorld, path: &Path, bytes: &[u8]) {
    let disk = world.process("x").disk;
    disk.unlink(path).unwrap();
    write_all_at(&*disk.create_new(path).unwrap(), bytes, 0).unwrap();
}

/// A process that opened the store before the next attempt wrote belongs to the older attempt, even if it flushes
/// later. One empty commit of its first process announces an attempt.
#[test]
fn an_attempt_begins_when_its_first_process_opens_the_store() {
    let world = SimWorld::new(1);
    let open = |host: &str, attempt: &str| {
        open_in(&world.process(host), &Opening { attempt: attempt.to_owned(), ..Opening::default() }).unwrap()
    };
    let (hangs, other) = (open("a", "one"), open("a", "one"));
    assert_eq!(files(&world, "logs").len(), 1);
    let two = open("b", "two");
    put_change(&two, Change::Piece(0, 6, 2));
    put_change(&hangs, Change::Piece(6, 6, 1));
    put_change(&other, Change::Whole(1));
    assert_eq!(seen(&two), Some((false, [[2; 6], [0; 6]].concat())));
    put_change(&two, Change::Piece(6, 6, 2));
    assert_eq!(seen(&open("c", "")), Some((true, vec![2; CELLS])));
    // A process that only reads announces nothing.
    let reading = Opening { access: Access::Read, attempt: "three".into(), ..Opening::default() };
    let logs = files(&world, "logs").len();
    open_in(&world.process("d"), &reading).unwrap();
    assert_eq!(files(&world, "logs").len(), logs);
}

#[test]
fn status_names_attempt_job_and_rank() {
    let world = SimWorld::new(1);
    let origin = Origin { attempt: "second".into(), job: "1177".into(), rank: Some(3) };
    let options = LocalOptions { writable: true, origin: origin.clone(), ..Opening::default().local(ROOT) };
    let store = LocalStore::open(world.process("a"), Path::new(ROOT), options).unwrap();
    let key = pairs(KEY);
    let key: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
    let status = open(&world, "b").status().unwrap();
    assert_eq!((status.format, &status.writers[0].origin), (2, &origin));
    let plain = SimWorld::new(2);
    flush_one(&open(&plain, "a"), KEY, b"x");
    assert_eq!(open(&plain, "b").status().unwrap().writers[0].origin, Origin::default());
    for name in ["a\nb".to_owned(), "x".repeat(256)] {
        let options = Opening { attempt: name, ..Opening::default() };
        error(open_in(&world.process("a"), &options).map(drop), fieldstone_core::ErrorKind::Invalid);
    }
}

/// The store kept for later releases, next to the plain Python reader that also reads it.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/attempts/store")
}

#[test]
fn the_kept_store_with_attempts() {
    let options = LocalOptions { must_exist: true, ..LocalOptions::default() };
    let store = Store::new(LocalStore::open(Env::real(), &fixture(), options).unwrap());
    assert!(store.verify(&Request::new()).unwrap().ok());
    assert_eq!(seen(&store), Some((true, [[5; 6], [2; 6]].concat())));
    assert_eq!(store.status().unwrap().format, 2);
}

/// Makes it. Kept stores of an old release are never rewritten: run this for a new release, under a new name.
#[test]
#[ignore = "writes into the sources"]
fn make_the_kept_store() {
    let open = |attempt: &str, rank| {
        let origin = Origin { attempt: attempt.into(), job: "1177".into(), rank };
        let options = LocalOptions { writable: true, origin, ..LocalOptions::default() };
        Store::new(LocalStore::open(Env::real(), &fixture(), options).unwrap())
    };
    let (one, two, plain) = (open("1177.1", Some(0)), open("1177.2", None), open("", None));
    put_change(&one, Change::Piece(0, 6, 1));
    put_change(&two, Change::Piece(6, 6, 2));
    put_change(&one, Change::Piece(6, 6, 3));
    put_change(&open("1177.1", Some(1)), Change::Piece(0, 6, 4));
    put_change(&plain, Change::Piece(0, 6, 5));
    plain.close(&Session::default()).unwrap();
}
