//! shell, graph travel, find and search: lines on one store, walks step by step.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::harness::TestStore;
use serde_json::json;

/// Job 1 writes `/mid` from `/in`, job 2 `/out` from that.
fn story() -> TestStore {
    let t = TestStore::empty();
    for words in ["job:1 read file:/in bytes=5", "job:1 write file:/mid", "job:2 read file:/mid bytes=9"] {
        t.run(["graph", "put", "store"].into_iter().chain(words.split(' '))).ok();
    }
    t.run(["graph", "put", "store", "job:2", "write", "file:/out"]).ok();
    t
}

#[test]
fn a_traversal_gives_vertices_sets_or_paths() {
    let t = story();
    let travel = |steps: &str| t.run(["graph", "travel", "store", steps]).ok().out();
    assert_eq!(travel("v(/out).e(wasWrittenBy).e(read).repeat(1)"), "file:/mid\n");
    let all = travel("v(/out).e(wasWrittenBy).e(read).repeat()");
    let mut all: Vec<&str> = all.lines().collect();
    all.sort_unstable();
    assert_eq!(all, ["file:/in", "file:/mid"]);
    assert_eq!(travel("v(/out).e(wasWrittenBy).rtn().e(read).ea(bytes > 5)"), "job:2\n\nfile:/mid\n");
    assert_eq!(
        travel("v(/out).e(wasWrittenBy).e(read).return_fp()"),
        "file:/out wasWrittenBy job:2 read file:/mid\n"
    );
    let paths = "v(/out).e(wasWrittenBy).e(read).repeat().return_fp()";
    let one = t.run(["graph", "travel", "store", paths, "--limit", "1", "--json"]).ok().json();
    assert_eq!((one["paths"].as_array().unwrap().len(), &one["truncated"]), (1, &json!(true)));
    let steps = t.run(["graph", "travel", "store", paths, "--explain", "--json"]).ok().json();
    assert_eq!(steps["steps"][0]["frontier"], json!(1));
    t.run(["graph", "travel", "store", "v(/out).x()"]).code(2);
}

#[test]
fn vertices_are_found_by_value_and_word() {
    let t = story();
    t.run(["graph", "put", "store", "file:/plots/Big plot.png", "quality=3"]).ok();
    let found = t.run(["graph", "find", "store", "file", "quality > 2", "--json"]).ok().json();
    assert_eq!(found["vertices"][0]["id"], json!("/plots/Big plot.png"));
    assert_eq!(t.run(["graph", "find", "store", "file", "quality > 3"]).ok().out(), "");
    let searched = t.run(["graph", "search", "store", "big", "pl*", "--json"]).ok().json();
    assert_eq!(searched["vertices"][0]["props"], json!({"quality": 3}));
    t.run(["graph", "find", "store", "file", "quality"]).code(2);
}

#[test]
fn relations_are_found_by_value_from_either_end() {
    let t = story();
    let found = t.run(["graph", "find", "store", "read", "bytes > 5", "--json"]).ok().json();
    assert_eq!(found["edges"].as_array().unwrap().len(), 1);
    let (edge, text) = (&found["edges"][0], |value: &str| json!(["file", value]));
    assert_eq!(
        (&edge["type"], &edge["src"], &edge["dst"]),
        (&json!("read"), &json!(["job", "2"]), &text("/mid"))
    );
    let back = t.run(["graph", "find", "store", "wasReadBy", "bytes > 5", "--json"]).ok().json();
    assert_eq!((&back["edges"][0]["src"], &back["edges"][0]["dst"]), (&text("/mid"), &json!(["job", "2"])));
    let line = t.run(["graph", "find", "store", "read", "bytes > 5"]).ok().out();
    assert!(line.starts_with("job:2\tread\tfile:/mid\t") && line.contains("bytes="), "{line}");
    let typed = t.run_with(["shell", "store"], b"graph find read 'bytes > 5'").ok();
    assert_eq!(typed.out(), line);
    assert_eq!(t.run(["graph", "find", "store", "read", "bytes > 5000"]).ok().out(), "");
}

#[test]
fn lines_of_a_shell_are_calls_on_its_store() {
    let t = story();
    let lines =
        "# a comment\n\ntrace /mid\nv(/out).e(wasWrittenBy)\ngraph travel 'v(/mid).e(wasWrittenBy)'\n";
    let done = t.run_with(["shell", "store"], lines.as_bytes()).ok();
    assert_eq!(done.out(), "file:/mid\n└─ wasWrittenBy job:1\n   └─ read file:/in\njob:2\njob:1\n");
    let json = t.run_with(["shell", "store", "--json"], b"v(/out).e(wasWrittenBy)").ok().json();
    assert_eq!(json["vertices"], json!([["job", "2"]]));
}

#[test]
fn a_line_that_fails_does_not_end_a_shell() {
    let t = story();
    let lines = "trace /nowhere\nnonsense\nv(/out).e(wasWrittenBy)\nexit\ntrace /mid\n";
    let done = t.run_with(["shell", "store"], lines.as_bytes());
    assert_eq!(done.code(3).out(), "job:2\n");
    let opened = t.run_with(["shell"], b"stats\nopen store\nv(/out).e(wasWrittenBy)\n");
    assert_eq!(opened.code(2).out(), "job:2\n");
}
