//! `fieldstone compact`: its counts, its arguments, and the logs that it leaves.
#![allow(clippy::unwrap_used)]

use std::fs;

use crate::harness::TestStore;
use serde_json::json;

const KEYS: [&str; 4] =
    ["run=a variable=t step=0", "run=a variable=t step=6", "run=b variable=t", "run=c variable=t"];

fn logs(t: &TestStore) -> Vec<String> {
    let names = fs::read_dir(t.file("store/logs")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".log")).collect();
    names.sort();
    names
}

#[test]
fn it_prints_counts_before_and_after_and_answers_stay() {
    let t = TestStore::with(&KEYS);
    t.run(["annotate", "store", "note", "sound", "--run", "a"]).ok();
    let answers = || {
        let lines = ["list store", "find store tag=note", "get store run=b", "runs store", "axes store"];
        lines.map(|line| t.run(line.split(' ')).ok().out())
    };
    let before = answers();
    let version = t.run(["version", "store"]).ok().out();
    let said = t.run(["compact", "store"]).ok().out();
    assert!(said.starts_with("5 logs, now 0; "), "{said}");
    assert!(
        said.ends_with("; 5 files to be removed after the grace\n") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!((answers(), logs(&t).len()), (before.clone(), 5));
    let said = t.run(["compact", "store", "--grace", "0"]).ok().out();
    assert!(said.contains("; 0 bytes rewritten\n"), "{said}");
    assert_eq!((answers(), logs(&t).len()), (before, 0));
    t.run(["list", "store", "--at", version.trim()]).ok();
    assert!(t.run(["verify", "store"]).ok().out().contains("all intact"));
    t.run(["status", "store"]).ok();
}

#[test]
fn its_json_has_pairs() {
    let t = TestStore::with(&KEYS);
    let report = t.run(["compact", "store", "--grace", "0", "--json"]).ok().json();
    assert_eq!(report["logs"], json!({"before": 4, "after": 0}));
    assert_eq!(report["segments"], json!({"before": 4, "after": 1}));
    assert_eq!((&report["waiting"], &report["left"]), (&json!(0), &json!([])));
    assert!(report["nbytes"].as_u64().unwrap() > 0 && report["files"]["after"].as_u64().unwrap() > 0);
    let line = t.run(["compact", "store", "--jsonl"]).ok().out();
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn requests_and_sizes_choose_logs() {
    let t = TestStore::with(&KEYS);
    let after = |words: &[&str]| {
        let words = ["compact", "store", "--grace", "0", "--json"].iter().chain(words);
        t.run(words).ok().json()["logs"]["after"].as_u64().unwrap()
    };
    assert_eq!(after(&["run=a", "step=6"]), 3);
    fs::write(t.file("wanted.req"), "run=b\nrun=nothing\n").unwrap();
    assert_eq!(after(&["@wanted.req"]), 2);
    assert_eq!(after(&["--max-bytes", "1"]), 2);
    assert_eq!(after(&["--max-bytes", "1M"]), 0);
    t.run(["compact", "store", "step=x"]).code(2);
    t.run(["compact", "store", "--max-bytes", "1.5G"]).code(2).says(&["500M"]);
    t.run(["compact", "store", "--grace", "soon"]).code(2).says(&["30m"]);
    t.run(["compact", "nowhere"]).code(3);
    assert!(!t.file("nowhere").exists());
}

#[test]
fn a_damaged_log_is_left_and_named() {
    let t = TestStore::with(&KEYS);
    t.damage(b"run=b variable=t");
    let run = t.run(["compact", "store", "--grace", "0"]).code(5);
    let [left] = &logs(&t)[..] else { panic!("{:?}", logs(&t)) };
    assert!(run.out().starts_with(&format!("left: logs/{left}: ")), "{}", run.out());
    run.says(&["1 log", "accept"]);
    let report = t.run(["compact", "store", "--json"]).code(5).json();
    assert_eq!(
        (&report["left"][0]["accepted"], report["left"].as_array().unwrap().len()),
        (&json!(false), 1)
    );
    t.run(["list", "store"]).ok();
    t.run(["accept", "store", &format!("logs/{left}")]).ok();
    let report = t.run(["compact", "store", "--json"]).ok().json();
    assert_eq!(report["left"][0]["accepted"], json!(true));
}

#[test]
fn a_store_of_format_1_names_the_upgrade() {
    let t = TestStore::empty();
    t.run(["init", "store", "--format", "1"]).ok();
    t.run(["compact", "store"]).code(6).says(&["upgrade"]);
    t.run(["upgrade", "store"]).ok();
    t.run(["compact", "store"]).ok();
}
