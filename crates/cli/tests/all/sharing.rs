//! trace --compare, --script and --format, graph export, audit: what is shown and shared of the graph.

use std::path::Path;
use std::process::{Command, Output};

use fieldstone::OpenOptions;
use fieldstone::Session;
use fieldstone::catalog::value::Value;
use fieldstone::graph::{Props, RelationPut, VertexName, VertexPut};
use serde_json::json;

use crate::harness::TestStore;

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn list(words: &[&str]) -> Value {
    Value::List(words.iter().map(|word| text(word)).collect())
}

fn props(pairs: &[(&str, Value)]) -> Props {
    Props::of(pairs.iter().map(|(name, value)| (*name, value))).unwrap()
}

/// An execution that ran, as capture records it: its description, and the checksums of its inputs and outputs so far.
struct Ran<'a> {
    id: &'a str,
    time: u64,
    props: Vec<(&'a str, Value)>,
    reads: &'a [&'a str],
    writes: &'a [&'a str],
}

fn record(t: &TestStore, ran: &[Ran<'_>]) {
    let store = fieldstone::open(t.file("store").to_str().unwrap(), &OpenOptions::default()).unwrap();
    let second = 1_000_000_000;
    for Ran { id, time, props: own, reads, writes } in ran {
        let job = VertexName::new("job", id);
        let put =
            VertexPut { vertex: job.clone(), fixed: None, props: props(own), time: Some(time * second) };
        let mut relations = Vec::new();
        for (kind, paths, shift) in [("read", reads, 0), ("write", writes, second / 2)] {
            for path in *paths {
                let path = t.path().join(path);
                let sum = fieldstone::lineage::checksum(&fieldstone::Env::real(), &path).unwrap();
                let mut one =
                    RelationPut::new(kind, job.clone(), VertexName::new("file", path.to_str().unwrap()));
                one.props = props(&[("checksum", text(&sum)), ("replaces", Value::Bool(kind == "write"))]);
                one.time = Some(time * second + shift);
                // It read on while it began to write.
                one.until = Some(time * second + second / 10 * 9);
                relations.push(one);
            }
        }
        store.graph().put(vec![put], relations, &Session::default()).unwrap();
    }
    store.close().unwrap();
}

fn sh(t: &TestStore, script: &str, env: &[(&str, &str)]) -> Output {
    std::fs::write(t.file("rebuild.sh"), script).unwrap();
    let mut command = Command::new("sh");
    command.arg(t.file("rebuild.sh")).current_dir("/");
    command.env("FIELDSTONE_PROGRAM", env!("CARGO_BIN_EXE_fieldstone"));
    command.envs(env.iter().copied()).output().unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn run_here(folder: &Path, words: &[&str], env: &[(&str, &str)]) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(folder).env_remove("OMP_NUM_THREADS").envs(env.iter().copied());
    assert!(command.status().unwrap().success());
}

/// Sorts and joins two odd files in two steps, the second of which fails with 3 and has a secret, in a folder of an
/// odd name.
fn pipeline() -> (TestStore, String) {
    let t = TestStore::empty();
    let folder = t.path().join("it's $HOME; `x`");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("in put"), "b\na\nc\n").unwrap();
    let first = [
        "sh",
        "-c",
        "sort \"$1\" > \"$2\"\nprintf '%s' \"$GREETING${OMP_NUM_THREADS-unset}\" >> \"$2\"",
        "x",
        "in put",
        "mid",
    ];
    let greeting = "hel'lo\n$(touch /tmp/never)\u{e9}";
    run_here(&folder, &first, &[("GREETING", greeting)]);
    let second = ["sh", "-c", "{ cat mid; printf %s \"$1\"; } > out/result; exit 3", "x", "--key=s3cr3t!"];
    std::fs::create_dir(folder.join("out")).unwrap();
    assert!(Command::new(second[0]).args(&second[1..]).current_dir(&folder).status().is_ok());
    let name = |file: &str| format!("it's $HOME; `x`/{file}");
    let (input, mid, result) = (name("in put"), name("mid"), name("out/result"));
    let cwd = text(folder.to_str().unwrap());
    let masked = [&second[..4], &["--key=${FIELDSTONE_SECRET_1}"]].concat();
    record(
        &t,
        &[
            Ran {
                id: "1",
                time: 10,
                props: vec![
                    ("name", text("sort\nrm -rf /")),
                    ("argv", list(&first)),
                    ("cwd", cwd.clone()),
                    (
                        "env",
                        Value::Map(vec![
                            ("GREETING".into(), text(greeting)),
                            ("BAD NAME;".into(), text("x")),
                        ]),
                    ),
                    (
                        "git",
                        Value::Map(vec![("commit".into(), text("c0ffee")), ("root".into(), cwd.clone())]),
                    ),
                ],
                reads: &[&input],
                writes: &[&mid],
            },
            Ran {
                id: "2",
                time: 20,
                props: vec![
                    ("argv", list(&masked)),
                    ("masked", Value::List(vec![Value::Int(4)])),
                    ("cwd", cwd),
                    ("exit", Value::Int(3)),
                ],
                reads: &[&mid],
                writes: &[&result],
            },
        ],
    );
    let root = folder.join("out/result").to_str().unwrap().to_owned();
    (t, root)
}

#[test]
fn a_script_rebuilds_a_result_byte_for_byte() {
    let (t, root) = pipeline();
    let (folder, before) = (Path::new(&root).parent().unwrap().to_owned(), std::fs::read(&root).unwrap());
    let script = t.run(["trace", "store", &root, "--script"]).ok().out();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::remove_file(folder.with_file_name("mid")).unwrap();

    let without = sh(&t, &script, &[]);
    assert!(!without.status.success() && !folder.exists(), "nothing has run");
    assert!(
        err(&without).contains("FIELDSTONE_SECRET_1") && err(&without).contains("argument 4 of job:2"),
        "{}",
        err(&without)
    );

    let done = sh(&t, &script, &[("FIELDSTONE_SECRET_1", "s3cr3t!"), ("OMP_NUM_THREADS", "7")]);
    assert!(done.status.success(), "{}\n{script}", err(&done));
    assert_eq!(std::fs::read(&root).unwrap(), before);
    assert!(err(&done).contains("is not at commit c0ffee"), "{}", err(&done));
    assert!(!Path::new("/tmp/never").exists() && !script.contains("\nrm -rf"), "{script}");

    let wrong = sh(&t, &script, &[("FIELDSTONE_SECRET_1", "another")]);
    assert!(!wrong.status.success() && err(&wrong).contains("changed: its checksum is"), "{}", err(&wrong));
    std::fs::write(folder.with_file_name("in put"), "changed").unwrap();
    std::fs::remove_file(&root).unwrap();
    let changed = sh(&t, &script, &[("FIELDSTONE_SECRET_1", "s3cr3t!")]);
    assert!(!changed.status.success() && !Path::new(&root).exists(), "an input is another one");
    assert!(err(&changed).contains("in put"), "{}", err(&changed));
}

#[test]
fn a_script_runs_writers_before_readers_and_no_more_than_needed() {
    let t = TestStore::empty();
    for name in ["a", "b", "c", "d"] {
        std::fs::write(t.file(name), name).unwrap();
    }
    let cwd = || ("cwd", text(t.path().to_str().unwrap()));
    let of = |words: &[&str]| vec![("argv", list(words)), cwd()];
    record(
        &t,
        &[
            Ran { id: "late", time: 30, props: of(&["cp", "b", "c"]), reads: &["b"], writes: &["c"] },
            Ran { id: "early", time: 20, props: of(&["cp", "a", "b"]), reads: &["a"], writes: &["b"] },
            Ran { id: "aside", time: 25, props: of(&["cp", "a", "d"]), reads: &["a"], writes: &["d"] },
            Ran { id: "silent", time: 10, props: Vec::new(), reads: &["d"], writes: &["a"] },
        ],
    );
    let script = t.run(["trace", "store", "c", "--script"]).ok().out();
    let at = |what: &str| script.find(what).unwrap_or_else(|| panic!("no {what}: {script}"));
    assert!(at("\n    cp a b\n") < at("\n    cp b c\n"), "{script}");
    assert!(!script.contains("cp a d"), "{script}");
    // The test gives the output of the job without a command, and checks it.
    assert!(at("check ") < at("cp a b") && script.contains("2 executions"), "{script}");
    t.run(["trace", "store", "a", "--script"]).code(3).says(&["job:silent"]);
    t.run(["trace", "store", "job:none", "--script"]).code(3);
}

#[test]
fn a_file_that_was_changed_in_place_must_be_what_was_read() {
    let t = TestStore::empty();
    std::fs::write(t.file("f"), "1").unwrap();
    let words = ["sh", "-c", "printf 2 >> f"];
    let props = || vec![("argv", list(&words)), ("cwd", text(t.path().to_str().unwrap()))];
    record(&t, &[Ran { id: "1", time: 10, props: props(), reads: &["f"], writes: &[] }]);
    run_here(t.path(), &words, &[]);
    record(&t, &[Ran { id: "1", time: 10, props: props(), reads: &[], writes: &["f"] }]);
    let script = t.run(["trace", "store", "f", "--script"]).ok().out();
    let again = sh(&t, &script, &[]);
    assert!(!again.status.success() && err(&again).contains("changed: its checksum is"), "{}", err(&again));
    assert_eq!(std::fs::read(t.file("f")).unwrap(), b"12", "nothing has run");
    std::fs::write(t.file("f"), "1").unwrap();
    assert!(sh(&t, &script, &[]).status.success());
    assert_eq!(std::fs::read(t.file("f")).unwrap(), b"12");
}

#[test]
fn comparisons_list_what_differs() {
    let t = TestStore::empty();
    std::fs::write(t.file("in"), "x").unwrap();
    let env =
        |n: &str| ("env", Value::Map(vec![("OMP_NUM_THREADS".into(), text(n)), ("LANG".into(), text("C"))]));
    let props = |n: &str| vec![("argv", list(&["model", "-v"])), ("cwd", text("/w")), env(n)];
    record(
        &t,
        &[
            Ran { id: "1", time: 10, props: props("4"), reads: &["in"], writes: &[] },
            Ran { id: "2", time: 20, props: props("8"), reads: &["in"], writes: &[] },
        ],
    );
    let text = t.run(["trace", "store", "--compare", "job:1", "job:2"]).ok().out();
    assert_eq!(text, "environment\tOMP_NUM_THREADS\t4\t8\n");
    let document = t.run(["trace", "store", "--compare", "job:1", "job:2", "--json"]).ok().json();
    let expected = json!([{"what": "environment", "name": "OMP_NUM_THREADS", "values": ["4", "8"]}]);
    assert_eq!(document["rows"], expected);
    t.run(["trace", "store", "--compare", "job:1"]).code(2).says(&["compared with nothing"]);
    t.run(["trace", "store", "job:1", "job:2"]).code(2).says(&["--compare"]);
    t.run(["trace", "store", "--compare", "job:1", "file:/nobody"]).code(3);
}

#[test]
fn lineages_are_exported_to_stdout_and_to_files() {
    let (t, root) = pipeline();
    let document = t.run(["graph", "export", "store", &root]).ok().json();
    assert!(document["activity"]["fst:job/1"].is_object(), "PROV-JSON, where nothing else is said");
    let svg = t.run(["trace", "store", &root, "--format", "svg"]).ok().out();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    std::fs::write(t.file("x.svg"), "older").unwrap();
    let words = ["graph", "export", "store", &root, "--format", "svg", "--output", "x.svg"];
    assert_eq!(t.run(words).ok().out(), "");
    assert_eq!(std::fs::read_to_string(t.file("x.svg")).unwrap(), svg);
    let written = t.run(words.into_iter().chain(["--json"])).ok().json();
    assert_eq!((&written["format"], &written["bytes"]), (&json!("svg"), &json!(svg.len())));
    t.run(["graph", "export", "store", &root, "--format", "pdf"]).code(2);
    t.run(["graph", "export", "store", "file:/nobody"]).code(3);
    t.run(["graph", "export", "store", &root, "--output", "no/such/folder.json"]).code(3);
}

#[test]
fn an_export_of_openlineage_is_taken_in_again() {
    let (t, root) = pipeline();
    let words = ["graph", "export", "store", &root, "--format", "openlineage", "--output", "events.json"];
    t.run(words).ok();
    t.run(["ingest", "other", "events.json"]).ok();
    let tree = |store: &str| t.run(["trace", store, &root]).ok().out();
    assert_eq!(tree("other"), tree("store"));
    let script = |store: &str| t.run(["trace", store, &root, "--script"]).ok().out();
    assert_eq!(script("other"), script("store"), "another store rebuilds it, too");
}

#[test]
fn audits_show_what_a_user_did_and_what_a_file_reached() {
    let t = TestStore::empty();
    for (words, time) in [
        ("user:4000000001 run job:1", "5"),
        ("job:1 read file:/in", "10"),
        ("job:1 write file:/mid", "20"),
        ("job:2 read file:/mid", "30"),
        ("job:2 write file:/out", "40"),
    ] {
        let words = ["graph", "put", "store"].into_iter().chain(words.split(' '));
        t.run(words.chain(["--time", time])).ok();
    }
    let user = t.run(["audit", "store", "--user", "4000000001", "--since", "8"]).ok().out();
    let line = |time: &str, rest: &str| format!("1970-01-01T00:00:{time}Z\t4000000001\tjob:1\t{rest}\n");
    assert_eq!(user, line("10", "read\tfile:/in") + &line("20", "write\tfile:/mid"));
    let file = t.run(["audit", "store", "--file", "/mid", "--json"]).ok().json();
    assert_eq!(file["derived"], json!([["job", "2"], ["file", "/out"]]));
    assert_eq!(file["rows"].as_array().unwrap().len(), 2);
    let text = t.run(["audit", "store", "--file", "/mid"]).ok().out();
    assert!(text.ends_with("derived\tjob:2\nderived\tfile:/out\n"), "{text}");
    t.run(["audit", "store"]).code(2);
    t.run(["audit", "store", "--user", "nobody-of-this-name"]).code(3);
}

#[test]
fn checksums_are_those_of_xxhsum() {
    let t = TestStore::empty();
    std::fs::write(t.file("a b"), "").unwrap();
    let line = "xxh3:99aa06d3014798d86001c324468d497f  a b\n";
    assert_eq!(t.run(["graph", "checksum", "a b"]).ok().out(), line);
    let document = t.run(["graph", "checksum", "a b", "--json"]).ok().json();
    assert_eq!(document["files"][0]["checksum"], "xxh3:99aa06d3014798d86001c324468d497f");
    t.run(["graph", "checksum", "none"]).code(3);
}
