//! A store's schema grows for every handle, without changing any existing byte. Tests which users may extend it, the
//! result of two extensions at once, and the state that a killed writer leaves.

use std::path::Path;
use std::thread;

use crate::common::*;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_format::keys::encode_key;
use fieldstone_format::log::{self, CommitRecord, LogHeader, encode_frame};
use fieldstone_format::{Id, crc, schema_extension};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};

const BASE: &str = "step: Integer;\n[run [variable [step]]]\n";
const NUMBER: &str = "number?: Integer;";
const OLD: &str = "run=a,variable=t,step=0";
const NEW: &str = "run=a,variable=t,step=0,number=1";

fn with_schema(world: &SimWorld, host: &str, schema: &str) -> fieldstone_core::Result<Store> {
    let how = Opening { schema: Some(Schema::parse(schema)?), ..Opening::default() };
    open_in(&world.process(host), &how)
}

/// A world with a store of this schema and a field in it.
fn made() -> (SimWorld, Store) {
    let world = SimWorld::new(1);
    let store = with_schema(&world, "a", BASE).unwrap();
    flush_one(&store, OLD, b"old");
    (world, store)
}

fn at(world: &SimWorld, version: &str) -> Store {
    let how = Opening { at: Some(version.to_owned()), ..Opening::default() };
    open_in(&world.process("a"), &how).unwrap()
}

fn selected(store: &Store, request: &str) -> Vec<String> {
    let request = Request::parse(request).unwrap();
    store.list(&request, &ListOptions::default()).unwrap().map(|e| e.unwrap().key.to_string()).collect()
}

#[test]
fn every_handle_follows_and_old_keys_keep_their_bytes() {
    let (world, store) = made();
    let (reader, other) = (open(&world, "b"), open(&world, "b"));
    let filtered =
        fieldstone_store::frontends::FilterStore::new(reader.clone(), Request::parse("run=a").unwrap());
    let filtered = filtered.unwrap();
    assert_eq!(error(put(&other, NEW, b"x"), ErrorKind::Invalid).code(), Code::KeywordUnknown);
    let log = files(&world, "logs").remove(0);
    let before = commits(&world, &log);
    let key =
        encode_key(&reader.schema().resolve(&[("run", "a"), ("variable", "t"), ("step", "0")]).unwrap());

    let after = store.extend_schema(NUMBER, &Session::default()).unwrap();
    assert_eq!(store.transactions().unwrap(), [], "an extension is not a transaction");
    assert_eq!(after.text(), format!("{BASE}extension;\n{NUMBER}"));
    assert_eq!(store.schema(), after);
    assert!(commits(&world, &log).starts_with(&before), "committed bytes do not change");
    flush_one(&store, NEW, b"new");

    // A handle opened before archives and reads by the new keyword, without a further call.
    flush_one(&other, "run=b,variable=t,step=0,number=7", b"other");
    assert_eq!(get(&reader, NEW).unwrap(), b"new");
    assert_eq!(get(&reader, OLD).unwrap(), b"old");
    let of_old = reader.schema().resolve(&[("run", "a"), ("variable", "t"), ("step", "0")]).unwrap();
    assert_eq!(encode_key(&of_old).bytes, key.bytes, "a key without the keyword is the same, to the byte");
    for store in [&store, &reader, &other, &open(&world, "c")] {
        assert_eq!(store.schema(), after);
        let all = [
            "{run=a}{variable=t}{step=0}",
            "{run=a}{variable=t}{step=0,number=1}",
            "{run=b}{variable=t}{step=0,number=7}",
        ];
        assert_eq!(listed(store), all, "old segments and new ones");
        assert_eq!(selected(store, "number=1/7"), all[1..]);
        assert_eq!(selected(store, "run=a,number=1/to/9"), all[1..2]);
        assert_eq!(selected(store, "run=a"), all[..2]);
        assert_eq!(
            store.axes(&Request::parse("number=*").unwrap(), &ReadOptions::default()).unwrap().len(),
            4
        );
        assert!(store.verify(&Request::new()).unwrap().damaged.is_empty());
    }
    assert_eq!(filtered.schema(), after);
    let refused = filtered.extend_schema("tile?;", &Session::default()).unwrap_err();
    assert_eq!(refused.code(), Code::OutsideFilter);
}

#[test]
fn a_version_has_the_schema_of_its_time() {
    let (world, store) = made();
    let first = store.version().unwrap();
    store.extend_schema(NUMBER, &Session::default()).unwrap();
    let second = store.version().unwrap();
    store.extend_schema("tile?;", &Session::default()).unwrap();
    flush_one(&store, "run=a,variable=t,step=0,number=1,tile=2", b"both");
    assert_eq!(at(&world, &first).schema().text(), BASE);
    assert!(at(&world, &first).select(&Request::parse("number=1").unwrap()).is_err());
    assert_eq!(at(&world, &second).schema().extensions(), 1);
    let now = at(&world, &store.version().unwrap());
    assert_eq!((now.schema().extensions(), selected(&now, "tile=2").len()), (2, 1));
    assert_eq!(
        at(&world, &first).extend_schema("x?;", &Session::default()).unwrap_err().code(),
        Code::ReadOnly
    );
}

#[test]
fn a_store_is_opened_by_what_its_schema_is_or_was() {
    let (world, store) = made();
    let whole = store.extend_schema(NUMBER, &Session::default()).unwrap();
    for schema in [BASE, whole.text()] {
        assert_eq!(with_schema(&world, "b", schema).unwrap().schema(), whole, "{schema}");
    }
    let other = with_schema(&world, "b", "[run [variable [step]]]").unwrap_err();
    assert_eq!(other.code(), Code::SchemaDiffers);
    // Only the marker is unchanged; if it is lost, the logs still hold the schema.
    world.truncate(&Path::new(ROOT).join("fieldstone.store"), 0).unwrap();
    assert_eq!(open(&world, "b").schema(), whole);
    let reader =
        open_in(&world.process("b"), &Opening { access: Access::Read, ..Opening::default() }).unwrap();
    assert_eq!(reader.extend_schema("x?;", &Session::default()).unwrap_err().code(), Code::ReadOnly);
}

#[test]
fn a_new_store_is_extended_before_its_first_field() {
    let world = SimWorld::new(1);
    let store = with_schema(&world, "a", BASE).unwrap();
    store.extend_schema(NUMBER, &Session::default()).unwrap();
    flush_one(&store, NEW, b"x");
    assert_eq!(get(&open(&world, "b"), NEW).unwrap(), b"x");
    assert_eq!(
        error(store.extend_schema(NUMBER, &Session::default()), ErrorKind::Invalid).code(),
        Code::RuleTaken
    );
    assert_eq!(store.schema().extensions(), 1);
}

#[test]
fn only_the_owner_of_the_store_extends_its_schema() {
    let (alice, bob) = (501, 502);
    let world = SimWorld::new(1);
    world.set_uid("alice", alice);
    world.set_uid("bob", bob);
    let store = with_schema(&world, "alice", BASE).unwrap();
    flush_one(&store, OLD, b"x");
    for folder in ["logs", "data", "boards"] {
        world.permissions().set_mode(&Path::new(ROOT).join(folder), 0o1777).unwrap();
    }
    let other = open(&world, "bob");
    flush_one(&other, "run=bob,variable=t,step=0", b"x");
    let refused = error(other.extend_schema(NUMBER, &Session::default()), ErrorKind::Denied);
    assert_eq!(refused.code(), Code::StoreOwned);
    assert!(refused.message().contains("user501"), "{refused}");
    assert_eq!(
        error(other.set_if_exists(IfExists::Error, &Session::default()), ErrorKind::Denied).code(),
        Code::StoreOwned
    );
    // A record that bob writes anyway counts for no reader.
    forge(&world, "bob", bob, NUMBER);
    for host in ["alice", "bob"] {
        assert_eq!(open(&world, host).schema().text(), BASE);
    }
    store.extend_schema(NUMBER, &Session::default()).unwrap();
    flush_one(&other, "run=bob,variable=t,step=0,number=1", b"x");
}

/// Writes a log with a commit that extends the schema, past all checks.
fn forge(world: &SimWorld, host: &str, uid: u32, text: &str) {
    let path = files(world, "logs").remove(0);
    let bytes = world.read(&path).unwrap();
    let length = LogHeader::length(&bytes[..log::HEADER_PREFIX]).unwrap();
    let writer = Id(*b"0123456789abcdef");
    let header = LogHeader { writer, uid, ..LogHeader::decode(&bytes[..length as usize]).unwrap() }.encode();
    let side = log::encode_side(&[schema_extension::encode(text)]);
    let mut record = CommitRecord {
        sequence: 1,
        stamp: 7,
        decision: Some(schema_extension::flag()),
        side_count: 1,
        ..CommitRecord::default()
    };
    record.side.offset = header.len() as u64 + log::HEAD as u64;
    record.side.length = side.len() as u64;
    record.side.crc = crc(&side);
    let (frame, _) = encode_frame(header.len() as u64, &record, &side);
    let file = world
        .process(host)
        .disk
        .create_new(&Path::new(ROOT).join(format!("logs/{}", log::file_name(writer))));
    fieldstone_core::env::write_all_at(&*file.unwrap(), &[header, frame].concat(), 0).unwrap();
}

/// `first` gets its stamp and is held before its write; `second` is made during that time with a slow clock, so that
/// its stamp is older.
fn at_once(first: &str, second: &str) -> (SimWorld, Result<Schema>, Store, Store) {
    let (world, _) = made();
    world.set_clock_offset("late", -HOUR);
    let (a, b) = (open(&world, "a"), open(&world, "late"));
    flush_one(&b, "run=y,variable=t,step=0", b"y");
    let known = files(&world, "logs");
    flush_one(&a, "run=x,variable=t,step=0", b"x");
    let own = files(&world, "logs").into_iter().find(|path| !known.contains(path)).unwrap();
    let stall = world.stall(OpKind::Write, &own.to_string_lossy());
    let outcome = thread::scope(|scope| {
        let held = scope.spawn(|| a.extend_schema(first, &Session::default()));
        stall.wait_for(1);
        b.extend_schema(second, &Session::default()).unwrap();
        drop(stall);
        held.join().unwrap()
    });
    (world, outcome, a, b)
}

type Result<T> = fieldstone_core::Result<T>;

#[test]
fn of_two_extensions_at_once_both_hold_or_one_is_a_conflict() {
    for (first, second, code) in [
        (NUMBER, "[centre [x [y]]]", None),
        (NUMBER, NUMBER, None),
        ("[centre [x [y]]]", "[centre [x [y, z?]]]", Some(Code::SchemaRaced)),
    ] {
        let (world, outcome, a, b) = at_once(first, second);
        assert_eq!(outcome.as_ref().err().map(|e| e.code()), code, "{first} and {second}: {outcome:?}");
        let schemas = [&a, &b, &open(&world, "c")].map(|store| {
            store.refresh().unwrap();
            store.schema()
        });
        assert!(schemas.iter().all(|schema| *schema == schemas[2]), "all come to the same: {schemas:#?}");
        assert!(schemas[0].text().contains(second), "the older stamp holds");
        let both = code.is_none() && first != second;
        assert_eq!(schemas[0].extensions(), 1 + usize::from(both), "{first} and {second}");
    }
}

/// If a writer is killed in any call, everyone sees the extension or no one does; in the latter case it can be made
/// again.
#[test]
fn a_killed_writer_extends_the_schema_or_does_not() {
    let (mut held, mut lost) = (0, 0);
    for n in 1..400 {
        let world = SimWorld::new(n);
        world.set_tracing(false);
        let store = with_schema(&world, "a", BASE).unwrap();
        flush_one(&store, OLD, b"old");
        let env = world.process("b");
        world.kill_nth(&env, None, n);
        let outcome = open_in(&env, &Opening::default()).and_then(|store| {
            let outcome = store.extend_schema(NUMBER, &Session::default()).map(drop).and_then(|()| {
                put(&store, NEW, b"new")?;
                store.flush(&Session::default())
            });
            std::mem::forget(store);
            outcome
        });
        if env.identity.alive(env.identity.process()) {
            outcome.unwrap();
            assert!(held > 0 && lost > 0, "{held} held, {lost} were lost");
            return;
        }
        for world in [world.power_cut(n), world] {
            let store = open(&world, "c");
            let grown = store.schema().extensions() == 1;
            assert!(grown || store.schema().text() == BASE);
            assert!(grown || listed(&store).len() == 1, "a field by a keyword that is not there");
            assert_eq!(get(&store, OLD).unwrap(), b"old");
            if grown {
                held += 1
            } else {
                lost += 1
            }
            if !grown {
                store.extend_schema(NUMBER, &Session::default()).unwrap();
            }
            flush_one(&store, "run=a,variable=t,step=0,number=9", b"x");
            assert_eq!(selected(&open(&world, "a"), "number=9").len(), 1);
        }
    }
    panic!("the writer makes more calls than were struck");
}

/// A store that was never extended costs nothing, and one that was costs its readers one read.
#[test]
fn readers_look_at_no_other_commit_with_side_records() {
    let (world, store) = made();
    store.extend_schema(NUMBER, &Session::default()).unwrap();
    let reads = |world: &SimWorld| {
        let before = world.counters().count(OpKind::Read);
        assert_eq!(open(world, "r").schema().extensions(), 1);
        world.counters().count(OpKind::Read) - before
    };
    let first = reads(&world);
    for n in 0..50u8 {
        let record = fieldstone_format::log::SideRecord { kind: 9, bytes: vec![n].into() };
        store.journal().unflushed().add(vec![record], &Session::default()).unwrap();
        store.flush(&Session::default()).unwrap();
    }
    assert!(reads(&world) <= first + 2, "{} reads, {first} before", reads(&world));
}

#[test]
fn a_damaged_extension_hides_a_keyword_and_no_field() {
    let (world, store) = made();
    store.extend_schema(NUMBER, &Session::default()).unwrap();
    flush_one(&store, NEW, b"new");
    drop(store);
    let log = files(&world, "logs").remove(0);
    let bytes = world.read(&log).unwrap();
    let place = bytes.windows(NUMBER.len()).position(|w| w == NUMBER.as_bytes()).unwrap();
    world.flip(&log, place as u64, 1).unwrap();
    let store = open(&world, "b");
    assert_eq!(store.schema().text(), BASE);
    assert_eq!(listed(&store).len(), 2);
    let report = store.verify(&Request::new()).unwrap();
    assert!(!report.damaged.is_empty(), "{report:?}");
}
