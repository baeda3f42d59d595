//! `fieldstone purge`: its counts, its arguments, and what it leaves.
#![allow(clippy::unwrap_used)]

use crate::harness::TestStore;
use serde_json::json;

const KEYS: [&str; 4] =
    ["run=a variable=t step=0", "run=a variable=t step=0", "run=b variable=t", "run=b variable=t"];

#[test]
fn it_says_what_would_go_and_drops_it_if_asked_to() {
    let t = TestStore::with(&KEYS);
    t.run(["remove", "store", "run=b", "--doit"]).ok();
    let answers = || {
        let lines = ["list store", "axes store", "get store run=a", "status store --json"];
        lines[..3].iter().map(|line| t.run(line.split(' ')).ok().out()).collect::<Vec<String>>()
    };
    let (before, version) = (answers(), t.run(["version", "store"]).ok().out());
    let said = t.run(["purge", "store", "--all", "--grace", "0"]).ok().out();
    assert!(said.starts_with("would purge 4 versions of 2 fields, "), "{said}");
    let said = t.run(["purge", "store", "--all", "--grace", "0", "--doit"]).ok().out();
    assert!(said.starts_with("purged 4 versions of 2 fields, ") && said.lines().count() == 1, "{said}");
    assert_eq!(answers(), before);
    assert!(t.run(["verify", "store"]).ok().out().contains("all intact"));
    let said = t.run(["purge", "store", "--all", "--grace", "0", "--doit"]).ok().out();
    assert_eq!(said, "purged nothing\n");
    // Versions before the removal no longer have the field.
    t.run(["get", "store", "run=b", "--at", version.trim()]).code(3);
}

#[test]
fn an_older_version_names_the_purge() {
    let t = TestStore::with(&KEYS[..1]);
    let version = t.run(["version", "store"]).ok().out();
    t.run_with(["archive", "store", "run=a", "variable=t", "step=0", "-"], b"newer").ok();
    t.run(["purge", "store", "run=a", "--grace", "0", "--doit"]).ok();
    t.run(["get", "store", "run=a", "variable=t", "step=0", "--at", version.trim()])
        .code(3)
        .says(&["purged since"]);
    t.run(["list", "store", "--at", version.trim()]).code(3).says(&["purged since"]);
}

#[test]
fn its_json_has_counts_and_its_arguments_are_checked() {
    let t = TestStore::with(&KEYS);
    let report = t.run(["purge", "store", "run=a", "--grace", "0", "--json"]).ok().json();
    assert_eq!(
        (&report["done"], &report["fields"], &report["versions"]),
        (&json!(false), &json!(1), &json!(1))
    );
    assert_eq!(
        (&report["kept"], &report["left"], &report["more"]),
        (&json!(null), &json!([]), &json!(false))
    );
    let report = t.run(["purge", "store", "run=a", "--doit", "--json"]).ok().json();
    assert_eq!((&report["done"], &report["versions"]), (&json!(true), &json!(0)), "within the grace");
    t.run(["purge", "store"]).code(2).says(&["all"]);
    t.run(["purge", "store", "run=a", "step=0"]).code(2).says(&["step"]);
    t.run(["purge", "store", "--all", "--max-bytes", "1.5G"]).code(2).says(&["500M"]);
    t.run(["purge", "nowhere", "--all"]).code(3);
}
