//! Settings: which of schema, handle and call decides how blocks are compressed.

use std::path::Path;

use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_store::LocalStore;
use fieldstone_store::api::*;
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
    store.flush(None).unwrap();
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
