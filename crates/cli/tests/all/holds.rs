//! `fieldstone hold`.
#![allow(clippy::unwrap_used)]

use crate::harness::TestStore;

#[test]
fn a_hold_is_set_listed_and_released() {
    let t = TestStore::with(&["run=a variable=t step=0"]);
    let held =
        t.run(["hold", "store", "--for", "2h", "--name", "tape", "--why", "a copy", "--json"]).ok().json();
    assert_eq!((held["name"].as_str(), held["why"].as_str()), (Some("tape"), Some("a copy")));
    let purge = t.run(["purge", "store", "--all", "--grace", "0", "--doit"]).ok();
    assert!(format!("{}{}", purge.out(), purge.err()).contains("\"tape\" keeps everything until 20"));
    let rows = t.run(["hold", "store", "--list", "--json"]).ok().json();
    assert_eq!(rows["holds"][0]["until"], held["until"]);
    assert!(t.run(["hold", "store"]).ok().out().starts_with("tape until 20"));
    assert_eq!(t.run(["hold", "store", "--release", "tape"]).ok().out(), "released tape\n");
    assert_eq!(t.run(["hold", "store"]).ok().out(), "no holds\n");
    t.run(["hold", "store", "--release", "tape"]).code(3).says(&["tape"]);
}

#[test]
fn wrong_calls_end_with_their_codes() {
    let t = TestStore::with(&["run=a variable=t step=0"]);
    t.run(["hold", "store", "--for", "soon"]).code(2);
    t.run(["hold", "store", "--for", "0"]).code(2).says(&["hold"]);
    t.run(["hold", "store", "--name", "x"]).code(2);
    t.run(["hold", "nowhere", "--for", "1h"]).code(3);
}
