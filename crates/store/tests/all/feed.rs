//! A feed costs only what it returns, and skips damage without hiding it.

use std::path::PathBuf;

use crate::common::*;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_format::log::{FrameInfo, SideRecord};
use fieldstone_journal::Session;
use fieldstone_journal::snapshot::Problem;

/// Flushes a field with a side record that holds `n`.
fn flush_with_side(store: &Store, n: u8) {
    put(store, &format!("run=a,variable=t,step={n}"), &[n; 20]).unwrap();
    store
        .journal()
        .unflushed()
        .add(vec![SideRecord { kind: 1, bytes: vec![n; 30].into() }], &Session::default())
        .unwrap();
    store.flush(&Session::default()).unwrap();
}

/// A log of six commits, the first, third and last without side records, and the starts of its frames.
fn world() -> (SimWorld, PathBuf, Vec<FrameInfo>) {
    let world = SimWorld::new(4);
    let store = open(&world, "a");
    let mut begins = Vec::new();
    for n in 1..=6 {
        match n {
            1 | 3 | 6 => flush_one(&store, &format!("run=a,variable=t,step={n}"), &[n; 20]),
            _ => flush_with_side(&store, n),
        }
        begins.push(commits(&world, &files(&world, "logs")[0]).len() as u64);
    }
    let log = files(&world, "logs")[0].clone();
    let bytes = world.read(&log).unwrap();
    let ends =
        begins.iter().map(|end| FrameInfo::decode_foot(&bytes[*end as usize - 52..*end as usize], *end));
    (world, log.clone(), ends.map(Result::unwrap).collect())
}

/// Sequences of the commits with side records, and the problems that the feed reports.
fn read(world: &SimWorld, after: u64) -> (Vec<u64>, Vec<Problem>) {
    let feed = open(world, "b").journal().looks().feed().unwrap();
    let (writer, _) = feed.logs()[0];
    let found = feed.commits(writer, after).unwrap().map(|commit| commit.unwrap().sequence).collect();
    (found, feed.problems())
}

#[test]
fn commits_of_fields_alone_cost_nothing() {
    let world = SimWorld::new(4);
    let store = open(&world, "a");
    let mut reads = Vec::new();
    for fields in [1, 300] {
        flush_with_side(&store, 1);
        (0..fields).for_each(|step| flush_one(&store, &format!("run=b,variable=t,step={step}"), b"x"));
        let feed = store.journal().looks().feed().unwrap();
        let (writer, head) = feed.logs()[0];
        let before = world.counters().count(OpKind::Read);
        assert_eq!(feed.commits(writer, head - fields - 1).unwrap().count(), 1);
        reads.push(world.counters().count(OpKind::Read) - before);
    }
    // One more frame: the previous one shows that it is already known.
    assert!(reads[1] <= reads[0] + 2, "reads with 1 and with 300 commits in between: {reads:?}");
    // A commit that was already followed costs nothing, and a feed of an older commit costs the way back.
    let feed = store.journal().looks().feed().unwrap();
    let (writer, head) = feed.logs()[0];
    let before = world.counters().count(OpKind::Read);
    assert_eq!((feed.commits(writer, head).unwrap().count(), feed.entries(writer, head).count()), (0, 0));
    assert_eq!(world.counters().count(OpKind::Read), before);
    assert_eq!(feed.commits(writer, 0).unwrap().count(), 2);
}

#[test]
fn damaged_side_records_are_named_and_the_others_come() {
    let (world, log, ends) = world();
    assert_eq!(read(&world, 0), (vec![2, 4, 5], vec![]));
    // The last byte of the body belongs to the side records.
    let (at, length) = ends[3].body();
    world.flip(&log, at + length - 1, 1).unwrap();
    let (found, problems) = read(&world, 0);
    assert_eq!(found, [2, 5]);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].why.contains("side records of commit 4") && problems[0].damage, "{problems:?}");
    assert!(problems[0].file.starts_with("logs/"));
    assert_eq!(read(&world, 4), (vec![5], vec![]));
}

/// Damages head, foot and records in every way that keeps or breaks the way back: intact commits arrive in order, and
/// the feed names the missing ones.
#[test]
fn a_broken_way_back_costs_what_is_damaged_alone() {
    for damaged in 0..6usize {
        for parts in 1..16u8 {
            let (world, log, ends) = world();
            let of = &ends[damaged];
            let records = of.record_offsets();
            let places = [of.frame + 10, of.end() - 20, records[0] + 3, records[1] + 3];
            places.iter().enumerate().filter(|(i, _)| parts & 1 << i != 0).for_each(|(_, at)| {
                world.flip(&log, *at, 1).unwrap();
            });
            // Opening handles the end of the log and the bytes after a commit in doubt.
            let (found, problems) = read(&world, 0);
            let lost = parts & 3 == 3 || parts & 12 == 12;
            let expected: Vec<u64> =
                [2, 4, 5].into_iter().filter(|n| !(lost && *n == damaged as u64 + 1)).collect();
            let case = format!("commit {}, parts {parts:04b}: {problems:?}", damaged + 1);
            if lost && damaged == 5 {
                // The log ends one commit earlier, which contradicts its slot.
                assert!(!problems.is_empty(), "{case}");
            }
            assert_eq!(found, expected, "{case}");
            assert!(!lost || ![1, 3, 4].contains(&damaged) || problems.iter().any(|p| p.damage), "{case}");
        }
    }
}

#[test]
fn a_damaged_index_is_named_and_what_is_readable_comes() {
    let (world, log, ends) = world();
    let store = open(&world, "b");
    let feed = store.journal().looks().feed().unwrap();
    let (writer, _) = feed.logs()[0];
    assert_eq!(feed.entries(writer, 0).count(), 6);
    drop((feed, store));
    // The run of the last commit follows its payload of 20 bytes; its meta part comes first.
    let run = ends[5].body().0 + 20;
    let mut reported = 0;
    for at in run..ends[5].body().0 + ends[5].body().1 {
        let world = world.fork_image();
        world.flip(&log, at, 1).unwrap();
        let feed = open(&world, "b").journal().looks().feed().unwrap();
        let found: Vec<u64> = feed.entries(writer, 0).map(|entry| entry.unwrap().sequence).collect();
        let complete = found.len() == 6;
        assert!(complete || feed.problems().iter().any(|p| p.damage), "byte {at}: {found:?}");
        reported += usize::from(!complete);
    }
    assert!(reported > 0);
}
