//! stats, status, verify, dump, doctor: what the program says about a store and a disk.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::harness::TestStore;
use fieldstone::Session;
use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, OpenOptions, Value};
use serde_json::json;

const KEY: &str = "run=a variable=t step=6";

#[test]
fn stats_count() {
    let t = TestStore::with(&[KEY, "run=b variable=t"]);
    t.archive(KEY, b"again");
    let stats = t.run(["stats", "store", "--json"]).ok().json();
    assert_eq!((&stats["datasets"], &stats["fields"], &stats["masked"]), (&json!(2), &json!(2), &json!(1)));
    assert_eq!(stats["bytes"], json!(5 + "run=b variable=t".len()));
    assert_eq!(stats["writers"], json!(3));
    let text = t.run(["stats", "store", "run=b"]).ok().out();
    assert!(text.contains(" 1 visible fields\n"), "{text}");
}

#[test]
fn stats_sum_up_by_a_keyword_or_by_owner() {
    let t = TestStore::with(&[KEY, "run=b variable=t"]);
    t.archive(KEY, b"again");
    let rows = t.run(["stats", "store", "--by", "run", "--json"]).ok().json();
    let (a, b) = (&rows["rows"][0], &rows["rows"][1]);
    assert_eq!(*a, json!({"name": "a", "fields": 1, "nbytes": 5, "stored": 5, "dead": KEY.len()}));
    assert_eq!((&b["name"], &b["fields"], &b["dead"]), (&json!("b"), &json!(1), &json!(0)));
    assert_eq!(t.run(["stats", "store", "run=b", "--by", "step"]).ok().out(), "-\t1\t16\t16\t0\n");
    assert_eq!(t.run(["stats", "store", "--by", "owner"]).ok().out().lines().count(), 1);
    let wrong = t.run(["stats", "store", "--by", "varable"]).code(2).err();
    assert!(wrong.contains("variable"), "{wrong}");
}

#[test]
fn status_names_writers_and_schema() {
    let t = TestStore::with(&[KEY]);
    let status = t.run(["status", "store", "--writers", "--json"]).ok().json();
    assert_eq!(
        (&status["url"], &status["schema"], &status["format"]),
        (&json!("store"), &json!("simulation"), &json!(fieldstone::FORMAT_VERSION))
    );
    assert_eq!((&status["code"], &status["states"]), (&json!(0), &json!({"closed": 1})));
    assert!(
        status["bytes_by_user"].as_object().unwrap().values().all(|bytes| bytes.as_u64() > Some(0)),
        "{status}"
    );
    let writer = &status["writers"][0];
    assert_eq!((&writer["state"], &writer["commits"]), (&json!("closed"), &json!(1)));
    assert_eq!(status["problems"], json!([]));
    assert!(writer["last_flush"].as_str().unwrap().starts_with("20"), "{writer}");
    let text = t.run(["status", "store"]).ok().out();
    assert!(text.contains("schema   simulation\n") && text.contains("writers  1 closed\n"), "{text}");
}

#[test]
fn status_prints_metrics() {
    let t = TestStore::with(&[KEY, "run=b variable=t"]);
    t.archive(KEY, b"again");
    let text = t.run(["status", "store", "--prometheus"]).ok().out();
    let value = |name: &str, label: &str| {
        let head = format!("fieldstone_{name}{{store=\"store\"{label}}} ");
        let line =
            text.lines().find(|line| line.starts_with(&head)).unwrap_or_else(|| panic!("{head} in {text}"));
        line[head.len()..].parse::<f64>().unwrap()
    };
    assert_eq!((value("status_code", ""), value("problems", ""), value("fields", "")), (0.0, 0.0, 2.0));
    assert_eq!(value("dead_bytes", ""), KEY.len() as f64);
    assert_eq!(value("writers", ",state=\"closed\""), 3.0);
    assert!(value("last_flush_timestamp_seconds", "") > 1.7e9 && value("free_bytes", "") > 0.0);
    // Each line is a comment or a sample, and each metric has its head before it, once.
    let mut heads = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("# TYPE ") {
            Some(name) => heads.push(name.strip_suffix(" gauge").unwrap()),
            None if line.starts_with("# HELP fieldstone_") => {}
            None => assert_eq!(line.split('{').next(), heads.last().copied(), "{line}"),
        }
    }
    let all = heads.len();
    heads.sort_unstable();
    heads.dedup();
    assert!(heads.len() == all && all > 15, "{heads:?}");
    t.run(["status", "store", "--prometheus", "--json"]).code(2);
    // Damage is a number, and the text is there all the same.
    let logs = t.file("store").join("logs");
    std::fs::rename(&logs, t.file("away")).unwrap();
    let text = t.run(["status", "store", "--prometheus"]).ok().out();
    assert!(text.contains("fieldstone_status_code{store=\"store\"} 5\n"), "{text}");
    assert!(text.contains("fieldstone_problems_by_code{store=\"store\",code=\"logs-gone\"} 1\n"), "{text}");
    assert!(!text.contains("fieldstone_fields"), "{text}");
}

#[test]
fn what_nobody_has_decided_is_told_and_not_read() {
    let t = TestStore::empty();
    let url = t.file("store").to_string_lossy().into_owned();
    let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
    let id = store.begin().unwrap();
    let options = ArchiveOptions { session: Session::from(id), ..ArchiveOptions::default() };
    store.archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"x"), &options).unwrap();
    store.flush(Some(id)).unwrap();
    let status = t.run(["status", "store", "--json"]).ok().json();
    let id = id.to_string();
    assert_eq!(
        (&status["transactions"][0]["id"], &status["transactions"][0]["fields"]),
        (&json!(id), &json!(1))
    );
    assert!(t.run(["status", "store"]).ok().out().contains(&format!("undecided {id} since ")));
    t.run(["get", "store"]).code(3).says(&["holds no field"]);
    assert_eq!(t.run(["list", "store"]).ok().out(), "");
}

#[test]
fn verify_passes_a_sound_store_and_names_what_is_damaged() {
    let t = TestStore::with(&[KEY, "run=b variable=t"]);
    let report = t.run(["verify", "store", "--json"]).ok().json();
    assert_eq!((&report["ok"], &report["fields"], &report["damaged"]), (&json!(true), &json!(2), &json!([])));
    assert!(t.run(["verify", "store"]).ok().out().ends_with(": all intact\n"));

    t.damage(KEY.as_bytes());
    let report = t.run(["verify", "store", "--json"]).code(5);
    let damaged = &report.json()["damaged"];
    assert!(damaged.to_string().contains("{run=a}{variable=t}{step=6}"), "{damaged}");
    let text = t.run(["verify", "store"]).code(5).says(&["damaged"]);
    assert!(text.out().starts_with("damaged: "), "{}", text.out());
    assert_eq!(t.run(["get", "store", "run=b"]).ok().out(), "run=b variable=t");
}

/// Once a damaged value is overwritten or deleted only older versions need it.
#[test]
fn verify_forgets_damage_that_newer_versions_hide() {
    let t = TestStore::with(&[KEY, "run=b variable=t", "run=c variable=t"]);
    t.damage(KEY.as_bytes());
    t.damage(b"run=b variable=t");
    t.archive(KEY, b"again");
    t.run(["verify", "store"]).code(5);
    let report = t.run(["verify", "store", "run=a", "--json"]).ok().json();
    let notes = report["notes"].to_string();
    assert!(notes.contains("an older version of {run=a}{variable=t}{step=6}"), "{notes}");
    assert_eq!((&report["ok"], &report["damaged"]), (&json!(true), &json!([])));
    let url = t.file("store").to_string_lossy().into_owned();
    let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
    store.remove(&fieldstone::Request::parse("run=b").unwrap(), &Default::default()).unwrap();
    store.close().unwrap();
    let report = t.run(["verify", "store", "--json"]).ok().json();
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("{run=a}{variable=t}{step=6}") && notes.contains("{run=b}{variable=t}"),
        "{notes}"
    );
    // A field that is visible and damaged fails it, even if others are hidden.
    t.damage(b"run=c variable=t");
    t.run(["verify", "store"]).code(5).says(&["damaged"]);
}

#[test]
fn dump_shows_the_structures() {
    let t = TestStore::with(&[KEY]);
    let text = t.run(["dump", "store"]).ok().out();
    assert!(text.contains("{run=a}{variable=t}{step=6}"), "{text}");
    let lines = t.run(["dump", "store", "--json"]).ok().json();
    let lines: Vec<&str> = lines["lines"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
    assert_eq!(lines, text.lines().collect::<Vec<_>>());
}

#[test]
fn doctor_tests_a_disk_and_leaves_nothing() {
    let t = TestStore::empty();
    let report = t.run(["doctor", ".", "--json"]).ok().json();
    assert_eq!(report["ok"], json!(true), "{report}");
    let tests = report["tests"].as_array().unwrap();
    let outcome = |name: &str| tests.iter().find(|t| t["name"] == name).unwrap()["outcome"].clone();
    for name in ["fsync", "fsync folder", "fresh reads", "O_EXCL", "hard link", "rename", "append", "listing"]
    {
        assert_eq!(outcome(name), "ok", "{report}");
    }
    for name in ["locks", "memory map"] {
        assert_eq!(outcome(name), "unused");
    }
    assert!(tests.iter().all(|t| !t["store"].as_str().unwrap().is_empty()));
    let text = t.run(["doctor", "."]).ok().out();
    assert!(text.contains("O_EXCL") && text.contains("file system"), "{text}");
    assert_eq!(std::fs::read_dir(t.path()).unwrap().count(), 0);
    t.run(["doctor", "absent"]).code(3).says(&["absent"]);
    std::fs::write(t.file("file"), b"").unwrap();
    t.run(["doctor", "file"]).code(2).says(&["not a folder"]);
}

#[test]
fn arrays_are_drawn_as_text() {
    let t = TestStore::empty();
    let values: Vec<f32> = (0..36).map(|i| (i % 9) as f32).collect();
    t.archive_floats(KEY, &values, "2,2,9");
    let drawn = t.run(["plot", "store", "run=a"]).ok();
    assert_eq!(drawn.out(), ".:-=+*#%@\nt, step 6, run a: 0 to 8\n");
    assert!(drawn.err().contains("drawing [0,:,:]"), "{}", drawn.err());
    let drawn = t.run(["plot", "store", "run=a", "--box", "0,1,:", "--width", "5"]).ok().out();
    assert_eq!(drawn.lines().count(), 13, "{drawn}");
    assert!(drawn.lines().take(12).all(|line| line.chars().count() == 5), "{drawn}");
    let json = t.run(["plot", "store", "run=a", "--box", "0,1,2:4", "--json"]).ok().json();
    assert_eq!((&json["shape"], &json["min"], &json["max"]), (&json!([2]), &json!(2.0), &json!(3.0)));
    t.archive("run=b variable=t", b"no picture");
    t.run(["plot", "store", "run=b"]).code(2);
    t.run(["plot", "store", "run=a", "--box", "0,2,0:1"]).code(2);
}

#[test]
fn a_helper_that_cannot_start_is_told() {
    let t = TestStore::empty();
    t.archive_floats(KEY, &[1.0, 2.0], "2");
    let plot = |python: &str| {
        let mut command = t.command(["plot", "store", "run=a", "-o", "a.png"]);
        command.env("FIELDSTONE_PYTHON", python);
        crate::harness::finish(command, b"")
    };
    plot("/no/such/python").code(7).says(&["/no/such/python", "FIELDSTONE_PYTHON"]);
    plot("/bin/false").code(7).says(&["/bin/false"]);
    assert!(!t.file("a.png").exists());
}

#[test]
fn a_skipped_log_is_reported_on_stderr() {
    let t = TestStore::with(&[KEY]);
    assert_eq!(t.run(["list", "store"]).ok().err(), "");
    let name = format!("{}.log", "ab".repeat(16));
    std::os::unix::fs::symlink("/dev/null", t.file("store/logs").join(&name)).unwrap();
    let done = t.run(["list", "store"]).ok();
    assert_eq!(done.out().lines().count(), 1);
    assert!(done.err().contains(&format!("note: logs/{name}: it is not read")), "{}", done.err());
    assert_eq!(done.err().lines().count(), 1, "{}", done.err());
}

#[test]
fn status_of_a_thousand_writers_is_one_screen() {
    let t = TestStore::empty();
    let url = t.file("store").to_string_lossy().into_owned();
    let options = OpenOptions { closing_merges: Some(false), ..OpenOptions::default() };
    let store = || fieldstone::open(&url, &options).unwrap();
    for i in 0..200 {
        let store = store();
        let key = [("run", "a"), ("variable", "t"), ("step", &i.to_string())];
        store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
        store.flush(None).unwrap();
        store.close().unwrap();
    }
    let open: Vec<_> = (0..25).map(|_| store()).collect();
    for (i, store) in open.iter().enumerate() {
        let key = [("run", "b"), ("variable", "t"), ("step", &i.to_string())];
        store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
        store.flush(None).unwrap();
    }
    let text = t.run(["status", "store"]).ok().out();
    assert!(text.contains("writers  25 open, 200 closed\n"), "{text}");
    assert!(text.contains("and 5 more like these: --writers lists them"), "{text}");
    assert!(text.lines().count() < 40 && text.lines().all(|line| line.len() < 200), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("writer   ")).count(), 20);
    let all = t.run(["status", "store", "--writers"]).ok().out();
    assert_eq!(all.lines().filter(|line| line.starts_with("writer   ")).count(), 225);
    let json = t.run(["status", "store", "--writers", "--json"]).ok().json();
    assert_eq!(json["writers"].as_array().unwrap().len(), 225);
    // A monitor's answer does not grow with the writers there ever were.
    let run = t.run(["status", "store", "--json"]).ok();
    assert!(run.bytes().len() < 3000, "{}", run.out());
    let json = run.json();
    assert_eq!((&json["states"], &json["writers"]), (&json!({"open": 25, "closed": 200}), &json!(null)));
    assert_eq!(json["totals"]["writers"], json!(225));
}

#[cfg(unix)]
#[test]
fn a_shared_store_is_the_groups() {
    use std::os::unix::fs::MetadataExt;
    let t = TestStore::empty();
    let mode = |path: &str| std::fs::metadata(t.file(path)).unwrap().mode() & 0o7777;
    t.run(["init", "new", "--shared"]).ok();
    for folder in ["new", "new/logs", "new/data", "new/boards"] {
        assert_eq!(mode(folder), 0o3775, "{folder}");
    }
    t.run(["init", "old"]).ok();
    std::fs::create_dir(t.file("old/arrays")).unwrap();
    std::fs::create_dir(t.file("old/catalog")).unwrap();
    assert_ne!(mode("old/logs"), 0o3775);
    let json = t.run(["init", "old", "--shared", "--json"]).ok().json();
    assert_eq!((&json["created"], &json["shared"]), (&json!(false), &json!(true)));
    for folder in ["old", "old/logs", "old/arrays"] {
        assert_eq!(mode(folder), 0o3775, "{folder}");
    }
    assert_ne!(mode("old/catalog"), 0o3775, "an index is its user's");
    t.run(["init", "memory:", "--shared"]).code(2).says(&["in memory"]);
}

#[test]
fn peers_meet_and_one_reports() {
    let t = TestStore::empty();
    let outs: Vec<String> = std::thread::scope(|scope| {
        let peer = || t.run(["doctor", ".", "--peers", "3", "--job", "trial.1"]).ok().out();
        let peers: Vec<_> = (0..3).map(|_| scope.spawn(peer)).collect();
        peers.into_iter().map(|peer| peer.join().unwrap()).collect()
    });
    let reports: Vec<&String> = outs.iter().filter(|out| !out.is_empty()).collect();
    assert_eq!(reports.len(), 1, "{outs:?}");
    assert!(
        reports[0].contains("all 3 peers ran on ") && reports[0].contains("peers' syncs"),
        "{}",
        reports[0]
    );
    let left = std::fs::read_dir(t.file(".")).unwrap().filter_map(|entry| entry.ok());
    assert_eq!(left.filter(|entry| entry.file_name().to_string_lossy().contains("doctor")).count(), 0);
    t.run(["doctor", ".", "--peers", "1"]).code(2);
    t.run(["doctor", ".", "--peers", "2", "--job", "../x"]).code(2).says(&["letters, digits"]);
    t.run(["doctor", ".", "--job", "x"]).code(2);
}
