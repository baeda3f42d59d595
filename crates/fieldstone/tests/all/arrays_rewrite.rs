//! Rewriting a run's arrays: the same fields in fewer files, or no change.

use std::path::Path;

use fieldstone::arrays::{
    ArrayJob, GroupOptions, JobOptions, LevelChoice, SetOptions, View, groups_of, rewrite,
};
use fieldstone::catalog::{RunName, StorageOrder};
use fieldstone::prelude::*;
use fieldstone::{DType, ErrorKind, ListOptions, OpenOptions, ReadOptions, Request, Result, Store};

fn open(folder: &Path) -> Store {
    fieldstone::open(&folder.join("store").display().to_string(), &OpenOptions::default()).unwrap()
}

fn run() -> RunName {
    RunName { project: String::new(), name: "r".into() }
}

fn doubles(count: u64, first: u64) -> Vec<u8> {
    (first..first + count).flat_map(|n| (n as f64).to_ne_bytes()).collect()
}

/// Two jobs, one after another: a group of two sets in Fortran order, one of particles, one with a set that has holes.
fn write(folder: &Path) -> Result<()> {
    for part in 0..2i64 {
        let store = open(folder);
        let job = ArrayJob::open(&store, None, Some("r"), &JobOptions::default())?;
        let level = LevelChoice::number(1)?;
        let pair = ["p", "q"].map(|name| SetOptions::new(name, DType::F8, &[3, 4]));
        let order = StorageOrder::Fortran;
        let pair = job.group("pair", &GroupOptions { level, order, ..GroupOptions::new(pair) })?;
        let mut set = SetOptions::new("x", DType::F8, &[0, 2]);
        set.shape[0] = None;
        let particles = job.group("particles", &GroupOptions { level, ..GroupOptions::new([set]) })?;
        let holes = GroupOptions { level, ..GroupOptions::new([SetOptions::new("h", DType::F8, &[9])]) };
        let holes = job.group("holes", &holes)?;
        holes.view(&View::irregular(vec![1, 2, 5], None, None), None)?;
        for step in part * 3..part * 3 + 3 {
            let first = step as u64 * 100;
            pair.write_dense("p", step, &doubles(12, first))?;
            if step != 4 {
                pair.write_dense("q", step, &doubles(12, first + 50))?;
            }
            particles.view(&View::joined(step as u64), None)?;
            particles.write_dense("x", step, &doubles(2 * step as u64, first))?;
            holes.write_dense("h", step, &doubles(3, first))?;
            job.flush()?;
        }
        job.close()?;
    }
    Ok(())
}

/// For each field its key, bytes, type and shape, and whether it is complete.
type Content = (String, Vec<u8>, Option<DType>, Option<Vec<u64>>, bool);

fn contents(store: &Store) -> Vec<Content> {
    let entries = store.list(&Request::new(), &ListOptions::default()).unwrap();
    let content = |entry: Result<fieldstone::ListEntry>| {
        let entry = entry.unwrap();
        let key: Vec<(String, String)> =
            entry.key.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let pairs: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let field = store.get(&pairs, &ReadOptions::default()).unwrap().lenient();
        let (dtype, shape) = (field.dtype().unwrap(), field.shape().unwrap());
        (entry.key.to_string(), field.read().unwrap(), dtype, shape, entry.complete)
    };
    entries.map(content).collect()
}

#[test]
fn arrays_that_are_written_anew_are_the_same_in_fewer_files() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path()).unwrap();
    let store = open(folder.path());
    let before = contents(&store);
    assert_eq!(before.len(), 6 + 5 + 6 + 6);
    assert!(before.iter().any(|field| !field.4));
    let files = |store: &Store| -> Vec<(String, usize)> {
        let groups = groups_of(store, &run()).unwrap();
        groups.into_iter().map(|found| (found.group.name, found.files.len())).collect()
    };
    assert_eq!(files(&store), [("holes".into(), 6), ("pair".into(), 11), ("particles".into(), 5)]);
    for (level, pairs) in [(None, 11), (Some(2), 2), (Some(3), 2)] {
        let level = level.map(|level| LevelChoice::number(level).unwrap());
        let level = level.and_then(|choice| match choice {
            LevelChoice::Is(level) => Some(level),
            LevelChoice::Auto => None,
        });
        let written = rewrite(&store, &run(), level).unwrap();
        assert_eq!(written.iter().map(|group| group.arrays).sum::<u64>(), 23);
        assert_eq!(contents(&store), before, "level {level:?}");
        assert!(store.verify(&Request::new()).unwrap().damaged.is_empty());
        let now = files(&store);
        // A set that lacks a step has a file of its own at level 3.
        assert_eq!(now[1].1, pairs, "{now:?}");
        let paths: Vec<String> = written.iter().flat_map(|group| group.files.clone()).collect();
        let known = groups_of(&store, &run()).unwrap();
        let known: Vec<String> =
            known.into_iter().flat_map(|found| found.files).map(|file| file.path).collect();
        assert!(known.iter().all(|path| paths.contains(path)), "{known:?} {paths:?}");
    }
    // A job goes on, and reads the rewritten arrays.
    let job = ArrayJob::open(&store, None, Some("r"), &JobOptions::default()).unwrap();
    let pair = job.declared_group("pair").unwrap();
    assert_eq!(pair.last_step().unwrap(), Some(5));
    assert_eq!(pair.read_dense("q", 5, None).unwrap(), doubles(12, 550));
}

#[test]
fn what_cannot_be_written_anew_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path()).unwrap();
    let store = open(folder.path());
    let before = contents(&store);
    let other = RunName { project: String::new(), name: "other".into() };
    assert_eq!(rewrite(&store, &other, None).unwrap_err().kind(), ErrorKind::NotFound);
    store.create_run("other").create().unwrap();
    let error = rewrite(&store, &other, None).unwrap_err();
    assert!(error.message().contains("no distributed arrays in files"), "{error}");
    // One array is damaged: the rest is unchanged.
    let found = groups_of(&store, &run()).unwrap();
    let path = folder.path().join("store").join(&found[1].files.last().unwrap().path);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
    let error = rewrite(&store, &run(), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let listed = store.list(&Request::new(), &ListOptions::default()).unwrap().count();
    assert_eq!(listed, before.len());
    let again = groups_of(&store, &run()).unwrap();
    for (then, now) in found.iter().zip(&again) {
        assert_eq!(then.files, now.files);
    }
    let shown = std::fs::read_dir(folder.path().join("store/arrays/r")).unwrap().count();
    assert_eq!(shown, 3, "two jobs and the folder of the one that failed, which is empty");
}
