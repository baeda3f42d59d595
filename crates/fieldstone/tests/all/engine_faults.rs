//! Faults of the disk under the catalog's engine, which SQLite uses directly: kill, power cut, I/O errors and a full
//! disk at each of its changing calls. The engine is only an index: no flushed data may be lost or doubled, no flush
//! may fail, and an answer is right or an error.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::processes::{self, Folder};
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{CatalogSettings, Query};
use fieldstone::prelude::*;
use fieldstone::{Mode, OpenOptions};
use fieldstone_testkit::require::{full, require};

const FLUSHES: u64 = 8;
const ROWS: u64 = 40;

/// The shim, compiled into the folder; `None` where there is no compiler.
fn shim(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/engine_faults/shim.c");
    let library = folder.join("shim.so");
    let built = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .args(["-ldl", "-lpthread"])
        .status();
    require("cc", built.is_ok_and(|status| status.success()), "cc cannot build a shared library")
        .then_some(library)
}

/// Runs the indexer with a fault at call `at` of its engine's files.
fn run(shim: &Path, folder: &Path, kind: &str, at: u64) -> Output {
    Command::new(processes::example("indexer"))
        .args([folder.join("store").to_str().unwrap(), "a", &FLUSHES.to_string()])
        .env("LD_PRELOAD", shim)
        .env("FAULT_PATH", "/catalog/")
        .env("FAULT_KIND", kind)
        .env("FAULT_AT", at.to_string())
        .env("FAULT_SEED", at.to_string())
        .env("FAULT_IMAGE", folder.join("image"))
        .env("FAULT_COUNT", folder.join("count"))
        .output()
        .unwrap()
}

/// The rest of output lines that begin with a word.
fn lines(output: &Output, word: &str) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.filter_map(|line| line.strip_prefix(word)).map(|rest| rest.trim().to_owned()).collect()
}

/// Expected answers of the catalog: all rows of complete flushes, each once; at least the acknowledged ones.
fn check(folder: &Path, acknowledged: u64, context: &str) {
    let url = folder.join("store").to_str().unwrap().to_owned();
    let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let store = match fieldstone::open(&url, &options) {
        Ok(store) => store,
        Err(e) => {
            assert_eq!(acknowledged, 0, "{context}: {e}");
            return;
        }
    };
    let answer = || {
        let catalog = store.catalog_with(CatalogSettings::default());
        let hits = catalog.attributes(&Query::all()).unwrap();
        let mut rows = BTreeSet::new();
        for (i, value) in hits.value.iter().enumerate() {
            let Value::Int(value) = value else { panic!("{context}: {value:?} is not an integer") };
            assert!(rows.insert((hits.step[i], *value)), "{context}: {value} is there twice");
        }
        (catalog, rows)
    };
    let (catalog, found) = answer();
    assert_eq!(found.len() as u64 % ROWS, 0, "{context}: part of a flush");
    let flushes = found.len() as u64 / ROWS;
    assert!((acknowledged..=acknowledged + 1).contains(&flushes), "{context}: {flushes} of {acknowledged}");
    let right = |(step, value): &(Option<i64>, i64)| step.is_some_and(|step| value / 1000 == step);
    assert!(found.iter().all(right), "{context}: a value that was not written");
    let fields = store.stats(&fieldstone::Request::new()).unwrap().fields;
    assert_eq!(fields, flushes, "{context}: fields and attributes");
    catalog.rebuild().unwrap();
    drop(catalog);
    assert_eq!(answer().1, found, "{context}: the rebuilt engine gives another answer");
}

fn at_every_call(kind: &str, after: impl Fn(&Path, &Output, &str)) {
    let base = Folder::new(&format!("engine-{kind}"));
    let Some(shim) = shim(&base.0) else { return };
    let counting = base.0.join("counting");
    std::fs::create_dir(&counting).unwrap();
    let output = run(&shim, &counting, "count", 0);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    check(&counting, FLUSHES, "without a fault");
    let calls: u64 = std::fs::read_to_string(counting.join("count")).unwrap().trim().parse().unwrap();
    assert!(calls > 20, "the shim saw only {calls} calls: SQLite goes another way");
    let every = if full() { 1 } else { (calls / 24).max(1) };
    for at in (1..=calls).step_by(every as usize) {
        let folder = base.0.join(at.to_string());
        std::fs::create_dir(&folder).unwrap();
        let output = run(&shim, &folder, kind, at);
        let context = format!("{kind} at call {at} of {calls}");
        after(&folder, &output, &context);
        let acknowledged = lines(&output, "flushed").len() as u64;
        check(&folder, acknowledged, &context);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn killed_within_the_engine_nothing_is_lost_or_doubled() {
    at_every_call("kill", |_, output, context| {
        assert!(!output.status.success(), "{context}: was not killed");
    });
}

#[test]
fn after_a_power_cut_the_engine_is_mended_or_made_again() {
    at_every_call("cut", |folder, output, context| {
        assert!(!output.status.success(), "{context}: was not cut");
        let engine = folder.join("store/catalog");
        let _ = std::fs::remove_dir_all(&engine);
        std::fs::rename(folder.join("image"), &engine).unwrap();
    });
}

/// The log is on a disk that works: every flush succeeds, and the catalog's answers are right.
fn goes_on(kind: &str) {
    at_every_call(kind, |_, output, context| {
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{context}: {error}");
        assert_eq!(lines(output, "flushed").len() as u64, FLUSHES, "{context}: {error}");
        for found in lines(output, "found") {
            assert_eq!(found.parse::<u64>().unwrap() % (2 * ROWS), 0, "{context}: a wrong answer");
        }
        for refused in lines(output, "refused") {
            assert_eq!(refused, "Unavailable", "{context}: {error}");
        }
    });
}

#[test]
fn an_engine_whose_disk_fails_delays_no_flush_and_gives_no_wrong_answer() {
    goes_on("fail");
}

#[test]
fn an_engine_whose_disk_is_full_delays_no_flush_and_gives_no_wrong_answer() {
    goes_on("full");
}
