//! Purges: hidden versions go with all that lies below them, and nothing that anybody sees changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::*;
use crate::takeovers::{act, close, compact, open_at};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_format::store_record::Hold;
use fieldstone_format::{Id, crc};
use fieldstone_journal::Session;
use fieldstone_journal::author::{AuthorPart, CommitAuthor, Landed};
use fieldstone_journal::writer::INLINE_MAX;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;

const T1: &str = "run=a,variable=t,step=1";
const T2: &str = "run=a,variable=t,step=2";

/// A purge of everything, where nobody else has the store open.
pub fn at_once() -> Purging {
    Purging { all: true, doit: true, grace: 0, ..Purging::default() }
}

pub fn try_purge(store: &Store, what: &Purging) -> Result<PurgeReport> {
    store.purge(what, &mut |_| Ok(()))
}

pub fn purge(world: &SimWorld) -> PurgeReport {
    try_purge(&open(world, "a"), &at_once()).unwrap()
}

/// Writes one version of a field in a log of its own.
fn write(world: &SimWorld, key: &str, value: &[u8]) {
    let store = open(world, "a");
    flush_one(&store, key, value);
    close(&store);
}

fn remove(world: &SimWorld, request: &str) {
    let store = open(world, "a");
    remove_in(&store, request);
    close(&store);
}

fn remove_in(store: &Store, request: &str) {
    store.remove(&Request::parse(request).unwrap(), &RemoveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
}

/// Entries under a key that count, removals among them.
fn entries(world: &SimWorld, key: &str) -> usize {
    let pairs = pairs(key);
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    open(world, "b").entries(&pairs, &Session::default()).unwrap().len()
}

/// The visible fields with checksums of their bytes, or the errors.
pub fn visible(store: &Store, own: Option<Id>) -> BTreeMap<String, String> {
    let options = ListOptions { session: Session::from(own), ..ListOptions::default() };
    let list = store.list(&Request::new(), &options).unwrap();
    let keys = list.map(|entry| entry.unwrap().key.to_string());
    let bytes = |key: &str| field(store, key, own).and_then(|field| field.lenient().read());
    let told = |key: &str| match bytes(key) {
        Ok(bytes) => format!("{} bytes, {}", bytes.len(), crc(&bytes)),
        // Writers have other ids in another world.
        Err(e) => format!("{:?}", e.kind()),
    };
    keys.map(|key| (key.clone(), told(&key))).collect()
}

fn bytes_in(world: &SimWorld, folder: &str) -> u64 {
    files(world, folder).iter().map(|path| world.read(path).unwrap().len() as u64).sum()
}

fn is_sound(world: &SimWorld) {
    let report = open(world, "b").verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
}

#[test]
fn r62_hidden_versions_and_removals_go_with_all_below_them() {
    let world = SimWorld::new(1);
    for n in 0..3 {
        write(&world, T1, format!("value {n}").as_bytes());
        write(&world, "run=a,variable=gone", format!("value {n}").as_bytes());
    }
    remove(&world, "run=a,variable=gone");
    write(&world, T2, b"alone");
    // Hidden versions lie in takeovers as well as in logs.
    compact(&open(&world, "a"));
    write(&world, T1, b"newest");
    let before = visible(&open(&world, "b"), None);
    assert_eq!((entries(&world, T1), entries(&world, "run=a,variable=gone")), (4, 4));

    let dry = try_purge(&open(&world, "a"), &Purging { doit: false, ..at_once() }).unwrap();
    assert_eq!((dry.fields, dry.versions), (2, 7));
    assert_eq!((entries(&world, T1), entries(&world, "run=a,variable=gone")), (4, 4), "a dry run");
    let report = purge(&world);
    assert_eq!((report.fields, report.versions, report.nbytes), (2, 7, dry.nbytes));
    assert_eq!((entries(&world, T1), entries(&world, T2), entries(&world, "run=a,variable=gone")), (1, 1, 0));
    assert_eq!(visible(&open(&world, "b"), None), before);
    let axes = open(&world, "b").axes(&Request::new(), &ReadOptions::default()).unwrap();
    let axes = format!("{axes:?}");
    assert!(axes.contains('t') && !axes.contains("gone"), "{axes}");
    is_sound(&world);
    let again = purge(&world);
    assert_eq!((again.fields, again.versions, again.nbytes, again.condemned), (0, 0, 0, 0));
}

#[test]
fn r62_nothing_goes_above_an_entry_of_a_living_log() {
    let world = SimWorld::new(1);
    let living = open(&world, "b");
    flush_one(&living, T1, b"oldest, of a living log");
    flush_one(&living, "run=a,variable=other", b"confirms it");
    write(&world, T1, b"second");
    remove(&world, T1);
    write(&world, T2, b"first");
    write(&world, T2, b"second");
    let report = purge(&world);
    assert_eq!(report.versions, 1, "the older one of the other key");
    error(get(&open(&world, "a"), T1), ErrorKind::NotFound);
    assert_eq!(entries(&world, T1), 3);
    // Once that log has ended, all three go.
    close(&living);
    assert_eq!(purge(&world).versions, 3);
    error(get(&open(&world, "a"), T1), ErrorKind::NotFound);
    assert_eq!(entries(&world, T1), 0);
}

/// A piece of one row of an array of two.
fn piece(store: &Store, row: u64, value: u8) {
    let data = [value; 2];
    let value =
        Value::Piece { data: &data, dtype: DType::U1, start: &[row, 0], count: &[1, 2], shape: &[2, 2] };
    archive(store, T1, value, &ArchiveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
}

#[test]
fn a_field_of_an_older_version_is_whole_or_gone() {
    let world = SimWorld::new(1);
    let living = open(&world, "b");
    let short = open(&world, "a");
    piece(&short, 0, 1);
    close(&short);
    piece(&living, 1, 2);
    let before = open(&world, "a").version().unwrap();
    let seen = visible(&open(&world, "a"), None);
    // A whole array hides both pieces, of which one lies in a log that goes on.
    let whole = open(&world, "a");
    let value = Value::Array { data: &[9; 4], dtype: DType::U1, shape: &[2, 2] };
    archive(&whole, T1, value, &ArchiveOptions::default()).unwrap();
    whole.flush(&Session::default()).unwrap();
    close(&whole);
    flush_one(&living, T2, b"confirms all");
    assert_eq!(purge(&world).versions, 0);
    let then = open_at(&world, &before);
    assert_eq!(visible(&then, None), seen);
    // Once that has ended, both go.
    close(&living);
    assert_eq!(purge(&world).versions, 2);
    let list = open_at(&world, &before).list(&Request::new(), &ListOptions::default()).unwrap();
    assert_eq!(list.filter_map(Result::err).map(|e| e.code()).collect::<Vec<_>>(), [Code::VersionPurged]);
}

#[test]
fn r63_the_last_commit_of_a_living_log_hides_nothing() {
    let world = SimWorld::new(1);
    write(&world, T1, b"first");
    let living = open(&world, "b");
    flush_one(&living, T1, b"second");
    assert_eq!(purge(&world).versions, 0);
    assert_eq!(entries(&world, T1), 2);
    flush_one(&living, T2, b"a later commit confirms it");
    assert_eq!(purge(&world).versions, 1);
    assert_eq!(get(&open(&world, "a"), T1).unwrap(), b"second");
    assert_eq!(entries(&world, T1), 1);
}

#[test]
fn what_was_hidden_within_the_grace_stays() {
    let world = SimWorld::new(1);
    write(&world, T1, b"first");
    world.advance(120 * SECOND);
    write(&world, T1, b"second");
    let what = Purging { grace: 60 * SECOND, ..at_once() };
    assert_eq!(try_purge(&open(&world, "a"), &what).unwrap().versions, 0);
    world.advance(61 * SECOND);
    let report = try_purge(&open(&world, "a"), &what).unwrap();
    assert_eq!(report.versions, 1);
    assert!(report.waiting > 0 && report.condemned > 0, "{report}");
    world.advance(61 * SECOND);
    assert_eq!(try_purge(&open(&world, "a"), &what).unwrap().waiting, 0);
    // A takeover, and the log of the second version, of which nothing went.
    assert_eq!(files(&world, "logs").len(), 2, "{:?}", files(&world, "logs"));
}

#[test]
fn r17_an_open_transaction_hides_nothing_and_an_aborted_one_leaves_nothing() {
    let world = SimWorld::new(1);
    write(&world, T1, b"first");
    let store = open(&world, "a");
    let (open_one, committed, aborted) =
        (store.begin().unwrap(), store.begin().unwrap(), store.begin().unwrap());
    for (id, key) in [(open_one, T1), (committed, T1), (aborted, T2)] {
        put_in(&store, key, b"of a transaction", id).unwrap();
        store.flush(&Session::from(id)).unwrap();
    }
    store.decide(committed, true, &Session::default()).unwrap();
    store.decide(aborted, false, &Session::default()).unwrap();
    close(&store);
    let report = purge(&world);
    assert_eq!(report.versions, 1, "what was aborted");
    assert_eq!(get(&open(&world, "b"), T1).unwrap(), b"of a transaction");
    // A decision may take the committed content away again.
    let store = open(&world, "a");
    store.set_active_kinds(committed, 0, fieldstone_format::log::kinds::FIELDS, &Session::default()).unwrap();
    assert_eq!(get(&open(&world, "b"), T1).unwrap(), b"first");
}

#[test]
fn r20_nothing_goes_where_a_log_has_lost_commits() {
    let world = SimWorld::new(1);
    write(&world, T1, b"first");
    write(&world, T1, b"second");
    let before = files(&world, "logs");
    let living = open(&world, "b");
    flush_one(&living, T2, b"known");
    let log = files(&world, "logs").into_iter().find(|path| !before.contains(path)).unwrap();
    drop(living);
    // The file comes back without its commit, which its board knows.
    world.truncate(&log, 200).unwrap();
    let report = purge(&world);
    assert_eq!(report.versions, 0, "{report}");
    // Once the loss is accepted, what the rest hides goes.
    let store = open(&world, "a");
    store.accept(&log.display().to_string(), "lost", &Session::default()).unwrap();
    close(&store);
    let report = purge(&world);
    assert_eq!(report.versions, 1, "{report:?}");
    assert_eq!(get(&open(&world, "b"), T1).unwrap(), b"second");
}

#[test]
fn a_hold_keeps_everything_until_it_expires() {
    let world = SimWorld::new(1);
    write(&world, T1, b"first");
    write(&world, T1, b"second");
    let store = open(&world, "a");
    let until = store.journal().env().clock.now() + 100 * SECOND as i64;
    let hold =
        Hold { name: "tape".into(), expires: until, version: Vec::new(), why: "the backup runs".into() };
    store.journal().settings().hold(&hold, &Session::default()).unwrap();
    for taken in [false, true] {
        let report = purge(&world);
        assert_eq!((report.versions, report.kept.is_some()), (0, true), "{report}");
        assert!(report.to_string().contains("tape"), "{report}");
        if !taken {
            close(&store);
            compact(&open(&world, "a"));
        }
    }
    world.advance(101 * SECOND);
    assert_eq!(purge(&world).versions, 1);
}

#[test]
fn r22_the_owner_stays_after_the_oldest_entry_went() {
    let world = shared_folder();
    let alice = open(&world, "alice");
    flush_one(&alice, T1, b"alice's");
    remove_in(&alice, T1);
    close(&alice);
    // Bob's log counts in a dataset of his own, and in hers nothing of it does.
    let bob = open(&world, "bob");
    flush_one(&bob, "run=b,variable=t", b"bob's");
    assert_eq!(error(put(&bob, T1, b"bob's"), ErrorKind::Denied).code(), Code::DatasetOwned);
    let report = try_purge(&open(&world, "alice"), &at_once()).unwrap();
    assert_eq!(report.versions, 2);
    assert_eq!(listed(&open(&world, "alice")), ["{run=b}{variable=t}{}"]);
    // Also without her claims.
    for claim in files(&world, "logs").into_iter().filter(|path| path.to_string_lossy().ends_with("claim")) {
        world.process("admin").disk.unlink(&claim).unwrap();
    }
    let bob = open(&world, "bob");
    assert_eq!(error(put(&bob, T1, b"bob's"), ErrorKind::Denied).code(), Code::DatasetOwned);
    flush_one(&open(&world, "alice"), T1, b"alice's again");
    assert_eq!(get(&open(&world, "bob"), T1).unwrap(), b"alice's again");
    // Nobody purges another's dataset.
    let what = Purging { requests: vec![Request::parse("run=b").unwrap()], ..at_once() };
    let denied = error(try_purge(&open(&world, "alice"), &what), ErrorKind::Denied);
    assert!(denied.message().contains("run=b"), "{denied}");
}

/// Calls that sum a version up say so as lists do; of a dataset in which nothing went it is whole.
fn sums_are_purged(older: &Store) {
    for (text, is_whole) in [("", false), ("run=a", false), ("run=b", true)] {
        let request = Request::parse(text).unwrap();
        let axes = older.axes(&request, &ReadOptions::default()).map(drop);
        let stats = older.stats(&request).map(drop);
        let by = older.stats_by(&request, &StatsBy::Dataset).map(drop);
        for outcome in [axes, stats, by] {
            match outcome {
                Ok(()) => assert!(is_whole, "{text}"),
                Err(e) => assert!(!is_whole && e.code() == Code::VersionPurged, "{text}: {e}"),
            }
        }
    }
}

#[test]
fn r31_an_older_version_says_what_was_purged_and_reads_what_is_live() {
    let world = SimWorld::new(1);
    let large = pattern(INLINE_MAX + 5, 3);
    let store = open(&world, "a");
    flush_one(&store, T1, b"first");
    flush_one(&store, T2, b"live");
    flush_one(&store, "run=a,variable=large", &large);
    flush_one(&store, "run=b,variable=t", b"another dataset");
    // Most of the data log is dead later, so that the live field is rewritten.
    flush_one(&store, "run=a,variable=dead", &pattern(2 * INLINE_MAX, 4));
    let version = store.version().unwrap();
    let reader = open(&world, "b");
    let held = [T1, T2, "run=a,variable=large"].map(|key| field(&reader, key, None).unwrap());
    let pinned = open_at(&world, &version);
    let fields =
        pinned.retrieve(&Request::parse("run=a,variable=t").unwrap(), &RetrieveOptions::default()).unwrap();
    flush_one(&store, T1, b"second");
    remove_in(&store, "run=a,variable=dead");
    close(&store);
    let report = purge(&world);
    assert_eq!(report.versions, 3);
    assert_eq!(files(&world, "data").len(), 1, "the data log of the takeover");
    world.advance(60 * SECOND);
    for older in [&pinned, &open_at(&world, &version)] {
        let purged = error(get(older, T1), ErrorKind::NotFound);
        assert_eq!(purged.code(), Code::VersionPurged, "{purged}");
        assert_eq!(get(older, T2).unwrap(), b"live");
        assert_eq!(get(older, "run=a,variable=large").unwrap(), large);
        // A key that never was is not known to be absent, either; in another dataset it is.
        assert_eq!(error(get(older, "run=a,variable=no"), ErrorKind::NotFound).code(), Code::VersionPurged);
        assert_eq!(error(get(older, "run=b,variable=no"), ErrorKind::NotFound).code(), Code::FieldNotFound);
        let mut list = older.list(&Request::new(), &ListOptions::default()).unwrap();
        let listed: Vec<String> = list.by_ref().map_while(|e| e.ok().map(|e| e.key.to_string())).collect();
        assert_eq!(listed.len(), 3, "{listed:?}");
        let mut list = older.list(&Request::new(), &ListOptions::default()).unwrap();
        assert_eq!(list.find_map(|entry| entry.err()).unwrap().code(), Code::VersionPurged);
        sums_are_purged(older);
        let other = older.list(&Request::parse("run=b").unwrap(), &ListOptions::default()).unwrap();
        assert_eq!(other.filter(|entry| entry.is_ok()).count(), 1);
        let request = Request::parse("run=a,variable=t,step=1").unwrap();
        let strict = error(older.retrieve(&request, &RetrieveOptions::default()), ErrorKind::NotFound);
        assert_eq!(strict.code(), Code::VersionPurged);
    }
    // Its file may be open yet.
    match held[0].read() {
        Ok(bytes) => assert_eq!(bytes, b"first"),
        Err(e) => assert_eq!(e.code(), Code::VersionPurged),
    }
    assert_eq!((held[1].read().unwrap(), held[2].read().unwrap()), (b"live".to_vec(), large));
    drop(fields);
    is_sound(&world);
}

#[test]
fn r64_a_straggler_of_an_older_attempt_stays_hidden() {
    let world = SimWorld::new(1);
    let attempt = |name: &str| {
        open_in(&world.process("a"), &Opening { attempt: name.to_owned(), ..Opening::default() }).unwrap()
    };
    let straggler = attempt("1.1");
    flush_one(&straggler, "run=a,variable=other", b"its first");
    world.advance(SECOND);
    let second = attempt("1.2");
    flush_one(&second, T1, b"of the newer attempt");
    close(&second);
    // The newer attempt's value is removed, and both go.
    remove(&world, T1);
    assert_eq!(purge(&world).versions, 2);
    error(get(&open(&world, "b"), T1), ErrorKind::NotFound);
    flush_one(&straggler, T1, b"late");
    error(get(&open(&world, "b"), T1), ErrorKind::NotFound);
    close(&straggler);
    // Twice: the mark stays.
    purge(&world);
    error(get(&open(&world, "b"), T1), ErrorKind::NotFound);
    let third = attempt("1.2");
    flush_one(&third, T1, b"of the newer attempt, again");
    close(&third);
    purge(&world);
    assert_eq!(get(&open(&world, "b"), T1).unwrap(), b"of the newer attempt, again");
    is_sound(&world);
}

#[test]
fn r65_a_dead_data_log_goes_and_a_mostly_dead_one_is_rewritten() {
    let world = SimWorld::new(1);
    let value = |n: u64| pattern(INLINE_MAX + 1000, n);
    let writer = |keys: &[String], seed: u64| {
        let store = open(&world, "a");
        keys.iter().enumerate().for_each(|(i, key)| put(&store, key, &value(seed + i as u64)).unwrap());
        store.flush(&Session::default()).unwrap();
        close(&store);
    };
    let keys: Vec<String> = (0..4).map(|n| format!("run=a,variable=v{n}")).collect();
    writer(&keys, 0);
    writer(&keys[..3], 10);
    writer(&keys[..3], 20);
    assert_eq!(files(&world, "data").len(), 3);
    let before = visible(&open(&world, "b"), None);
    let report = purge(&world);
    // Of the first one field is live, and copied; of the second none; the third stays as it is.
    assert_eq!(files(&world, "data").len(), 2);
    assert!(report.nbytes > 6 * INLINE_MAX as u64, "{report}");
    assert!(bytes_in(&world, "data") < 4 * INLINE_MAX as u64 + 8192);
    assert_eq!(visible(&open(&world, "b"), None), before);
    is_sound(&world);
    // The takeover's own data log becomes dead as well.
    writer(&keys[3..], 30);
    let before = visible(&open(&world, "b"), None);
    purge(&world);
    assert_eq!(visible(&open(&world, "b"), None), before);
    assert_eq!(files(&world, "data").len(), 2, "those of the third and of the last writer");
    is_sound(&world);
}

#[test]
fn a_store_that_was_overwritten_shrinks_to_what_is_live_and_needs_little_room() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    // Small values in frames of logs and large ones in data logs, each written ten times.
    for round in 0..10u64 {
        let store = open(&world, "a");
        for n in 0..20u64 {
            let key = format!("run=r{},variable=v{n}", n % 3);
            put(&store, &key, &pattern(if n % 2 == 0 { 50_000 } else { INLINE_MAX + 1 }, round * 20 + n))
                .unwrap();
        }
        store.flush(&Session::default()).unwrap();
        close(&store);
        if round == 5 {
            compact(&open(&world, "a"));
        }
    }
    let before = visible(&open(&world, "b"), None);
    let live = 10 * (50_000 + INLINE_MAX as u64 + 1);
    assert!(bytes_in(&world, "") > 9 * live);
    let report = purge(&world);
    assert_eq!((report.fields, report.versions), (20, 180));
    assert_eq!(visible(&open(&world, "b"), None), before);
    let after = bytes_in(&world, "");
    assert!(after < live * 11 / 10 + (64 << 10), "{after} bytes for {live} live ones");
    is_sound(&world);
}

#[test]
fn a_purge_copies_no_more_than_it_may() {
    let world = SimWorld::new(1);
    for n in 0..3u64 {
        let store = open(&world, "a");
        put(&store, &format!("run=a,variable=live{n}"), &pattern(100_000, n)).unwrap();
        put(&store, T1, &pattern(200_000, n)).unwrap();
        store.flush(&Session::default()).unwrap();
        close(&store);
    }
    let before = visible(&open(&world, "b"), None);
    let what = Purging { max_bytes: Some(150_000), ..at_once() };
    let first = try_purge(&open(&world, "a"), &what).unwrap();
    assert_eq!((first.versions, first.more), (1, true), "{first}");
    assert_eq!(visible(&open(&world, "b"), None), before);
    let rest = purge(&world);
    assert_eq!((rest.versions, rest.more), (1, false), "{rest}");
    assert_eq!(visible(&open(&world, "b"), None), before);
}

#[test]
fn a_request_limits_a_purge_to_datasets_and_indexes() {
    let world = SimWorld::new(1);
    for run in ["a", "b"] {
        for n in 0..2 {
            write(&world, &format!("run={run},variable=t,step=1"), &[n]);
            write(&world, &format!("run={run},variable=z,step=1"), &[n]);
        }
    }
    let store = open(&world, "a");
    let of = |text: &str| Purging { requests: vec![Request::parse(text).unwrap()], all: false, ..at_once() };
    let deep = error(try_purge(&store, &of("run=a,step=1")), ErrorKind::Invalid);
    assert!(deep.message().contains("step"), "{deep}");
    let none = Purging { all: false, ..at_once() };
    assert_eq!(error(try_purge(&store, &none), ErrorKind::Invalid).code(), Code::RequestTooBroad);
    assert_eq!(try_purge(&store, &of("run=a,variable=t")).unwrap().versions, 1);
    assert_eq!(try_purge(&store, &of("run=a")).unwrap().versions, 1);
    assert_eq!(purge(&world).versions, 2);
}

#[test]
fn pieces_go_with_their_generation() {
    let world = SimWorld::new(1);
    let piece = |start: u64, value: u8| {
        let store = open(&world, "a");
        let data = vec![value; 16];
        let value = Value::Piece { data: &data, dtype: DType::F4, start: &[start], count: &[4], shape: &[8] };
        archive(&store, T1, value, &ArchiveOptions::default()).unwrap();
        store.flush(&Session::default()).unwrap();
        close(&store);
    };
    piece(0, 1);
    piece(4, 2);
    write(&world, T1, b"opaque");
    let whole = |value: u8| {
        let store = open(&world, "a");
        let value = Value::Array { data: &[value; 32], dtype: DType::F4, shape: &[8] };
        archive(&store, T1, value, &ArchiveOptions::default()).unwrap();
        store.flush(&Session::default()).unwrap();
        close(&store);
    };
    whole(3);
    piece(4, 4);
    piece(0, 5);
    let before = visible(&open(&world, "b"), None);
    assert_eq!(purge(&world).versions, 3);
    assert_eq!(entries(&world, T1), 3, "a generation stays with its pieces");
    assert_eq!(visible(&open(&world, "b"), None), before);
}

/// Behaviours 25 of FDB, with single versions in the place of whole files.
#[test]
fn b25_purge_leaves_the_newest_of_each_key() {
    let world = SimWorld::new(1);
    let run = |steps: &[u32], n: u8| {
        let store = open(&world, "a");
        for step in steps {
            put(&store, &format!("run=a,variable=t,step={step}"), &[n]).unwrap();
        }
        store.flush(&Session::default()).unwrap();
        close(&store);
    };
    let counts = || (listed(&open(&world, "b")).len(), count_all(&open(&world, "b")));
    let all = [0, 1, 2, 3, 4, 5];
    (0..3).for_each(|n| run(&all, n));
    assert_eq!(counts(), (6, 18));
    assert_eq!(purge(&world).versions, 12);
    assert_eq!(counts(), (6, 6));
    // Two of the six again: FDB keeps their older versions, as their files hold other fields.
    run(&all[..2], 3);
    assert_eq!(counts(), (6, 8));
    assert_eq!(purge(&world).versions, 2);
    run(&all[..2], 4);
    run(&all, 5);
    assert_eq!(purge(&world).versions, 8);
    assert_eq!(counts(), (6, 6));
}

#[test]
fn b26_purge_removes_a_file_without_a_live_field() {
    let world = SimWorld::new(1);
    write(&world, "run=a,variable=large", &pattern(INLINE_MAX + 1, 1));
    let first = files(&world, "data");
    write(&world, "run=a,variable=large", &pattern(INLINE_MAX + 1, 2));
    purge(&world);
    let now = files(&world, "data");
    assert!(now.len() == 1 && now != first, "{now:?}");
}

/// A field of a mostly dead data log that does not match its checksum may come back from a backup: the file stays.
#[test]
fn r19_a_damaged_data_log_is_not_rewritten() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    for n in 0..3 {
        put(&store, &format!("run=a,variable=v{n}"), &pattern(INLINE_MAX + 1000, n)).unwrap();
    }
    store.flush(&Session::default()).unwrap();
    close(&store);
    let [file] = &files(&world, "data")[..] else { panic!("one data log") };
    write(&world, "run=a,variable=v0", b"newer");
    write(&world, "run=a,variable=v1", b"newer");
    world.flip(file, world.read(file).unwrap().len() as u64 - 10, 1).unwrap();
    assert_eq!(purge(&world).versions, 2);
    assert!(files(&world, "data").contains(file));
    error(get(&open(&world, "b"), "run=a,variable=v2"), ErrorKind::Corrupt);
    world.flip(file, world.read(file).unwrap().len() as u64 - 10, 1).unwrap();
    assert_eq!(get(&open(&world, "b"), "run=a,variable=v2").unwrap(), pattern(INLINE_MAX + 1000, 2));
    purge(&world);
    assert!(!files(&world, "data").contains(file));
    assert_eq!(get(&open(&world, "b"), "run=a,variable=v2").unwrap(), pattern(INLINE_MAX + 1000, 2));
    is_sound(&world);
}

/// Two stores hear the same calls, and one is purged now and then: readers see no difference, now or later.
#[test]
fn nothing_that_is_visible_changes_by_a_purge() {
    let count = if std::env::var_os("FIELDSTONE_CRASH").is_some() { 400 } else { 12 };
    for seed in fieldstone_testkit::random::seeds(count) {
        let worlds = [false, true].map(|purges| {
            let world = SimWorld::new(seed);
            world.set_tracing(false);
            let mut random = seeded(seed);
            let attempt = |random: &mut Random| ["", "", "1.1", "1.2"][random.below(4) as usize].to_owned();
            let new = |random: &mut Random, host| {
                let how = Opening { attempt: attempt(random), ..Opening::default() };
                open_in(&world.process(host), &how).unwrap()
            };
            let (mut seen, mut dropped, mut transactions) = (Vec::new(), 0, Vec::new());
            let mut stores: Vec<Store> = (0..3).map(|i| new(&mut random, ["a", "b", "a"][i])).collect();
            stores[0].create().unwrap();
            for n in 0..60 {
                let i = random.below(3) as usize;
                act(&mut random, &stores[i], &mut transactions, n);
                if random.below(4) == 0 {
                    close(&stores[i]);
                    stores[i] = new(&mut random, ["a", "b"][i % 2]);
                }
                if random.below(8) == 0 {
                    let grace = if random.below(2) == 0 { 0 } else { 5 * SECOND };
                    let what = Purging { grace, ..at_once() };
                    if purges {
                        dropped += try_purge(&open(&world, "a"), &what).unwrap().versions;
                    }
                    world.advance(3 * SECOND);
                }
                seen.push(visible(&open(&world, "b"), None));
                if let Some(id) = transactions.first() {
                    seen.push(visible(&open(&world, "b"), Some(*id)));
                }
            }
            is_sound(&world);
            (seen, dropped)
        });
        let [(plain, _), (purged, dropped)] = worlds;
        for (n, (plain, purged)) in plain.iter().zip(&purged).enumerate() {
            assert_eq!(plain, purged, "seed {seed}, look {n}");
        }
        assert!(dropped > 0, "seed {seed}");
    }
}

/// Days in nanoseconds.
fn days(n: u64) -> u64 {
    n * 24 * 3600 * SECOND
}

#[test]
fn r64_a_mark_goes_once_older_attempts_were_silent_for_30_days() {
    let world = SimWorld::new(1);
    let attempt = |name: &str| {
        open_in(&world.process("a"), &Opening { attempt: name.to_owned(), ..Opening::default() }).unwrap()
    };
    let straggler = attempt("1.1");
    flush_one(&straggler, "run=a,variable=other", b"its first");
    world.advance(SECOND);
    let second = attempt("1.2");
    flush_one(&second, T1, b"of the newer attempt");
    close(&second);
    remove(&world, T1);
    assert_eq!(purge(&world).versions, 2);
    // It flushed 29 days ago, and may do so again.
    world.advance(days(29));
    flush_one(&straggler, T1, b"late");
    error(get(&open(&world, "b"), T1), ErrorKind::NotFound);
    world.advance(days(29));
    let mut gone = purge(&world).versions;
    world.advance(days(1) + 2 * 3600 * SECOND);
    put(&straggler, T1, b"too late").unwrap();
    let failed = straggler.flush(&Session::default()).unwrap_err();
    assert_eq!((failed.code(), failed.kind()), (Code::AttemptEnded, ErrorKind::Conflict), "{failed}");
    // Its log is ended, what it flushed goes, and then the mark, as nothing older is there.
    for _ in 0..3 {
        world.advance(days(1));
        gone += purge(&world).versions;
    }
    assert_eq!(gone, 2, "what came late, and the mark");
    assert_eq!(straggler.flush(&Session::default()).unwrap_err().code(), Code::AttemptEnded);
    error(get(&open(&world, "b"), T1), ErrorKind::NotFound);
    // Another process of the attempt, too; one of a new attempt flushes.
    let again = attempt("1.1");
    put(&again, T1, b"too late").unwrap();
    assert_eq!(again.flush(&Session::default()).unwrap_err().code(), Code::AttemptEnded);
    std::mem::forget((again, straggler));
    let third = attempt("1.3");
    flush_one(&third, T1, b"of a new attempt");
    assert_eq!(get(&open(&world, "b"), T1).unwrap(), b"of a new attempt");
    close(&third);
    is_sound(&world);
}

#[test]
fn r64_an_attempt_without_a_newer_one_may_be_silent() {
    let world = SimWorld::new(1);
    let only =
        open_in(&world.process("a"), &Opening { attempt: "1.1".to_owned(), ..Opening::default() }).unwrap();
    flush_one(&only, T1, b"first");
    world.advance(days(40));
    purge(&world);
    flush_one(&only, T1, b"second");
    assert_eq!(get(&open(&world, "b"), T1).unwrap(), b"second");
    close(&only);
    is_sound(&world);
}

/// An author who falls asleep while a commit is made.
#[derive(Debug)]
struct Sleeper(SimWorld);

impl CommitAuthor for Sleeper {
    fn hand_in(&self, _store: Id) -> AuthorPart {
        self.0.advance(days(31));
        AuthorPart::default()
    }

    fn landed(&self, _landed: &Landed) {}
}

#[test]
fn r64_a_commit_that_took_thirty_days_does_not_count() {
    let world = SimWorld::new(1);
    let open_attempt = Opening { attempt: "1.1".to_owned(), ..Opening::default() };
    let sleeper = open_in(&world.process("a"), &open_attempt).unwrap();
    flush_one(&sleeper, "run=a,variable=other", b"its first");
    let session = Session::default().by(Arc::new(Sleeper(world.clone())));
    let options = ArchiveOptions { session: session.clone(), ..ArchiveOptions::default() };
    archive(&sleeper, T1, Value::Bytes(b"asleep"), &options).unwrap();
    let failed = sleeper.flush(&session).unwrap_err();
    assert_eq!(failed.code(), Code::AttemptEnded, "{failed}");
    error(get(&open(&world, "b"), T1), ErrorKind::NotFound);
    // The handle goes on in a new log: no newer attempt has begun.
    flush_one(&sleeper, T1, b"awake");
    assert_eq!(get(&open(&world, "b"), T1).unwrap(), b"awake");
    close(&sleeper);
    is_sound(&world);
}
