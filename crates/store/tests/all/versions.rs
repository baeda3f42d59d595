//! Files with a format version that this release does not know: they are reported, the others are read, and nothing
//! is written next to them.

use std::path::{Path, PathBuf};

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::write_all_at;
use fieldstone_core::request::Request;
use fieldstone_format::log::{LogHeader, SideRecord};
use fieldstone_format::{crc, marker};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};

const READ: Opening =
    Opening { access: Access::Read, schema: None, at: None, attempt: String::new(), format: None };

/// A header as another release might write it: of another version, with a valid checksum.
fn header(bytes: &[u8], version: u32) -> Vec<u8> {
    let mut header = bytes[..LogHeader::length(bytes).unwrap() as usize].to_vec();
    header[16..20].copy_from_slice(&version.to_le_bytes());
    let body = header.len() - 4;
    let sum = crc(&header[..body]);
    header[body..].copy_from_slice(&sum.to_le_bytes());
    header
}

fn place(world: &SimWorld, path: &Path, bytes: &[u8]) {
    let disk = world.process("elsewhere").disk;
    let file = disk.create_new(path).unwrap();
    write_all_at(&*file, bytes, 0).and_then(|()| file.sync_data()).unwrap();
}

/// A store with a field, a handle on it that writes, and its log.
fn world() -> (SimWorld, Store, PathBuf) {
    let world = SimWorld::new(3);
    let store = open(&world, "a");
    flush_one(&store, "run=a,variable=t", b"kept");
    let log = files(&world, "logs")[0].clone();
    (world, store, log)
}

/// Puts the log of another release next to the existing one; returns its name.
fn newer_log(world: &SimWorld, log: &Path) -> String {
    let mut bytes = header(&world.read(log).unwrap(), 3);
    bytes.extend_from_slice(b"what a later release writes");
    let name = "logs/0123456789abcdef0123456789abcdef.log";
    place(world, &Path::new(ROOT).join(name), &bytes);
    name.to_owned()
}

/// Reading continues, and every way to write is refused and names this.
fn reads_and_does_not_write(world: &SimWorld, store: &Store, named: &[&str]) {
    for store in [store, &open_in(&world.process("b"), &READ).unwrap()] {
        assert_eq!(get(store, "run=a,variable=t").unwrap(), b"kept");
        assert_eq!(listed(store).len(), 1);
    }
    // A handle that had written before may mark the end of its writing on the board, which is a hint.
    let content = || {
        let all = world.files().into_iter().filter(|path| !path.starts_with(Path::new(ROOT).join("boards")));
        all.map(|path| (world.read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = content();
    let id = Id([7; 16]);
    let side = || vec![SideRecord { kind: 1, bytes: vec![1].into() }];
    let fresh = open(world, "b");
    for store in [store, &fresh] {
        store.journal().unflushed().add(side(), &Session::default()).unwrap();
        store.journal().unflushed().add(side(), &Session::from(id)).unwrap();
        let outcomes = [
            put(store, "run=new,variable=t", b"x"),
            store.flush(&Session::default()),
            store.flush(&Session::from(id)),
            store.decide(id, true, &Session::default()),
            store.set_active_kinds(id, 1, 0, &Session::default()),
            store.decide(id, false, &Session::default()),
            store.close(&Session::default()),
        ];
        for (i, outcome) in outcomes.into_iter().enumerate() {
            let refused = error(outcome, ErrorKind::Denied);
            assert!(named.iter().all(|name| refused.message().contains(name)), "call {i}: {refused}");
            assert!(refused.hint().is_some_and(|hint| hint.contains("release")), "call {i}");
        }
    }
    assert!(before == content(), "something was written");
}

#[test]
fn a_log_of_a_later_version_is_named_and_nothing_is_written_beside_it() {
    let (world, store, log) = world();
    let name = newer_log(&world, &log);
    let report = open(&world, "b").verify(&Request::new()).unwrap();
    let found = report.damaged.iter().find(|damage| damage.file == name).expect("the log is not reported");
    assert!(found.why.contains("format version 3"), "{}", found.why);
    let problems = store.status().unwrap().problems;
    assert!(problems.iter().any(|p| p.file == name && p.why.contains("version 3")), "{problems:?}");
    assert!(store.journal().looks().feed().unwrap().problems().iter().any(|problem| problem.file == name));
    reads_and_does_not_write(&world, &store, &[&name, "version 3", "versions 1 to 2"]);
    // Once it is removed, writing continues.
    world.process("a").disk.unlink(&Path::new(ROOT).join(&name)).unwrap();
    store.flush(&Session::default()).unwrap();
    flush_one(&store, "run=b,variable=t", b"x");
    assert!(store.verify(&Request::new()).unwrap().ok());
}

#[test]
fn a_handle_that_writes_already_stops_at_its_next_flush() {
    let (world, store, log) = world();
    put(&store, "run=b,variable=t", b"waits").unwrap();
    let name = newer_log(&world, &log);
    let refused = error(store.flush(&Session::default()), ErrorKind::Denied);
    assert!(refused.message().contains(&name), "{refused}");
    // This does not lose archived data.
    world.process("a").disk.unlink(&Path::new(ROOT).join(&name)).unwrap();
    store.flush(&Session::default()).unwrap();
    assert_eq!(get(&open(&world, "b"), "run=b,variable=t").unwrap(), b"waits");
}

#[test]
fn a_slot_of_a_later_version_keeps_from_writing_too() {
    let (world, store, _) = world();
    let board = files(&world, "boards")[0].clone();
    let mut slots = world.read(&board).unwrap();
    let mut slot = slots[..128].to_vec();
    slot[4] = 2;
    slot[8] ^= 1;
    let sum = crc(&slot[..124]);
    slot[124..].copy_from_slice(&sum.to_le_bytes());
    slots.extend_from_slice(&slot);
    world.overwrite(&board, &slots).unwrap();
    reads_and_does_not_write(&world, &store, &["slot 1 of boards/", "version 2"]);
    // One that does not match its checksum is torn, and carries no information.
    slots[128 + 9] ^= 1;
    world.overwrite(&board, &slots).unwrap();
    store.flush(&Session::default()).unwrap();
    assert!(store.verify(&Request::new()).unwrap().ok());
}

#[test]
fn a_marker_of_a_later_version_keeps_from_writing_and_not_from_reading() {
    let (world, _, _) = world();
    let path = Path::new(ROOT).join(marker::FILE_NAME);
    let rest = format!("{}schema\nin words of another time", "fieldstone store\nformat 3\n");
    let text = rest.replace("schema\n", &format!("crc32c {:08x}\nschema\n", crc(rest.as_bytes())));
    world.overwrite(&path, text.as_bytes()).unwrap();
    let store = open(&world, "a");
    reads_and_does_not_write(&world, &store, &["fieldstone.store", "version 3"]);
    // Without the right checksum it is damaged, which does not stop writing.
    world.overwrite(&path, text.replace("another", "any").as_bytes()).unwrap();
    flush_one(&open(&world, "a"), "run=b,variable=t", b"x");
}

#[test]
fn a_store_of_version_0_is_refused_by_name() {
    let (world, _, log) = world();
    let path = Path::new(ROOT).join(marker::FILE_NAME);
    let text = String::from_utf8(world.read(&path).unwrap()).unwrap();
    let rest: String = text
        .replace("format 1", "format 0")
        .lines()
        .filter(|l| !l.starts_with("crc32c"))
        .map(|line| format!("{line}\n"))
        .collect();
    let text = rest.replacen("schema\n", &format!("crc32c {:08x}\nschema\n", crc(rest.as_bytes())), 1);
    world.overwrite(&path, text.as_bytes()).unwrap();
    world.overwrite(&log, &header(&world.read(&log).unwrap(), 0)).unwrap();
    for how in [Opening::default(), READ] {
        let refused = error(open_in(&world.process("a"), &how), ErrorKind::Corrupt);
        assert!(refused.message().contains("fieldstone.store has format version 0"), "{refused}");
        assert!(refused.hint().unwrap().contains("never released"));
    }
}

#[test]
fn a_header_whose_version_is_damaged_is_no_other_version() {
    let (world, _, log) = world();
    let torn = header(&world.read(&log).unwrap(), 3)[..60].to_vec();
    world.flip(&log, 16, 0xff).unwrap();
    let store = open(&world, "a");
    assert_eq!(get(&store, "run=a,variable=t").unwrap(), b"kept");
    assert!(!store.verify(&Request::new()).unwrap().ok());
    flush_one(&store, "run=b,variable=t", b"x");
    // The same holds for a header that was torn before its first commit.
    place(&world, &Path::new(ROOT).join("logs/00000000000000000000000000000001.log"), &torn);
    flush_one(&store, "run=c,variable=t", b"x");
}
