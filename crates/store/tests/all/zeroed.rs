//! Zeros after the last commit of a log: when a writer makes them, that readers skip them, and that nothing is hidden
//! after them.

use std::path::PathBuf;

use crate::common::*;
use fieldstone_core::env::sim::{Fault, OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_format::log::FrameInfo;
use fieldstone_journal::Session;

fn key(step: u64) -> String {
    format!("run=a,variable=t,step={step}")
}

fn log(world: &SimWorld) -> PathBuf {
    files(world, "logs").remove(0)
}

/// Length of the log's file, and the end of its last commit.
fn lengths(world: &SimWorld) -> (u64, u64) {
    let log = log(world);
    (world.read(&log).unwrap().len() as u64, commits(world, &log).len() as u64)
}

/// A handle that has flushed the steps from 1 to `flushes`, one by one.
fn writer(world: &SimWorld, flushes: u64) -> Store {
    let store = open(world, "a");
    (1..=flushes).for_each(|step| flush_one(&store, &key(step), &step.to_le_bytes()));
    store
}

fn assert_reads(store: &Store, steps: std::ops::RangeInclusive<u64>) {
    for step in steps {
        let bytes = field(store, &key(step), None).and_then(|field| field.read());
        assert_eq!(bytes.unwrap(), step.to_le_bytes(), "step {step}");
    }
}

#[test]
fn zeros_come_with_the_fourth_small_flush_and_never_exceed_the_log() {
    let world = SimWorld::new(1);
    let store = writer(&world, 3);
    let (file, end) = lengths(&world);
    assert_eq!(file, end, "few flushes leave no zeros");
    let mut grown = 0;
    let mut before = file;
    for step in 4..400 {
        flush_one(&store, &key(step), &[7; 3000]);
        let (file, end) = lengths(&world);
        let zeros = file - end;
        assert!(zeros <= end.min(1 << 20), "{zeros} zeros after {end} bytes");
        grown += u64::from(file != before);
        before = file;
    }
    let (file, end) = lengths(&world);
    assert!(end > 1 << 20 && file > end, "{end} of {file} bytes");
    assert!(grown < 20, "the file grew {grown} times in 396 flushes");
}

#[test]
fn a_large_flush_makes_no_zeros() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    for step in 0..8 {
        flush_one(&store, &key(step), &[1; 100_000]);
    }
    let (file, end) = lengths(&world);
    assert_eq!(file, end);
}

#[test]
fn a_flush_into_zeros_is_one_write_and_one_sync() {
    let world = SimWorld::new(1);
    let store = writer(&world, 4);
    let before = lengths(&world).0;
    put(&store, &key(5), b"x").unwrap();
    world.clear_trace();
    store.flush(&Session::default()).unwrap();
    let trace = world.trace();
    let to_log = |kind: OpKind| {
        trace.iter().filter(|op| op.kind == kind && op.path.extension().is_some_and(|e| e == "log")).count()
    };
    assert_eq!((to_log(OpKind::Write), to_log(OpKind::SyncData)), (1, 1));
    assert_eq!(lengths(&world).0, before, "the file has not grown");
}

#[test]
fn a_log_that_is_closed_ends_with_its_last_commit() {
    let world = SimWorld::new(1);
    let store = writer(&world, 9);
    let reader = open(&world, "b");
    assert_reads(&reader, 1..=9);
    let (file, end) = lengths(&world);
    assert!(file > end);
    store.close(&Session::default()).unwrap();
    assert_eq!(lengths(&world).0, end);
    reader.refresh().unwrap();
    assert_reads(&reader, 1..=9);
    let report = reader.verify(&Request::new()).unwrap();
    assert!(report.ok() && report.notes.is_empty(), "{report:?}");
}

#[test]
fn zeros_are_no_torn_tail() {
    let world = SimWorld::new(1);
    let _store = writer(&world, 9);
    let reader = open(&world, "b");
    assert_eq!(reader.status().unwrap().writers[0].tail, 0);
    let report = reader.verify(&Request::new()).unwrap();
    assert!(report.ok() && report.notes.is_empty(), "{report:?}");
    let end = lengths(&world).1;
    assert!(reader.dump(&Request::new()).unwrap()[0].ends_with(&format!("{end} bytes")));
    // A byte there that is not zero is reported with its extent.
    world.flip(&log(&world), end + 40, 1).unwrap();
    let reader = open(&world, "b");
    assert_eq!(reader.status().unwrap().writers[0].tail, 41);
    let report = reader.verify(&Request::new()).unwrap();
    assert!(report.ok() && report.notes.iter().any(|note| note.contains("41 bytes")), "{report:?}");
    assert_reads(&reader, 1..=9);
}

#[test]
fn a_killed_writers_log_is_read_whole_also_with_a_damaged_head() {
    let world = SimWorld::new(1);
    let store = writer(&world, 12);
    drop(store);
    files(&world, "boards").iter().for_each(|board| world.process("x").disk.unlink(board).unwrap());
    let log = log(&world);
    let (file, end) = lengths(&world);
    assert!(file > end, "the log of a writer that was killed keeps its zeros");
    assert_reads(&open(&world, "b"), 1..=12);
    // A walk from head to head reaches the sixth commit; one from the end reaches all.
    let bytes = commits(&world, &log);
    let mut frames = vec![FrameInfo::decode_foot(&bytes[bytes.len() - 52..], end).unwrap()];
    while frames[0].sequence > 1 {
        let at = frames[0].frame;
        frames.insert(0, FrameInfo::decode_foot(&bytes[at as usize - 52..at as usize], at).unwrap());
    }
    world.flip(&log, frames[6].frame + 3, 0xff).unwrap();
    let reader = open(&world, "b");
    assert_reads(&reader, 1..=12);
    let report = reader.verify(&Request::new()).unwrap();
    assert!(!report.ok(), "the damage is named");
}

#[test]
fn a_reader_sees_commits_in_zeros_with_and_without_boards() {
    for boards in [true, false] {
        let world = SimWorld::new(1);
        let store = writer(&world, 5);
        let reader = open(&world, "b");
        assert_reads(&reader, 1..=5);
        if !boards {
            files(&world, "boards").iter().for_each(|board| world.process("x").disk.unlink(board).unwrap());
        }
        let before = lengths(&world).0;
        for step in 6..9 {
            flush_one(&store, &key(step), &step.to_le_bytes());
            if !boards {
                // A writer whose board is gone claims another one, so that is removed as well.
                let all = files(&world, "boards");
                all.iter().for_each(|board| world.process("x").disk.unlink(board).unwrap());
            }
            // The clock stands still, so neither length nor change time reveal anything.
            reader.refresh().unwrap();
            assert_reads(&reader, 1..=step);
        }
        assert_eq!(lengths(&world).0, before, "nothing has grown");
    }
}

#[test]
fn a_failed_frame_within_zeros_is_made_none() {
    for sync in [true, false] {
        let world = SimWorld::new(1);
        let store = writer(&world, 6);
        put(&store, &key(7), b"lost").unwrap();
        if sync {
            world.fail_nth(OpKind::SyncData, 1, Fault::Io);
        } else {
            world.fail_nth(OpKind::Write, 1, Fault::Io);
        }
        store.flush(&Session::default()).unwrap_err();
        // This reader looks before the next log records the end of this one.
        let reader = open(&world, "b");
        assert_reads(&reader, 1..=6);
        assert!(field(&reader, &key(7), None).is_err(), "a commit that was reported as lost stays invisible");
        flush_one(&store, &key(8), &8u64.to_le_bytes());
        let reader = open(&world, "b");
        assert_reads(&reader, 8..=8);
        assert!(field(&reader, &key(7), None).is_err());
    }
}

#[test]
fn a_foot_that_ends_in_zeros_is_found_from_the_end() {
    let world = SimWorld::new(5);
    world.set_tracing(false);
    let store = writer(&world, 5);
    let log = log(&world);
    let second = {
        let bytes = commits(&world, &log);
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"FSfr")).nth(1).unwrap() as u64
    };
    let mut tried = 0;
    for step in 6..1500 {
        flush_one(&store, &key(step), &step.to_le_bytes());
        let bytes = commits(&world, &log);
        if bytes.ends_with(&[0]) {
            let image = world.fork_image();
            let vandal = image.process("vandal");
            files(&image, "boards").iter().for_each(|board| vandal.disk.unlink(board).unwrap());
            image.flip(&log, second + 3, 0xff).unwrap();
            assert_reads(&open(&image, "b"), step..=step);
            tried += 1;
        }
    }
    assert!(tried > 0, "no checksum ended in a zero");
}
