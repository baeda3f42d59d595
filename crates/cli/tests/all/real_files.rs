//! ingest and plot on real files, through the helper process. Skipped where no Python has the package
//! `fieldstone` or the data are absent, unless `FIELDSTONE_REQUIRE` asks for them.
#![allow(clippy::unwrap_used, clippy::panic)]

use fieldstone_testkit::samples::{checkout, python_with, sample};
use std::path::{Path, PathBuf};

use crate::harness::{Run, TestStore, finish};
use serde_json::json;

const NETCDF: &str = "netcdf-classic/eraint_uvz.nc";
const GRIB: &str = "grib/t_analysis_and_fc_0.grib";

/// The Python of `make build`.
fn python() -> Option<PathBuf> {
    python_with("helper", "numpy, netCDF4, eccodes, matplotlib")
}

/// Runs the program with the helper of these sources: in a package that is nothing else, because the
/// whole one needs its native module.
fn run(t: &TestStore, python: &Path, arguments: &[&str]) -> Run {
    let package = t.file("python/fieldstone");
    if !package.exists() {
        std::fs::create_dir_all(&package).unwrap();
        std::fs::write(package.join("__init__.py"), "").unwrap();
        // The helper, and what it shares with the package without the native module.
        for name in ["_helper", "_split.py"] {
            let source = checkout().join("python/fieldstone").join(name);
            std::os::unix::fs::symlink(source, package.join(name)).unwrap();
        }
    }
    let mut command = t.command(arguments);
    command.env("FIELDSTONE_PYTHON", python).env("PYTHONPATH", t.file("python"));
    finish(command, b"")
}

#[test]
fn netcdf_goes_in_comes_out_and_is_drawn() {
    let (Some(python), Some(file)) = (python(), sample(NETCDF)) else { return };
    let t = TestStore::empty();
    let file = file.to_string_lossy();
    let report = run(&t, &python, &["ingest", "store", &file, "--json"]).ok().json();
    let fields = report["taken"][0]["fields"].as_u64().unwrap();
    assert!(fields > 1, "{report}");
    let listed = t.run(["list", "store", "--jsonl"]).ok().out();
    assert_eq!(listed.lines().count() as u64, fields);
    let again = run(&t, &python, &["ingest", "store", &file]).ok();
    assert!(again.out().contains("0 fields"), "{}", again.out());

    let entries = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut planes = entries.filter(|e| e["shape"].as_array().is_some_and(|s| s.len() >= 2));
    let plane = planes.next_back().unwrap();
    let pairs = plane["key"].as_object().unwrap().iter();
    let key: Vec<String> = pairs.map(|(k, v)| format!("{k}={v}")).collect();
    let key = key.join(",");
    let drawn = run(&t, &python, &["plot", "store", &key, "--width", "40"]).ok().out();
    assert!(drawn.lines().count() > 3 && drawn.contains(" to "), "{drawn}");
    // Packing is undone and words are found, through the header that was ingested with the file.
    let summary = t.run(["plot", "store", &key, "--json"]).ok().json();
    assert_eq!(summary["label"], "Geopotential (m**2 s**-2)", "{summary}");
    assert!(
        summary["min"].as_f64().unwrap() > 50_000.0 && summary["max"].as_f64().unwrap() < 200_000.0,
        "{summary}"
    );
    run(&t, &python, &["plot", "store", &key, "-o", "a.png"]).ok();
    assert!(t.read("a.png").starts_with(b"\x89PNG"));
}

#[test]
fn grib_goes_in_comes_out_and_is_drawn() {
    let (Some(python), Some(file)) = (python(), sample(GRIB)) else { return };
    let t = TestStore::empty();
    run(&t, &python, &["ingest", "store", &file.to_string_lossy()]).ok();
    assert_eq!(t.run(["status", "store", "--json"]).ok().json()["schema"], json!("mars"));
    let line = t.run(["list", "store"]).ok().out().lines().next().unwrap().to_owned();
    let message = t.run(["get", "store", &line]).ok();
    assert!(message.bytes().starts_with(b"GRIB") && message.bytes().ends_with(b"7777"));
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.windows(message.bytes().len()).any(|w| w == message.bytes()));
    let drawn = run(&t, &python, &["plot", "store", &line, "--width", "40"]).ok().out();
    assert!(drawn.lines().count() > 3 && drawn.contains(" to "), "{drawn}");
    run(&t, &python, &["plot", "store", &line, "-o", "a.png"]).ok();
    assert!(t.read("a.png").starts_with(b"\x89PNG"));
}

#[test]
fn a_file_that_cannot_be_taken_is_told_and_ends_with_2() {
    let Some(python) = python() else { return };
    let t = TestStore::empty();
    std::fs::write(t.file("text.nc"), b"no netCDF at all").unwrap();
    let report = run(&t, &python, &["ingest", "store", "text.nc", "absent.nc", "--json"]).code(2);
    let skipped = report.json()["skipped"].clone();
    assert_eq!(skipped.as_array().unwrap().len(), 2, "{skipped}");
    assert_eq!((&skipped[0]["file"], &skipped[1]["file"]), (&json!("text.nc"), &json!("absent.nc")));
    let error: serde_json::Value = serde_json::from_str(report.err().trim().lines().last().unwrap()).unwrap();
    assert_eq!(error["error"]["message"], "2 of 2 files could not be taken");
    let text = run(&t, &python, &["ingest", "store", "text.nc"]).code(2);
    assert!(text.err().contains("\nerror: 1 of 1 file could not be taken\nhint: "), "{}", text.err());
}
