//! `fieldstone hide` and `unhide`.
#![allow(clippy::unwrap_used)]

use crate::harness::TestStore;

const KEYS: [&str; 3] = ["run=a variable=t step=0", "run=a variable=t step=6", "run=b variable=t"];

#[test]
fn hidden_fields_are_not_listed_until_unhide() {
    let t = TestStore::with(&KEYS);
    assert_eq!(t.run(["hide", "store", "run=a", "--json"]).ok().json(), serde_json::json!({"fields": 2}));
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 1);
    let rows = t.run(["hide", "store", "--list", "--json"]).ok().json();
    assert_eq!((rows[0]["request"].as_str(), rows.as_array().unwrap().len()), (Some("run=a"), 1));
    assert!(t.run(["hide", "store"]).ok().out().starts_with("run=a\t"));
    t.run(["get", "store", "run=a", "variable=t", "step=0"]).code(3);
    assert_eq!(t.run(["unhide", "store", "run=a"]).ok().out(), "showed 2 fields\n");
    assert_eq!(t.run(["unhide", "store"]).ok().out(), "showed nothing\n");
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 3);
    assert_eq!(t.run(["hide", "store", "--list"]).ok().out(), "");
}

#[test]
fn wrong_calls_end_with_their_codes() {
    let t = TestStore::with(&KEYS);
    t.run(["hide", "store", "run=a", "step=0"]).code(2).says(&["step", "hide"]);
    t.run(["hide", "store", "run=a", "--list"]).code(2);
    t.run(["hide", "nowhere", "run=a"]).code(3);
    assert_eq!(t.run(["hide", "store", "run=zz"]).ok().out(), "hid nothing\n");
    t.run(["hide", "store", "run=a/b"]).ok();
    t.run(["unhide", "store", "run=a"]).code(2).says(&["run=a/b", "hid"]);
}
