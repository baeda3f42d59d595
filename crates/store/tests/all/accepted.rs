//! Accepted losses: they never count again, and everything else continues.

use std::path::{Path, PathBuf};

use crate::common::*;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Env, write_all_at};
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_journal::Session;
use fieldstone_store::api::*;

const ALICE: u32 = 501;
const BOB: u32 = 502;

fn name(path: &Path) -> String {
    path.strip_prefix(ROOT).unwrap().display().to_string()
}

/// A store of the host `owner`; alice and bob also write into it.
fn shared() -> SimWorld {
    let world = SimWorld::new(1);
    for (host, user) in [("owner", 1000), ("alice", ALICE), ("bob", BOB), ("root", 0)] {
        world.set_uid(host, user);
    }
    open(&world, "owner").create().unwrap();
    for folder in ["", "logs", "data", "boards"] {
        world.permissions().set_mode(&Path::new(ROOT).join(folder), 0o1777).unwrap();
    }
    world
}

/// Cuts a file to a length, and returns its former bytes.
fn cut(env: &Env, world: &SimWorld, path: &Path, length: usize) -> Vec<u8> {
    let bytes = world.read(path).unwrap();
    replace(env, path, &bytes[..length]);
    bytes
}

fn replace(env: &Env, path: &Path, bytes: &[u8]) {
    let aside = PathBuf::from("/shared/aside");
    write_all_at(&*env.disk.create_new(&aside).unwrap(), bytes, 0).unwrap();
    env.disk.rename(&aside, path).unwrap();
}

fn log_of(world: &SimWorld, uid: u32) -> PathBuf {
    let env = world.process("root");
    let mut logs =
        files(world, "logs").into_iter().filter(|path| path.extension().is_some_and(|e| e == "log"));
    logs.rfind(|path| env.disk.stat(path).unwrap().uid == uid).unwrap()
}

/// A handle opened after the second in which boards are trusted.
fn later(world: &SimWorld, host: &str) -> Store {
    world.advance(2 * SECOND);
    open(world, host)
}

#[test]
fn a_log_that_is_gone_is_given_up_by_its_owner_or_the_stores_and_stays_so() {
    for who in ["alice", "owner", "root"] {
        let world = shared();
        let alice = open(&world, "alice");
        flush_one(&alice, "run=a,variable=t", b"1");
        flush_one(&alice, "run=a,variable=u", b"1");
        alice.close(&Session::default()).unwrap();
        flush_one(&open(&world, "bob"), "run=b,variable=t", b"2");
        let reader = open(&world, "bob");
        assert_eq!(listed(&reader).len(), 3);
        let log = log_of(&world, ALICE);
        let env = world.process("alice");
        let bytes = world.read(&log).unwrap();
        env.disk.unlink(&log).unwrap();

        let bob = later(&world, "bob");
        assert_eq!(
            bob.list(&Request::new(), &ListOptions::default()).unwrap().filter(|e| e.is_err()).count(),
            1
        );
        assert_eq!(bob.status().unwrap().code(), 5);
        let refused = error(bob.accept(&name(&log), "", &Session::default()), ErrorKind::Denied);
        assert!(refused.message().contains(&name(&log)), "{refused}");
        error(bob.accept("logs/nothing.log", "", &Session::default()), ErrorKind::Invalid);

        let report = open(&world, who).accept(&name(&log), "the disk died", &Session::default()).unwrap();
        assert_eq!((report.file.as_str(), report.why.as_str()), (&*name(&log), "the disk died"));
        assert!(report.what.contains("all 2 commits"), "{report}");
        for reader in [&reader, &later(&world, "bob"), &open(&world, "alice")] {
            reader.refresh().unwrap();
            assert_eq!(listed(reader), ["{run=b}{variable=t}{}"]);
            assert_eq!(reader.axes(&Request::new(), &ReadOptions::default()).unwrap()[0].1.len(), 1);
            error(get(reader, "run=a,variable=t"), ErrorKind::NotFound);
            let verified = reader.verify(&Request::new()).unwrap();
            assert!(verified.ok(), "{verified:?}");
            assert_eq!(verified.accepted, reader.status().unwrap().accepted);
            assert_eq!((verified.accepted.len(), reader.status().unwrap().code()), (1, 0));
        }
        // Nothing of it is reported as lost a second time.
        error(open(&world, who).accept(&name(&log), "", &Session::default()), ErrorKind::Invalid);
        // It comes back from a tape: it still never counts, but its owner's later writes do.
        write_all_at(&*env.disk.create_new(&log).unwrap(), &bytes, 0).unwrap();
        let alice = later(&world, "alice");
        assert_eq!(listed(&alice), ["{run=b}{variable=t}{}"]);
        flush_one(&alice, "run=a,variable=t", b"3");
        assert_eq!(get(&later(&world, "bob"), "run=a,variable=t").unwrap(), b"3");
        assert!(later(&world, "bob").verify(&Request::new()).unwrap().ok());
    }
}

#[test]
fn a_log_that_is_cut_keeps_what_can_be_read() {
    let world = shared();
    let alice = open(&world, "alice");
    flush_one(&alice, "run=a,variable=t", b"1");
    alice.close(&Session::default()).unwrap();
    let log = log_of(&world, ALICE);
    let first = commits(&world, &log).len();
    // Continuing with the same writer does not work: its second commit belongs to a longer log, kept aside.
    let world = shared();
    let alice = open(&world, "alice");
    flush_one(&alice, "run=a,variable=t", b"1");
    flush_one(&alice, "run=a,variable=u", b"2");
    let log = log_of(&world, ALICE);
    let env = world.process("alice");
    let reader = open(&world, "bob");
    assert_eq!(listed(&reader).len(), 2);
    let whole = cut(&env, &world, &log, first);
    // While its writer is alive, it may continue there.
    error(open(&world, "alice").accept(&name(&log), "", &Session::default()), ErrorKind::Conflict);
    drop(alice);
    let report = later(&world, "owner").accept(&name(&log), "", &Session::default()).unwrap();
    assert!(report.what.contains("commits 2 to 2"), "{report}");
    for reader in [&reader, &later(&world, "bob")] {
        reader.refresh().unwrap();
        assert_eq!(listed(reader), ["{run=a}{variable=t}{}"]);
        assert!(reader.verify(&Request::new()).unwrap().ok());
    }
    replace(&env, &log, &whole);
    assert_eq!(listed(&later(&world, "bob")), ["{run=a}{variable=t}{}"]);
    // A log that is cut further has lost more.
    env.disk.unlink(&log).unwrap();
    assert_eq!(later(&world, "bob").status().unwrap().problems[0].code, Some(Code::LogShortened));
}

#[test]
fn a_data_log_that_is_gone_takes_its_fields_along() {
    let world = shared();
    let alice = open(&world, "alice");
    flush_one(&alice, "run=a,variable=large", b"an older value");
    flush_one(&alice, "run=a,variable=small", b"1");
    flush_one(&alice, "run=a,variable=large", &pattern(3 << 20, 1));
    flush_one(&alice, "run=a,variable=more", &pattern(2 << 20, 1));
    alice.close(&Session::default()).unwrap();
    let data = files(&world, "data").remove(0);
    let env = world.process("alice");
    let bytes = world.read(&data).unwrap();
    env.disk.unlink(&data).unwrap();
    let status = later(&world, "bob").status().unwrap();
    assert_eq!((status.code(), status.problems.len()), (5, 1));
    assert_eq!((status.problems[0].code, &*status.problems[0].file), (Some(Code::DataGone), &*name(&data)));
    error(open(&world, "bob").accept(&name(&data), "", &Session::default()), ErrorKind::Denied);
    let report = open(&world, "alice").accept(&name(&data), "", &Session::default()).unwrap();
    assert_eq!((report.fields, report.keys.len()), (2, 2));
    for _ in 0..2 {
        let reader = later(&world, "bob");
        assert_eq!(listed(&reader), ["{run=a}{variable=large}{}", "{run=a}{variable=small}{}"]);
        assert_eq!(get(&reader, "run=a,variable=large").unwrap(), b"an older value");
        assert_eq!(reader.axes(&Request::new(), &ReadOptions::default()).unwrap()[1].1.len(), 2);
        assert!(reader.verify(&Request::new()).unwrap().ok());
        assert_eq!(reader.status().unwrap().code(), 0);
        if env.disk.stat(&data).is_err() {
            write_all_at(&*env.disk.create_new(&data).unwrap(), &bytes, 0).unwrap();
        }
    }
}

#[test]
fn damaged_fields_are_given_up_one_by_one() {
    for size in [1000, 3 << 20] {
        let world = shared();
        let alice = open(&world, "alice");
        let (sound, lost) = (pattern(size, 1), pattern(size, 2));
        flush_one(&alice, "run=a,variable=sound", &sound);
        flush_one(&alice, "run=a,variable=lost", &lost);
        alice.close(&Session::default()).unwrap();
        let path = if size == 1000 { log_of(&world, ALICE) } else { files(&world, "data").remove(0) };
        let env = world.process("alice");
        let mut bytes = world.read(&path).unwrap();
        let at = bytes.windows(500).position(|part| part == &lost[..500]).unwrap();
        bytes[at + 7] ^= 1;
        replace(&env, &path, &bytes);
        let reader = later(&world, "bob");
        assert!(!reader.verify(&Request::new()).unwrap().ok());
        let report = open(&world, "owner").accept(&name(&path), "bit rot", &Session::default()).unwrap();
        assert_eq!(report.keys, ["{run=a}{variable=lost}{}"], "{report}");
        let reader = later(&world, "bob");
        assert_eq!(listed(&reader), ["{run=a}{variable=sound}{}"]);
        assert_eq!(get(&reader, "run=a,variable=sound").unwrap(), sound);
        let verified = reader.verify(&Request::new()).unwrap();
        assert!(verified.ok(), "{verified:?}");
        error(open(&world, "owner").accept(&name(&path), "", &Session::default()), ErrorKind::Invalid);
    }
}
