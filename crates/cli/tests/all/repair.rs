//! `fieldstone repair`, and `accept`, which gives up the rest.
#![allow(clippy::unwrap_used)]

use std::fs;

use serde_json::json;

use crate::harness::TestStore;

const KEYS: [&str; 2] = ["run=a variable=t step=0", "run=b variable=t step=0"];

#[test]
fn damage_is_mended_from_a_backup() {
    let t = TestStore::with(&KEYS);
    t.archive("run=b variable=large step=0", &vec![7; 3 << 20]);
    t.run(["backup", "store", "copy"]).ok();
    let before = t.files("store/logs");
    t.damage(b"run=a variable=t step=0");
    t.run(["verify", "store"]).code(5).says(&["fieldstone repair"]);
    let seen = t.run(["repair", "store", "--from", "copy"]).ok();
    assert!(seen.out().contains("would mend: - in logs/") && seen.err().contains("--doit"), "{}", seen.out());
    t.run(["verify", "store"]).code(5);
    let report = t.run(["repair", "store", "--from", "copy", "--doit", "--json"]).ok().json();
    assert_eq!((&report["left"], &report["done"], &report["nbytes"]), (&json!([]), &json!(true), &json!(1)));
    assert!(report["mended"][0]["how"].as_str().unwrap().contains("copy"), "{report}");
    t.run(["verify", "store"]).ok();
    assert!(t.files("store/logs") == before);
    assert_eq!(
        t.run(["repair", "store", "--from", "copy", "--doit"]).ok().out(),
        "mended 0 parts, 0 bytes written\n"
    );
}

#[test]
fn what_is_left_is_named_and_accept_gives_it_up() {
    let t = TestStore::with(&KEYS);
    t.damage(b"run=a variable=t step=0");
    let run = t.run(["repair", "store", "--doit", "--json"]).code(5);
    let left = run.json()["left"].clone();
    assert!(left[0]["key"].as_str().unwrap().contains("run=a"), "{left}");
    assert!(run.err().contains("accept"), "{}", run.err());
    t.run(["accept", "store", left[0]["file"].as_str().unwrap(), "--why", "no tape"]).ok();
    t.run(["repair", "store", "--doit"]).ok();
    t.run(["verify", "store"]).ok();
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 1);
    // Files that hold no fields have another remedy.
    fs::write(t.file("store/fieldstone.store"), "damaged").unwrap();
    t.run(["accept", "store", "fieldstone.store"]).code(2).says(&["fieldstone repair STORE --doit"]);
    t.run(["repair", "store", "--doit"]).ok();
    t.run(["verify", "store"]).ok();
    for name in ["histories/x", "meshes/x.nc", "arrays/a/x.nc", "logs/u0-1.takeover", "boards/x.board"] {
        t.run(["accept", "store", name]).code(2).says(&["accept"]);
    }
}

#[test]
fn a_request_limits_what_is_mended() {
    let t = TestStore::empty();
    for run in ["a", "b"] {
        t.archive(&format!("run={run} variable=t step=0"), &vec![run.as_bytes()[0]; 3 << 20]);
    }
    t.run(["backup", "store", "copy"]).ok();
    for entry in fs::read_dir(t.file("store/data")).unwrap().map(|entry| entry.unwrap().path()) {
        let mut bytes = fs::read(&entry).unwrap();
        let at = bytes.len() - 10;
        bytes[at] ^= 1;
        fs::write(&entry, bytes).unwrap();
    }
    t.run(["repair", "store", "run=a", "--from", "copy", "--doit"]).ok();
    t.run(["verify", "store", "run=a"]).ok();
    t.run(["verify", "store", "run=b"]).code(5);
}

#[test]
fn wrong_calls_end_with_their_codes() {
    let t = TestStore::with(&KEYS);
    t.run(["repair", "nowhere"]).code(3);
    t.run(["repair", "store", "--from", "nowhere"]).code(3);
    t.run(["repair", "store", "--from", "store"]).code(2).says(&["itself"]);
    t.run(["init", "other"]).ok();
    t.run_with(["archive", "other", "run=a", "variable=t"], b"x").ok();
    t.run(["repair", "store", "--from", "other", "--doit"])
        .code(4)
        .says(&["is of store", "backup of this store"]);
    t.run(["repair", "store"]).ok();
}

#[test]
fn a_store_whose_marker_alone_said_which_it_is_is_mended() {
    let t = TestStore::empty();
    t.run(["init", "store"]).ok();
    t.run(["backup", "store", "copy"]).ok();
    let marker = t.read("store/fieldstone.store");
    for entry in t.files("store") {
        fs::write(&entry.0, b"damaged").unwrap();
    }
    t.run(["list", "store"]).code(5);
    t.run(["repair", "store", "--from", "copy", "--doit"]).ok();
    assert_eq!(t.read("store/fieldstone.store"), marker);
    t.run(["verify", "store"]).ok();
}
