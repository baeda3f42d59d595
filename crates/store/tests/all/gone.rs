//! Files that are removed or replaced during a write: the writer's flush reports it, and never recreates an existing
//! store.

use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::env::{Env, write_all_at};
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::local::LocalStore;

const MOVED: &str = "/shared/moved";

/// A world with a store of one flush, its handle, and a process that does the damage.
fn begun() -> (SimWorld, Store, Env) {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, "run=a,variable=before", b"1");
    let other = world.process("b");
    (world, writer, other)
}

/// The next flush of `size` bytes fails and names the file at fault and the key.
fn fails(writer: &Store, size: usize, part: &str) {
    let outcome = put(writer, "run=a,variable=lost", &pattern(size, 1))
        .and_then(|()| writer.flush(&Session::default()));
    let failure = error(outcome, ErrorKind::Unavailable);
    let message = failure.message();
    assert!(message.contains("is gone") && message.contains(part), "{failure}");
    assert!(message.contains("{run=a}{variable=lost}{}"), "{failure}");
    assert!(failure.hint().is_some());
    assert_eq!(writer.unflushed(), 0);
}

/// The remaining value of a key in a store that lost a log.
fn left(store: &Store, key: &str) -> Option<Vec<u8>> {
    let lenient = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
    let fields = store.retrieve(&Request::parse(key).unwrap(), &lenient).unwrap();
    fields.iter().next().map(|field| field.unwrap().read().unwrap())
}

/// The handle continues, and everyone sees its next flush.
fn goes_on(world: &SimWorld, writer: &Store) {
    flush_one(writer, "run=a,variable=after", b"2");
    for world in [world, &world.power_cut(1)] {
        let reader = open(world, "c");
        assert_eq!(left(&reader, "run=a,variable=after").unwrap(), b"2");
        assert_eq!(left(&reader, "run=a,variable=lost"), None);
    }
}

#[test]
fn a_removed_log_is_named_and_the_handle_goes_on() {
    let (world, writer, other) = begun();
    let log = files(&world, "logs").remove(0);
    other.disk.unlink(&log).unwrap();
    fails(&writer, 100, log.to_str().unwrap());
    goes_on(&world, &writer);
}

#[test]
fn a_renamed_log_is_named_and_keeps_what_was_flushed_before() {
    let (world, writer, other) = begun();
    let log = files(&world, "logs").remove(0);
    other.disk.rename(&log, Path::new(MOVED)).unwrap();
    fails(&writer, 100, log.to_str().unwrap());
    other.disk.rename(Path::new(MOVED), &log).unwrap();
    other.disk.sync_dir(log.parent().unwrap()).unwrap();
    goes_on(&world, &writer);
    assert_eq!(get(&open(&world, "c"), "run=a,variable=before").unwrap(), b"1");
}

#[test]
fn a_replaced_log_is_named() {
    let (world, writer, other) = begun();
    let log = files(&world, "logs").remove(0);
    let copy = other.disk.create_new(Path::new(MOVED)).unwrap();
    write_all_at(&*copy, &world.read(&log).unwrap(), 0).unwrap();
    other.disk.rename(Path::new(MOVED), &log).unwrap();
    fails(&writer, 100, log.to_str().unwrap());
    goes_on(&world, &writer);
    assert_eq!(get(&open(&world, "c"), "run=a,variable=before").unwrap(), b"1");
}

#[test]
fn a_removed_data_log_is_named_and_the_handle_goes_on() {
    let (world, writer, other) = begun();
    flush_one(&writer, "run=a,variable=large", &pattern(3 << 20, 1));
    let data = files(&world, "data").remove(0);
    other.disk.unlink(&data).unwrap();
    // A small flush does not need it.
    flush_one(&writer, "run=a,variable=small", b"3");
    fails(&writer, 3 << 20, data.to_str().unwrap());
    goes_on(&world, &writer);
    assert_eq!(get(&open(&world, "c"), "run=a,variable=small").unwrap(), b"3");
}

/// The writer also checks a place in a data log that later values share.
#[test]
fn a_removed_data_log_lends_nothing() {
    let (world, writer, other) = begun();
    let options = ArchiveOptions { share: true, ..ArchiveOptions::default() };
    let value = pattern(3 << 20, 1);
    archive(&writer, "run=a,variable=first", Value::Bytes(&value), &options).unwrap();
    writer.flush(&Session::default()).unwrap();
    let data = files(&world, "data").remove(0);
    other.disk.unlink(&data).unwrap();
    archive(&writer, "run=a,variable=lost", Value::Bytes(&value), &options).unwrap();
    let failure = error(writer.flush(&Session::default()), ErrorKind::Unavailable);
    assert!(failure.message().contains(data.to_str().unwrap()), "{failure}");
    goes_on(&world, &writer);
}

#[test]
fn a_store_without_its_logs_or_its_folder_is_gone_each_time_and_not_made_again() {
    for folder in [Path::new(ROOT).join("logs"), ROOT.into()] {
        let (world, writer, other) = begun();
        // One that has no log of its own yet, and one that flushed nothing more.
        let (idle, done) = (open(&world, "a"), open(&world, "a"));
        flush_one(&done, "run=a,variable=done", b"3");
        other.disk.rename(&folder, Path::new(MOVED)).unwrap();
        fails(&writer, 100, "/logs/");
        for _ in 0..3 {
            fails(&writer, 100, folder.to_str().unwrap());
            fails(&writer, 3 << 20, folder.to_str().unwrap());
            match folder.ends_with("logs") {
                // A handle that has not checked the dataset yet does so before it accepts a value.
                true => {
                    let refused = error(put(&idle, "run=a,variable=lost", b"1"), ErrorKind::Corrupt);
                    assert_eq!((refused.code(), idle.unflushed()), (Code::LogsGone, 0));
                }
                false => fails(&idle, 100, folder.to_str().unwrap()),
            }
        }
        assert!(other.disk.stat(&folder).is_err(), "{folder:?} was made again");
        // A handle that has nothing to flush succeeds.
        done.flush(&Session::default()).unwrap();
        done.close(&Session::default()).unwrap();
        other.disk.rename(Path::new(MOVED), &folder).unwrap();
        for synced in [Path::new(ROOT), Path::new("/shared")] {
            other.disk.sync_dir(synced).unwrap();
        }
        goes_on(&world, &writer);
        let reader = open(&world, "c");
        assert_eq!(listed(&reader).len(), 3);
        assert!(reader.verify(&Default::default()).unwrap().ok());
    }
}

#[test]
fn another_store_in_its_place_is_not_written_to() {
    let (world, writer, other) = begun();
    other.disk.rename(Path::new(ROOT), Path::new(MOVED)).unwrap();
    flush_one(&open(&world, "b"), "run=b,variable=t", b"of others");
    fails(&writer, 100, "/logs/");
    for _ in 0..2 {
        put(&writer, "run=a,variable=lost", b"x").unwrap();
        let failure = error(writer.flush(&Session::default()), ErrorKind::Conflict);
        assert!(failure.message().contains("variable=lost") && failure.message().contains(ROOT), "{failure}");
    }
    assert_eq!(listed(&open(&world, "c")), ["{run=b}{variable=t}{}"]);
}

/// A commit does not silently leave out fields prepared in a log that is gone.
#[test]
fn a_transaction_is_not_committed_without_what_it_had_flushed() {
    for large in [false, true] {
        let (world, writer, other) = begun();
        let ids: Vec<Id> = (0..3).map(|_| writer.begin().unwrap()).collect();
        for (id, size) in ids.iter().zip([100, if large { 3 << 20 } else { 100 }]) {
            let options = ArchiveOptions { session: Session::from(*id), ..ArchiveOptions::default() };
            archive(&writer, "run=a,variable=part", Value::Bytes(&pattern(size, 1)), &options).unwrap();
            writer.flush(&Session::from(*id)).unwrap();
        }
        // A transaction that was decided before stays decided.
        writer.decide(ids[0], true, &Session::default()).unwrap();
        other.disk.unlink(&files(&world, if large { "data" } else { "logs" })[0]).unwrap();
        fails(&writer, if large { 3 << 20 } else { 100 }, if large { "/data/" } else { "/logs/" });
        for outcome in [
            writer.decide(ids[1], true, &Session::default()),
            writer.decide(ids[1], true, &Session::default()),
        ] {
            let failure = error(outcome, ErrorKind::Unavailable);
            assert!(failure.message().contains("what was flushed into it before"), "{failure}");
        }
        writer.decide(ids[1], false, &Session::default()).unwrap();
        writer.decide(ids[2], true, &Session::default()).unwrap();
        if large {
            writer.decide(ids[0], true, &Session::default()).unwrap();
        }
        goes_on(&world, &writer);
    }
}

/// A handle that found no store makes it, even if other processes have made and removed one in the meantime.
#[test]
fn a_store_that_was_not_there_is_made() {
    let world = SimWorld::new(1);
    let (first, second) = (open(&world, "a"), open(&world, "b"));
    flush_one(&second, "run=b,variable=t", b"1");
    world.process("b").disk.rename(Path::new(ROOT), Path::new(MOVED)).unwrap();
    flush_one(&first, "run=a,variable=t", b"2");
    assert_eq!(listed(&open(&world, "c")), ["{run=a}{variable=t}{}"]);
}

/// Checking the log costs one stat of its path and nothing else.
#[test]
fn a_flush_looks_once() {
    let (world, writer, _) = begun();
    put(&writer, "run=a,variable=t", b"2").unwrap();
    writer.refresh().unwrap();
    world.clear_trace();
    writer.flush(&Session::default()).unwrap();
    let looks = |kind| calls(&world, kind, ".log").len();
    assert_eq!((looks(OpKind::Stat), looks(OpKind::StatFile)), (1, 0));
    let trace = world.trace();
    let place = |kind| trace.iter().position(|op| op.kind == kind && op.path.ends_with(log_name(&world)));
    assert!(place(OpKind::SyncData) < place(OpKind::Stat), "a file linked after the sync was reachable");
}

fn log_name(world: &SimWorld) -> String {
    files(world, "logs")[0].file_name().unwrap().to_str().unwrap().to_owned()
}

/// A handle that cannot check raises no false alarm.
#[test]
fn a_look_that_fails_is_no_loss() {
    let (world, writer, _) = begun();
    for fault in [Fault::Io, Fault::Denied] {
        put(&writer, "run=a,variable=t", b"2").unwrap();
        // Otherwise the flush checks the files that it reads before it writes.
        writer.refresh().unwrap();
        world.schedule(Plan::new(fault).kind(OpKind::Stat).path(".log"));
        writer.flush(&Session::default()).unwrap();
        assert!(calls(&world, OpKind::Stat, ".log").iter().any(|op| !op.ok), "no call looked");
        world.clear_trace();
        assert_eq!(get(&open(&world, "b"), "run=a,variable=t").unwrap(), b"2");
    }
    assert_eq!(files(&world, "logs").len(), 1);
}

/// On a network file system a host may see late what other hosts made, even the folders of its store, in which it has
/// its own log.
#[test]
fn stale_views_raise_no_false_alarm() {
    let mut absent = 0;
    for seed in 0..60 {
        let world = SimWorld::new(seed);
        world.weak(30 * SECOND);
        world.set_links(seed % 2 == 0);
        // Opened before the store exists, so that its first looks found nothing.
        let late = open(&world, "b");
        flush_one(&open(&world, "a"), "run=a,variable=t", b"1");
        for step in 0..6 {
            let size = if step % 3 == 2 { 2 << 20 } else { 100 };
            put(&late, &format!("run=b,variable=t,step={step}"), &pattern(size, step)).unwrap();
            late.flush(&Session::default()).unwrap();
            // A new log checks the store first.
            if step == 3 {
                late.close(&Session::default()).unwrap();
            }
        }
        let failed = |op: &&fieldstone_core::env::sim::Op| !op.ok && &*op.host == "b";
        absent += calls(&world, OpKind::Stat, "/logs").iter().filter(failed).count();
        world.advance(31 * SECOND);
        assert_eq!(listed(&open(&world, "c")).len(), 7, "seed {seed}");
    }
    assert!(absent > 0, "no view was stale: nothing is tested");
}

/// A store that another host has just made may appear here by the name of its marker alone, without any bytes of it
/// and without a log.
#[test]
fn a_marker_whose_bytes_show_late_is_waited_for() {
    let mut waited = 0;
    for seed in 0..60 {
        let world = SimWorld::new(seed);
        world.weak(30 * SECOND);
        // All hosts see the folder, and some of them a part of its contents.
        world.process("a").disk.create_dir_all(std::path::Path::new(ROOT)).unwrap();
        world.advance(31 * SECOND);
        flush_one(&open(&world, "a"), "run=a,variable=t", b"1");
        world.advance(20 * SECOND);
        world.clear_trace();
        let late = open(&world, "b");
        let looks = |kind| calls(&world, kind, "/fieldstone.store").iter().filter(|op| op.ok).count();
        waited += usize::from(looks(OpKind::OpenRead) > looks(OpKind::Read));
        flush_one(&late, "run=b,variable=t", b"2");
        world.advance(31 * SECOND);
        assert_eq!(listed(&open(&world, "c")).len(), 2, "seed {seed}");
    }
    assert!(waited > 0, "no marker showed late: nothing is tested");
}

#[test]
fn on_a_real_disk_too() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("store");
    let at = |how: &Opening| -> Store {
        Arc::new(LocalStore::open(Env::real(), &root, how.local(root.to_str().unwrap())).unwrap())
    };
    let writer = at(&Opening::default());
    flush_one(&writer, "run=a,variable=before", b"1");
    let log = std::fs::read_dir(root.join("logs")).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(&log).unwrap();
    fails(&writer, 100, log.to_str().unwrap());
    flush_one(&writer, "run=a,variable=after", b"2");
    flush_one(&writer, "run=a,variable=large", &pattern(3 << 20, 1));
    for entry in std::fs::read_dir(root.join("data")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    fails(&writer, 3 << 20, "/data/");
    flush_one(&writer, "run=a,variable=after", b"3");
    assert_eq!(left(&at(&Opening::default()), "run=a,variable=after").unwrap(), b"3");
    std::fs::remove_dir_all(&root).unwrap();
    fails(&writer, 100, "/logs/");
    fails(&writer, 100, root.to_str().unwrap());
    assert!(!root.exists());
}

/// The error names the exhausted resource: bytes, or files.
#[test]
fn a_file_system_without_inodes_is_no_full_disk() {
    let (world, _, other) = begun();
    for size in [100, 3 << 20] {
        let writer = open(&world, "c");
        world.set_max_files(Some(1));
        let outcome = put(&writer, "run=c,variable=t", &pattern(size, 1))
            .and_then(|()| writer.flush(&Session::default()));
        let failure = error(outcome, ErrorKind::Unavailable);
        assert!(failure.code() == Code::InodesFull && failure.message().contains("inodes"), "{failure}");
        let status = open_in(&other, &Opening::default()).unwrap().status().unwrap();
        assert_eq!((status.code(), status.problems[0].code), (7, Some(Code::InodesFull)));
        world.set_max_files(None);
        flush_one(&writer, "run=c,variable=t", &pattern(size, 2));
    }
}
