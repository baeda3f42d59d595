//! Settings: the precedence of schema, handle and call for the compression of blocks; settings of a whole store.

use std::path::Path;

use crate::common::*;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_journal::Session;
use fieldstone_store::LocalStore;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::local::LocalOptions;

/// Stored bytes of 100,000 equal bytes, archived singly and by `archive_many`.
fn stored(schema: &str, handle: Option<Compression>, call: Option<Compression>) -> Vec<u64> {
    let options = LocalOptions {
        writable: true,
        schema: Some(Schema::parse(schema).unwrap()),
        compression: handle,
        ..LocalOptions::default()
    };
    let store = LocalStore::open(SimWorld::memory(), Path::new("/store"), options).unwrap();
    let options = ArchiveOptions { compression: call, ..ArchiveOptions::default() };
    let data = vec![7; 100_000];
    let keys: [&Pairs<'_>; 2] =
        [&[("a", "1"), ("b", "2"), ("c", "3")], &[("a", "2"), ("b", "2"), ("c", "3")]];
    store.archive(keys[0], Value::Bytes(&data), &options).unwrap();
    store.archive_many(&[(keys[1], Value::Bytes(&data))], &options).unwrap();
    store.flush(&Session::default()).unwrap();
    let stats = |a: &str| store.stats(&Request::parse(&format!("a={a}")).unwrap()).unwrap().stored_bytes;
    vec![stats("1"), stats("2")]
}

#[test]
fn the_call_decides_then_the_handle_then_the_schema() {
    let (plain, packing) = ("[a [b [c]]]", "compression = zstd; [a [b [c]]]");
    let zstd = Some(Compression::Zstd(3));
    let none = Some(Compression::None);
    let is_packed = |stored: Vec<u64>| {
        assert!(stored.iter().all(|n| *n == 100_000) || stored.iter().all(|n| *n < 1000), "{stored:?}");
        stored[0] < 1000
    };
    assert!(!is_packed(stored(plain, None, None)));
    assert!(is_packed(stored(packing, None, None)));
    assert!(is_packed(stored(plain, zstd, None)));
    assert!(!is_packed(stored(packing, none, None)));
    assert!(!is_packed(stored(packing, zstd, none)));
    assert!(is_packed(stored(plain, none, zstd)));
}

#[test]
fn what_is_set_for_a_store_holds_for_all_who_have_it_open_and_comes_and_goes() {
    let world = SimWorld::new(1);
    let (a, b) = (open(&world, "a"), open(&world, "b"));
    flush_one(&a, "run=a,variable=t", b"one");
    put(&b, "run=a,variable=t", b"two").unwrap();
    b.discard(&Session::default()).unwrap();
    let before = a.version().unwrap();
    a.set_if_exists(IfExists::Error, &Session::default()).unwrap();
    world.advance(2 * SECOND);
    for store in [&a, &b, &open(&world, "c")] {
        store.refresh().unwrap();
        assert_eq!(
            error(put(store, "run=a,variable=t", b"x"), ErrorKind::Conflict).code(),
            Code::FieldExists
        );
        // A call overrides the setting, and a setting does not affect a handle that only reads.
        let options = ArchiveOptions { if_exists: Some(IfExists::New), ..ArchiveOptions::default() };
        archive(store, "run=a,variable=t", Value::Bytes(b"x"), &options).unwrap();
        store.discard(&Session::default()).unwrap();
        assert_eq!(get(store, "run=a,variable=t").unwrap(), b"one");
    }
    b.set_if_exists(IfExists::New, &Session::default()).unwrap();
    a.refresh().unwrap();
    put(&a, "run=a,variable=t", b"three").unwrap();
    a.flush(&Session::default()).unwrap();
    assert_eq!(get(&b, "run=a,variable=t").unwrap(), b"three");
    let then = open_in(&world.process("c"), &Opening { at: Some(before), ..Opening::default() }).unwrap();
    assert_eq!(
        error(then.set_if_exists(IfExists::New, &Session::default()), ErrorKind::Denied).code(),
        Code::ReadOnly
    );
    assert!(a.verify(&Request::new()).unwrap().ok());
}
