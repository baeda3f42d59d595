//! Entries that were moved from another store keep their time, their place in the order and their attempt; attempt tombstones hide what
//! older attempts wrote. Logs with such entries are put together here byte by byte, as format 2 has them.

use std::path::Path;

use crate::common::*;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_format::entry::{AttemptTombstone, Entry, Location};
use fieldstone_format::log::{self, CommitRecord, Envelope, HEAD, LogHeader};
use fieldstone_format::origin::{EntryOrigin, OriginAttempt};
use fieldstone_format::segment::{CommitInfo, SegmentBuilder};
use fieldstone_format::{Id, crc, keys};
use fieldstone_store::api::ListOptions;
use fieldstone_store::conformance::{Opening, put_file};

const KEY: &str = "run=a,variable=t,step=0";

/// Opaque bytes in an entry, or an attempt tombstone.
fn entry(commit: u64, location: Location) -> Entry {
    let length = match &location {
        Location::Inline { data, .. } => data.len() as u64,
        _ => 0,
    };
    let generation = !matches!(location, Location::AttemptTombstone(_));
    Entry { commit, ordinal: 0, generation, length, array: None, location, holder: None }
}

fn bytes(data: &[u8]) -> Location {
    Location::Inline { data: data.to_vec(), crc: crc(data) }
}

/// Adds a log with one commit, now, that holds these entries under [`KEY`]; each with its origin.
fn add_log(world: &SimWorld, n: u8, entries: Vec<(Location, Option<EntryOrigin>)>) {
    let template = world.read(&files(world, "logs")[0]).unwrap();
    let header = LogHeader { writer: Id([n; 16]), ..LogHeader::decode(&template).unwrap() };
    assert_eq!(header.version, 2);
    let (version, header) = (header.version, header.encode());
    let stamp = world.now() as u64;
    let (mut commits, mut origins) = (Vec::new(), Vec::new());
    let mut segment = SegmentBuilder::of(version);
    let levels =
        open(world, "a").schema().resolve(&[("run", "a"), ("variable", "t"), ("step", "0")]).unwrap();
    let key = keys::encode_key(&levels).bytes;
    for (location, origin) in entries.into_iter().rev() {
        let at = commits.len() as u64;
        let index = origin.as_ref().map(|_| origins.len() as u32);
        commits.push(CommitInfo {
            sequence: 1,
            stamp,
            time: stamp as i64,
            transaction: None,
            origin: index,
            view: 0,
        });
        origins.extend(origin);
        let (entry, mut value) = (entry(at, location), Vec::new());
        entry.encode(&mut value);
        segment.push(&key, &value, at, entry.length).unwrap();
    }
    let (segment, mut reference) = segment.finish_with(commits, origins, 1).unwrap();
    reference.offset = (header.len() + HEAD) as u64;
    let mut record = CommitRecord { sequence: 1, stamp, fields: 1, ..CommitRecord::default() };
    record.segments = vec![reference];
    let frame = Envelope::new(version, header.len() as u64, &record, &[&segment]);
    let parts =
        [&header, &frame.head, &segment, &frame.record, &frame.record, &frame.foot].map(|part| &part[..]);
    let path = Path::new(ROOT).join("logs").join(log::file_name(Id([n; 16])));
    put_file(&world.process("a"), path, Some(&parts.concat())).unwrap();
}

fn origin(stamp: u64, attempt: Option<u64>) -> EntryOrigin {
    EntryOrigin {
        store: Id([8; 16]),
        writer: Id([9; 16]),
        sequence: 4,
        stamp,
        time: 77,
        owner: None,
        attempt: attempt.map(|began| OriginAttempt { name: "1.1".into(), began, writer: Id([9; 16]) }),
    }
}

#[test]
fn a_moved_entry_is_as_old_as_it_was() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, KEY, b"newer");
    let before = world.now() as u64 - 1_000_000_000;
    add_log(&world, 5, vec![(bytes(b"moved"), Some(origin(before, None)))]);
    let reader = open(&world, "b");
    assert_eq!(get(&reader, KEY).unwrap(), b"newer");
    // Without the newer field it is the field, and has the time of its origin.
    let other = SimWorld::new(2);
    flush_one(&open(&other, "a"), "run=b,variable=t,step=0", b"beside it");
    add_log(&other, 5, vec![(bytes(b"moved"), Some(origin(before, None)))]);
    let reader = open(&other, "b");
    assert_eq!(get(&reader, KEY).unwrap(), b"moved");
    let times: Vec<i64> = reader
        .list(&fieldstone_core::request::Request::parse(KEY).unwrap(), &ListOptions::default())
        .unwrap()
        .map(|entry| entry.unwrap().time)
        .collect();
    assert_eq!(times, [77]);
}

#[test]
fn a_moved_entry_keeps_its_attempt() {
    let world = SimWorld::new(1);
    let how = Opening { attempt: "2.1".to_owned(), ..Opening::default() };
    flush_one(&open_in(&world.process("a"), &how).unwrap(), KEY, b"of attempt 2.1");
    let now = world.now() as u64;
    // It was flushed later than what is there, by an attempt that began earlier; then by one that began later.
    add_log(&world, 5, vec![(bytes(b"straggler"), Some(origin(now + 9, Some(1))))]);
    assert_eq!(get(&open(&world, "b"), KEY).unwrap(), b"of attempt 2.1");
    add_log(&world, 6, vec![(bytes(b"newer attempt"), Some(origin(1, Some(now + 9))))]);
    assert_eq!(get(&open(&world, "b"), KEY).unwrap(), b"newer attempt");
}

#[test]
fn an_attempt_tombstone_hides_older_attempts_and_makes_no_field() {
    let tombstone = |began| {
        Location::AttemptTombstone(Box::new(AttemptTombstone {
            attempt: "2.2".into(),
            began,
            writer: Id([4; 16]),
        }))
    };
    let world = SimWorld::new(1);
    let how = Opening { attempt: "2.1".to_owned(), ..Opening::default() };
    flush_one(&open_in(&world.process("a"), &how).unwrap(), KEY, b"of attempt 2.1");
    add_log(&world, 5, vec![(tombstone(1), None)]);
    assert_eq!(get(&open(&world, "b"), KEY).unwrap(), b"of attempt 2.1");
    add_log(&world, 6, vec![(tombstone(world.now() as u64 + 9), None)]);
    let reader = open(&world, "b");
    assert!(get(&reader, KEY).is_err());
    assert!(listed(&reader).is_empty());
    assert!(reader.verify(&fieldstone_core::request::Request::new()).unwrap().ok());
}
