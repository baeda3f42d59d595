//! `fieldstone lock`, `unlock` and `locks`.
#![allow(clippy::unwrap_used)]

use crate::harness::TestStore;

const KEYS: [&str; 3] = ["run=a variable=t step=0", "run=a variable=t step=6", "run=b variable=t"];

#[test]
fn a_lock_refuses_what_it_names_until_unlock() {
    let t = TestStore::with(&KEYS);
    let locked = t.run(["lock", "store", "run=a", "--archive", "--wipe", "--json"]).ok().json();
    assert_eq!(locked, serde_json::json!({"datasets": 1}));
    t.run(["remove", "store", "run=a", "--doit"]).code(6).says(&["run=a", "locked"]);
    t.run(["wipe", "store", "run=a", "--doit"]).code(6).says(&["run=a", "locked"]);
    t.run(["wipe", "store", "run=b", "--doit"]).ok();
    let rows = t.run(["locks", "store", "--json"]).ok().json();
    let kinds: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["what"].clone()).collect();
    assert_eq!(kinds, ["archive", "wipe"]);
    assert_eq!(t.run(["locks", "store"]).ok().out().lines().count(), 2);
    assert_eq!(t.run(["unlock", "store", "--archive", "--wipe"]).ok().out(), "unlocked 1 dataset\n");
    assert_eq!(t.run(["locks", "store"]).ok().out(), "");
    t.run(["remove", "store", "run=a", "--doit"]).ok();
}

#[test]
fn wrong_calls_end_with_their_codes() {
    let t = TestStore::with(&KEYS);
    t.run(["lock", "store", "run=a"]).code(2).says(&["--archive"]);
    t.run(["lock", "store", "run=a", "step=0", "--list"]).code(2).says(&["step"]);
    t.run(["lock", "store", "run=zz", "--list"]).code(3);
    t.run(["lock", "nowhere", "run=a", "--list"]).code(3);
    assert_eq!(t.run(["unlock", "store", "run=a", "--list"]).ok().out(), "unlocked nothing\n");
}
