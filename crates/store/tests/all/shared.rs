//! Values with equal bytes share their place if the caller allows it, and each stays a separate field.

use std::path::PathBuf;

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::{Fault, OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::*;

/// 200,000 bytes: in the frame. 3,000,000: in the data log, with a table of blocks.
const SIZES: [usize; 2] = [200_000, 3_000_000];

fn share(store: &Store, key: &str, value: &[u8], transaction: Option<Id>) {
    let options =
        ArchiveOptions { session: Session::from(transaction), share: true, ..ArchiveOptions::default() };
    archive(store, key, Value::Bytes(value), &options).unwrap();
}

/// Bytes of the store, except the zeros after the commits of an open log.
fn disk(world: &SimWorld) -> u64 {
    let length = |path: &PathBuf| match path.extension().is_some_and(|e| e == "log") {
        true => commits(world, path).len() as u64,
        false => world.read(path).unwrap().len() as u64,
    };
    files(world, "").iter().map(length).sum()
}

#[test]
fn equal_values_of_several_flushes_take_their_place_once() {
    for size in SIZES {
        let world = SimWorld::new(3);
        let (store, value) = (open(&world, "a"), pattern(size, 1));
        share(&store, "run=0,variable=lat", &value, None);
        store.flush(&Session::default()).unwrap();
        let one = disk(&world);
        for run in 1..8 {
            let transaction = store.begin().unwrap();
            share(&store, &format!("run={run},variable=lat"), &value, Some(transaction));
            // The next value in the batch has its own place.
            put_in(&store, &format!("run={run},variable=t"), &pattern(100, run), transaction).unwrap();
            store.decide(transaction, true, &Session::default()).unwrap();
        }
        let added = disk(&world) - one;
        assert!(added < size as u64 / 2, "{added} bytes for seven copies of {size}");
        // Without permission to share, no search for equal values takes place.
        put(&store, "run=8,variable=lat", &value).unwrap();
        store.flush(&Session::default()).unwrap();
        assert!(disk(&world) - one > size as u64);

        let reader = open(&world, "b");
        for run in 0..9 {
            assert_eq!(get(&reader, &format!("run={run},variable=lat")).unwrap(), value);
        }
        assert_eq!(get(&reader, "run=7,variable=t").unwrap(), pattern(100, 7));
        assert!(reader.verify(&Request::new()).unwrap().damaged.is_empty());
        // Each is a separate field: removing the first leaves the others.
        reader.remove(&Request::parse("run=0").unwrap(), &RemoveOptions::default()).unwrap();
        reader.flush(&Session::default()).unwrap();
        error(get(&reader, "run=0,variable=lat"), ErrorKind::NotFound);
        assert_eq!(get(&reader, "run=1,variable=lat").unwrap(), value);
    }
}

#[test]
fn a_log_that_failed_lends_nothing_to_the_next() {
    for size in SIZES {
        let world = SimWorld::new(4);
        let (store, value) = (open(&world, "a"), pattern(size, 2));
        share(&store, "run=0,variable=lat", &value, None);
        store.flush(&Session::default()).unwrap();
        let transaction = store.begin().unwrap();
        share(&store, "run=1,variable=lat", &value, Some(transaction));
        put(&store, "run=2,variable=t", b"lost").unwrap();
        world.fail_nth(OpKind::SyncData, 1, Fault::Io);
        // Values that refer to bytes of the log, which is now sealed, cannot go into the next one.
        let message = store.flush(&Session::default()).unwrap_err().to_string();
        assert!(message.contains("run=1") && message.contains("run=2"), "{message}");
        share(&store, "run=3,variable=lat", &value, None);
        store.flush(&Session::default()).unwrap();
        let reader = open(&world, "b");
        assert_eq!(listed(&reader), ["{run=0}{variable=lat}{}", "{run=3}{variable=lat}{}"]);
        for run in [0, 3] {
            assert_eq!(get(&reader, &format!("run={run},variable=lat")).unwrap(), value);
        }
    }
}
