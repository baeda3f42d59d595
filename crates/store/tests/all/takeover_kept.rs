//! The kept store with takeovers: this release, later ones, and the small reader that knows only spec/
//! (`tests/compat/test_takeovers.py`) find the same fields in it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::*;
use crate::takeovers::{close, compact};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_format::crc;
use fieldstone_format::log::SideRecord;
use fieldstone_journal::Session;
use fieldstone_journal::writer::INLINE_MAX;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_store::local::{LocalOptions, LocalStore};

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/takeovers")
}

/// A line for each field: key, bytes and their checksum.
pub fn lines(store: &Store) -> String {
    let mut text = String::new();
    for entry in store.list(&Request::new(), &ListOptions::default()).unwrap() {
        let key = entry.unwrap().key.to_string().replace("}{", ",").replace(['{', '}'], "");
        let key = key.trim_end_matches(',');
        let bytes = get(store, key).unwrap();
        writeln!(text, "{key}\t{}\t{:08x}", bytes.len(), crc(&bytes)).unwrap();
    }
    text
}

#[test]
fn r15_the_kept_store_with_takeovers_reads_as_it_was_made() {
    check_kept(&kept());
}

/// A kept store has the fields that it had, now and at an older version.
pub fn check_kept(kept: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("xzf").arg(kept.join("store.tar.gz")).arg("-C").arg(folder.path());
    assert!(unpack.status().unwrap().success());
    let root = folder.path().join("store");
    let expected = |name: &str| std::fs::read_to_string(kept.join(name)).unwrap();
    let open = |at: Option<String>| {
        let options = LocalOptions { must_exist: true, at, ..LocalOptions::default() };
        Arc::new(LocalStore::open(Env::real(), &root, options).unwrap())
    };
    let store = open(None);
    assert_eq!(lines(&store), expected("fields.tsv"));
    let versions = expected("versions.txt");
    let (now, older) = versions.trim().split_once('\n').unwrap();
    assert_eq!(store.version().unwrap(), now);
    assert_eq!(lines(&open(Some(older.to_owned()))), expected("older.tsv"));
    let report = store.verify(&Request::new()).unwrap();
    assert!(report.ok(), "{report:?}");
}

/// A log with many fields, a large one, an array, a removal and an attempt; `joined` is a transaction of another process.
fn first_log(world: &SimWorld, joined: Id) {
    let options = Opening { attempt: "1.1".into(), ..Opening::default() };
    let store = open_in(&world.process("a"), &options).unwrap();
    for step in 0..500 {
        put(&store, &format!("run=many,variable=t,step={step}"), format!("value {step}").as_bytes()).unwrap();
    }
    let side = SideRecord { kind: 9, bytes: b"a side record".to_vec().into() };
    store.journal().unflushed().add(vec![side], &Session::default()).unwrap();
    store.flush(&Session::default()).unwrap();
    flush_one(&store, "run=a,variable=large,step=1", &vec![7; INLINE_MAX + 5]);
    let data: Vec<u8> = (0..960u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let value = Value::Array { data: &data, dtype: DType::F4, shape: &[24, 40] };
    let chunks = Some(vec![10, 7]);
    let options = ArchiveOptions { chunks, compression: Some(Compression::Zstd(3)), ..Default::default() };
    archive(&store, "run=a,variable=array,step=1", value, &options).unwrap();
    flush_one(&store, "run=a,variable=gone,step=1", b"to be removed");
    flush_one(&store, "run=a,variable=t,step=1", b"first");
    put_in(&store, "run=a,variable=joined,step=1", b"of the first log", joined).unwrap();
    store.flush(&Session::from(joined)).unwrap();
    let gone = Request::parse("run=a,variable=gone").unwrap();
    assert_eq!(store.remove(&gone, &RemoveOptions::default()).unwrap(), 1);
    store.flush(&Session::default()).unwrap();
    close(&store);
}

/// Makes it. Kept stores of an old release are never rewritten: run this for a new release, under a new name.
#[test]
#[ignore = "writes into the sources"]
fn make_the_kept_store_with_takeovers() {
    let world = SimWorld::new(1);
    let second = open(&world, "b");
    let joined = second.begin().unwrap();
    first_log(&world, joined);
    flush_one(&second, "run=a,variable=early,step=1", b"early");
    compact(&open(&world, "a"));
    let (older, then) = (second.version().unwrap(), lines(&second));
    flush_one(&second, "run=many,variable=t,step=7", b"of the second log");
    put_in(&second, "run=a,variable=joined,step=2", b"of the second log", joined).unwrap();
    second.decide(joined, true, &Session::default()).unwrap();
    let prepared = second.begin().unwrap();
    put_in(&second, "run=a,variable=prepared,step=1", b"prepared", prepared).unwrap();
    second.flush(&Session::from(prepared)).unwrap();
    close(&second);
    compact(&open(&world, "a"));
    let living = open(&world, "a");
    flush_one(&living, "run=living,variable=t,step=1", b"living");
    let names: Vec<PathBuf> = files(&world, "logs");
    assert_eq!(names.len(), 3, "two takeovers and a log: {names:?}");
    keep(&world, &kept(), &living, (&older, &then));
}

/// Packs the files of a store, with the lines of its fields now and at an older version.
pub fn keep(world: &SimWorld, kept: &Path, now: &Store, (older, then): (&str, &str)) {
    let folder = tempfile::tempdir().unwrap();
    for path in world.files() {
        let to = folder.path().join("store").join(path.strip_prefix(ROOT).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, world.read(&path).unwrap()).unwrap();
    }
    std::fs::create_dir_all(kept).unwrap();
    let mut packed = Command::new("tar");
    packed.args(["--sort=name", "--mtime=2024-01-01", "--owner=0", "--group=0", "--numeric-owner", "-czf"]);
    packed.arg(kept.join("store.tar.gz")).arg("-C").arg(folder.path()).arg("store");
    assert!(packed.status().unwrap().success());
    std::fs::write(kept.join("fields.tsv"), lines(now)).unwrap();
    std::fs::write(kept.join("older.tsv"), then).unwrap();
    std::fs::write(kept.join("versions.txt"), format!("{}\n{older}\n", now.version().unwrap())).unwrap();
}
