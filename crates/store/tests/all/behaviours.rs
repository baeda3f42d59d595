//! The behaviour of a store in its files and calls: the cost of a flush, the reads of a refresh, and the state after
//! a disk or a process fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::env::write_all_at;
use fieldstone_core::request::Request;
use fieldstone_format::log::{CommitRecord, FOOT, FrameInfo, SideRecord, decode_side};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};

/// The last commit of a log, and its side records.
fn last_commit(bytes: &[u8]) -> (CommitRecord, Vec<SideRecord>) {
    let ends = FrameInfo::decode_foot(&bytes[bytes.len() - FOOT..], bytes.len() as u64).unwrap();
    let record = ends.record_offsets()[0] as usize;
    let record = ends.record(&bytes[record..record + ends.record_len as usize]).unwrap();
    let side = &record.side;
    let body = &bytes[side.offset as usize..(side.offset + side.length) as usize];
    assert_eq!(fieldstone_format::crc(body), side.crc);
    let side = decode_side(body, record.side_count).unwrap();
    (record, side)
}

#[test]
fn b02_killed_before_the_flush() {
    let world = SimWorld::new(1);
    let env = world.process("a");
    let writer = open_in(&env, &Opening::default()).unwrap();
    flush_one(&writer, "run=a,variable=t,step=0", b"kept");
    put(&writer, "run=a,variable=t,step=1", b"lost").unwrap();
    put(&writer, "run=a,variable=t,step=2", &pattern(3 << 20, 1)).unwrap();
    world.kill(&env);
    assert!(writer.flush(&Session::default()).is_err());
    let next = open(&world, "a");
    assert_eq!(listed(&next), ["{run=a}{variable=t}{step=0}"]);
    assert_eq!(next.status().unwrap().writers[0].state, "gone");
    flush_one(&next, "run=a,variable=t,step=1", b"again");
    assert_eq!(listed(&open(&world, "b")).len(), 2);
    assert!(next.verify(&Request::new()).unwrap().ok());
}

#[test]
fn a_writer_of_another_host_is_silent_after_an_hour_without_a_flush() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, "run=a,variable=t,step=0", b"kept");
    let states = |host: &str| open(&world, host).status().unwrap().writers[0].state;
    assert_eq!((states("a"), states("b")), ("open", "open"));
    world.advance(3_599 * 1_000_000_000);
    assert_eq!((states("a"), states("b")), ("open", "open"));
    world.advance(1_000_000_000);
    assert_eq!((states("a"), states("b")), ("open", "silent"));
    flush_one(&writer, "run=a,variable=t,step=1", b"again");
    assert_eq!(states("b"), "open");
}

#[test]
fn b32_a_log_that_lost_commits_is_corrupt_and_keeps_its_earlier_fields() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    for step in 0..4 {
        flush_one(&writer, &format!("run=a,variable=t,step={step}"), &pattern(400, step));
    }
    let log = files(&world, "logs").remove(0);
    let length = commits(&world, &log).len() as u64;
    world.truncate(&log, length - 300).unwrap();
    let reader = open(&world, "b");
    let all = Request::parse("run=a").unwrap();
    let lost = |error: fieldstone_core::Error| {
        assert!(log.ends_with(error.message().split(':').next().unwrap()), "{error}");
        assert!(error.hint().unwrap().contains("strict=False"), "{error}");
    };
    // The board knows of further commits: the reader gets the remaining ones, and then the damage.
    let mut list = reader.list(&all, &ListOptions::default()).unwrap();
    assert_eq!(list.by_ref().take(3).filter(|entry| entry.is_ok()).count(), 3);
    lost(error(list.next().unwrap(), ErrorKind::Corrupt));
    // An older version must not pass as the newest.
    for step in 0..5 {
        lost(error(get(&reader, &format!("run=a,variable=t,step={step}")), ErrorKind::Corrupt));
    }
    lost(error(get(&reader, "run=b,variable=t"), ErrorKind::Corrupt));
    lost(error(reader.axes(&all, &ReadOptions::default()), ErrorKind::Corrupt));
    lost(error(reader.retrieve(&all, &RetrieveOptions::default()), ErrorKind::Corrupt));
    let lenient = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
    let left = |reader: &Store| reader.retrieve(&all, &lenient).unwrap();
    for (step, field) in left(&reader).iter().enumerate() {
        assert_eq!(field.unwrap().read().unwrap(), pattern(400, step as u64));
    }
    let report = reader.verify(&Request::new()).unwrap();
    assert!(!report.ok());
    assert!(report.damaged.iter().any(|d| log.ends_with(&d.file)), "{:?}", report.damaged);
    // Other processes keep writing.
    let other = open(&world, "a");
    flush_one(&other, "run=a,variable=t,step=3", b"again");
    assert_eq!(left(&reader).len(), 4);
    // Removing the evidence accepts the loss.
    for board in files(&world, "boards") {
        world.process("a").disk.unlink(&board).unwrap();
    }
    assert_eq!(listed(&open(&world, "b")).len(), 4);
}

#[test]
fn b32_a_log_that_is_gone_is_corrupt_for_new_and_for_open_readers() {
    let world = SimWorld::new(1);
    let (writer, other) = (open(&world, "a"), open(&world, "a"));
    flush_one(&writer, "run=a,variable=t", b"x");
    let log = files(&world, "logs").remove(0);
    flush_one(&other, "run=b,variable=t", b"y");
    let reader = open(&world, "b");
    assert_eq!(listed(&reader).len(), 2);
    world.process("a").disk.unlink(&log).unwrap();
    reader.refresh().unwrap();
    for reader in [&reader, &open(&world, "c")] {
        let lost = error(get(reader, "run=b,variable=t"), ErrorKind::Corrupt);
        assert!(lost.message().contains("missing"), "{lost}");
        assert!(!reader.verify(&Request::new()).unwrap().ok());
    }
}

/// The first call after the removal finds it, from the listing that each look makes; and likewise its return.
#[test]
fn b32_a_closed_log_that_is_gone_is_missed_by_who_had_read_it() {
    let world = SimWorld::new(1);
    let (writer, other) = (open(&world, "a"), open(&world, "a"));
    flush_one(&writer, "run=a,variable=t", b"x");
    let log = files(&world, "logs").remove(0);
    writer.close(&Session::default()).unwrap();
    flush_one(&other, "run=b,variable=t", b"y");
    other.close(&Session::default()).unwrap();
    let reader = open(&world, "b");
    assert_eq!(listed(&reader).len(), 2);
    // Long enough that the folder of logs is not listed again without need.
    world.advance(120 * SECOND);
    assert_eq!(listed(&reader).len(), 2);
    world.clear_trace();
    assert_eq!(listed(&reader).len(), 2);
    assert!(calls(&world, OpKind::Stat, ".log").is_empty(), "no look at a closed log");
    let bytes = world.read(&log).unwrap();
    let env = world.process("a");
    env.disk.unlink(&log).unwrap();
    for _ in 0..2 {
        reader.refresh().unwrap();
        let lost = error(get(&reader, "run=b,variable=t"), ErrorKind::Corrupt);
        assert!(lost.message().contains("missing"), "{lost}");
    }
    // Restored from a backup.
    write_all_at(&*env.disk.create_new(&log).unwrap(), &bytes, 0).unwrap();
    reader.refresh().unwrap();
    assert_eq!(listed(&reader).len(), 2);
    assert!(reader.verify(&Request::new()).unwrap().ok());
}

#[test]
fn b32_a_flipped_byte_is_found_and_named() {
    for size in [400, 1_500_000] {
        let world = SimWorld::new(1);
        let writer = open(&world, "a");
        for step in 0..3 {
            put(&writer, &format!("run=a,variable=t,step={step}"), &pattern(size, step)).unwrap();
        }
        writer.flush(&Session::default()).unwrap();
        let list = writer.list(&Request::new(), &ListOptions::default()).unwrap();
        let place = list.map(|e| e.unwrap().place.unwrap()).nth(1).unwrap();
        let path = PathBuf::from(ROOT).join(place.file.to_string());
        world.flip(&path, place.offset + 123, 0x10).unwrap();
        let reader = open(&world, "b");
        let corrupt = error(get(&reader, "run=a,variable=t,step=1"), ErrorKind::Corrupt);
        for part in ["step=1", &place.file.to_string()] {
            assert!(corrupt.message().contains(part), "{corrupt}");
        }
        for step in [0, 2] {
            assert_eq!(get(&reader, &format!("run=a,variable=t,step={step}")).unwrap(), pattern(size, step));
        }
        let report = reader.verify(&Request::new()).unwrap();
        let named = |d: &Damage| {
            d.key.as_deref() == Some("{run=a}{variable=t}{step=1}") && d.file == place.file.to_string()
        };
        assert!(report.damaged.iter().any(named), "{:?}", report.damaged);
    }
}

#[test]
fn a_failed_sync_loses_its_batch_by_name_and_no_more() {
    for large in [false, true] {
        for fault in [Fault::Io, Fault::IoPartial] {
            let world = SimWorld::new(3);
            let writer = open(&world, "a");
            flush_one(&writer, "run=a,variable=before", b"1");
            let size = if large { 3 << 20 } else { 2000 };
            put(&writer, "run=a,variable=lost", &pattern(size, 1)).unwrap();
            world.fail_nth(OpKind::SyncData, if large { 2 } else { 1 }, fault);
            let failed = error(writer.flush(&Session::default()), ErrorKind::Unavailable);
            assert!(failed.message().contains("{run=a}{variable=lost}{}"), "{failed}");
            assert_eq!(writer.unflushed(), 0);
            assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=before}{}"]);
            // A later empty flush neither fails nor brings it back.
            writer.flush(&Session::default()).unwrap();
            flush_one(&writer, "run=a,variable=after", b"2");
            let mut logs = files(&world, "logs");
            logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
            assert_eq!(logs.len(), 2, "the handle continues in a new log");
            let expected = ["{run=a}{variable=after}{}", "{run=a}{variable=before}{}"];
            for world in [&world, &world.power_cut(1), &world.power_cut(2)] {
                world.drop_caches();
                let reader = open(world, "b");
                assert_eq!(listed(&reader), expected);
                assert_eq!(get(&reader, "run=a,variable=before").unwrap(), b"1");
                let report = reader.verify(&Request::new()).unwrap();
                assert!(report.ok(), "{:?}", report.damaged);
            }
        }
    }
}

#[test]
fn a_failed_first_flush_leaves_no_store_that_harms() {
    // Each call of a first flush fails once.
    for n in 1..60 {
        let world = SimWorld::new(n);
        let writer = open(&world, "a");
        put(&writer, "run=a,variable=t", b"first").unwrap();
        let before = world.counters().total();
        world.schedule(Plan::new(Fault::Io).nth(n));
        let outcome = writer.flush(&Session::default());
        world.clear_faults();
        let calls = world.counters().total() - before;
        let reader = open(&world, "b");
        match outcome {
            Ok(()) => assert_eq!(get(&reader, "run=a,variable=t").unwrap(), b"first", "call {n}"),
            Err(e) => {
                assert!(
                    e.message().contains("{run=a}{variable=t}{}") || writer.unflushed() == 1,
                    "call {n}: {e}"
                );
                assert_eq!(listed(&reader).len(), 0, "call {n}");
                writer.discard(&Session::default()).unwrap();
            }
        }
        flush_one(&writer, "run=a,variable=u", b"second");
        for reader in [reader, open(&world, "b")] {
            assert_eq!(get(&reader, "run=a,variable=u").unwrap(), b"second", "call {n}");
            let report = reader.verify(&Request::new()).unwrap();
            assert!(report.ok(), "call {n}: {:?}", report.damaged);
        }
        if calls < n {
            return;
        }
    }
    panic!("a first flush makes fewer calls than that");
}

#[test]
fn a_full_disk_loses_the_batch_by_name_and_no_more() {
    for size in [100_000, 3 << 20] {
        let world = SimWorld::new(1);
        let writer = open(&world, "a");
        flush_one(&writer, "run=a,variable=before", b"1");
        let used: u64 = world.files().iter().map(|f| world.read(f).unwrap().len() as u64).sum();
        world.set_capacity(Some(used + 50_000));
        let outcome = put(&writer, "run=a,variable=lost", &pattern(size, 1))
            .and_then(|()| writer.flush(&Session::default()));
        let full = error(outcome, ErrorKind::Unavailable);
        assert!(full.message().contains("variable=lost"), "{full}");
        assert!(full.hint().unwrap_or_default().contains("space"), "{full}");
        assert_eq!(listed(&open(&world, "b")), ["{run=a}{variable=before}{}"]);
        world.set_capacity(None);
        flush_one(&writer, "run=a,variable=after", b"2");
        let reader = open(&world, "b");
        assert_eq!(listed(&reader).len(), 2);
        assert!(reader.verify(&Request::new()).unwrap().ok());
    }
}

#[test]
fn what_failed_for_want_of_room_gives_it_back() {
    for (before, size) in [(1 << 10, 4 << 20), (3 << 20, 9 << 20), (1 << 10, 900_000)] {
        let world = SimWorld::new(1);
        let writer = open(&world, "a");
        flush_one(&writer, "run=a,variable=before", &pattern(before, 1));
        let used = || -> u64 { world.files().iter().map(|f| world.read(f).unwrap().len() as u64).sum() };
        let (bytes, files) = (used(), world.files());
        let room = (size as u64) * 3 / 4;
        world.set_capacity(Some(bytes + room));
        for _ in 0..3 {
            let outcome = put(&writer, "run=a,variable=lost", &pattern(size, 2))
                .and_then(|()| writer.flush(&Session::default()));
            error(outcome, ErrorKind::Unavailable);
        }
        // One or two logs with only a header may stay, but no part of the lost data.
        assert!(used() < bytes + 4096, "{before} {size}: {} of {room}", used() - bytes);
        let data = |files: &[PathBuf]| files.iter().filter(|f| f.starts_with("/store/data")).count();
        assert_eq!(data(&world.files()), data(&files), "no empty data log remains");
        flush_one(&writer, "run=a,variable=after", &pattern(room as usize / 2, 3));
        world.set_capacity(None);
        let reader = open(&world, "b");
        assert_eq!(get(&reader, "run=a,variable=before").unwrap(), pattern(before, 1));
        assert_eq!(get(&reader, "run=a,variable=after").unwrap(), pattern(room as usize / 2, 3));
        assert!(reader.verify(&Request::new()).unwrap().ok());
    }
}

#[test]
fn a_board_that_cannot_be_written_is_no_failure() {
    for kind in [OpKind::Write, OpKind::Append, OpKind::OpenAppend, OpKind::OpenWrite] {
        let world = SimWorld::new(1);
        let (writer, reader) = (open(&world, "a"), open(&world, "b"));
        for n in 0..6 {
            world.schedule(Plan::new(Fault::Io).kind(kind).path(".board"));
            flush_one(&writer, "run=a,variable=t", format!("value {n}").as_bytes());
            assert_eq!(get(&reader, "run=a,variable=t").unwrap(), format!("value {n}").as_bytes());
            assert_eq!(get(&open(&world, "b"), "run=a,variable=t").unwrap(), format!("value {n}").as_bytes());
        }
    }
}

#[test]
fn a_small_flush_is_one_write_and_one_sync() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, "run=a,variable=first", b"x");
    for round in 0..20 {
        for i in 0..10 {
            put(&writer, &format!("run=a,variable=t,step={}", 10 * round + i), &pattern(1000, i)).unwrap();
        }
        writer
            .journal()
            .unflushed()
            .add(vec![SideRecord { kind: 1, bytes: vec![9; 50].into() }], &Session::default())
            .unwrap();
        world.clear_trace();
        writer.flush(&Session::default()).unwrap();
        let counters = world.counters();
        assert_eq!(counters.count(OpKind::SyncData), 1, "round {round}");
        assert_eq!(calls(&world, OpKind::SyncData, "/logs/").len(), 1);
        assert_eq!(calls(&world, OpKind::Write, "/logs/").len(), 1, "round {round}");
        assert_eq!(calls(&world, OpKind::Write, "/boards/").len(), 1);
        assert_eq!(counters.count(OpKind::Write), 2);
        for none in [OpKind::SyncDir, OpKind::Create, OpKind::Append, OpKind::Link, OpKind::Rename] {
            assert_eq!(counters.count(none), 0, "{none:?}");
        }
        let order: Vec<OpKind> = world.trace().iter().map(|op| op.kind).collect();
        let sync = order.iter().position(|k| *k == OpKind::SyncData).unwrap();
        let writes: Vec<usize> = (0..order.len()).filter(|i| order[*i] == OpKind::Write).collect();
        assert!(writes[0] < sync && sync < writes[1], "log, sync, board: {order:?}");
    }
    // Bytes besides the payload: index, record, slot. Merging repeats index entries, never payload.
    world.clear_trace();
    flush_one(&writer, "run=a,variable=t,step=0", &pattern(60_000, 1));
    assert!(world.counters().bytes_written < 60_000 + 20_000);
}

#[test]
fn a_large_flush_syncs_its_data_log_and_then_the_log() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, "run=a,variable=first", &pattern(3 << 20, 1));
    for round in 0..3 {
        put(&writer, &format!("run=a,variable=t,step={round}"), &pattern(3 << 20, round)).unwrap();
        world.clear_trace();
        writer.flush(&Session::default()).unwrap();
        let syncs: Vec<_> = world.trace().into_iter().filter(|op| op.kind == OpKind::SyncData).collect();
        assert_eq!(syncs.len(), 2);
        assert!(syncs[0].path.to_string_lossy().contains("/data/"));
        assert!(syncs[1].path.to_string_lossy().contains("/logs/"));
        assert_eq!(world.counters().count(OpKind::SyncDir), 0);
    }
    // A small flush of the same handle does not touch the data log.
    put(&writer, "run=a,variable=small", b"x").unwrap();
    world.clear_trace();
    writer.flush(&Session::default()).unwrap();
    assert_eq!(world.counters().count(OpKind::SyncData), 1);
    // The first flush into new files syncs their folders, once.
    let other = open(&world, "a");
    put(&other, "run=a,variable=other", &pattern(3 << 20, 9)).unwrap();
    world.clear_trace();
    other.flush(&Session::default()).unwrap();
    for folder in ["/logs", "/data"] {
        assert!(!calls(&world, OpKind::SyncDir, folder).is_empty(), "{folder}");
    }
}

#[test]
fn no_file_is_written_by_two_processes_but_a_hosts_board() {
    let world = SimWorld::new(1);
    let stores: Vec<_> = ["a", "b", "a", "b", "a"].into_iter().map(|host| open(&world, host)).collect();
    for round in 0..4u64 {
        for (i, store) in stores.iter().enumerate() {
            let size = if round == 2 { 2 << 20 } else { 100 };
            flush_one(store, &format!("run=a,variable=t{i},step={round}"), &pattern(size, round));
            listed(store);
        }
    }
    stores.iter().for_each(|store| store.close(&Session::default()).unwrap());
    let mut writers: BTreeMap<PathBuf, BTreeSet<(String, u32)>> = BTreeMap::new();
    let changes =
        [OpKind::Create, OpKind::Write, OpKind::Append, OpKind::SyncData, OpKind::Rename, OpKind::Unlink];
    for op in world.trace().iter().filter(|op| changes.contains(&op.kind) && op.ok) {
        writers.entry(op.path.to_path_buf()).or_default().insert((op.host.to_string(), op.process));
    }
    assert!(writers.len() >= 2 * stores.len());
    for (path, by) in &writers {
        let hosts: BTreeSet<&String> = by.iter().map(|(host, _)| host).collect();
        assert_eq!(hosts.len(), 1, "{path:?} is written by several hosts");
        let board = path.to_string_lossy().ends_with(".board");
        assert!(by.len() == 1 || board, "{path:?} is written by {by:?}");
    }
    // Every process writes its own slot of a board.
    let mut slots: BTreeMap<(PathBuf, u64), BTreeSet<u32>> = BTreeMap::new();
    for op in world.trace().iter().filter(|op| matches!(op.kind, OpKind::Write | OpKind::Append)) {
        slots.entry((op.path.to_path_buf(), op.offset)).or_default().insert(op.process);
    }
    assert!(slots.values().all(|by| by.len() == 1));
}

#[test]
fn a_refresh_of_what_did_not_move_reads_one_board_per_host() {
    let world = SimWorld::new(1);
    let hosts = ["a", "b", "c"];
    let stores: Vec<_> = (0..21).map(|i| open(&world, hosts[i % 3])).collect();
    for (i, store) in stores.iter().enumerate() {
        flush_one(store, &format!("run=a,variable=t,step={i}"), b"x");
    }
    let reader = open(&world, "d");
    assert_eq!(listed(&reader).len(), 21);
    for _ in 0..3 {
        world.advance(100 * SECOND);
        reader.refresh().unwrap();
    }
    world.clear_trace();
    reader.refresh().unwrap();
    let counters = world.counters();
    assert_eq!((counters.count(OpKind::Read), counters.count(OpKind::OpenRead)), (3, 3));
    assert_eq!(calls(&world, OpKind::Read, ".board").len(), 3);
    assert_eq!(counters.count(OpKind::ListDir), 0);
    // If only one log moved, only that log is read.
    flush_one(&stores[4], "run=a,variable=t,step=99", b"x");
    world.clear_trace();
    reader.refresh().unwrap();
    let logs: BTreeSet<_> = calls(&world, OpKind::Read, "/logs/").iter().map(|op| op.path.clone()).collect();
    assert_eq!(logs.len(), 1);
    assert_eq!(listed(&reader).len(), 22);
}

#[test]
fn n_flushes_leave_at_most_log2_n_runs() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let writer = open(&world, "a");
    let mut most = 0;
    for n in 1..=200u64 {
        flush_one(&writer, &format!("run=a,variable=t,step={n}"), b"x");
        let segments = writer.status().unwrap().writers[0].segments;
        assert!(n < 2 || segments <= u64::from(n.ilog2()), "{segments} segments after {n} flushes");
        most = most.max(segments);
    }
    assert!(most > 2, "the rule is tested");
    assert_eq!(listed(&open(&world, "b")).len(), 200);
}

#[test]
fn fifty_writers_flush_five_times_each() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let stores: Vec<_> = (0..50).map(|i| open(&world, ["a", "b", "c"][i % 3])).collect();
    for round in 0..5 {
        for (i, store) in stores.iter().enumerate() {
            put(store, &format!("run=a,variable=v{i},step={round}"), &[i as u8, round]).unwrap();
            put(store, "run=a,variable=all", &[i as u8, round]).unwrap();
            store.flush(&Session::default()).unwrap();
        }
    }
    let reader = open(&world, "d");
    assert_eq!((listed(&reader).len(), count_all(&reader)), (251, 500));
    assert_eq!(get(&reader, "run=a,variable=all").unwrap(), [49, 4]);
    let status = reader.status().unwrap();
    assert_eq!(status.writers.len(), 50);
    assert!(status.writers.iter().all(|w| w.commits == 5 && w.segments <= 2));
    let stats = reader.stats(&Request::new()).unwrap();
    assert_eq!((stats.fields, stats.masked, stats.datasets, stats.writers), (251, 249, 1, 50));
    let report = reader.verify(&Request::new()).unwrap();
    assert!(report.ok() && report.fields == 500, "{report:?}");
}

#[test]
fn side_records_stand_in_the_log() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    let records = |n: u16| vec![SideRecord { kind: n, bytes: pattern(10 * usize::from(n), 1).into() }];
    writer.journal().unflushed().add(records(1), &Session::default()).unwrap();
    put(&writer, "run=a,variable=t", b"x").unwrap();
    writer.journal().unflushed().add(records(2), &Session::default()).unwrap();
    writer.flush(&Session::default()).unwrap();
    let log = files(&world, "logs").remove(0);
    let (record, side) = last_commit(&commits(&world, &log));
    assert_eq!((record.sequence, record.fields, side), (1, 1, [records(1), records(2)].concat()));
    let id = writer.begin().unwrap();
    writer.journal().unflushed().add(records(3), &Session::from(id)).unwrap();
    writer.flush(&Session::from(id)).unwrap();
    let (record, side) = last_commit(&commits(&world, &log));
    assert_eq!((record.transaction, record.fields, side), (Some(id), 0, records(3)));
    writer.journal().unflushed().add(records(4), &Session::default()).unwrap();
    writer.discard(&Session::default()).unwrap();
    flush_one(&writer, "run=a,variable=t", b"y");
    assert_eq!(last_commit(&commits(&world, &log)).1, []);
}

#[test]
fn a_reader_needs_no_right_to_write() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, "run=a,variable=t", b"x");
    world.set_uid("guest", 4000);
    world.permissions().make_read_only(std::path::Path::new("/"), false).unwrap();
    world.clear_trace();
    let reader =
        open_in(&world.process("guest"), &Opening { access: Access::Read, ..Opening::default() }).unwrap();
    assert_eq!(get(&reader, "run=a,variable=t").unwrap(), b"x");
    assert!(reader.verify(&Request::new()).unwrap().ok());
    reader.close(&Session::default()).unwrap();
    let asks = [OpKind::OpenWrite, OpKind::OpenAppend, OpKind::Create, OpKind::Write, OpKind::CreateDirAll];
    assert!(world.trace().iter().all(|op| !asks.contains(&op.kind)));
    // Opening for archiving succeeds, but the flush is refused and names the folder.
    let denied = open(&world, "guest");
    let refused = put(&denied, "run=b,variable=t", b"x").and_then(|()| denied.flush(&Session::default()));
    let refused = error(refused, ErrorKind::Denied);
    assert!(refused.message().contains(ROOT), "{refused}");
}

/// A reader whose open file shows an old length, or was replaced by a complete one, reopens it.
#[test]
fn a_short_file_is_opened_again() {
    for blocks in [false, true] {
        let world = SimWorld::new(1);
        let writer = open(&world, "a");
        let size = if blocks { 9 << 20 } else { 1 << 20 };
        flush_one(&writer, "run=a,variable=first", &pattern(2 << 20, 1));
        flush_one(&writer, "run=a,variable=t", &pattern(size, 2));
        put(&writer, "run=a,variable=t", &pattern(size, 2)).unwrap();
        put(&writer, "run=a,variable=u", &pattern(size, 3)).unwrap();
        writer.flush(&Session::default()).unwrap();
        let reader = open(&world, "b");
        assert!(get(&reader, "run=a,variable=u").unwrap() == pattern(size, 3));
        let data = files(&world, "data").remove(0);
        let whole = world.read(&data).unwrap();
        world.truncate(&data, 1 << 20).unwrap();
        error(get(&reader, "run=a,variable=u"), ErrorKind::Corrupt);
        let disk = world.process("a").disk;
        let restored = PathBuf::from(ROOT).join("restored");
        let file = disk.create_new(&restored).unwrap();
        fieldstone_core::env::write_all_at(&*file, &whole, 0).unwrap();
        disk.rename(&restored, &data).unwrap();
        assert!(get(&reader, "run=a,variable=u").unwrap() == pattern(size, 3));
        assert!(get(&reader, "run=a,variable=t").unwrap() == pattern(size, 2));
    }
}
