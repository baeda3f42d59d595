//! An operator's mistakes, and the ways to mend them: folders that are gone, stores that are not there, accepted
//! losses, pinned formats.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;

use crate::harness::{Run, TestStore};
use serde_json::json;

const KEY: &str = "run=a variable=t step=6";

fn with_logs_aside() -> TestStore {
    let t = TestStore::with(&[KEY, "run=b variable=t"]);
    t.run(["annotate", "store", "note", "sound", "--run", "a"]).ok();
    fs::rename(t.file("store/logs"), t.file("aside")).unwrap();
    t
}

#[test]
fn without_the_folder_of_logs_every_verb_ends_with_5_and_none_makes_it() {
    let t = with_logs_aside();
    fs::write(t.file("bytes"), "x").unwrap();
    let reads = [
        "list store",
        "list store --depth 1",
        "axes store",
        "where store",
        "get store run=a",
        "show store run=a",
        "find store tag=note",
        "runs store",
        "steps store",
        "variables store",
        "tags store",
        "stats store",
        "version store",
        "dump store",
        "copy store run=a --to other",
        "copy store run=a --to other --lenient",
        "sql store select+name+from+tags",
        "trace store run=a",
        "graph stats store",
        "export store run=a out.nc",
        "rebuild store",
        "transaction list store",
    ];
    let writes = [
        "archive store run=c variable=t step=0 bytes",
        "annotate store note more --run a",
        "delete store runs run=a --doit",
        "init store",
        "init store --if-exists error",
        "compact store",
        "purge store --all --doit",
        "retain store run=a --versions 2",
        "maintain store",
        "upgrade store",
        "accept store logs/00112233445566778899aabbccddeeff.log",
    ];
    for line in reads.iter().chain(&writes) {
        let words = line.split(' ').map(|word| word.replace('+', " "));
        t.run(words).code(5).says(&["logs"]);
        assert!(!t.file("store/logs").exists(), "{line} made the folder again");
    }
    let status = t.run(["status", "store", "--json"]).code(5).json();
    assert_eq!((&status["code"], &status["problems"][0]["code"]), (&json!(5), &json!("logs-gone")));
    assert!(t.run(["verify", "store"]).code(5).out().contains("damaged: - in logs"));
    fs::rename(t.file("aside"), t.file("store/logs")).unwrap();
    t.run(["get", "store", "run=a"]).ok();
    t.run(["status", "store"]).ok();
}

#[test]
fn where_no_store_is_none_is_made_if_the_environment_says_so() {
    let t = TestStore::empty();
    fs::write(t.file("bytes"), "x").unwrap();
    let with = |value: &str, line: &str| {
        let mut command = t.command(line.split(' '));
        command.env("FIELDSTONE_CREATE", value);
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let lines = [
        "archive store run=c variable=t step=0 bytes",
        "annotate store note more --run a",
        "ingest store bytes",
        "run store -- true",
        "transaction begin store",
    ];
    for line in lines {
        let (code, message) = with("0", line);
        assert_eq!(code, 3, "{line}: {message}");
        assert!(message.contains("mounted"), "{line}: {message}");
        let (verb, rest) = line.split_once(" store").unwrap();
        t.run(format!("{verb} store --must-exist{rest}").split(' ')).code(3);
        assert!(!t.file("store").exists(), "{line}");
    }
    assert_eq!(with("no", "list store").0, 2);
    assert_eq!(with("0", "init store").0, 0);
    assert_eq!(with("0", lines[0]).0, 0);
    assert_eq!(with("1", "archive new run=c variable=t step=0 bytes").0, 0);
}

fn the_file(t: &TestStore, folder: &str) -> PathBuf {
    let files = fs::read_dir(t.file("store").join(folder)).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end != "claim")).max().unwrap()
}

fn accept(t: &TestStore, path: &std::path::Path) -> Run {
    let name = path.strip_prefix(t.file("store")).unwrap().display().to_string();
    t.run(["accept", "store", &name, "--why", "no tape", "--json"])
}

#[test]
fn a_lost_log_and_a_lost_data_log_are_accepted() {
    let t = TestStore::with(&[KEY]);
    t.archive("run=b variable=large step=0", &vec![7; 3 << 20]);
    let data = the_file(&t, "data");
    fs::remove_file(&data).unwrap();
    let status = t.run(["status", "store", "--json"]).code(5).json();
    assert_eq!(status["problems"][0]["code"], json!("data-gone"));
    t.run(["get", "store", "run=b"]).code(5);
    let report = accept(&t, &data).ok().json();
    assert_eq!((&report["fields"], &report["why"]), (&json!(1), &json!("no tape")));
    assert_eq!(report["keys"], json!(["{run=b}{variable=large}{step=0}"]));
    t.run(["get", "store", "run=b"]).code(3);
    t.run(["verify", "store"]).ok();

    let t = TestStore::with(&[KEY, "run=b variable=t"]);
    t.run(["annotate", "store", "note", "sound", "--run", "a"]).ok();
    t.run(["annotate", "store", "note", "lost", "--run", "b"]).ok();
    t.run(["find", "store", "tag=note"]).ok();
    for log in fs::read_dir(t.file("store/logs")).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = fs::read(&log).unwrap();
        if bytes.windows(4).any(|part| part == b"lost") {
            fs::remove_file(&log).unwrap();
            t.run(["list", "store"]).code(5).says(&["fieldstone accept"]);
            assert_eq!(accept(&t, &log).ok().json()["what"], json!("all 1 commits are given up"));
        }
    }
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 2);
    // An index that has it forgets it.
    assert_eq!(t.run(["find", "store", "tag=note", "--count", "--json"]).ok().json()["count"], json!(1));
    assert!(t.run(["verify", "store"]).ok().out().contains("accepted: logs/"));
    let status = t.run(["status", "store"]).ok().out();
    assert!(status.contains("accepted logs/") && status.contains("no tape"), "{status}");
}

#[test]
fn a_pinned_store_stays_what_it_is_until_it_is_upgraded() {
    let t = TestStore::empty();
    let made = t.run(["init", "store", "--format", "1", "--json"]).ok().json();
    assert_eq!(made["format"], json!(1));
    t.archive(KEY, b"x");
    let status = t.run(["status", "store", "--json"]).ok().json();
    assert_eq!(status["format"], json!(1));
    assert!(status["format_pinned"]["user"].is_string(), "{status}");
    let url = t.file("store").to_string_lossy().into_owned();
    let options = fieldstone::OpenOptions { attempt: Some("1".into()), ..fieldstone::OpenOptions::default() };
    let refused = fieldstone::open(&url, &options).unwrap_err();
    assert_eq!(refused.code(), fieldstone::Code::FormatPinned, "{refused}");
    t.run(["init", "store", "--format", "2"]).code(4);
    assert!(t.run(["upgrade", "store"]).ok().out().contains("of format 2, was 1"));
    assert!(t.run(["upgrade", "store"]).ok().out().contains("of format 2 already"));
    fieldstone::open(&url, &options).unwrap();
    t.run(["init", "store", "--format", "1"]).code(4);
    t.run(["init", "other", "--format", "9"]).code(2);
    assert!(t.run(["--version"]).ok().out().contains("new stores are of format 2"));
}
