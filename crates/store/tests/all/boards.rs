//! A board is a hint, and so is its silence: a wrong or missing statement costs time and changes no answer.

use std::path::{Path, PathBuf};

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::conformance::put_file;

const KEY: &str = "run=a,variable=t";

/// Replaces a file by another one with these bytes, as a restore does.
fn replace(world: &SimWorld, path: &Path, bytes: &[u8]) {
    put_file(&world.process("a"), path.to_owned(), Some(bytes)).unwrap();
}

/// Checks the value that two open readers (one that refreshes, one that waits), a new reader and the writer itself
/// see.
fn check(world: &SimWorld, writer: &Store, readers: &[Store; 2], value: &[u8]) {
    readers[0].refresh().unwrap();
    assert_eq!(get(&readers[0], KEY).unwrap(), value, "refreshed");
    assert_eq!(get(writer, KEY).unwrap(), value, "the writer itself");
    assert_eq!(get(&open(world, "b"), KEY).unwrap(), value, "a new handle");
    world.advance(SECOND);
    assert_eq!(get(&readers[1], KEY).unwrap(), value, "a second later");
    assert!(readers[0].verify(&Request::new()).unwrap().ok());
}

#[test]
fn a_board_that_is_replaced_by_its_copy_hides_nothing() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, KEY, b"v1");
    let readers = [open(&world, "b"), open(&world, "b")];
    readers.iter().for_each(|reader| drop(get(reader, KEY).unwrap()));
    let board = files(&world, "boards").remove(0);
    let copy = world.read(&board).unwrap();
    replace(&world, &board, &copy);
    for value in [b"v2", b"v3"] {
        flush_one(&writer, KEY, value);
        check(&world, &writer, &readers, value);
    }
    // The writer noticed and has a slot on the new board.
    let before = world.read(&board).unwrap();
    flush_one(&writer, KEY, b"v4");
    assert_ne!(world.read(&board).unwrap(), before);
}

/// A writer that was asked to end its log writes the end file behind its last commit. If only the sync of that file's
/// name fails, the flush is unsure, and the writer's slot says that it closed one commit earlier.
#[test]
fn r12_a_closed_slot_hides_nothing_that_an_end_file_counts() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, KEY, b"v1");
    let readers = [open(&world, "b"), open(&world, "b")];
    readers.iter().for_each(|reader| drop(get(reader, KEY).unwrap()));
    let log = files(&world, "logs").remove(0);
    world.process("b").disk.link(&log, &log.with_extension("ending")).unwrap();
    world.schedule(Plan::new(Fault::Io).kind(OpKind::SyncDir).path("logs"));
    put(&writer, KEY, b"v2").unwrap();
    error(writer.flush(&Session::default()), ErrorKind::Unavailable);
    world.clear_faults();
    let value = get(&open(&world, "c"), KEY).unwrap();
    assert_eq!(value, b"v2", "the end file counts it");
    check(&world, &writer, &readers, &value);
}

#[test]
fn boards_that_cannot_be_written_hide_nothing() {
    for kinds in [&[OpKind::Write][..], &[OpKind::Write, OpKind::Append, OpKind::Create]] {
        let world = SimWorld::new(1);
        let writer = open(&world, "a");
        flush_one(&writer, KEY, b"v1");
        let readers = [open(&world, "b"), open(&world, "b")];
        readers.iter().for_each(|reader| drop(get(reader, KEY).unwrap()));
        kinds.iter().for_each(|kind| world.schedule(Plan::new(Fault::Io).kind(*kind).path(".board")));
        for value in [b"v2", b"v3"] {
            flush_one(&writer, KEY, value);
            check(&world, &writer, &readers, value);
        }
    }
}

#[test]
fn boards_restored_from_an_older_copy_hide_nothing() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, KEY, b"v1");
    let board = files(&world, "boards").remove(0);
    let older = world.read(&board).unwrap();
    flush_one(&writer, KEY, b"v1b");
    let readers = [open(&world, "b"), open(&world, "b")];
    readers.iter().for_each(|reader| drop(get(reader, KEY).unwrap()));
    replace(&world, &board, &older);
    for value in [b"v2", b"v3"] {
        flush_one(&writer, KEY, value);
        check(&world, &writer, &readers, value);
    }
}

/// A slot of the log's own user that claims that the log is closed, or is longer than it is.
#[test]
fn a_reader_that_trusts_a_board_does_so_for_a_second() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, KEY, b"v1");
    let reader = open(&world, "b");
    assert_eq!(get(&reader, KEY).unwrap(), b"v1");
    let board = files(&world, "boards").remove(0);
    let old = world.read(&board).unwrap();
    flush_one(&writer, KEY, b"v2");
    world.overwrite(&board, &old).unwrap();
    world.clear_trace();
    assert_eq!(get(&reader, KEY).unwrap(), b"v1", "the board is trusted");
    assert!(calls(&world, OpKind::Stat, ".log").is_empty());
    world.advance(SECOND);
    assert_eq!(get(&reader, KEY).unwrap(), b"v2");
}

/// A board of zeros, however long, costs no more than the store's writers could have written.
#[test]
fn boards_take_memory_by_the_number_of_logs() {
    let world = SimWorld::new(1);
    flush_one(&open(&world, "a"), KEY, b"v1");
    for i in 0..4 {
        let path = PathBuf::from(format!("{ROOT}/boards/z{i}.board"));
        let file = world.process("a").disk.create_new(&path).unwrap();
        file.set_len(16 << 20).unwrap();
    }
    world.clear_trace();
    let reader = open(&world, "b");
    assert_eq!(get(&reader, KEY).unwrap(), b"v1");
    let read: u64 = calls(&world, OpKind::Read, ".board").iter().map(|op| op.len).sum();
    assert!(read < 1 << 20, "{read} bytes of boards are read");
    let notes = reader.verify(&Request::new()).unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("boards/z0.board")), "{notes:?}");
}
