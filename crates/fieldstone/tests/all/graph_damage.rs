//! A traversal whose result lies in a damaged part of the graph's index: it is still read, each vertex and path once, as
//! of the moment of the traversal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fieldstone::Session;
use fieldstone::graph::{Engine, Partitioning, RelationPut, Travel, Traversal, VertexName, parse_travel};
use fieldstone::{Mode, OpenOptions, Store};

const JOBS: u64 = 20;

fn open(folder: &Path, mode: Mode) -> Store {
    let url = folder.join("store").display().to_string();
    fieldstone::open(&url, &OpenOptions { mode, ..OpenOptions::default() }).unwrap()
}

fn put(store: &Store, range: std::ops::Range<u64>) {
    let name = |kind: &str, id: String| VertexName::new(kind, &id);
    let relation = |n: u64| {
        RelationPut::new("write", name("job", (n % JOBS).to_string()), name("file", format!("/data/{n}")))
    };
    store.graph().put_relations(range.map(relation).collect(), &Session::default()).unwrap();
    store.flush(None).unwrap();
}

fn travel(store: &Store, text: &str) -> Traversal {
    let travel = Travel { steps: parse_travel(text).unwrap(), ..Travel::default() };
    store.graph().travel(&travel, Engine::default(), &Session::default()).unwrap()
}

/// Names of the last set, in portions, each once; `between` is called after the first portion.
fn names(travelled: &Traversal, between: impl FnOnce()) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let set = travelled.summary().sets.len() - 1;
    let mut from = 0;
    let mut between = Some(between);
    loop {
        let piece = travelled.names(set, from, 70).unwrap();
        if piece.is_empty() {
            return all;
        }
        from += piece.len();
        for name in piece {
            assert!(!travelled.vertex(&name).unwrap().deleted, "{name}");
            assert!(all.insert(name.to_string()), "{name} came twice");
        }
        if let Some(between) = between.take() {
            between();
        }
    }
}

fn ways(travelled: &Traversal) -> BTreeSet<String> {
    let (mut all, mut ways) = (BTreeSet::new(), travelled.paths().unwrap());
    while let Some(way) = ways.next().transpose().unwrap() {
        assert!(all.insert(format!("{:?}", way.vertices)), "a way came twice");
    }
    all
}

/// All files of the index.
fn index_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.join("store/graph")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), std::fs::read(&path).unwrap())),
            }
        }
    }
    found
}

/// Restores the files of the index, the largest with a bit changed.
fn damage(folder: &Path, files: &[(PathBuf, Vec<u8>)], at: usize) {
    std::fs::remove_dir_all(folder.join("store/graph")).unwrap();
    let largest = files.iter().map(|(_, bytes)| bytes.len()).max().unwrap();
    for (path, bytes) in files {
        let mut bytes = bytes.clone();
        if bytes.len() == largest {
            bytes[at] ^= 4;
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn try_damages(slots: u16) {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = open(folder.path(), Mode::Append);
        put(&store, 0..20_000);
        if slots > 1 {
            store.graph().partition(Partitioning { slots, ..Partitioning::default() }).unwrap();
        }
        store.close().unwrap();
    }
    let (sets, paths) = ("v(job:3).e(write)", "v(file:/data/43).e(wasWrittenBy).e(write).return_fp()");
    let before = open(folder.path(), Mode::Read);
    let expected = (names(&travel(&before, sets), || ()), ways(&travel(&before, paths)));
    assert_eq!((expected.0.len(), expected.1.len()), (1_000, 1_000));
    before.close().unwrap();
    let files = index_files(folder.path());
    let len = files.iter().map(|(_, bytes)| bytes.len()).max().unwrap();
    let mut more = 100_003;
    let places = (1..12).map(|i| len - 1 - i * len / 60).chain((1..8).map(|i| len * i / 8));
    for at in places {
        damage(folder.path(), &files, at);
        let reader = open(folder.path(), Mode::Read);
        let travelled = travel(&reader, sets);
        // Relations flushed while the result is read are not in it.
        let found = names(&travelled, || put(&open(folder.path(), Mode::Append), more..more + 1));
        let after = (more - 100_003) / JOBS;
        let known =
            |name: &String| name.trim_start_matches("file:/data/").parse().is_ok_and(|n: u64| n < more);
        assert!(found.is_superset(&expected.0), "byte {at} of {len}: {} vertices", found.len());
        assert!(
            found.len() as u64 == 1_000 + after && found.iter().all(known),
            "byte {at} of {len}: {found:?}"
        );
        more += JOBS;
        reader.close().unwrap();
    }
    damage(folder.path(), &files, len - 1 - len / 60);
    assert!(ways(&travel(&open(folder.path(), Mode::Read), paths)).is_superset(&expected.1));
}

#[test]
fn a_result_in_a_damaged_part_of_the_index_is_read_from_the_logs() {
    try_damages(1);
}

#[test]
fn a_result_in_a_damaged_part_of_an_index_in_slots_is_read_from_the_logs() {
    try_damages(3);
}
