//! `fieldstone hand-over`.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::MetadataExt;

use crate::harness::TestStore;

const KEYS: [&str; 3] = ["run=a variable=t step=0", "run=a variable=t step=6", "run=b variable=t"];

/// The user who runs the tests, by number.
fn own(t: &TestStore) -> String {
    std::fs::metadata(t.file("store")).unwrap().uid().to_string()
}

#[test]
fn r77_a_users_datasets_become_anothers() {
    let t = TestStore::with(&KEYS);
    let me = own(&t);
    let report = t.run(["hand-over", "store", &me, "4242", "--json"]).ok().json();
    assert_eq!((report["to"].as_str(), report["datasets"].as_u64()), (Some("4242"), Some(2)));
    t.run_with(["archive", "store", "run=a", "variable=t", "step=0"], b"x").code(6).says(&["4242", "run=a"]);
    t.run_with(["archive", "store", "run=c", "variable=t", "step=0"], b"of my own").ok();
    t.run(["get", "store", "run=a", "variable=t", "step=0"]).ok();
    let rows = t.run(["hand-over", "store", "--list", "--json"]).ok().json();
    assert_eq!((rows[0]["to"].as_str(), rows.as_array().unwrap().len()), (Some("4242"), 1));
    assert!(rows[0]["since"].is_string() && rows[0]["by"] == rows[0]["from"]);
    let status = t.run(["status", "store", "--json"]).ok().json();
    assert!(status["owners"].as_array().unwrap().contains(&"{run=a} 4242".into()), "{status}");
    let notes = status["problems"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.to_string().contains("handed over to 4242")), "{status}");
    assert!(t.run(["audit", "store", "--user", &me]).ok().out().contains("hand-over"));
    let back = t.run(["hand-over", "store", "4242", &me]).ok().out();
    assert!(back.starts_with("handed over 2 datasets of 4242 to "), "{back}");
    t.run_with(["archive", "store", "run=a", "variable=t", "step=0"], b"x").ok();
    assert_eq!(t.run(["hand-over", "store"]).ok().out().lines().count(), 2);
}

#[test]
fn wrong_calls_end_with_their_codes() {
    let t = TestStore::with(&KEYS);
    let me = own(&t);
    t.run(["hand-over", "store", &me]).code(2).says(&["both"]);
    t.run(["hand-over", "store", &me, &me]).code(2).says(&["himself"]);
    t.run(["hand-over", "store", &me, "4242", "--list"]).code(2);
    t.run(["hand-over", "store", "nobody-by-this-name", "4242"]).code(3).says(&["nobody-by-this-name"]);
    t.run(["hand-over", "store", &me, "-1"]).code(2);
    t.run(["hand-over", "nowhere", &me, "4242"]).code(3);
    let nothing = t.run(["hand-over", "store", "4242", "4243"]).ok().out();
    assert_eq!(nothing, "handed over 0 datasets of 4242 to 4243\n");
    assert_eq!(t.run(["hand-over", "store", "--list"]).ok().out(), "");
}
