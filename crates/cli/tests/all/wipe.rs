//! `fieldstone wipe`: a dry run first, then it takes whole datasets and indexes.
#![allow(clippy::unwrap_used)]

use std::fs;

use crate::harness::TestStore;
use serde_json::json;

const KEYS: [&str; 4] =
    ["run=a variable=t step=0", "run=a variable=t step=6", "run=a variable=u", "run=b variable=t"];

#[test]
fn it_says_what_it_would_wipe_and_then_does_it() {
    let t = TestStore::with(&KEYS);
    let version = t.run(["version", "store"]).ok().out();
    fs::write(t.file("store/stray"), "x").unwrap();
    let would = t.run(["wipe", "store", "run=a", "variable=t"]).ok();
    assert!(would.out().starts_with("would wipe 2 fields, "), "{}", would.out());
    assert!(would.err().contains("--doit") && would.err().contains("stray"), "{}", would.err());
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 4);
    let report = t.run(["wipe", "store", "run=a", "variable=t", "--doit", "--json"]).ok().json();
    assert_eq!((&report["fields"], &report["done"]), (&json!(2), &json!(true)));
    assert_eq!(report["foreign"], json!(["stray"]));
    let listed = t.run(["list", "store"]).ok().out();
    assert!(listed.lines().count() == 2 && listed.contains("{variable=u}"), "{listed}");
    assert_eq!(t.run(["list", "store", "--at", version.trim()]).ok().out().lines().count(), 4);
    assert!(t.run(["wipe", "store", "run=zz", "--doit"]).ok().out().starts_with("wiped nothing"));
    assert!(t.run(["wipe", "store", "--older-than", "5d", "run=b", "--doit"]).ok().out().contains("nothing"));
    t.run(["archive", "store", "run=a", "variable=t", "step=6"]).ok();
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 3);
    assert!(t.run(["wipe", "store", "--all", "--doit"]).ok().out().starts_with("wiped 3 fields"));
    assert!(t.run(["verify", "store"]).ok().out().contains("intact"));
}

#[test]
fn it_refuses_single_fields_and_everything() {
    let t = TestStore::with(&KEYS);
    t.run(["wipe", "store", "run=a", "step=0", "--doit"]).code(2).says(&["step", "remove"]);
    t.run(["wipe", "store", "--doit"]).code(2).says(&["everything"]);
    t.run(["wipe", "store", "run=*", "--doit"]).code(2).says(&["everything"]);
    t.run(["wipe", "store", "run=a", "--older-than", "soon"]).code(2);
    t.run(["wipe", "nowhere", "run=a", "--doit"]).code(3);
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 4);
}
