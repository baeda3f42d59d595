//! `fieldstone prefetch`, and the older values that `copy` and `move` take along.
#![allow(clippy::unwrap_used)]

use crate::harness::TestStore;
use serde_json::json;

const KEYS: [&str; 3] = ["run=a variable=t step=0", "run=a variable=t step=6", "run=b variable=t"];

#[test]
fn it_reads_fields_ahead() {
    let t = TestStore::with(&KEYS);
    assert!(t.run(["prefetch", "store", "run=a"]).ok().out().starts_with("read 2 fields, "));
    let report = t.run(["prefetch", "store", "run=b", "--json"]).ok().json();
    assert_eq!((&report["fields"], &report["damaged"]), (&json!(1), &json!([])));
    assert!(t.run(["prefetch", "store", "run=zz"]).ok().out().starts_with("read 0 fields"));
    t.run(["prefetch", "store", "run=a", "--find", "tag=x"]).code(2).says(&["--find"]);
    t.run(["prefetch", "nowhere", "run=a"]).code(3);
}

#[test]
fn older_values_go_along_on_request() {
    let t = TestStore::with(&KEYS);
    t.run(["archive", "store", "run=a", "variable=t", "step=6"]).ok();
    let copied = t.run(["copy", "store", "run=a", "--to", "copies", "--versions", "--json"]).ok().json();
    assert_eq!((&copied["fields"], &copied["versions"]), (&json!(2), &json!(1)));
    let moved = t.run(["move", "store", "run=a", "--to", "archive"]).ok();
    assert!(moved.err().contains("1 version stayed behind"), "{}", moved.err());
    let moved = t.run(["move", "copies", "run=a", "--to", "elsewhere", "--versions"]).ok();
    assert!(moved.out().contains("1 older value"), "{}", moved.out());
}
