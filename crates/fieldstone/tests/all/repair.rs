//! Repair of a whole store on a real disk: fields, catalog, graph, array files, meshes and kept partitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fieldstone::arrays::{ArrayJob, GroupOptions, JobOptions, LevelChoice, SetOptions};
use fieldstone::graph::{RelationPut, VertexName};
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, BackupOptions, Code, DType, Mode, OpenOptions, ReadOptions, RepairOptions, RepairReport,
    Request, Session, Store, Value, backup, repair,
};
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::seeded;

use crate::own_files::{make_mesh, open, partition};

const KEY: [(&str, &str); 3] = [("run", "a"), ("variable", "t"), ("step", "1")];

/// Bytes that no compression makes shorter.
fn small() -> Vec<u8> {
    seeded(1).bytes(5000)
}

/// Fields in logs and data logs, attributes, relations, array files, a mesh, kept partitions.
fn write(folder: &Path) {
    let store = open(folder);
    store.archive(&KEY, Value::Bytes(&small()), &ArchiveOptions::default()).unwrap();
    let large: Vec<u8> = (0..3u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let key = [("run", "a"), ("variable", "u"), ("step", "1")];
    store.archive(&key, Value::Bytes(&large), &ArchiveOptions::default()).unwrap();
    let put = RelationPut::new("write", VertexName::new("job", "1"), VertexName::new("file", "x"));
    store.graph().put_relations(vec![put], &Session::default()).unwrap();
    store.create_tag("peak", fieldstone::catalog::value::ValueType::Float, None).unwrap();
    make_mesh(&store, "wing", 3000).unwrap();
    store.flush(None).unwrap();
    let job = ArrayJob::open(&store, None, Some("r"), &JobOptions::default()).unwrap();
    let sets = [SetOptions::new("p", DType::F8, &[60, 100])];
    let level = LevelChoice::number(2).unwrap();
    let group = job.group("g", &GroupOptions { level, ..GroupOptions::new(sets) }).unwrap();
    for step in 0..3 {
        let values: Vec<u8> = (0..6000).flat_map(|i| f64::from(i + step as i32).to_ne_bytes()).collect();
        group.write_dense("p", step, &values).unwrap();
    }
    job.close().unwrap();
    partition(&store);
    store.close().unwrap();
}

fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => drop(all.insert(entry.path(), fs::read(entry.path()).unwrap())),
            }
        }
    }
    let is_index =
        |path: &Path| ["boards", "catalog", "graph"].iter().any(|part| path.starts_with(folder.join(part)));
    // Marks in folders of array files are empty.
    all.retain(|path, bytes| !is_index(path) && !bytes.is_empty());
    all
}

fn flip(path: &Path, at: usize, mask: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= mask;
    fs::write(path, bytes).unwrap();
}

fn reader(folder: &Path) -> Store {
    let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    fieldstone::open(&folder.join("store").display().to_string(), &options).unwrap()
}

fn mend(folder: &Path, source: Option<&Path>, doit: bool) -> RepairReport {
    repair(&reader(folder), &[Request::new()], &RepairOptions { source, doit }).unwrap()
}

fn damage(folder: &Path) -> Vec<fieldstone::Damage> {
    reader(folder).verify(&Request::new()).unwrap().damaged
}

#[test]
fn damage_of_all_files_is_named_and_mended_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let copy = folder.path().join("copy");
    backup(&reader(folder.path()), &copy, &BackupOptions::default()).unwrap();
    let before = content(&folder.path().join("store"));
    for part in ["logs", "data", "arrays", "meshes", "histories"] {
        let part = folder.path().join("store").join(part);
        assert!(before.keys().any(|path| path.starts_with(&part)), "{}", part.display());
    }
    for seed in seeds(4) {
        let mut random = seeded(seed);
        let files: Vec<&PathBuf> = before.keys().collect();
        for n in 0..200 {
            let path = files[n % files.len()];
            let length = before[path].len();
            // Bytes before the arrays in their files have no checksum of their own.
            // Which store it is stands in the marker and in the headers of logs: one of them stays.
            if path.ends_with("fieldstone.store") && seed % 2 == 1 {
                continue;
            }
            let is_log = path.extension().is_some_and(|e| e == "log") && seed % 2 == 0;
            let is_array = path.starts_with(folder.path().join("store/arrays"));
            let from = if is_log || is_array { length / 4 } else { 0 };
            flip(path, from + random.below((length - from) as u64) as usize, 1 + random.below(255) as u8);
        }
        let (wrong, named) = (content(&folder.path().join("store")), damage(folder.path()));
        let seen = mend(folder.path(), Some(&copy), false);
        for path in before.keys().filter(|path| wrong.get(*path) != before.get(*path)) {
            let name = path.strip_prefix(folder.path().join("store")).unwrap().display().to_string();
            // An index that cannot be read may hide which other files there are.
            let is_named = named.iter().any(|damage| damage.file == name)
                || !name.starts_with("logs/") && seen.mended.iter().any(|part| part.file == name);
            assert!(is_named, "seed {seed}: {name} in {named:#?}");
        }
        assert_eq!((seen.left.as_slice(), seen.done, seen.nbytes), (&[][..], false, 0), "seed {seed}");
        assert_eq!(content(&folder.path().join("store")), wrong, "seed {seed}: a dry run changes nothing");
        let made = mend(folder.path(), Some(&copy), true);
        assert_eq!((made.left.as_slice(), made.mended), (&[][..], seen.mended), "seed {seed}");
        assert_eq!(damage(folder.path()), [], "seed {seed}");
        let after = content(&folder.path().join("store"));
        let differing: Vec<_> = before.keys().filter(|path| after.get(*path) != before.get(*path)).collect();
        assert!(differing.is_empty(), "seed {seed}: {differing:?}");
    }
    let store = reader(folder.path());
    assert_eq!(store.get(&KEY, &ReadOptions::default()).unwrap().read().unwrap(), small());
}

#[test]
fn missing_arrays_meshes_and_kept_partitions_come_back() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let copy = folder.path().join("copy");
    backup(&reader(folder.path()), &copy, &BackupOptions::default()).unwrap();
    let before = content(&folder.path().join("store"));
    for part in ["arrays", "meshes"] {
        let part = folder.path().join("store").join(part);
        before.keys().filter(|path| path.starts_with(&part)).for_each(|path| fs::remove_file(path).unwrap());
        assert!(!damage(folder.path()).is_empty());
        let made = mend(folder.path(), Some(&copy), true);
        assert!(made.left.is_empty(), "{made:?}");
        assert_eq!(damage(folder.path()), []);
        assert!(content(&folder.path().join("store")) == before);
    }
}

#[test]
fn what_no_backup_has_is_accepted_by_the_names_that_verify_prints() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let store = open(folder.path());
    store
        .compact(&fieldstone::CompactOptions { grace: std::time::Duration::ZERO, ..Default::default() })
        .unwrap();
    store.close().unwrap();
    let all = content(&folder.path().join("store"));
    for (path, bytes) in all.iter().filter(|(path, _)| !path.ends_with("fieldstone.store")) {
        match path.extension().and_then(|e| e.to_str()) {
            // Other parts of these than entries of fields are not accepted.
            Some("takeover" | "log" | "end") => {}
            _ => flip(path, bytes.len() * 3 / 4, 1),
        }
    }
    let named = damage(folder.path());
    for part in ["data/", "arrays/", "meshes/", "histories/"] {
        assert!(named.iter().any(|damage| damage.file.starts_with(part)), "{part} in {named:#?}");
    }
    let files: std::collections::BTreeSet<&str> = named.iter().map(|damage| &*damage.file).collect();
    for file in &files {
        let accepted = open(folder.path()).accept(file, "no tape").unwrap();
        assert_eq!((accepted.file.as_str(), accepted.why.as_str()), (*file, "no tape"));
        // A second record of a mesh or a kept partition says the same.
        if !["meshes/", "histories/"].iter().any(|folder| file.starts_with(folder)) {
            let again = open(folder.path()).accept(file, "").unwrap_err();
            assert_eq!(again.kind(), fieldstone::ErrorKind::Invalid, "{again}");
        }
    }
    let store = reader(folder.path());
    let report = store.verify(&Request::new()).unwrap();
    assert!(report.ok() && report.accepted.len() >= files.len(), "{report:?}");
    let status = store.status().unwrap();
    assert_eq!((status.code(), status.accepted.len()), (0, report.accepted.len()), "{:?}", status.problems);
    assert_eq!(store.list(&Request::new(), &fieldstone::ListOptions::default()).unwrap().count(), 3);
    let gone = store.get(&[("run", "a"), ("variable", "u"), ("step", "1")], &ReadOptions::default());
    assert!(gone.is_err_and(|e| e.kind() == fieldstone::ErrorKind::NotFound));
}

#[test]
fn an_index_that_passed_over_damage_finds_what_was_mended() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let copy = folder.path().join("copy");
    backup(&reader(folder.path()), &copy, &BackupOptions::default()).unwrap();
    let count = || reader(folder.path()).catalog().meshes(&Session::default()).map(|all| all.len());
    let log = content(&folder.path().join("store/logs"))
        .into_iter()
        .find(|(_, bytes)| bytes.windows(4).any(|window| window == b"wing"));
    let (log, bytes) = log.unwrap();
    fs::remove_dir_all(folder.path().join("store/catalog")).unwrap_or_default();
    for (at, _) in bytes.windows(4).enumerate().filter(|(_, window)| *window == b"wing") {
        flip(&log, at, 1);
    }
    assert!(count().is_ok_and(|n| n == 0) || count().is_err());
    mend(folder.path(), Some(&copy), true);
    assert_eq!((count().unwrap(), fs::read(&log).unwrap()), (1, bytes));
}

#[test]
fn wrong_calls_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let memory = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    let refused = repair(&memory, &[], &RepairOptions::default()).unwrap_err();
    assert!(refused.message().contains("not in a folder"), "{refused}");
    let (store, at) = (reader(folder.path()), folder.path().join("store"));
    let of = |source: &Path| {
        repair(&store, &[Request::new()], &RepairOptions { source: Some(source), doit: true }).unwrap_err()
    };
    assert!(of(&at).message().contains("itself"));
    assert_eq!(of(&folder.path().join("nowhere")).code(), Code::StoreNotFound);
    let report = mend(folder.path(), None, true);
    assert!(report.mended.is_empty() && report.left.is_empty() && report.done, "{report:?}");
}
