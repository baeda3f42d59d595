//! `fieldstone reindex`.
#![allow(clippy::unwrap_used)]

use crate::harness::TestStore;

const KEYS: [&str; 3] = ["run=a variable=t step=0", "run=a variable=t step=6", "run=c variable=t"];

#[test]
fn another_store_names_fields_until_the_end() {
    let t = TestStore::with(&KEYS);
    let made = t.run(["reindex", "store", "run=a", "--to", "other", "--json"]).ok().json();
    assert_eq!(made, serde_json::json!({"fields": 2, "kept": true, "left": []}));
    assert_eq!(t.run(["list", "other"]).ok().out().lines().count(), 2);
    assert_eq!(
        t.run(["get", "other", "run=a", "variable=t", "step=6"]).ok().out(),
        t.run(["get", "store", "run=a", "variable=t", "step=6"]).ok().out()
    );
    let rows = t.run(["reindex", "store", "--list", "--json"]).ok().json();
    assert_eq!(rows[0]["request"].as_str(), Some("run=a"));
    assert!(t.run(["reindex", "store", "--list"]).ok().out().starts_with("run=a\t"));
    t.run(["reindex", "store", "run=a", "--to", "other", "--end"]).ok();
    assert_eq!(t.run(["reindex", "store", "--list"]).ok().out(), "");
}

#[test]
fn wrong_calls_end_with_their_codes() {
    let t = TestStore::with(&KEYS);
    t.run(["reindex", "store", "run=a"]).code(2).says(&["--to"]);
    t.run(["reindex", "store", "run=z", "--to", "other"]).code(3).says(&["run=z"]);
    t.run(["reindex", "store", "run=a*", "--to", "other"]).code(2).says(&["run"]);
    t.run(["reindex", "store", "run=a", "--to", "store"]).code(2).says(&["one store"]);
    t.run(["reindex", "nowhere", "run=a", "--to", "other"]).code(3);
}
