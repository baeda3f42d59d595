//! Purges free files of arrays that nothing names, and files of writers that never made a log (R28, R65).

use std::path::Path;

use crate::common::*;
use crate::purge::{at_once, try_purge};
use crate::takeovers::{close, compact};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Result};
use fieldstone_format::{Id, crc, data};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Opening, put_file};
use fieldstone_testkit::require::full;

const FOLDER: &str = "arrays/a/0123456789abcdef/g0";
const DAY: u64 = 24 * HOUR as u64;

/// Puts a file of 64 bytes into the folder of a job, durable.
fn put_array(world: &SimWorld, name: &str, seed: u8) -> Vec<u8> {
    let (env, path) = (world.process("a"), Path::new(ROOT).join(FOLDER).join(name));
    let content = vec![seed; 64];
    put_file(&env, path.clone(), Some(&content)).unwrap();
    path.ancestors().skip(1).take(5).for_each(|folder| env.disk.sync_dir(folder).unwrap());
    content
}

/// Archives such a file as an array.
fn add(store: &Store, name: &str, step: &str, content: &[u8]) -> Result<()> {
    let path = format!("{FOLDER}/{name}");
    let spec = StoredArraySpec {
        path: &path,
        offset: 0,
        dtype: DType::parse("|u1")?,
        shape: &[64],
        fill: None,
        block: 64,
        sums: &[crc(content)],
        holes: 0,
    };
    store.archive_stored(
        &[("run", "a"), ("variable", "t"), ("step", step)],
        &spec,
        &ArchiveOptions::default(),
    )?;
    store.flush(&Session::default())
}

/// A job: writes files as arrays of steps, and closes the store.
fn job(world: &SimWorld, arrays: &[(&str, &str, u8)]) {
    let store = open(world, "a");
    flush_one(&store, "run=b,variable=t", b"the store is there");
    for (name, step, seed) in arrays {
        let content = put_array(world, name, *seed);
        add(&store, name, step, &content).unwrap();
    }
    close(&store);
}

/// The names of array files that are there.
fn there(world: &SimWorld) -> Vec<String> {
    let names =
        files(world, FOLDER).into_iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    names.filter(|name| !name.starts_with('.')).collect()
}

fn remove(world: &SimWorld, request: &str) {
    let store = open(world, "a");
    store.remove(&Request::parse(request).unwrap(), &RemoveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
    close(&store);
}

fn is_sound(world: &SimWorld) {
    let report = open(world, "b").verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
}

#[test]
fn r28_array_files_that_nothing_names_go_a_grace_after_they_were_condemned() {
    let world = SimWorld::new(1);
    job(&world, &[("0.nc", "0", 3), ("1.nc", "1", 4)]);
    remove(&world, "run=a,variable=t,step=0");
    let grace = 60 * SECOND;
    let what = Purging { grace, ..at_once() };
    world.advance(grace + SECOND);
    let dry = try_purge(&open(&world, "a"), &Purging { doit: false, ..what.clone() }).unwrap();
    let report = try_purge(&open(&world, "a"), &what).unwrap();
    assert_eq!((dry.versions, report.versions), (2, 2), "{report:?}");
    assert!(report.waiting > 0 && report.nbytes >= 64 && dry.nbytes == report.nbytes, "{dry:?} {report:?}");
    assert_eq!(there(&world), ["0.nc", "1.nc"], "the grace");
    // Another purge makes no other takeover for it.
    let takeovers = |world: &SimWorld| files(world, "logs").len();
    let before = takeovers(&world);
    assert_eq!(try_purge(&open(&world, "a"), &what).unwrap().condemned, 0);
    assert_eq!(takeovers(&world), before);
    world.advance(grace + SECOND);
    let report = compact(&open(&world, "a"));
    assert_eq!(report.waiting, 0);
    assert_eq!(there(&world), ["1.nc"]);
    is_sound(&world);
    // With the last file its folder goes.
    remove(&world, "run=a");
    assert!(try_purge(&open(&world, "a"), &at_once()).unwrap().versions > 0);
    assert!(world.process("a").disk.list_dir(&Path::new(ROOT).join("arrays")).unwrap().is_empty());
    is_sound(&world);
}

#[test]
fn r31_a_field_that_a_reader_holds_is_purged_with_its_array_file() {
    let world = SimWorld::new(1);
    job(&world, &[("0.nc", "0", 3), ("1.nc", "1", 4)]);
    let reader = open(&world, "b");
    let held = ["0", "1"].map(|step| field(&reader, &format!("run=a,variable=t,step={step}"), None).unwrap());
    remove(&world, "run=a,variable=t,step=0");
    for _ in 0..2 {
        try_purge(&open(&world, "a"), &at_once()).unwrap();
    }
    assert_eq!(there(&world), ["1.nc"]);
    assert_eq!(held[0].read().unwrap_err().code(), Code::VersionPurged);
    assert_eq!(held[1].read().unwrap(), [4; 64]);
    // A file that somebody took away is damage.
    world.process("a").disk.unlink(&Path::new(ROOT).join(FOLDER).join("1.nc")).unwrap();
    assert_eq!(held[1].read().unwrap_err().code(), Code::DataGone);
}

#[test]
fn r28_files_of_a_log_that_has_not_ended_stay() {
    let world = SimWorld::new(1);
    let living = open(&world, "b");
    flush_one(&living, "run=b,variable=t", b"the store is there");
    let content = put_array(&world, "0.nc", 3);
    add(&living, "0.nc", "0", &content).unwrap();
    put_array(&world, "unnamed.nc", 5);
    remove(&world, "run=a");
    world.advance(DAY / 2);
    try_purge(&open(&world, "a"), &at_once()).unwrap();
    assert_eq!(there(&world), ["0.nc", "unnamed.nc"]);
    // It leaves its log after a day. The flag of a job says that it goes on.
    let env = living.journal().env().clone();
    let flag = format!("arrays/a/0123456789abcdef/open-{}", env.identity.writer_name());
    put_file(&env, Path::new(ROOT).join(&flag), Some(b"")).unwrap();
    world.advance(2 * DAY);
    flush_one(&living, "run=b,variable=t", b"it lives");
    try_purge(&open(&world, "a"), &at_once()).unwrap();
    assert_eq!(there(&world), ["0.nc", "unnamed.nc"]);
    // It goes on with its files.
    add(&living, "0.nc", "1", &content).unwrap();
    close(&living);
    put_file(&env, Path::new(ROOT).join(&flag), None).unwrap();
    try_purge(&open(&world, "a"), &at_once()).unwrap();
    assert_eq!(there(&world), ["0.nc"]);
    is_sound(&world);
}

#[test]
fn r28_a_job_that_committed_nothing_is_over_after_a_day_of_silence() {
    let world = SimWorld::new(1);
    flush_one(&open(&world, "a"), "run=b,variable=t", b"a store");
    let content = put_array(&world, "0.nc", 3);
    let job = open(&world, "b");
    close(&open(&world, "a"));
    let one = open(&world, "a");
    flush_one(&one, "run=b,variable=t", b"an ended log");
    close(&one);
    try_purge(&open(&world, "a"), &at_once()).unwrap();
    assert_eq!(there(&world), ["0.nc"]);
    world.advance(DAY + SECOND);
    try_purge(&open(&world, "a"), &at_once()).unwrap();
    assert_eq!(there(&world), Vec::<String>::new());
    // It only slept: its flush names no file that a purge has removed, with its folder or without it,
    let folder = Path::new(ROOT).join(FOLDER);
    for with_folder in [false, true] {
        if with_folder {
            world.process("a").disk.create_dir_all(&folder).unwrap();
        }
        let failed = add(&job, "0.nc", "0", &content).unwrap_err();
        assert_eq!(failed.code(), Code::LogEnded, "{failed}");
        assert!(failed.to_string().contains("has removed"), "{failed}");
    }
    assert_eq!(listed(&open(&world, "a")), ["{run=b}{variable=t}{}"]);
    // and none of a folder that a purge has closed.
    put_array(&world, "0.nc", 3);
    world.process("a").disk.create_alike(&folder.join(".closed")).unwrap();
    let failed = add(&job, "0.nc", "0", &content).unwrap_err();
    assert_eq!(failed.code(), Code::LogEnded, "{failed}");
    assert!(failed.to_string().contains("closed"), "{failed}");
}

#[test]
fn r65_data_of_a_writer_without_a_log_go_after_its_end_file() {
    let world = SimWorld::new(1);
    let one = open(&world, "a");
    flush_one(&one, "run=b,variable=t", b"a store");
    close(&one);
    let sleeper = open(&world, "b");
    put(&sleeper, "run=a,variable=t,step=0", &vec![7; 3 << 20]).unwrap();
    let left = Id([9; 16]);
    let path = Path::new(ROOT).join("data").join(data::file_name(left, 1));
    put_file(&world.process("a"), path, Some(&data::encode_header(left, 1))).unwrap();
    assert_eq!(files(&world, "data").len(), 2);
    let purge = |grace| try_purge(&open(&world, "a"), &Purging { grace, ..at_once() }).unwrap();
    purge(60 * SECOND);
    assert_eq!(files(&world, "data").len(), 2, "they are young");
    world.advance(DAY + SECOND);
    let report = purge(60 * SECOND);
    assert!(report.waiting > 0, "{report:?}");
    assert_eq!(files(&world, "data").len(), 2, "the grace");
    world.advance(61 * SECOND);
    purge(60 * SECOND);
    assert_eq!(files(&world, "data").len(), 0);
    // Its writer hears that what it had is lost.
    let failed = sleeper.flush(&Session::default()).unwrap_err();
    assert!(failed.to_string().contains("{step=0}"), "{failed}");
    flush_one(&sleeper, "run=a,variable=t,step=0", b"again");
    assert_eq!(get(&open(&world, "a"), "run=a,variable=t,step=0").unwrap(), b"again");
    is_sound(&world);
}

#[test]
fn r65_a_writer_that_was_ended_before_its_first_commit_says_so() {
    for with_takeover in [false, true] {
        let world = SimWorld::new(1);
        let one = open(&world, "a");
        flush_one(&one, "run=b,variable=t", b"a store");
        close(&one);
        let sleeper = open(&world, "b");
        put(&sleeper, "run=a,variable=t,step=0", &vec![7; 3 << 20]).unwrap();
        world.advance(DAY + SECOND);
        let grace = if with_takeover { 0 } else { 3600 * SECOND };
        try_purge(&open(&world, "a"), &Purging { grace, ..at_once() }).unwrap();
        let failed = sleeper.flush(&Session::default()).unwrap_err();
        assert!(failed.to_string().contains("{step=0}"), "{failed}");
        assert_eq!(listed(&open(&world, "a")).len(), 1);
        is_sound(&world);
    }
}

#[test]
fn r28_a_purge_that_is_killed_at_any_call_frees_no_file_that_is_named() {
    let world = with_two_jobs();
    let store = open(&world, "a");
    world.clear_trace();
    try_purge(&store, &at_once()).unwrap();
    let calls = world.counters().total();
    for n in (1..=calls).step_by(if full() { 1 } else { 7 }) {
        let world = with_two_jobs();
        let env = world.process("a");
        let store = open_in(&env, &Opening::default()).unwrap();
        world.kill_nth(&env, None, n);
        let _ = try_purge(&store, &at_once());
        if env.identity.alive(env.identity.process()) {
            break;
        }
        std::mem::forget(store);
        assert_eq!(listed(&open(&world, "b")).len(), 2, "{n}");
        is_sound(&world);
        try_purge(&open(&world, "a"), &at_once()).unwrap();
        assert_eq!(there(&world), ["1.nc"], "{n}");
        is_sound(&world);
    }
}

fn with_two_jobs() -> SimWorld {
    let world = SimWorld::new(1);
    job(&world, &[("0.nc", "0", 3), ("1.nc", "1", 4)]);
    remove(&world, "run=a,variable=t,step=0");
    world
}

/// Two versions of some fields in ended logs, on a disk without a free byte.
fn full_disk(reserve: bool) -> SimWorld {
    let world = SimWorld::new(1);
    for n in 0..2 {
        let store = open(&world, "a");
        for step in 0..4 {
            put(&store, &format!("run=a,variable=t,step={step}"), &pattern(200_000, n)).unwrap();
        }
        flush_one(&store, "run=b,variable=t", b"it stays");
        close(&store);
    }
    if reserve {
        compact(&open(&world, "a"));
        try_purge(&open(&world, "c"), &Purging { grace: 3600 * SECOND, ..at_once() }).unwrap();
    }
    world.set_capacity(Some(bytes_of(&world)));
    world
}

/// Bytes of all files.
fn bytes_of(world: &SimWorld) -> u64 {
    const ALL: u64 = 1 << 40;
    world.set_capacity(Some(ALL));
    ALL - world.process("a").disk.space(Path::new(ROOT)).unwrap().free_bytes
}

#[test]
fn a_full_disk_has_room_for_what_frees_room() {
    let world = full_disk(true);
    let before = bytes_of(&world);
    world.set_capacity(Some(before));
    let writer = open(&world, "b");
    put(&writer, "run=c,variable=t", &pattern(100_000, 7)).unwrap();
    assert_eq!(writer.flush(&Session::default()).unwrap_err().code(), Code::DiskFull);
    drop(writer);
    let store = open(&world, "a");
    let how = Wiping { doit: true, ..Wiping::default() };
    let wiped = store.wipe(&Request::parse("run=a").unwrap(), &how).unwrap();
    assert_eq!(wiped.fields, 4);
    close(&store);
    let report = try_purge(&open(&world, "a"), &at_once()).unwrap();
    assert_eq!(report.versions, 9, "{report:?}");
    let after = bytes_of(&world);
    assert!(after < before / 2, "{after} of {before}");
    assert_eq!(listed(&open(&world, "a")).len(), 1);
    is_sound(&world);
    flush_one(&open(&world, "b"), "run=c,variable=t", &pattern(100_000, 7));
}

#[test]
fn a_purge_on_a_full_disk_leaves_slots_and_says_what_found_no_room() {
    let world = full_disk(false);
    let failed = try_purge(&open(&world, "a"), &at_once()).map(|report| report.versions);
    assert!(failed.is_err_and(|error| error.code() == Code::DiskFull));
    is_sound(&world);
    // A few KiB are enough: the old versions go.
    world.set_capacity(Some(bytes_of(&world) + 8192));
    let report = try_purge(&open(&world, "a"), &at_once()).unwrap();
    assert_eq!(report.versions, 5, "{report:?}");
    is_sound(&world);
}
