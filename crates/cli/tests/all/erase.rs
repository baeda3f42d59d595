//! `fieldstone erase`: a dry run first, then nothing in the store holds what was recorded by mistake.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use crate::harness::TestStore;
use serde_json::json;

/// Whether any file below a folder holds a text.
fn holds(folder: &Path, text: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => holds(&path, text),
            false => fs::read(&path).unwrap().windows(text.len()).any(|window| window == text),
        }
    })
}

#[test]
fn it_says_what_it_would_erase_and_then_does_it() {
    let t = TestStore::with(&["run=a variable=t step=0", "run=b variable=t step=0"]);
    let store = t.file("store");
    t.run(["annotate", "store", "note", "MARKER of a note", "--run", "a"]).ok();
    t.run(["archive", "store", "run=a", "variable=t", "step=6", "ensemble=MARKER"]).ok();
    assert!(holds(&store, b"MARKER"));
    let shown = t.run(["erase", "store", "run=a"]).ok();
    assert!(shown.out().starts_with("would erase nothing"), "{}", shown.out());
    assert!(shown.err().contains("visible"), "{}", shown.err());
    t.run(["remove", "store", "run=a", "--doit"]).ok();
    t.run(["delete", "store", "attributes", "run=a and tag=note", "--doit"]).ok();
    let would = t.run(["erase", "store", "run=a"]).ok();
    assert!(would.out().starts_with("would erase 4 versions of 2 fields, 1 attribute"), "{}", would.out());
    assert!(would.err().contains("--doit"), "{}", would.err());
    assert!(holds(&store, b"MARKER"));
    let report = t.run(["erase", "store", "run=a", "--doit", "--json"]).ok().json();
    assert_eq!((&report["fields"], &report["attributes"]), (&json!(2), &json!(1)), "{report}");
    assert_eq!((&report["left"], &report["done"]), (&json!([]), &json!(true)), "{report}");
    assert!(!holds(&store, b"MARKER"));
    assert!(t.run(["verify", "store"]).ok().out().contains("intact"));
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 1);
}

#[test]
fn it_refuses_everything_and_patterns() {
    let t = TestStore::with(&["run=a variable=t step=0"]);
    t.run(["erase", "store", "--doit"]).code(2).says(&["everything"]);
    t.run(["erase", "store", "run=a*", "--doit"]).code(2).says(&["patterns"]);
    t.run(["erase", "nowhere", "run=a", "--doit"]).code(3);
}
