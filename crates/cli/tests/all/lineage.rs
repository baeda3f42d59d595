//! trace and graph: users, executions, data, and where a result came from.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::harness::TestStore;
use serde_json::json;

/// Job 1 reads `in` and writes `mid`, job 2 reads that and writes `out`; each at a time.
fn story() -> TestStore {
    let t = TestStore::empty();
    for (words, time) in [
        ("job:1 read file:/in bytes=5", "10"),
        ("job:1 write file:/mid", "20"),
        ("job:2 read file:/mid", "30"),
        ("job:2 write file:/out", "40"),
    ] {
        let words: Vec<&str> = ["graph", "put", "store"].into_iter().chain(words.split(' ')).collect();
        let put = t.run(words.into_iter().chain(["--time", time])).ok().out();
        assert_eq!(put, format!("{time}000000000\n"));
    }
    t
}

#[test]
fn a_result_leads_to_what_it_came_from() {
    let t = story();
    let tree = "file:/out\n└─ wasWrittenBy job:2\n   └─ read file:/mid\n      └─ wasWrittenBy job:1\n         └─ read file:/in\n";
    assert_eq!(t.run(["trace", "store", "/out"]).ok().out(), tree);
    let down = t.run(["trace", "store", "file:/mid", "--down", "--json"]).ok().json();
    let ids: Vec<&str> =
        down["vertices"].as_array().unwrap().iter().map(|v| v["id"].as_str().unwrap()).collect();
    assert_eq!((ids, &down["truncated"]), (vec!["/mid", "2", "/out"], &json!(false)));
    assert_eq!(down["edges"][0]["dst"], json!(["file", "/mid"]));
    let before = t.run(["trace", "store", "/out", "--at", "35", "--json"]);
    assert_eq!(before.ok().json()["vertices"].as_array().unwrap().len(), 1, "it was not written yet");
    t.run(["trace", "store", "/nowhere"]).code(3);
    t.run(["trace", "store", "/out", "--at", "soon"]).code(2);
}

#[test]
fn vertices_and_relations_are_put_and_read() {
    let t = story();
    t.run(["graph", "put", "store", "file:/out", "quality=3", "title=a plot"]).ok();
    let vertex = t.run(["graph", "get", "store", "/out", "--json"]).ok().json();
    assert_eq!(vertex["versions"][0]["props"], json!({"quality": 3, "title": "a plot"}));
    let edges = t.run(["graph", "edges", "store", "/mid", "wasWrittenBy", "--json"]).ok().json();
    assert_eq!(edges["edges"][0]["dst"], json!(["job", "1"]));
    let text = t.run(["graph", "edges", "store", "job:1"]).ok().out();
    assert!(
        text.lines().any(|line| line.starts_with("read\tfile:/in\t") && line.ends_with("bytes=5")),
        "{text}"
    );
    assert_eq!(t.run(["graph", "stats", "store", "--json"]).ok().json()["relations"], json!(4));
    assert_eq!(t.run(["graph", "verify", "store", "--json"]).ok().json()["ok"], json!(true));
    assert_eq!(t.run(["rebuild", "store", "--json"]).ok().json()["relations"], json!(4));
    t.run(["graph", "get", "store", "file:/absent"]).code(3);
    t.run(["graph", "put", "store", "job:1", "write"]).code(2);
}

#[test]
fn hidden_versions_move_to_another_store_and_who_asks_is_told() {
    let t = story();
    t.run(["graph", "put", "store", "job:1", "write", "file:/mid", "n=1", "--time", "25"]).ok();
    for (n, time) in [("n=1", "50"), ("n=2", "60")] {
        t.run(["graph", "put", "store", "file:/out", n, "--time", time]).ok();
    }
    let archive = ["graph", "archive", "store", "--before", "100", "--to", "cold"];
    let would = t.run(archive).ok();
    assert!(
        would.out().starts_with("would move 1 version of vertices, 1 version of relations, "),
        "{}",
        would.out()
    );
    assert!(!t.file("cold").exists());
    let tree = t.run(["trace", "store", "/out"]).ok().out();
    let done = t.run(archive.into_iter().chain(["--doit", "--json"])).ok().json();
    assert_eq!((&done["vertices"], &done["relations"], &done["done"]), (&json!(1), &json!(1), &json!(true)));
    let cold = t.file("cold").display().to_string();
    let told = t.run(["graph", "get", "store", "/out", "--at", "55"]).code(3);
    assert!(told.err().contains(&cold), "{}", told.err());
    let edges = t.run(["graph", "edges", "store", "/mid", "wasWrittenBy", "--versions"]).ok().out();
    assert!(edges.contains(&format!("in {cold}")), "{edges}");
    let traced = t.run(["trace", "store", "/out"]).ok();
    assert_eq!(traced.out(), tree);
    assert!(traced.err().contains(&cold), "{}", traced.err());
    assert!(t.run(["graph", "stats", "store"]).ok().out().contains(&cold));
    let there = t.run(["graph", "get", "cold", "/out", "--json"]).ok().json();
    assert_eq!(there["versions"][0]["props"], json!({"n": 1}));
}
