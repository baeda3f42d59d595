//! Large flushes and large reads: data logs are written in pages, partly past the page cache, and read by several
//! threads. The results must not show it.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::ErrorKind;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_journal::Session;
use fieldstone_store::LocalStore;
use fieldstone_store::api::*;
use fieldstone_store::local::LocalOptions;

/// Lengths around pages, buffers and the size above which values are written directly.
const LENGTHS: [usize; 9] =
    [3, 4095, 4096, 70_001, (1 << 20) - 1, 1 << 20, (1 << 20) + 4097, (4 << 20) - 44, (5 << 20) + 7];

fn open(env: Env, folder: &Path) -> LocalStore {
    let schema = Schema::parse("[run [variable [step: Integer]]]").unwrap();
    let options = LocalOptions { writable: true, schema: Some(schema), ..LocalOptions::default() };
    LocalStore::open(env, folder, options).unwrap()
}

/// Bytes that differ from field to field and from position to position.
fn content(step: usize) -> Vec<u8> {
    let length = LENGTHS[step % LENGTHS.len()];
    (0..length).map(|i| (i.wrapping_mul(31) >> 3) as u8 ^ (i >> 11) as u8 ^ step as u8).collect()
}

/// Writes `count` fields in two flushes, the first of which exceeds what stays in the page cache.
fn fill(store: &LocalStore, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for step in 0..count {
        let (data, text) = (content(step), step.to_string());
        let key: &Pairs<'_> = &[("run", "r"), ("variable", "v"), ("step", &text)];
        store.archive(key, Value::Bytes(&data), &ArchiveOptions::default()).unwrap();
        all.extend(data);
        if step == count - 5 {
            store.flush(&Session::default()).unwrap();
        }
    }
    store.flush(&Session::default()).unwrap();
    all
}

fn compare(store: &LocalStore, all: &[u8], count: usize) {
    let fields = store.retrieve(&Request::new(), &RetrieveOptions::default()).unwrap();
    assert_eq!(fields.len(), count);
    let mut out = vec![0; all.len()];
    assert_eq!(fields.read_into(&mut out).unwrap(), all.len() as u64);
    assert!(out == all, "all at once");
    let mut short = vec![0; all.len() - 1];
    assert_eq!(fields.read_into(&mut short).unwrap_err().kind(), ErrorKind::Invalid);
    for chunk in [8 << 20, 5_000_003] {
        let (mut reader, mut at, mut buffer) = (fields.reader(), 0, vec![0; chunk]);
        loop {
            let n = reader.read(&mut buffer).unwrap();
            if n == 0 {
                break;
            }
            assert!(buffer[..n] == all[at..at + n], "{n} bytes at {at} by {chunk}");
            at += n;
        }
        assert_eq!(at, all.len());
        reader.seek(SeekFrom::Start(all.len() as u64 / 2 + 1)).unwrap();
        let n = reader.read(&mut buffer).unwrap();
        assert!(buffer[..n] == all[all.len() / 2 + 1..][..n], "after a seek");
    }
    for (step, field) in fields.iter().enumerate() {
        assert!(field.unwrap().read().unwrap() == content(step), "step {step}");
    }
    assert!(store.verify(&Request::new()).unwrap().ok());
}

#[test]
fn a_flush_beyond_the_page_cache_comes_back_as_it_went_in() {
    let folder = tempfile::tempdir().unwrap();
    let count = 5 * LENGTHS.len();
    let store = open(Env::real(), folder.path());
    let all = fill(&store, count);
    assert!(all.len() > 48 << 20);
    compare(&store, &all, count);
    compare(&open(Env::real(), folder.path()), &all, count);
}

#[test]
fn a_damaged_field_among_many_is_named_whichever_thread_reads_it() {
    let world = SimWorld::new(3);
    let store = open(world.host("a"), Path::new("/store"));
    let count = 2 * LENGTHS.len();
    let all = fill(&store, count);
    let fields: Arc<[ListEntry]> =
        store.list(&Request::new(), &ListOptions::default()).unwrap().map(Result::unwrap).collect();
    for step in [0, 4, count / 2, count - 6] {
        let place = fields[step].place.clone().unwrap();
        let path = Path::new("/store").join(place.file.to_string());
        world.flip(&path, place.offset + 1, 4).unwrap();
        let reader = open(world.host("b"), Path::new("/store"));
        let found = reader.retrieve(&Request::new(), &RetrieveOptions::default()).unwrap();
        let e = found.read_into(&mut vec![0; all.len()]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt);
        assert!(e.message().contains(&format!("{{step={step}}}")), "step {step}: {e}");
        assert!(found.get(step + 1).unwrap().read().unwrap() == content(step + 1));
        world.flip(&path, place.offset + 1, 4).unwrap();
    }
}
