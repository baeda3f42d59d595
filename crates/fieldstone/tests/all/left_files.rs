//! Files that killed jobs left among those that a store owns besides its logs: they are named, counted, shown or
//! removed.

use std::fs;
use std::path::PathBuf;

use fieldstone::arrays::{GroupOptions, LevelChoice, SetOptions, show};
use fieldstone::env::Env;
use fieldstone::prelude::*;
use fieldstone::{DType, Request, Store};

use crate::own_files::{job, make_mesh, open, partition};

/// The number of a process that has ended.
fn ended() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn what_killed_jobs_left_is_named_counted_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    make_mesh(&store, "wing", 100).unwrap();
    partition(&store);
    let before = store.stats(&Request::default()).unwrap();
    let on_disk = |within: &str| -> u64 {
        let files = fs::read_dir(folder.path().join("store").join(within)).unwrap();
        files.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    };
    assert!(before.file_bytes > on_disk("meshes") + on_disk("histories"), "{before:?}");
    let identity = Env::real().identity;
    let (own, host) = (identity.writer_name(), identity.writer_name());
    let host = host.split_once('@').unwrap().1;
    let root = folder.path().join("store");
    let left = [
        format!("meshes/a.nc.00.{}@{host}.part", ended()),
        format!("histories/b.00.{}@{host}.part", ended()),
    ];
    let kept = [
        format!("histories/c.00.{own}.part"),
        "meshes/d.part".to_owned(),
        "meshes/e.00.1@elsewhere.part".to_owned(),
    ];
    for path in left.iter().chain(&kept) {
        fs::write(root.join(path), [7; 1000]).unwrap();
    }
    let stats = store.stats(&Request::default()).unwrap();
    assert_eq!((stats.files, stats.file_bytes), (before.files + 5, before.file_bytes + 5_000));
    let notes = store.verify(&Request::default()).unwrap().notes;
    for path in left.iter().chain(&kept) {
        assert!(
            notes.iter().any(|note| note.contains(path) && note.contains("1000 bytes")),
            "{path}: {notes:?}"
        );
    }
    job(&store).close().unwrap();
    let there = |path: &String| root.join(path).exists();
    assert_eq!((left.each_ref().map(there), kept.each_ref().map(there)), ([false; 2], [true; 3]));
}

/// Makes files like those of a job that was killed between its commit and showing it; with the mark of the process.
fn unshow(files: &[PathBuf], mark: bool) {
    let host = Env::real().identity.writer_name();
    let host = host.split_once('@').unwrap().1;
    for path in files {
        let mut bytes = fs::read(path).unwrap();
        // A file with records counts fewer; one without does not begin as a netCDF file.
        match u64::from_be_bytes(bytes[4..12].try_into().unwrap()) {
            0 => bytes[..3].copy_from_slice(b"FSU"),
            records => bytes[4..12].copy_from_slice(&(records - 1).to_be_bytes()),
        }
        fs::write(path, bytes).unwrap();
        let folder = path.parent().unwrap().parent().unwrap();
        if mark {
            fs::write(folder.join(format!("open-{}@{host}", ended())), b"").unwrap();
        }
    }
}

fn write_steps(store: &Store, level: u64, steps: std::ops::Range<i64>) -> Vec<PathBuf> {
    let job = job(store);
    let level = LevelChoice::number(level).unwrap();
    let sets = ["p", "q"].map(|name| SetOptions::new(name, DType::F8, &[4]));
    let group = job.group("g", &GroupOptions { level, ..GroupOptions::new(sets) }).unwrap();
    for step in steps {
        for name in ["p", "q"] {
            group.write_dense(name, step, &[step as u8; 32]).unwrap();
        }
        job.flush().unwrap();
    }
    let files = group.files();
    job.close().unwrap();
    files
}

#[test]
fn files_that_a_killed_job_left_unshown_are_shown_by_the_next_one_or_by_the_call() {
    for level in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let files = write_steps(&store, level, 0..3);
        let whole: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
        let run = store.run("r").unwrap().name().clone();
        assert_eq!(show(&store, &run).unwrap(), Default::default());
        for by_job in [true, false] {
            unshow(&files, by_job);
            match by_job {
                true => drop(write_steps(&store, level, 3..4)),
                false => {
                    // Without a mark a job does not look.
                    job(&store).close().unwrap();
                    assert_ne!(fs::read(&files[0]).unwrap(), whole[0], "level {level}");
                    let shown = show(&store, &run).unwrap();
                    assert_eq!((shown.files.len(), shown.left), (files.len(), Vec::new()), "level {level}");
                }
            }
            let now: Vec<Vec<u8>> = files.iter().map(|path| fs::read(path).unwrap()).collect();
            assert!(now == whole, "level {level}, by the next job: {by_job}");
            let report = store.verify(&Request::default()).unwrap();
            assert!(report.ok() && report.notes.is_empty(), "level {level}: {report:?}");
        }
        let marks = |path: &PathBuf| {
            let folder = path.parent().unwrap().parent().unwrap();
            fs::read_dir(folder)
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("open-"))
                .count()
        };
        assert_eq!(files.iter().map(marks).sum::<usize>(), 0, "level {level}");
    }
}

#[test]
fn a_header_that_does_not_describe_the_arrays_is_named_as_damage() {
    for level in [1, 2, 3] {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let files = write_steps(&store, level, 0..2);
        let whole = fs::read(&files[0]).unwrap();
        let (mut named, mut tried) = (0, 0);
        // Bytes behind the number of records: lengths, types and places, and some that mean nothing here, such as names.
        for at in 12..160 {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x11;
            fs::write(&files[0], &bytes).unwrap();
            let report = store.verify(&Request::default()).unwrap();
            let is_named = |damage: &fieldstone::Damage| files[0].ends_with(&damage.file);
            assert!(report.damaged.iter().all(is_named), "level {level}, byte {at}: {report:?}");
            assert!(report.damaged.len() <= 1, "level {level}, byte {at}: {report:?}");
            (named, tried) = (named + report.damaged.len(), tried + 1);
        }
        println!("level {level}: {named} of {tried} bytes");
        assert!(2 * named > tried, "level {level}: {named} of {tried}");
        fs::write(&files[0], &whole).unwrap();
        assert!(store.verify(&Request::default()).unwrap().ok(), "level {level}");
    }
}

#[test]
fn files_that_nothing_refers_to_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let files = write_steps(&store, 3, 0..1);
    let stray = files[0].with_file_name("stray.nc");
    fs::write(&stray, b"CDF").unwrap();
    let notes = store.verify(&Request::default()).unwrap().notes;
    assert!(notes.len() == 1 && notes[0].contains("stray.nc: 3 bytes that nothing refers to"), "{notes:?}");
}
