//! Overlays: fields appear under other values, too, until somebody who may ends that.

use crate::common::*;
use crate::purge::{at_once, try_purge};
use crate::takeovers::{close, compact};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::key::FieldKey;
use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::request::Request;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::{hide, locks, overlay};

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn at(world: &SimWorld, version: &str) -> Store {
    open_in(&world.process("b"), &Opening { at: Some(version.to_owned()), ..Opening::default() }).unwrap()
}

fn set(store: &Store, text: &str, values: &str, shows: bool) -> Result<u64> {
    let values = request(values).single_pairs().unwrap();
    let how = Overlaying { values, shows, session: Session::default() };
    overlay::set_overlay(store.journal(), &request(text), &how)
}

fn overlay_of(store: &Store, text: &str, values: &str) -> u64 {
    set(store, text, values, true).unwrap()
}

fn end(store: &Store, text: &str, values: &str) -> u64 {
    set(store, text, values, false).unwrap()
}

fn in_force(store: &Store) -> Vec<String> {
    let rows = overlay::overlays(store.journal()).unwrap();
    rows.into_iter().map(|one| format!("{} as {}", one.request, one.values)).collect()
}

fn list(store: &Store, text: &str) -> Vec<String> {
    let list = store.list(&request(text), &ListOptions::default()).unwrap();
    list.map(|entry| plain(&entry.unwrap().key)).collect()
}

fn retrieved(store: &Store, text: &str) -> Vec<(String, Vec<u8>)> {
    let fields = store.retrieve(&request(text), &RetrieveOptions::default()).unwrap();
    fields
        .iter()
        .map(|field| field.map(|field| (plain(&field.key().unwrap()), field.read().unwrap())).unwrap())
        .collect()
}

/// A key as a request says it.
fn plain(key: &FieldKey) -> String {
    key.to_string().replace("}{", ",").replace(['{', '}'], "")
}

fn key(run: &str, variable: &str, step: u32) -> String {
    format!("run={run},variable={variable},step={step}")
}

/// Runs a and c, each with variables t and u of two steps.
fn written(world: &SimWorld) -> Store {
    let store = open(world, "a");
    for run in ["a", "c"] {
        for (variable, step) in [("t", 0), ("t", 6), ("u", 0), ("u", 6)] {
            let key = key(run, variable, step);
            flush_one(&store, &key, key.as_bytes());
        }
    }
    store
}

#[test]
fn b27_an_overlay_shows_fields_under_other_values_until_it_ends() {
    let world = SimWorld::new(1);
    let (store, other) = (written(&world), open(&world, "b"));
    let (before, version) = (list(&store, ""), store.version().unwrap());
    assert_eq!(overlay_of(&store, "run=a", "run=b"), 4);
    let second = set(&store, "run=a", "run=b", true).unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Conflict, "{second}");
    for reader in [&store, &other, &open(&world, "b")] {
        reader.refresh().unwrap();
        let all = list(reader, "");
        assert!(all.len() == 12 && all.is_sorted(), "{all:?}");
        assert_eq!(list(reader, "run=b").len(), 4);
        assert_eq!(list(reader, "run=b,variable=u"), [key("b", "u", 0), key("b", "u", 6)]);
        assert_eq!(get(reader, &key("b", "t", 6)).unwrap(), key("a", "t", 6).as_bytes());
        let field = reader.get(&[("run", "b"), ("variable", "t"), ("step", "6")], &ReadOptions::default());
        assert_eq!(plain(&field.unwrap().key().unwrap()), key("b", "t", 6));
        assert_eq!(get(reader, &key("b", "v", 6)).unwrap_err().kind(), ErrorKind::NotFound);
        let axes = format!("{:?}", reader.axes(&Request::new(), &ReadOptions::default()).unwrap());
        assert!(["\"a\"", "\"b\"", "\"c\""].iter().all(|run| axes.contains(run)), "{axes}");
        assert_eq!(in_force(reader), ["run=a as run=b"]);
        let both = retrieved(reader, "run=b/a,variable=t,step=6/0");
        let keys: Vec<&str> = both.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, [key("b", "t", 6), key("b", "t", 0), key("a", "t", 6), key("a", "t", 0)]);
        assert_eq!(both[0].1, key("a", "t", 6).as_bytes());
        assert_eq!(retrieved(reader, "variable=u").len(), 6, "the walk over the index finds them, too");
        let depth = |depth| reader.list(&Request::new(), &ListOptions { depth, ..ListOptions::default() });
        assert_eq!((depth(1).unwrap().count(), depth(2).unwrap().count()), (3, 6));
    }
    assert_eq!(list(&at(&world, &version), ""), before);
    let with = store.version().unwrap();
    assert_eq!(end(&other, "run=a", "run=b"), 4);
    assert_eq!((list(&store, ""), in_force(&store).len()), (before, 0));
    assert_eq!(get(&store, &key("b", "t", 6)).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(list(&at(&world, &with), "run=b").len(), 4, "an older version has the overlays of its time");
    assert_eq!(set(&store, "run=a", "run=b", false).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(overlay_of(&store, "run=a", "run=b"), 4, "again");
}

#[test]
fn later_fields_appear_and_what_vanishes_does_so_under_both_keys() {
    let world = SimWorld::new(1);
    let store = written(&world);
    assert_eq!(overlay_of(&store, "run=a,variable=t/v", "run=b"), 2);
    let version = store.version().unwrap();
    flush_one(&store, &key("a", "v", 3), b"later");
    flush_one(&store, &key("a", "u", 3), b"not of it");
    assert_eq!(list(&store, "run=b"), [key("b", "t", 0), key("b", "t", 6), key("b", "v", 3)]);
    let (news, _) = store.list_since(&Request::new(), &version, &ListOptions::default()).unwrap();
    let news: Vec<String> = news.map(|entry| plain(&entry.unwrap().key)).collect();
    assert_eq!(news, [key("a", "u", 3), key("a", "v", 3), key("b", "v", 3)]);
    // A newer value is the value under both keys.
    flush_one(&store, &key("a", "v", 3), b"newer");
    assert_eq!(get(&store, &key("b", "v", 3)).unwrap(), b"newer");
    let hides = |hides| Hiding { hides, session: Session::default() };
    assert_eq!(hide::set_hidden(store.journal(), &request("run=a,variable=v"), &hides(true)).unwrap(), 1);
    assert_eq!(list(&store, "run=b").len(), 2);
    assert_eq!(hide::set_hidden(store.journal(), &request("run=a"), &hides(false)).unwrap(), 1);
    assert_eq!(list(&store, "run=b").len(), 3);
    let how = Wiping { doit: true, ..Wiping::default() };
    assert_eq!(store.wipe(&request("run=b"), &how).unwrap().fields, 0, "it goes by keys of fields");
    assert_eq!(store.remove(&request("run=b"), &RemoveOptions::default()).unwrap(), 0);
    assert_eq!(store.wipe(&request("run=a"), &how).unwrap().fields, 6);
    assert_eq!((list(&store, "run=b").len(), in_force(&store).len()), (0, 1));
    // A removal by field names the key that it stands under.
    flush_one(&store, &key("a", "t", 9), b"once more");
    let fields = store.retrieve(&request("run=b"), &RetrieveOptions::default()).unwrap();
    let field = fields.get(0).unwrap();
    let refused = store.remove_fields(&[field], &RemoveOptions::default()).unwrap_err();
    assert!(refused.kind() == ErrorKind::Invalid && refused.message().contains("run=a"), "{refused}");
}

#[test]
fn a_field_of_its_own_counts_before_overlays_and_the_newest_of_these() {
    let world = SimWorld::new(1);
    let store = written(&world);
    flush_one(&store, &key("b", "t", 6), b"b's own");
    assert_eq!(overlay_of(&store, "run=a", "run=b"), 3);
    assert_eq!(get(&store, &key("b", "t", 6)).unwrap(), b"b's own");
    assert_eq!(overlay_of(&store, "run=c,variable=t", "run=b"), 1);
    assert_eq!(get(&store, &key("b", "t", 0)).unwrap(), key("c", "t", 0).as_bytes());
    assert_eq!(get(&store, &key("b", "u", 0)).unwrap(), key("a", "u", 0).as_bytes());
    let expected = [
        (key("b", "t", 0), key("c", "t", 0)),
        (key("b", "t", 6), "b's own".to_owned()),
        (key("b", "u", 0), key("a", "u", 0)),
        (key("b", "u", 6), key("a", "u", 6)),
    ];
    let found = retrieved(&store, "run=b");
    let found: Vec<(String, String)> =
        found.into_iter().map(|(key, bytes)| (key, String::from_utf8(bytes).unwrap())).collect();
    assert_eq!(found, expected);
    // One of an overlay shows nothing, and removed fields of its own make room again.
    assert_eq!(overlay_of(&store, "run=b", "run=d"), 1);
    assert_eq!(list(&store, "run=d"), [key("d", "t", 6)]);
    store.remove(&request("run=b,step=6"), &RemoveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
    assert_eq!(get(&store, &key("b", "t", 6)).unwrap(), key("c", "t", 6).as_bytes());
    let masked = ListOptions { masked: true, ..ListOptions::default() };
    let entries: Vec<ListEntry> =
        store.list(&request("run=b,variable=t,step=6"), &masked).unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(entries.iter().map(|entry| entry.masked).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn overlays_outlive_takeovers_purges_and_their_logs() {
    let world = SimWorld::new(1);
    let store = written(&world);
    flush_one(&store, &key("a", "t", 0), b"newer");
    assert_eq!(overlay_of(&store, "run=a", "run=b"), 4);
    let fields = store.retrieve(&request("run=b"), &RetrieveOptions::default()).unwrap();
    close(&store);
    for _ in 0..2 {
        compact(&open(&world, "a"));
        let store = open(&world, "a");
        try_purge(&store, &at_once()).unwrap();
        close(&store);
    }
    let reader = open(&world, "b");
    assert_eq!((list(&reader, "run=b").len(), list(&reader, "").len()), (4, 12));
    assert_eq!(get(&reader, &key("b", "t", 0)).unwrap(), b"newer");
    assert_eq!(fields.get(0).unwrap().read().unwrap(), b"newer", "a field that was found before");
    assert_eq!(plain(&fields.get(0).unwrap().key().unwrap()), key("b", "t", 0));
    assert_eq!(end(&reader, "run=a", "run=b"), 4);
    close(&reader);
    compact(&open(&world, "a"));
    assert_eq!(list(&open(&world, "a"), "run=b").len(), 0);
}

#[test]
fn locks_hold_for_both_keys() {
    let world = SimWorld::new(1);
    let store = written(&world);
    flush_one(&store, &key("b", "w", 0), b"b's own");
    assert_eq!(overlay_of(&store, "run=a", "run=b"), 4);
    for run in ["a", "b"] {
        let how = |locks| Locking { what: LockKind::Retrieve, locks, session: Session::default() };
        assert_eq!(locks::set_lock(store.journal(), &request(&format!("run={run}")), &how(true)).unwrap(), 1);
        assert_eq!(get(&store, &key("b", "t", 6)).unwrap_err().kind(), ErrorKind::Denied, "{run}");
        let options = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
        let left = |text: &str| store.retrieve(&request(text), &options).unwrap().len();
        assert_eq!((left("run=b,variable=t,step=6"), left("run=b,variable=t")), (0, 0), "{run}");
        assert_eq!(left("run=c"), 4);
        assert_eq!(
            locks::set_lock(store.journal(), &request(&format!("run={run}")), &how(false)).unwrap(),
            1
        );
        assert_eq!(left("run=b"), 5);
    }
}

#[test]
fn what_an_overlay_cannot_say_is_refused_by_name() {
    let world = SimWorld::new(1);
    let store = written(&world);
    let refused = |text: &str, values: &str, kind: ErrorKind, says: &str| {
        let failure = set(&store, text, values, true).unwrap_err();
        assert!(failure.kind() == kind && failure.to_string().contains(says), "{text} {values}: {failure}");
    };
    refused("run=a", "", ErrorKind::Invalid, "without values");
    refused("variable=t", "run=b", ErrorKind::Invalid, "which one run");
    refused("run=a/c", "run=b", ErrorKind::Invalid, "run");
    refused("run=a*", "run=b", ErrorKind::Invalid, "run");
    refused("run=a", "run=a", ErrorKind::Invalid, "as it is");
    refused("run=z", "run=b", ErrorKind::NotFound, "run=z");
    refused("run=a,step=0", "step=noon", ErrorKind::Invalid, "noon");
    let reader = at(&world, &store.version().unwrap());
    assert_eq!(set(&reader, "run=a", "run=b", true).unwrap_err().kind(), ErrorKind::Denied);
    // Values of deeper levels stand for one another, too, in the same dataset or in another one.
    assert_eq!(overlay_of(&store, "run=a,variable=t,step=6", "variable=tt,step=7"), 1);
    assert_eq!(overlay_of(&store, "run=c,variable=u", "run=a,variable=uu"), 2);
    let shown = [key("a", "tt", 7), key("a", "uu", 0), key("a", "uu", 6)];
    let all = list(&store, "run=a");
    assert!(all.len() == 7 && all.is_sorted() && shown.iter().all(|key| all.contains(key)), "{all:?}");
    assert_eq!(get(&store, &key("a", "tt", 7)).unwrap(), key("a", "t", 6).as_bytes());
}

#[test]
fn the_owner_of_the_dataset_that_fields_appear_in_decides() {
    let world = shared_folder();
    let (alice, bob, admin) = (open(&world, "alice"), open(&world, "bob"), open(&world, "admin"));
    flush_one(&alice, &key("a", "t", 0), b"alice's");
    flush_one(&bob, &key("b", "u", 0), b"bob's");
    let failure = set(&alice, "run=a", "run=b", true).unwrap_err();
    assert!(failure.kind() == ErrorKind::Denied && failure.message().contains("run=b"), "{failure}");
    assert_eq!(overlay_of(&bob, "run=a", "run=b"), 1, "into his own, whoever owns the fields");
    for reader in [&alice, &bob, &admin] {
        reader.refresh().unwrap();
        assert_eq!(get(reader, &key("b", "t", 0)).unwrap(), b"alice's");
    }
    assert_eq!(set(&alice, "run=a", "run=b", false).unwrap_err().kind(), ErrorKind::Denied);
    assert_eq!(end(&admin, "run=a", "run=b"), 1);
    assert_eq!((list(&bob, "run=b").len(), list(&alice, "run=b").len()), (1, 1));
    // One into nobody's dataset ends where another user makes it his own.
    assert_eq!(overlay_of(&alice, "run=a", "run=n"), 1);
    assert_eq!(list(&bob, "run=n").len(), 1);
    flush_one(&bob, &key("n", "v", 0), b"bob's");
    for reader in [&alice, &bob] {
        reader.refresh().unwrap();
        assert_eq!(list(reader, "run=n"), [key("n", "v", 0)]);
    }
    assert_eq!(overlay_of(&admin, "run=a", "run=b"), 1, "the owner of the folder may");
    assert_eq!(list(&bob, "run=b").len(), 2);
}
