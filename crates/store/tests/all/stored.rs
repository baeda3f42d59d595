//! Arrays in files of the store: versions of logs, the bytes that a read touches, damage, kills and power cuts. The
//! conformance suite tests the behaviour that every store shows.

use std::path::{Path, PathBuf};

use crate::common::*;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::env::{Env, write_all_at};
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_format::block::Block;
use fieldstone_format::entry::{ArrayInfo, Blocks, Entry, Grown, Location};
use fieldstone_format::log::{self, CommitRecord, Envelope, FrameInfo, HEAD, HEADER_PREFIX, LogHeader};
use fieldstone_format::segment::{CommitInfo, SegmentBuilder, SegmentMeta};
use fieldstone_format::{crc, keys};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Opening, put_file};
use fieldstone_store::local::{LocalOptions, LocalStore};

const FILE: &str = "arrays/a/0123/t.nc";
const KEY: &str = "run=a,variable=t,step=0";
const BLOCK: usize = 4_000;

/// Archives an array of rows of 1,000 bytes that begins at byte 100 of a file of the store.
fn add(store: &LocalStore, step: &str, raw: &[u8], transaction: Option<Id>) -> Result<()> {
    let sums: Vec<u32> = raw.chunks(BLOCK).map(crc).collect();
    let shape = [raw.len() as u64 / 1000, 1000];
    let spec = StoredArraySpec {
        path: FILE,
        offset: 100,
        dtype: DType::parse("|u1")?,
        shape: &shape,
        fill: Some(&[9]),
        block: BLOCK as u64,
        sums: &sums,
        holes: 0,
    };
    let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
    store.archive_stored(&[("run", "a"), ("variable", "t"), ("step", step)], &spec, &options)
}

/// The file as one host wrote it, durable: an array of `rows` rows after 100 bytes.
fn write(world: &SimWorld, host: &str, rows: usize) -> Vec<u8> {
    let raw = pattern(rows * 1000, 5);
    let content = [&[7; 100][..], &raw].concat();
    let (env, path) = (world.process(host), Path::new(ROOT).join(FILE));
    put_file(&env, path.clone(), Some(&content)).unwrap();
    path.ancestors().skip(1).take(5).for_each(|folder| env.disk.sync_dir(folder).unwrap());
    raw
}

fn rows(first: u64, count: u64) -> IndexBox {
    IndexBox::unbounded(vec![first, 0], vec![count, 1000]).unwrap()
}

/// The version of a log's header, and those of its frames and of the segments that its last commit names.
fn versions(world: &SimWorld, log: &Path) -> (u32, Vec<u16>, Vec<u8>) {
    let bytes = commits(world, log);
    let length = LogHeader::length(&bytes[..HEADER_PREFIX]).unwrap();
    let header = LogHeader::decode(&bytes[..length as usize]).unwrap();
    let (mut at, mut frames, mut segments) = (u64::from(length), Vec::new(), Vec::new());
    while (at as usize) < bytes.len() {
        let ends = FrameInfo::decode_head(&bytes[at as usize..], at).unwrap();
        let foot = FrameInfo::decode_foot(
            &bytes[..ends.end() as usize][ends.end() as usize - log::FOOT..],
            ends.end(),
        );
        assert_eq!(foot.unwrap(), ends);
        frames.push(ends.version);
        let record = ends.record_offsets()[0] as usize;
        let record = ends.record(&bytes[record..record + ends.record_len as usize]).unwrap();
        segments = record.segments;
        at = ends.end();
    }
    let meta = segments.iter().map(|segment| {
        let bytes = &bytes[segment.offset as usize..(segment.offset + segment.meta_len) as usize];
        let between = segment.length - 2 * segment.meta_len;
        SegmentMeta::decode(bytes, segment.meta_crc, between).unwrap().version
    });
    (header.version, frames, meta.collect())
}

/// A handle on a store of version 1, after its first flush.
fn old(world: &SimWorld) -> Store {
    open_in(&world.process("a"), &Opening { format: Some(1), ..Opening::default() }).unwrap()
}

fn logs(world: &SimWorld) -> Vec<PathBuf> {
    files(world, "logs").into_iter().filter(|path| path.extension().is_some_and(|e| e == "log")).collect()
}

#[test]
fn a_store_stays_of_version_1_until_it_is_upgraded_and_takes_no_array_in_a_file_before() {
    let world = SimWorld::new(1);
    let store = old(&world);
    for step in 0..3 {
        flush_one(&store, &format!("run=a,variable=u,step={step}"), b"ordinary");
    }
    let [first] = &logs(&world)[..] else { panic!("one log") };
    assert_eq!(versions(&world, first), (1, vec![1; 3], vec![1]));
    let raw = write(&world, "a", 10);
    assert_eq!(error(add(&store, "0", &raw, None), ErrorKind::Denied).code(), Code::FormatPinned);
    assert_eq!((logs(&world).len(), store.status().unwrap().format), (1, 1));
    assert_eq!(store.journal().format().upgrade(&Session::default()).unwrap(), (1, 2));
    add(&store, "0", &raw, None).unwrap();
    assert_eq!(logs(&world).len(), 1, "nothing was flushed");
    let before = commits(&world, first);
    for step in 3..6 {
        store.flush(&Session::default()).unwrap();
        flush_one(&store, &format!("run=a,variable=u,step={step}"), b"ordinary");
    }
    assert!(world.read(first).unwrap() == before, "the previous log is closed unchanged");
    let all = logs(&world);
    let [second] = &all.iter().filter(|log| *log != first).collect::<Vec<_>>()[..] else {
        panic!("two logs")
    };
    let (header, frames, segments) = versions(&world, second);
    // An older release knows neither the header nor a commit: it refuses the log because of its version.
    assert_eq!((header, frames), (2, vec![2; 4]));
    assert!(segments.iter().all(|version| *version == 2), "{segments:?}");
    assert_eq!(store.status().unwrap().format, 2);
    for store in [&store, &open(&world, "b")] {
        assert_eq!(get(store, KEY).unwrap(), raw);
        assert_eq!(listed(store).len(), 7);
        assert!(store.verify(&Request::new()).unwrap().ok());
    }
}

#[test]
fn a_first_commit_with_an_array_makes_one_log() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let raw = write(&world, "a", 10);
    // Data that went to a data log before stay there.
    put(&store, "run=a,variable=u,step=0", &pattern(2 << 20, 1)).unwrap();
    let data = files(&world, "data");
    add(&store, "0", &raw, None).unwrap();
    store.flush(&Session::default()).unwrap();
    assert_eq!((logs(&world).len(), files(&world, "data")), (1, data));
    assert_eq!(versions(&world, &logs(&world)[0]), (2, vec![2], vec![2]));
    let other = open(&world, "b");
    assert!(get(&other, "run=a,variable=u,step=0").unwrap() == pattern(2 << 20, 1));
    assert_eq!(get(&other, KEY).unwrap(), raw);
}

#[test]
fn what_is_removed_from_a_batch_or_discarded_needs_no_new_log() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, "run=a,variable=u,step=0", b"ordinary");
    let raw = write(&world, "a", 10);
    add(&store, "0", &raw, None).unwrap();
    flush_one(&store, KEY, b"in its place");
    add(&store, "0", &raw, None).unwrap();
    store.discard(&Session::default()).unwrap();
    flush_one(&store, "run=a,variable=u,step=1", b"ordinary");
    assert_eq!(versions(&world, &logs(&world)[0]).0, 2);
    assert_eq!(logs(&world).len(), 1);
    // Nor does a flush make another log if it is refused before its commit begins.
    add(&store, "0", &raw, None).unwrap();
    let newer = Path::new(ROOT).join("logs/0123456789abcdef0123456789abcdef.log");
    let mut header = LogHeader::decode(&world.read(&logs(&world)[0]).unwrap()).unwrap();
    header.version = 3;
    put_file(&world.process("b"), newer.clone(), Some(&header.encode())).unwrap();
    error(store.flush(&Session::default()), ErrorKind::Denied);
    put_file(&world.process("b"), newer, None).unwrap();
    store.discard(&Session::default()).unwrap();
    flush_one(&store, "run=a,variable=u,step=2", b"ordinary");
    assert_eq!(logs(&world).len(), 1);
    assert_eq!(store.status().unwrap().format, 2);
}

#[test]
fn an_array_in_a_segment_of_version_1_is_damage() {
    let raw = pattern(10_000, 5);
    for version in [1, 2] {
        let world = SimWorld::new(1);
        write(&world, "a", 10);
        let store = open(&world, "a");
        flush_one(&store, "run=b,variable=t,step=0", b"beside it");
        let bytes = world.read(&logs(&world)[0]).unwrap();
        let mut header = LogHeader::decode(&bytes).unwrap();
        (header.writer, header.version) = (Id([5; 16]), version);
        let header = header.encode();
        let blocks = raw.chunks(BLOCK).map(|b| Block { stored: b.len() as u64, crc: crc(b), summary: None });
        let grown = Grown {
            path: FILE.into(),
            offset: 100,
            size: BLOCK as u64,
            holes: 0,
            file: 0,
            blocks: Blocks::Inline(blocks.collect()),
        };
        let entry = Entry {
            commit: 0,
            ordinal: 0,
            generation: true,
            length: 10_000,
            array: Some(Box::new(ArrayInfo {
                dtype: DType::parse("|u1").unwrap(),
                shape: vec![10, 1000],
                piece: None,
                chunk: None,
                fill: None,
                summary: None,
            })),
            location: Location::Grown(Box::new(grown)),
            holder: None,
        };
        let mut value = Vec::new();
        entry.encode(&mut value);
        let stamp = world.now() as u64;
        let commit = CommitInfo { sequence: 1, stamp, time: 0, transaction: None, origin: None, view: 0 };
        let mut segment = SegmentBuilder::of(version);
        let key = [("run", "a"), ("variable", "t"), ("step", "0")];
        let key = keys::encode_key(&store.schema().resolve(&key).unwrap()).bytes;
        segment.push(&key, &value, 0, 10_000).unwrap();
        let (segment, mut reference) = segment.finish(vec![commit], 1).unwrap();
        reference.offset = (header.len() + HEAD) as u64;
        let mut record =
            CommitRecord { sequence: 1, stamp, fields: 1, bytes: 10_000, ..CommitRecord::default() };
        record.segments = vec![reference];
        let frame = Envelope::new(version, header.len() as u64, &record, &[&segment]);
        let log =
            [&header, &frame.head, &segment, &frame.record, &frame.record, &frame.foot].map(|part| &part[..]);
        let path = Path::new(ROOT).join("logs").join(log::file_name(Id([5; 16])));
        put_file(&world.process("a"), path, Some(&log.concat())).unwrap();
        let reader = open(&world, "b");
        assert_eq!(get(&reader, KEY).map_err(|e| e.kind()).ok(), (version == 2).then(|| raw.clone()));
        assert_eq!(reader.verify(&Request::new()).unwrap().ok(), version == 2);
        assert_eq!(get(&reader, "run=b,variable=t,step=0").unwrap(), b"beside it");
    }
}

#[test]
fn a_box_reads_and_checks_the_blocks_that_it_touches_alone() {
    let world = SimWorld::new(1);
    let raw = write(&world, "a", 100);
    let store = open(&world, "a");
    add(&store, "0", &raw, None).unwrap();
    store.flush(&Session::default()).unwrap();
    let held = field(&open(&world, "b"), KEY, None).unwrap();
    // A byte of block 12, rows 48 to 51.
    world.flip(&Path::new(ROOT).join(FILE), 100 + 50_500, 1).unwrap();
    for (first, count) in [(48, 1), (47, 2), (0, 100), (51, 9)] {
        let damage = error(held.read_box(Some(&rows(first, count))), ErrorKind::Corrupt);
        for part in ["step=0", "checksum", "48100 of arrays/a/0123/t.nc"] {
            assert!(damage.message().contains(part), "{damage}");
        }
    }
    world.clear_trace();
    assert!(held.read_box(Some(&rows(52, 1))).unwrap() == raw[52_000..53_000]);
    let read: u64 = calls(&world, OpKind::Read, "t.nc").iter().map(|op| op.len).sum();
    assert_eq!(read, BLOCK as u64);
    // A column touches all blocks, each once.
    world.flip(&Path::new(ROOT).join(FILE), 100 + 50_500, 1).unwrap();
    world.clear_trace();
    let column = IndexBox::unbounded(vec![0, 17], vec![100, 2]).unwrap();
    let expected: Vec<u8> = raw.chunks(1000).flat_map(|row| row[17..19].to_vec()).collect();
    assert!(held.read_box(Some(&column)).unwrap() == expected);
    let read: u64 = calls(&world, OpKind::Read, "t.nc").iter().map(|op| op.len).sum();
    assert_eq!(read, raw.len() as u64);
    assert!(calls(&world, OpKind::Write, "t.nc").is_empty());
}

#[test]
fn a_damaged_table_of_blocks_is_named_by_its_own_file() {
    let world = SimWorld::new(1);
    let raw = write(&world, "a", 100);
    let store = open(&world, "a");
    add(&store, "0", &raw, None).unwrap();
    store.flush(&Session::default()).unwrap();
    assert_eq!(field(&store, KEY, None).unwrap().stored_array().unwrap().unwrap().sums.len(), 25);
    let log = logs(&world)[0].clone();
    let length = u64::from(LogHeader::length(&world.read(&log).unwrap()).unwrap());
    // The table is the payload of the only frame.
    world.flip(&log, length + HEAD as u64 + 3, 1).unwrap();
    let reader = open(&world, "b");
    let damage = error(field(&reader, KEY, None).and_then(|field| field.stored_array()), ErrorKind::Corrupt);
    assert!(damage.message().contains("table of blocks") && damage.message().contains("logs/"), "{damage}");
    error(get(&reader, KEY), ErrorKind::Corrupt);
}

#[test]
fn a_file_that_is_no_plain_file_is_corrupt() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("store");
    let options = fieldstone_store::conformance::Opening::default().local("tested");
    let store = LocalStore::open(Env::real(), &root, options).unwrap();
    assert_eq!(store.folder(), Some(root.clone()));
    let raw = pattern(8_000, 5);
    let path = root.join(FILE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, [&[7; 100][..], &raw].concat()).unwrap();
    add(&store, "0", &raw, None).unwrap();
    store.flush(&Session::default()).unwrap();
    std::fs::rename(&path, folder.path().join("other")).unwrap();
    let read =
        || store.get(&[("run", "a"), ("variable", "t"), ("step", "0")], &ReadOptions::default())?.read();
    error(read(), ErrorKind::Corrupt);
    std::os::unix::fs::symlink(folder.path().join("other"), &path).unwrap();
    assert!(error(read(), ErrorKind::Corrupt).message().contains("not a plain file"));
    std::fs::remove_file(&path).unwrap();
    std::fs::rename(folder.path().join("other"), &path).unwrap();
    assert!(read().unwrap() == raw);
}

#[test]
fn a_file_without_its_commit_shows_nothing_and_a_commit_without_its_file_is_damage() {
    for synced in [true, false] {
        let world = SimWorld::new(3);
        flush_one(&open(&world, "a"), "run=b,variable=t,step=0", b"before");
        let raw = pattern(10_000, 5);
        let content = [&[7; 100][..], &raw].concat();
        let env = world.process("a");
        let path = Path::new(ROOT).join(FILE);
        env.disk.create_dir_all(path.parent().unwrap()).unwrap();
        let file = env.disk.create_new(&path).unwrap();
        write_all_at(&*file, &content, 0).unwrap();
        if synced {
            file.sync_data().unwrap();
            path.ancestors().skip(1).take(4).for_each(|folder| env.disk.sync_dir(folder).unwrap());
        }
        let store = open(&world, "a");
        add(&store, "0", &raw, None).unwrap();
        for image in 0..4 {
            let after = open(&world.power_cut(image), "a");
            error(get(&after, KEY), ErrorKind::NotFound);
            assert!(after.verify(&Request::new()).unwrap().ok());
        }
        store.flush(&Session::default()).unwrap();
        for image in 0..8 {
            let after = open(&world.power_cut(image), "a");
            match get(&after, KEY) {
                Ok(found) => assert!(found == raw),
                // The writer that placed the data must have made them durable; data that were not are never shown.
                Err(e) => assert!(!synced && e.kind() == ErrorKind::Corrupt, "{e}"),
            }
            assert_eq!(get(&after, "run=b,variable=t,step=0").unwrap(), b"before");
        }
    }
}

/// A handle that leaves a log of version 1 with data waiting in its files, killed at every call.
#[test]
fn a_kill_while_a_log_is_left_loses_nothing_flushed_and_shows_no_half() {
    let large = pattern(600_000, 2);
    let begin = |world: &SimWorld| {
        let raw = write(world, "a", 10);
        let env = world.process("a");
        let store = open_in(&env, &Opening { format: Some(1), ..Opening::default() }).unwrap();
        flush_one(&store, "run=a,variable=u,step=0", b"before");
        let id = store.begin().unwrap();
        let options = ArchiveOptions { session: Session::from(id), ..ArchiveOptions::default() };
        archive(&store, "run=a,variable=v,step=0", Value::Bytes(&large), &options).unwrap();
        archive(&store, "run=a,variable=v,step=1", Value::Bytes(&large), &options).unwrap();
        put(&store, "run=a,variable=u,step=1", &large).unwrap();
        put(&store, "run=a,variable=u,step=2", &large).unwrap();
        open(world, "c").journal().format().upgrade(&Session::default()).unwrap();
        add(&store, "0", &raw, None).unwrap();
        (env, store, id, raw)
    };
    let mut n = 1;
    loop {
        let world = SimWorld::new(7);
        world.set_tracing(false);
        let (env, store, id, raw) = begin(&world);
        world.kill_nth(&env, None, n);
        let done =
            store.flush(&Session::default()).and_then(|()| store.decide(id, true, &Session::default()));
        std::mem::forget(store);
        let after = if n.is_multiple_of(2) { world.power_cut(n) } else { world.fork_image() };
        let reader = open(&after, "b");
        assert_eq!(get(&reader, "run=a,variable=u,step=0").unwrap(), b"before");
        let flushed = get(&reader, KEY);
        assert!(flushed.is_ok() || done.is_err(), "call {n}");
        assert!(flushed.as_ref().map_or(true, |found| *found == raw));
        let whole = |key: &str, is: bool| get(&reader, key).ok().as_ref() == is.then_some(&large);
        for step in [1, 2] {
            assert!(whole(&format!("run=a,variable=u,step={step}"), flushed.is_ok()), "call {n}: a half");
        }
        // The decision may have been written before its writer was killed.
        let decided = get(&reader, "run=a,variable=v,step=0").is_ok();
        assert!(decided || done.is_err(), "call {n}");
        for step in [0, 1] {
            assert!(whole(&format!("run=a,variable=v,step={step}"), decided), "call {n}: half a transaction");
        }
        let report = reader.verify(&Request::new()).unwrap();
        assert!(report.ok(), "call {n}: {:?}", report.damaged);
        if done.is_ok() {
            break;
        }
        n += 1;
    }
    assert!(n > 15, "{n} calls");
}

/// If the copies that a new log needs cannot be made, nothing is lost silently, and the next flush continues.
#[test]
fn a_full_disk_while_a_log_is_left_loses_nothing() {
    for (kind, nth) in [(OpKind::Create, 1), (OpKind::Write, 1), (OpKind::Write, 2), (OpKind::Read, 1)] {
        let world = SimWorld::new(1);
        let store = old(&world);
        let raw = write(&world, "a", 10);
        flush_one(&store, "run=a,variable=u,step=0", b"before");
        let id = store.begin().unwrap();
        let options = ArchiveOptions { session: Session::from(id), ..ArchiveOptions::default() };
        archive(&store, "run=a,variable=v,step=0", Value::Bytes(&pattern(2 << 20, 2)), &options).unwrap();
        open(&world, "b").journal().format().upgrade(&Session::default()).unwrap();
        add(&store, "0", &raw, None).unwrap();
        let fault = if kind == OpKind::Read { Fault::Io } else { Fault::NoSpace };
        world.schedule(Plan::new(fault).kind(kind).path("/data/").nth(nth));
        error(store.flush(&Session::default()), ErrorKind::Unavailable);
        world.clear_faults();
        // Data that the old data log had not written are lost if that write fails: the transaction learns of it.
        let lost = (kind, nth) == (OpKind::Write, 1);
        assert_eq!(store.unflushed(), if lost { 1 } else { 2 }, "{kind:?} {nth}");
        store.flush(&Session::default()).unwrap();
        let reader = open(&world, "b");
        assert_eq!(get(&reader, KEY).unwrap(), raw);
        if lost {
            let refused = error(store.decide(id, true, &Session::default()), ErrorKind::Unavailable);
            assert!(refused.message().contains("variable=v"), "{refused}");
            continue;
        }
        store.decide(id, true, &Session::default()).unwrap();
        assert!(get(&reader, "run=a,variable=v,step=0").unwrap() == pattern(2 << 20, 2));
        assert!(reader.verify(&Request::new()).unwrap().ok());
    }
}

/// One host writes the file, another commits, a third reads before it sees everything: it gets correct data or a
/// damage error; once everything is visible, the data are correct.
#[test]
fn other_hosts_on_a_weak_file_system_are_never_shown_something_else() {
    let (mut shown, mut early) = (0, 0);
    for seed in 0..40 {
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        world.weak(20 * SECOND);
        let store = open(&world, "a");
        flush_one(&store, "run=a,variable=u,step=0", b"before");
        world.advance(20 * SECOND);
        let reader = open(&world, "c");
        assert_eq!(get(&reader, "run=a,variable=u,step=0").unwrap(), b"before");
        let raw = write(&world, "b", 10);
        add(&store, "0", &raw, None).unwrap();
        store.flush(&Session::default()).unwrap();
        for _ in 0..11 {
            reader.refresh().unwrap();
            match get(&reader, KEY) {
                Ok(found) => {
                    assert!(found == raw);
                    shown += 1;
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
                    early += 1;
                }
            }
            world.advance(2 * SECOND);
        }
        assert!(get(&reader, KEY).unwrap() == raw);
    }
    println!("{shown} reads were right, {early} came too early");
    assert!(shown > 40);
}

/// The store kept for later releases, next to the plain Python reader that also reads it.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/stored")
}

/// The contents of the kept store, in the order of its steps: of the array in the file, bytes and holes.
fn kept() -> [(&'static str, Vec<u8>, u64); 4] {
    let doubles = |from: i32, n: i32| (from..from + n).flat_map(|i| f64::from(i).to_be_bytes()).collect();
    [
        ("0", doubles(0, 60), 0),
        ("1", doubles(100, 60), 0),
        ("2", doubles(200, 60), 7),
        ("3", doubles(300, 600), 0),
    ]
}

#[test]
fn the_kept_store_with_arrays_in_files() {
    let options = LocalOptions { must_exist: true, ..LocalOptions::default() };
    let store = LocalStore::open(Env::real(), &fixture().join("store"), options).unwrap();
    let report = store.verify(&Request::new()).unwrap();
    assert!(report.ok(), "{:?}", report.damaged);
    for (step, bytes, holes) in kept() {
        let key = [("run", "a"), ("variable", "t"), ("step", step)];
        let field = store.get(&key, &ReadOptions::default()).unwrap();
        assert_eq!(field.read().is_ok(), holes == 0);
        assert_eq!(field.holes().unwrap(), holes);
        assert!(field.lenient().read().unwrap() == bytes, "step {step}");
    }
    let key = [("run", "a"), ("variable", "u"), ("step", "0")];
    assert_eq!(store.get(&key, &ReadOptions::default()).unwrap().read().unwrap(), b"of version 1");
    assert_eq!(store.status().unwrap().format, 2);
}

/// Makes it. Kept stores of an old release are never rewritten: run this for a new release, under a new name.
#[test]
#[ignore = "writes into the sources"]
fn make_the_kept_store() {
    let root = fixture().join("store");
    let format = Some(1);
    let options = LocalOptions { writable: true, must_be_new: true, format, ..LocalOptions::default() };
    let store = LocalStore::open(Env::real(), &root, options).unwrap();
    store
        .archive(
            &[("run", "a"), ("variable", "u"), ("step", "0")],
            Value::Bytes(b"of version 1"),
            &Default::default(),
        )
        .unwrap();
    store.flush(&Session::default()).unwrap();
    store.journal().format().upgrade(&Session::default()).unwrap();
    let path = root.join(FILE);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut content = b"head".to_vec();
    for (step, bytes, holes) in kept() {
        let block = if step == "3" { 400 } else { 200 };
        let sums: Vec<u32> = bytes.chunks(block).map(crc).collect();
        let shape: &[u64] = if step == "3" { &[600] } else { &[5, 12] };
        let fill = (holes > 0).then_some(&[0; 8][..]);
        let spec = StoredArraySpec {
            path: FILE,
            offset: content.len() as u64,
            dtype: DType::parse(">f8").unwrap(),
            shape,
            fill,
            block: block as u64,
            sums: &sums,
            holes,
        };
        content.extend_from_slice(&bytes);
        std::fs::write(&path, &content).unwrap();
        let key = [("run", "a"), ("variable", "t"), ("step", step)];
        store.archive_stored(&key, &spec, &ArchiveOptions::default()).unwrap();
        store.flush(&Session::default()).unwrap();
    }
    content.extend_from_slice(b"and more behind it");
    std::fs::write(&path, &content).unwrap();
    store.close(&Session::default()).unwrap();
}
