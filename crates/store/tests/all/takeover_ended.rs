//! Ended logs that hold nothing, or whose loss somebody accepted, are taken over like others.

use std::path::{Path, PathBuf};

use crate::common::*;
use crate::takeovers::{close, compact, look};
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::env::write_all_at;
use fieldstone_core::request::Request;
use fieldstone_format::log::{self, LogHeader};
use fieldstone_format::{Id, data};
use fieldstone_journal::Session;
use fieldstone_store::conformance::{Opening, put_file};

const DAY: u64 = 24 * HOUR as u64;

fn named(world: &SimWorld, folder: &str, kind: &str) -> Vec<PathBuf> {
    let mut found = files(world, folder);
    found.retain(|path| path.extension().is_some_and(|extension| extension == kind));
    found
}

/// Calls that a new handle makes until it has listed everything.
fn cost_of_open(world: &SimWorld) -> u64 {
    let before = world.counters().total();
    assert_eq!(listed(&open(world, "c")).len(), 1);
    world.counters().total() - before
}

/// A store with one field in a log that is closed, and files of `n` writers that died before their first commit.
fn with_empty_logs(n: usize) -> SimWorld {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, "run=r,variable=t", b"1");
    close(&store);
    let bytes = world.read(&named(&world, "logs", "log")[0]).unwrap();
    let length = LogHeader::length(&bytes[..log::HEADER_PREFIX]).unwrap() as usize;
    let header = LogHeader::decode(&bytes[..length]).unwrap();
    let env = world.process("a");
    let put = |name: String, bytes: &[u8]| {
        let file = env.disk.create_new(&Path::new(ROOT).join(name)).unwrap();
        write_all_at(&*file, bytes, 0).unwrap();
    };
    for i in 0..n {
        let writer = Id((i as u128 + 1).to_be_bytes());
        let own = LogHeader { writer, ..header.clone() }.encode();
        // Nothing, a part of a header, a header, and one with a torn frame.
        let torn = [&own[..], &[7; 100]].concat();
        put(
            format!("logs/{}", log::file_name(writer)),
            [&[], &own[..30], &own[..], &torn[..]].get(i % 4).unwrap(),
        );
        put(format!("data/{}", data::file_name(writer, 1)), &data::encode_header(writer, 1));
    }
    world
}

#[test]
fn r65_logs_that_ended_without_a_commit_are_taken_over_with_their_data() {
    let (plain, world) = (with_empty_logs(0), with_empty_logs(1100));
    for world in [&plain, &world] {
        compact(&open(world, "a"));
        world.advance(DAY + SECOND);
        // They get second names, then end files.
        compact(&open(world, "a"));
    }
    assert_eq!(named(&world, "logs", "ending").len(), 1100);
    let (before, version) = (look(&open(&world, "b"), None), open(&world, "b").version().unwrap());
    world.advance(SECOND);
    let report = compact(&open(&world, "a"));
    assert_eq!((report.left.len(), report.waiting), (0, 0), "{report:?}");
    assert_eq!(look(&open(&world, "b"), None), before);
    for name in ["log", "ending", "end"] {
        assert_eq!(named(&world, "logs", name), Vec::<PathBuf>::new());
    }
    assert_eq!(files(&world, "data").len(), 1, "the takeover's own");
    assert!(named(&world, "logs", "takeover").len() <= 2);
    assert_eq!(listed(&crate::takeovers::open_at(&world, &version)).len(), 1);
    let verified = open(&world, "b").verify(&Request::new()).unwrap();
    assert!(verified.ok() && verified.notes.is_empty(), "{verified:?}");
    // A process that opens the store pays nothing for them, and the next maintenance has nothing to do.
    let (cost, without) = (cost_of_open(&world), cost_of_open(&plain));
    println!("{cost} calls to open, {without} without the empty logs");
    assert!(cost <= without + 8, "{cost} calls, {without} without them");
    let takeovers = named(&world, "logs", "takeover");
    compact(&open(&world, "a"));
    assert_eq!(named(&world, "logs", "takeover"), takeovers);
}

/// One empty log at a time leaves few takeovers.
#[test]
fn r65_empty_logs_do_not_leave_a_takeover_each() {
    let world = with_empty_logs(0);
    compact(&open(&world, "a"));
    for _ in 0..12 {
        let env = world.process("a");
        let store = open_in(&env, &Opening::default()).unwrap();
        store.refresh().unwrap();
        world.kill_nth(&env, Some(OpKind::Write), 1);
        assert!(
            put(&store, "run=r,variable=u", b"2").and_then(|()| store.flush(&Session::default())).is_err()
        );
        world.advance(DAY + SECOND);
        compact(&open(&world, "a"));
        world.advance(SECOND);
        compact(&open(&world, "a"));
    }
    assert_eq!(named(&world, "logs", "log"), Vec::<PathBuf>::new());
    assert!(named(&world, "logs", "takeover").len() <= 3, "{:?}", files(&world, "logs"));
}

/// A writer that sleeps in its first commit, for longer than a day, acknowledges nothing once others have ended its log.
#[test]
fn r12_a_writer_that_slept_in_its_first_commit_learns_that_its_log_ended() {
    let (mut heard, mut n) = (0, 0);
    loop {
        n += 1;
        let world = with_empty_logs(0);
        let env = world.process("s");
        let writer = open_in(&env, &Opening::default()).unwrap();
        put(&writer, "run=r,variable=slow", &pattern(3 << 20, 1)).unwrap();
        let stop = world.stop_nth(&env, n);
        let thread = std::thread::spawn({
            let (writer, stop) = (writer.clone(), stop.clone());
            move || {
                let outcome = writer.flush(&Session::default());
                stop.end();
                outcome
            }
        });
        if !stop.wait() {
            stop.resume();
            thread.join().unwrap().unwrap();
            break;
        }
        for _ in 0..3 {
            world.advance(DAY + SECOND);
            compact(&open(&world, "a"));
        }
        stop.resume();
        let outcome = thread.join().unwrap();
        let is_there = listed(&open(&world, "b")).len() == 2;
        if let Err(failure) = &outcome {
            heard += 1;
            assert!(failure.message().contains("variable=slow"), "{n}: {failure}");
        }
        // Also where a takeover has the commit, and its writer finds the log gone before it could acknowledge it.
        assert_eq!(outcome.is_ok(), is_there, "{n}: {outcome:?}");
        if is_there {
            assert_eq!(get(&open(&world, "b"), "run=r,variable=slow").unwrap(), pattern(3 << 20, 1));
        }
        assert!(open(&world, "b").verify(&Request::new()).unwrap().ok());
    }
    assert!(n > 5 && heard > 0, "{heard} errors, {n} calls");
}

/// A log that is cut to its first commit, and whose loss is accepted; its path, and the bytes of its file before.
fn accepted(kept: bool) -> (SimWorld, PathBuf, Vec<u8>) {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, "run=r,variable=t", b"kept");
    let first = commits(&world, &named(&world, "logs", "log")[0]).len();
    flush_one(&store, "run=r,variable=u", b"lost");
    close(&store);
    let other = open(&world, "a");
    flush_one(&other, "run=s,variable=t", b"another");
    close(&other);
    let path = named(&world, "logs", "log")
        .into_iter()
        .find(|path| world.read(path).unwrap().windows(4).any(|part| part == b"lost"))
        .unwrap();
    let bytes = world.read(&path).unwrap();
    put_file(&world.process("a"), path.clone(), kept.then_some(&bytes[..first])).unwrap();
    world.advance(2 * SECOND);
    let name = path.strip_prefix(ROOT).unwrap().display().to_string();
    open(&world, "a").accept(&name, "gone", &Session::default()).unwrap();
    (world, path, bytes)
}

#[test]
fn r20_a_log_that_an_acceptance_ended_is_taken_over() {
    for kept in [true, false] {
        let (world, path, bytes) = accepted(kept);
        let before = look(&open(&world, "b"), None);
        assert_eq!(listed(&open(&world, "b")).len(), if kept { 2 } else { 1 });
        let report = compact(&open(&world, "a"));
        assert_eq!(report.left, [], "{report:?}");
        assert!(world.read(&path).is_err());
        // Nothing comes back, neither now nor from a tape, nor is anything missing.
        for _ in 0..2 {
            world.advance(2 * SECOND);
            let reader = open(&world, "b");
            assert_eq!(look(&reader, None), before, "{kept}");
            assert_eq!(get(&reader, "run=r,variable=u").unwrap_err().kind(), ErrorKind::NotFound);
            assert!(reader.verify(&Request::new()).unwrap().ok());
            assert_eq!(reader.status().unwrap().code(), 0);
            put_file(&world.process("a"), path.clone(), Some(&bytes)).unwrap();
        }
        let kinds = [how(&world, 0), how(&world, 2)];
        assert!(kinds[1] == 1 && kinds[0] == 1, "{kinds:?}");
    }
}

/// Logs in takeovers that ended in a way.
fn how(world: &SimWorld, how: u8) -> usize {
    let (mut found, store) = (0, open(world, "b"));
    for takeover in store.journal().looks().snapshot().unwrap().taken.takeovers().all() {
        takeover
            .each_log(|log| {
                found += usize::from(log.row.how as u8 == how);
                Ok(())
            })
            .unwrap();
    }
    found
}

/// The rest of a log goes on where one of its data logs was given up.
#[test]
fn r20_a_log_with_a_data_log_that_is_given_up_is_taken_over() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, "run=r,variable=large", &pattern(3 << 20, 1));
    flush_one(&store, "run=r,variable=small", b"1");
    close(&store);
    let data = files(&world, "data").remove(0);
    world.process("a").disk.unlink(&data).unwrap();
    world.advance(2 * SECOND);
    assert_eq!(compact(&open(&world, "a")).left.len(), 1);
    let name = data.strip_prefix(ROOT).unwrap().display().to_string();
    let other = open(&world, "a");
    other.accept(&name, "", &Session::default()).unwrap();
    close(&other);
    assert_eq!(compact(&open(&world, "a")).left, []);
    assert_eq!(named(&world, "logs", "log"), Vec::<PathBuf>::new());
    let reader = open(&world, "b");
    assert_eq!(get(&reader, "run=r,variable=small").unwrap(), b"1");
    assert_eq!(listed(&reader), ["{run=r}{variable=small}{}"]);
    assert!(reader.verify(&Request::new()).unwrap().ok());
    assert_eq!(reader.status().unwrap().code(), 0);
}
