//! `fieldstone retain` and `fieldstone maintain`: rules are kept, listed, ended and applied.
#![allow(clippy::unwrap_used)]

use crate::harness::TestStore;
use serde_json::json;

const KEYS: [&str; 3] = ["run=a variable=t step=0", "run=a variable=t step=0", "run=b variable=t step=0"];

#[test]
fn rules_are_kept_listed_and_dropped() {
    let t = TestStore::with(&KEYS);
    let said = t.run(["retain", "store", "run=a", "--older-than", "5d", "--versions", "2"]).ok().out();
    assert_eq!(said, "kept run=a: older than 5 days goes, 2 versions of a field stay\n");
    t.run(["retain", "store", "--all", "--versions", "1"]).ok();
    let rules = t.run(["retain", "store", "--json"]).ok().json();
    assert_eq!((&rules["rules"][0]["request"], &rules["rules"][0]["versions"]), (&json!(""), &json!(1)));
    assert_eq!(
        (&rules["rules"][1]["request"], &rules["rules"][1]["older_than"]),
        (&json!("run=a"), &json!(432e3))
    );
    assert!(
        t.run(["retain", "store", "--list"])
            .ok()
            .out()
            .contains("(everything): 1 version of a field stays, by")
    );
    t.run(["retain", "store", "run=a", "--drop"]).ok();
    t.run(["retain", "store", "run=a", "--drop"]).code(3).says(&["no rule"]);
    assert_eq!(t.run(["retain", "store"]).ok().out().lines().count(), 1);
    t.run(["retain", "store", "run=a"]).code(2).says(&["an age or a number of versions"]);
    t.run(["retain", "store", "run=a", "step=0", "--older-than", "1d"]).code(2).says(&["step"]);
    t.run(["retain", "store", "--older-than", "1d"]).code(2).says(&["everything"]);
    t.run(["retain", "store", "run=a", "--versions", "0"]).code(2);
    t.run(["retain", "store", "run=a", "--list"]).code(2);
    t.run(["retain", "nowhere", "run=a", "--older-than", "1d"]).code(3);
    t.run(["retain", "nowhere"]).code(3);
}

#[test]
fn maintenance_says_what_each_step_did_or_why_not() {
    let t = TestStore::with(&KEYS);
    t.run(["retain", "store", "run=a", "--older-than", "0", "--versions", "1"]).ok();
    let advice = t.run(["status", "store", "--json"]).ok().json()["advice"].clone();
    assert!(advice[0]["command"].as_str().unwrap().starts_with("fieldstone maintain "), "{advice}");
    let dry = t.run(["maintain", "store", "--dry-run", "--grace", "0"]).ok().out();
    assert!(
        dry.contains("would wipe run=a 1 field, ") && dry.contains("purge left: it does not pay"),
        "{dry}"
    );
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 2);
    let steps = t.run(["maintain", "store", "--grace", "0", "--json"]).ok().json()["steps"].clone();
    let actions: Vec<&str> =
        steps.as_array().unwrap().iter().map(|s| s["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["sweep", "wipe", "purge", "compact"]);
    assert_eq!((&steps[1]["done"], &steps[1]["fields"]), (&json!(true), &json!(1)));
    assert!(steps[3]["why"].as_str().unwrap().contains("ended logs"), "{steps}");
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 1);
    t.run(["maintain", "nowhere"]).code(3);
}
