//! The format version of a store: only the owner pins and raises it, and no write changes it.

use crate::common::*;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_format::FORMAT_VERSION;
use fieldstone_journal::Session;
use fieldstone_store::conformance::Opening;

fn versions(world: &SimWorld) -> Vec<u32> {
    let reader = open(world, "reader");
    let snapshot = reader.journal().looks().snapshot().unwrap();
    let mut versions: Vec<u32> = snapshot.logs.iter().map(|log| log.header.version).collect();
    versions.sort_unstable();
    versions
}

fn old(attempt: &str) -> Opening {
    Opening { format: Some(1), attempt: attempt.to_owned(), ..Opening::default() }
}

#[test]
fn a_new_store_is_of_the_newest_format_and_one_without_a_pin_of_that_of_its_logs() {
    let world = SimWorld::new(1);
    flush_one(&open(&world, "a"), "run=a,variable=t", b"1");
    assert_eq!(
        (versions(&world), open(&world, "b").status().unwrap().format),
        (vec![FORMAT_VERSION], FORMAT_VERSION)
    );

    let world = SimWorld::new(2);
    flush_one(&open_in(&world.process("a"), &old("")).unwrap(), "run=a,variable=t", b"1");
    for _ in 0..2 {
        flush_one(&open(&world, "b"), "run=b,variable=t", b"2");
    }
    assert_eq!(versions(&world), [1, 1, 1]);
    let status = open(&world, "c").status().unwrap();
    assert_eq!((status.format, status.format_pin), (1, None));
}

#[test]
fn what_needs_a_newer_format_is_refused_until_the_owner_upgrades() {
    let world = SimWorld::new(1);
    world.set_uid("guest", 502);
    let owner = open_in(&world.process("a"), &old("")).unwrap();
    owner.create().unwrap();
    owner.journal().format().pin(1, &Session::default()).unwrap();
    flush_one(&owner, "run=a,variable=t", b"1");
    let status = open(&world, "b").status().unwrap();
    assert_eq!((status.format, status.format_pin.is_some()), (1, true));

    let attempt = Opening { attempt: "7.1".into(), ..Opening::default() };
    let refused = error(open_in(&world.process("b"), &attempt), ErrorKind::Denied);
    assert_eq!(refused.code(), Code::FormatPinned);
    assert!(
        refused.message().contains("attempt") && refused.hint().unwrap().contains("upgrade"),
        "{refused}"
    );
    error(
        owner.accept("logs/00112233445566778899aabbccddeeff.log", "", &Session::default()),
        ErrorKind::Denied,
    );
    // Only reading writes nothing.
    let reading = Opening { access: fieldstone_store::conformance::Access::Read, ..attempt.clone() };
    assert_eq!(get(&open_in(&world.process("b"), &reading).unwrap(), "run=a,variable=t").unwrap(), b"1");

    assert_eq!(
        error(open(&world, "guest").journal().format().upgrade(&Session::default()), ErrorKind::Denied)
            .code(),
        Code::StoreOwned
    );
    error(owner.journal().format().pin(FORMAT_VERSION, &Session::default()), ErrorKind::Conflict);
    assert_eq!(owner.journal().format().upgrade(&Session::default()).unwrap(), (1, FORMAT_VERSION));
    assert_eq!(
        owner.journal().format().upgrade(&Session::default()).unwrap(),
        (FORMAT_VERSION, FORMAT_VERSION)
    );
    error(owner.journal().format().pin(1, &Session::default()), ErrorKind::Conflict);
    error(owner.journal().format().pin(FORMAT_VERSION + 1, &Session::default()), ErrorKind::Invalid);
    // The handle continues in a log of the new version, with fields that wait in a data log of the old one.
    flush_one(&owner, "run=a,variable=large", &pattern(3 << 20, 1));
    flush_one(&open_in(&world.process("b"), &attempt).unwrap(), "run=b,variable=t", b"2");
    let reader = open(&world, "c");
    assert_eq!(listed(&reader).len(), 3);
    assert_eq!(versions(&world)[0], 1);
    assert_eq!(versions(&world).last(), Some(&FORMAT_VERSION));
    assert!(reader.verify(&Request::new()).unwrap().ok());
}

#[test]
fn a_writer_that_began_before_the_pin_obeys_it() {
    let world = SimWorld::new(1);
    let early = open(&world, "a");
    put(&early, "run=a,variable=large", &pattern(3 << 20, 1)).unwrap();
    let owner = open_in(&world.process("b"), &old("")).unwrap();
    owner.create().unwrap();
    owner.journal().format().pin(1, &Session::default()).unwrap();
    early.flush(&Session::default()).unwrap();
    assert_eq!(versions(&world), [1, 1]);
    assert_eq!(get(&open(&world, "c"), "run=a,variable=large").unwrap(), pattern(3 << 20, 1));
}
