//! Distributed arrays in the program: how they are listed and rewritten.
#![allow(clippy::unwrap_used, clippy::panic)]

use fieldstone::arrays::{ArrayJob, GroupOptions, JobOptions, LevelChoice, SetOptions};
use fieldstone::{DType, OpenOptions};

use crate::harness::TestStore;

/// Two jobs of run `flow`, which write a step each, a file for each set.
fn written() -> TestStore {
    let t = TestStore::empty();
    for step in 0..2 {
        let store =
            fieldstone::open(&t.file("store").display().to_string(), &OpenOptions::default()).unwrap();
        let job = ArrayJob::open(&store, None, Some("flow"), &JobOptions::default()).unwrap();
        let sets = ["p", "t"].map(|name| SetOptions::new(name, DType::F4, &[2, 3]).dims(["y", "x"]));
        let level = LevelChoice::number(1).unwrap();
        let group = job.group("state", &GroupOptions { level, ..GroupOptions::new(sets) }).unwrap();
        group.write_dense("p", step, &[step as u8; 24]).unwrap();
        group.write_dense("t", step, &[7; 24]).unwrap();
        job.close().unwrap();
    }
    t
}

#[test]
fn groups_are_listed_with_their_files() {
    let t = written();
    let all = t.run(["arrays", "store"]).ok().out();
    assert_eq!(all, "flow\tstate\tfiles, level 1\tp float32 2x3 t float32 2x3\t0..1, 2\t4\t4\n");
    let one = t.run(["arrays", "store", "flow"]).ok().out();
    assert_eq!(one.lines().filter(|line| line.starts_with("arrays/flow/")).count(), 4, "{one}");
    let json = t.run(["arrays", "store", "--json"]).ok().json();
    let group = &json["groups"][0];
    assert_eq!(
        (&group["name"], &group["level"], &group["layout"]),
        (&"state".into(), &1.into(), &"files".into())
    );
    assert_eq!(group["sets"][1]["shape"], serde_json::json!([2, 3]));
    assert_eq!(group["steps"], serde_json::json!([0, 1]));
    assert_eq!((&group["arrays"], &group["incomplete"]), (&4.into(), &0.into()));
    assert_eq!(group["files"][0]["bytes"], 24);
    t.run(["arrays", "store", "nowhere"]).code(3);
    let empty = TestStore::with(&["run=a variable=t step=6"]);
    let nothing = empty.run(["arrays", "store"]).ok();
    assert!(nothing.out().is_empty() && nothing.err().contains("no run has distributed arrays"));
}

#[test]
fn a_run_is_written_anew() {
    let t = written();
    let before = t.run(["get", "store", "run=flow,variable=p,step=1"]).ok().bytes().to_vec();
    let done = t.run(["arrays", "store", "flow", "--rewrite", "--level", "3"]).ok().out();
    assert_eq!(done, "state: 4 arrays of 96 bytes in 1 file, 4 files before\n");
    let json = t.run(["arrays", "store", "flow", "--json"]).ok().json();
    assert_eq!(json["groups"][0]["files"].as_array().unwrap().len(), 1);
    assert_eq!(t.run(["get", "store", "run=flow,variable=p,step=1"]).ok().bytes().to_vec(), before);
    t.run(["verify", "store"]).ok();
    t.run(["arrays", "store", "flow", "--rewrite", "--level", "4"]).code(2).says(&["level"]);
    t.run(["arrays", "store", "other", "--rewrite"]).code(3);
    t.run(["arrays", "nowhere", "other", "--rewrite"]).code(3);
    t.run(["arrays", "store", "--rewrite"]).code(2);
    assert!(!t.file("nowhere").exists());
}
