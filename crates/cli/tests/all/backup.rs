//! `fieldstone backup` and `promote`.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::harness::TestStore;

const KEY: &str = "run=a variable=t step=0";

fn listed(t: &TestStore, store: &str) -> usize {
    t.run(["list", store]).ok().out().lines().count()
}

#[test]
fn a_backup_is_made_and_brought_up_to_date() {
    let t = TestStore::with(&[KEY]);
    let first = t.run(["backup", "store", "copy", "--json"]).ok().json();
    assert_eq!(
        (&first["before"], &first["damaged"], &first["held"]),
        (&json!(null), &json!([]), &json!(true))
    );
    assert_eq!(first["version"].as_str(), Some(t.run(["version", "copy"]).ok().out().trim()));
    t.archive("run=a variable=t step=6", b"more");
    assert_eq!(listed(&t, "copy"), 1);
    let second = t.run(["backup", "store", "copy"]).ok().out();
    assert!(second.starts_with("copied ") && second.ends_with(" files\n"), "{second}");
    assert_eq!(listed(&t, "copy"), 2);
    t.run(["verify", "copy"]).ok();
    let before = t.run(["version", "copy"]).ok().out().trim().to_owned();
    let third = t.run(["backup", "store", "copy", "--json", "--no-verify"]).ok().json();
    // The end of the hold that the call before had.
    assert!(third["nbytes"].as_u64().unwrap() < 5_000 && third["before"] == before, "{third}");
    assert_eq!(t.run(["hold", "store"]).ok().out(), "no holds\n");
    // Files that are not the store's are named, and stay where they are.
    std::fs::write(t.file("store/notes.txt"), "mine").unwrap();
    assert!(t.run(["backup", "store", "copy"]).ok().out().contains("notes.txt is not the store's"));
}

#[test]
fn a_purge_reaches_the_backup_when_it_is_asked_to() {
    let t = TestStore::with(&[KEY]);
    t.archive(KEY, &vec![1; 300_000]);
    t.run(["backup", "store", "copy"]).ok();
    let before = t.run(["version", "copy"]).ok().out().trim().to_owned();
    t.archive(KEY, b"short");
    t.run(["purge", "store", "--all", "--grace", "0", "--doit"]).ok();
    t.run(["backup", "store", "copy"]).ok();
    let get = |at: &str| t.run(["get", "copy", "run=a", "variable=t", "step=0", "--at", at, "-o", "-"]);
    assert_eq!(get(&before).ok().bytes().len(), 300_000, "the backup keeps older versions");
    t.run(["backup", "store", "copy", "--purge"]).ok();
    get(&before).code(3);
    assert_eq!(t.run(["get", "copy", "run=a", "-o", "-"]).ok().bytes(), b"short");
}

#[test]
fn a_backup_opens_for_writing_after_promote_alone() {
    let t = TestStore::with(&[KEY]);
    t.run(["backup", "store", "copy"]).ok();
    t.run_with(["archive", "copy", "run=b", "variable=t"], b"x").code(6).says(&["backup", "promote"]);
    t.run(["remove", "copy", "run=a", "--doit"]).code(6);
    let promoted = t.run(["promote", "copy", "--json"]).ok().json();
    assert_eq!(promoted["id"].as_str().map(str::len), Some(32));
    t.run_with(["archive", "copy", "run=b", "variable=t"], b"x").ok();
    assert_eq!((listed(&t, "copy"), listed(&t, "store")), (2, 1));
    // It is another store now.
    t.run(["promote", "copy"]).code(2).says(&["not a backup"]);
    t.run(["backup", "store", "copy"]).code(4);
    t.run(["backup", "store", "new"]).ok();
}

#[test]
fn wrong_calls_end_with_their_codes() {
    let t = TestStore::with(&[KEY]);
    t.run(["backup", "nowhere", "copy"]).code(3);
    assert!(!t.file("copy").exists());
    t.run(["backup", "store"]).code(2);
    t.run(["backup", "store", "store/inside"]).code(2).says(&["in one another"]);
    std::fs::create_dir(t.file("other")).unwrap();
    std::fs::write(t.file("other/notes.txt"), "mine").unwrap();
    t.run(["backup", "store", "other"]).code(4);
    assert_eq!(t.read("other/notes.txt"), b"mine");
    t.run(["backup", "memory:", "copy"]).code(3);
    t.run(["promote", "store"]).code(2).says(&["not a backup"]);
    t.run(["promote", "nowhere"]).code(3);
    t.run(["backup", "store", "copy"]).ok();
    t.run(["backup", "copy", "third"]).code(2).says(&["is a backup itself"]);
}

#[test]
fn damage_is_named_and_does_not_reach_what_the_backup_has() {
    let t = TestStore::with(&[KEY]);
    t.run(["backup", "store", "copy"]).ok();
    t.damage(b"run=a variable=t step=0");
    t.run(["backup", "store", "copy"]).ok();
    t.run(["verify", "copy"]).ok();
    t.archive("run=b variable=t step=0", &[&b"soon damaged"[..], &vec![7; 3 << 20]].concat());
    t.damage(b"soon damaged");
    let report = t.run(["backup", "store", "copy", "--json"]).code(5).json();
    assert!(report["damaged"][0]["key"].as_str().is_some_and(|key| key.contains("run=b")), "{report}");
    assert_eq!(t.run(["get", "copy", "run=a", "-o", "-"]).ok().bytes(), KEY.as_bytes());
}

#[test]
fn a_backup_that_follows_takes_each_flush_until_it_is_asked_to_stop() {
    let t = TestStore::with(&[KEY]);
    let follow = t.command(["backup", "store", "copy", "--follow"]);
    // The process that runs the tests may ignore signals, and its children inherit that.
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(follow.get_program()).args(follow.get_args());
    command.current_dir(t.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = command.spawn().unwrap();
    let wait_for = |fields: usize| {
        let is_there = |_| {
            std::thread::sleep(Duration::from_millis(100));
            t.run(["list", "copy"]).out().lines().count() >= fields
        };
        assert!((0..600).any(is_there), "{fields} fields");
    };
    wait_for(1);
    t.archive("run=a variable=t step=6", b"more");
    wait_for(2);
    let sent = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ended = running.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("shows its last version"));
    t.run(["verify", "copy"]).ok();
    assert_eq!(t.run(["hold", "store"]).ok().out(), "no holds\n");
}
