//! `fieldstone overlay`.
#![allow(clippy::unwrap_used)]

use crate::harness::TestStore;

const KEYS: [&str; 3] = ["run=a variable=t step=0", "run=a variable=t step=6", "run=c variable=t"];

#[test]
fn fields_appear_under_another_value_until_that_is_removed() {
    let t = TestStore::with(&KEYS);
    let made = t.run(["overlay", "store", "run=a", "--as", "run=b", "--json"]).ok().json();
    assert_eq!(made, serde_json::json!({"fields": 2}));
    let listed = t.run(["list", "store"]).ok().out();
    assert!(listed.contains("{run=b}{variable=t}{step=6}") && listed.lines().count() == 5, "{listed}");
    assert_eq!(
        t.run(["get", "store", "run=b", "variable=t", "step=0"]).ok().out(),
        t.run(["get", "store", "run=a", "variable=t", "step=0"]).ok().out()
    );
    let rows = t.run(["overlay", "store", "--list", "--json"]).ok().json();
    assert_eq!((rows[0]["request"].as_str(), rows[0]["values"].as_str()), (Some("run=a"), Some("run=b")));
    assert!(t.run(["overlay", "store"]).ok().out().starts_with("run=a\trun=b\t"));
    t.run(["overlay", "store", "run=a", "--as", "run=b"]).code(4).says(&["already", "run=b"]);
    let ended = t.run(["overlay", "store", "run=a", "--as", "run=b", "--remove"]).ok().out();
    assert_eq!(ended, "2 fields no longer as run=b\n");
    assert_eq!(t.run(["list", "store", "run=b"]).ok().out(), "");
    assert_eq!(t.run(["overlay", "store"]).ok().out(), "");
    assert_eq!(t.run(["overlay", "store", "run=a", "--as", "run=b"]).ok().out(), "2 fields also as run=b\n");
}

#[test]
fn wrong_calls_end_with_their_codes() {
    let t = TestStore::with(&KEYS);
    t.run(["overlay", "store", "run=a"]).code(2).says(&["--as"]);
    t.run(["overlay", "store", "variable=t", "--as", "run=b"]).code(2).says(&["run", "one value"]);
    t.run(["overlay", "store", "run=a/c", "--as", "run=b"]).code(2).says(&["one value"]);
    t.run(["overlay", "store", "run=a", "--as", "run=a"]).code(2).says(&["another value"]);
    t.run(["overlay", "store", "run=zz", "--as", "run=b"]).code(3);
    t.run(["overlay", "store", "run=a", "--as", "run=b", "--remove"]).code(3).says(&["no overlay"]);
    t.run(["overlay", "nowhere", "run=a", "--as", "run=b"]).code(3);
}
