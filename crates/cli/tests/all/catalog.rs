//! The verbs of the catalog: annotate (one, CSV, Parquet), find, runs, steps, variables, tags, sql, delete, rebuild.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::harness::{TestStore, finish};
use fieldstone_testkit::{require::require, samples::checkout};
use serde_json::json;

/// A run `a` with the fields t and u at steps 0 and 6, 20 by 40, and some attributes.
fn tagged() -> TestStore {
    let t = TestStore::empty();
    for key in ["run=a variable=t step=0", "run=a variable=t step=6", "run=a variable=u step=6"] {
        t.archive_floats(key, &[0.0; 800], "20,40");
    }
    let on = |tag: &str, value: &str, rest: &str| {
        let words = ["annotate", "store", tag, value, "--run", "a"].into_iter();
        t.run(words.chain(rest.split_whitespace())).ok();
    };
    on("maximum", "310.5", "--variable t --step 6 --box 5:8,10:12 --unit K");
    on("maximum", "290", "--variable t --step 0 --box 0:20,0:40");
    on("maximum", "-1.5", "--variable u --step 6");
    on("vortex", "true", "--step 6");
    on("quality", "good", "");
    t
}

#[test]
fn attributes_are_found_as_they_were_given() {
    let t = tagged();
    let found = t.run(["find", "store"]).ok();
    let mut lines: Vec<String> = found.out().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "a\t-\t-\tquality\tgood\t-\t-",
            "a\t0\tt\tmaximum\t290.0\tK\t0:20,0:40",
            "a\t6\t-\tvortex\ttrue\t-\t-",
            "a\t6\tt\tmaximum\t310.5\tK\t5:8,10:12",
            "a\t6\tu\tmaximum\t-1.5\tK\t-",
        ]
    );
    let found = t.run(["find", "store", "tag=maximum and value>300 and box=7:9,0:11"]).ok();
    assert_eq!(found.out(), "a\t6\tt\tmaximum\t310.5\tK\t5:8,10:12\n");
    let found = t.run(["find", "store", "tag=maximum", "and", "with", "same", "step", "(tag=vortex)"]).ok();
    assert_eq!(found.out().lines().count(), 2);
    let query = "tag=maximum and with same step (tag=vortex) order by value";
    let found = t.run(["find", "store", "--with-related", query]).ok();
    let beside = "\t6\t-\tvortex\ttrue\t-\t-";
    let rows = ["a\t6\tu\tmaximum\t-1.5\tK\t-", "a\t6\tt\tmaximum\t310.5\tK\t5:8,10:12"];
    assert_eq!(found.out(), rows.map(|row| format!("{row}{beside}\n")).concat());
    let json = t.run(["find", "store", "--with-related", query, "--json"]).ok().json();
    assert_eq!(json["attributes"][1]["value"], 310.5);
    assert_eq!((json["attributes"][1]["related"][0]["tag"]).as_str(), Some("vortex"));
    let head = t.run(["find", "store", "--with-related", query, "--width", "200"]).ok().out();
    assert!(head.lines().next().is_some_and(|head| head.contains("related.value")), "{head}");
    t.run(["find", "store", "--with-related", "tag=maximum"])
        .code(2)
        .says(&["no term for related attributes"]);
    let json = t.run(["find", "store", "tag=maximum order by -value limit 1", "--json"]).ok().json();
    let hit = &json["attributes"][0];
    assert_eq!(hit["value"], 310.5);
    assert_eq!(hit["type"], "float");
    assert_eq!((hit["start"].to_string(), hit["count"].to_string()), ("[5,10]".into(), "[3,2]".into()));
    assert_eq!((hit["run"].as_str(), hit["step"].as_i64()), (Some("a"), Some(6)));
    assert!(hit["project"].is_null() && hit["unit"] == "K");
    assert_eq!(t.run(["find", "store", "tag=maximum", "--jsonl"]).ok().out().lines().count(), 3);
    assert_eq!(t.run(["find", "store", "tag=maximum", "--count"]).ok().out(), "3\n");
    let groups = t.run(["find", "store", "tag=maximum", "--by", "run,step"]).ok().out();
    assert_eq!(groups, "a\t0\t1\t290.0\t290.0\t290.0\na\t6\t2\t-1.5\t310.5\t154.5\n");
    let boxes = t.run(["find", "store", "tag=maximum and step=0", "--boxes"]).ok().out();
    assert_eq!(boxes, "a\t0\tt\t0:20,0:40\n");
    let table = t.run(["find", "store", "tag=maximum", "--width", "40"]).ok().out();
    assert!(table.lines().all(|line| line.chars().count() <= 40) && table.contains("value"), "{table}");
    assert!(t.run(["find", "store", "--explain", "tag=maximum"]).ok().out().contains("rows"));
}

#[test]
fn who_annotated_is_told_on_demand() {
    let t = tagged();
    let json = t.run(["find", "store", "tag=vortex", "--json"]).ok().json();
    let user = json["attributes"][0]["user"].as_str().unwrap().to_owned();
    assert!(!user.is_empty());
    let line = format!("a\t6\t-\tvortex\ttrue\t-\t-\t{user}\n");
    assert_eq!(t.run(["find", "store", "tag=vortex", "--user"]).ok().out(), line);
    let own = ["annotate", "store", "quality", "good", "--run", "own", "--annotate", "owner"];
    t.run(own).code(2);
    t.run(own.into_iter().chain(["--create"])).ok();
    assert_eq!(t.run(["find", "store", "run=own", "--count"]).ok().out(), "1\n");
    let report = t.run(["delete", "store", "attributes", "run=own", "--doit", "--json"]).ok().json();
    assert_eq!((report["attributes"].as_u64(), report["others"].as_u64()), (Some(1), Some(0)));
}

#[test]
fn a_member_of_an_ensemble_is_tagged_and_found_by_its_keyword() {
    let t = TestStore::with(&["run=a variable=t step=6 member=3", "run=a variable=t step=6 member=4"]);
    let on_t = ["--run", "a", "--variable", "t", "--step", "6"];
    for (value, member) in [("3.1", "member=03"), ("2.5", "member=4")] {
        t.run(["annotate", "store", "storm", value].iter().chain(&on_t).chain(&["--keyword", member])).ok();
    }
    let line = "a\t6\tt member=3\tstorm\t3.1\t-\t-\n";
    assert_eq!(t.run(["find", "store", "tag=storm and keyword.member=3"]).ok().out(), line);
    let json = t.run(["find", "store", "keyword.member>3", "--json"]).ok().json();
    assert_eq!(json["attributes"][0]["keywords"], json!({"member": "4"}));
    assert_eq!(t.run(["find", "store", "tag=storm", "--count"]).ok().out(), "2\n");
    t.run(["annotate", "store", "storm", "1"].iter().chain(&on_t).chain(&["--keyword", "step=3"]))
        .code(2)
        .says(&["the run, the step or the variable gives `step`"]);
    let nothing = t.run(["runs", "store", "param.nxx=3"]).ok().err();
    assert!(nothing.contains("there is no parameter 'nxx'"), "{nothing}");
}

#[test]
fn a_second_value_corrects_the_first() {
    let t = tagged();
    t.run(["annotate", "store", "vortex", "false", "--run", "a", "--step", "6"]).ok();
    assert_eq!(t.run(["find", "store", "tag=vortex"]).ok().out(), "a\t6\t-\tvortex\tfalse\t-\t-\n");
}

#[test]
fn a_table_makes_a_store_only_where_that_is_asked_for() {
    let t = tagged();
    let rows = b"tag,value,run\nquality,good,a\n";
    let table = ["annotate", "fresh", "--csv", "-"];
    t.run_with(table, rows).code(3);
    assert!(!t.file("fresh").exists());
    t.run_with(table.iter().chain(&["--create", "--schema", "simulation"]), rows).ok();
    assert_eq!(t.run(["find", "fresh", "tag=quality"]).ok().out(), "a\t-\t-\tquality\tgood\t-\t-\n");
}

#[test]
fn what_exists_is_listed_and_what_hits_touch() {
    let t = tagged();
    t.run(["annotate", "store", "quality", "bad", "--run", "b", "--create"]).ok();
    let listed = t.run(["runs", "store", "run=a"]).ok().out();
    assert!(listed.starts_with("a\t20") && listed.ends_with("Z\t-\t-\n"), "as old as its field: {listed}");
    let runs = t.run(["runs", "store", "tag=quality and value=bad", "--json"]).ok().json();
    assert_eq!(
        (runs["runs"][0]["name"].as_str(), runs["runs"][0]["declared"].as_bool()),
        (Some("b"), Some(true))
    );
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    assert_eq!(t.run(["steps", "store", "run=a"]).ok().out(), "a\t0\t-\na\t6\t-\n");
    assert_eq!(t.run(["steps", "store", "tag=vortex"]).ok().out(), "a\t6\t-\n");
    assert_eq!(t.run(["variables", "store", "variable=u"]).ok().out(), "a\tu\t<f4\t20x40\t-\t-\n");
    let tags = t.run(["tags", "store"]).ok().out();
    for line in ["maximum\t0\tfloat\tK", "quality\t0\ttext\t-", "vortex\t0\tbool\t-"] {
        assert!(tags.lines().any(|found| found == line), "{tags}");
    }
    let rows = t.run(["sql", "store", "select count(*) as n from attributes", "--json"]).ok().json();
    assert_eq!(rows["rows"][0]["n"], 6);
    t.run(["sql", "store", "delete from attributes"]).code(2);
}

#[test]
fn a_table_is_taken_whole_or_not_at_all() {
    let t = tagged();
    let csv = "tag,value,variable,step,box\nfront,1,t,0,\"0:1,0:1\"\nfront,2.5,t,6,\"0:2,0:1\"\n\
               front,7,t,6,\"0:2,0:1\"\nremark,\"some, text\",,6,\n";
    std::fs::write(t.file("f.csv"), csv).unwrap();
    let taken = t.run(["annotate", "store", "--csv", "f.csv", "--run", "a", "--json"]).ok().json();
    assert_eq!((taken["attributes"].as_u64(), taken["tags"].as_u64()), (Some(4), Some(2)));
    // Rows of one file do not correct each other.
    let found = t.run(["find", "store", "tag=front order by value"]).ok().out();
    assert_eq!(
        found,
        "a\t0\tt\tfront\t1.0\t-\t0:1,0:1\na\t6\tt\tfront\t2.5\t-\t0:2,0:1\na\t6\tt\tfront\t7.0\t-\t0:2,0:1\n"
    );
    assert_eq!(t.run(["find", "store", "tag=remark"]).ok().out(), "a\t6\t-\tremark\tsome, text\t-\t-\n");
    // From stdin, with the type of the tag that is there.
    let done = t.run_with(["annotate", "store", "front", "--csv", "-", "--run", "a"], b"value,step\n3,6\n");
    assert!(done.ok().err().contains("annotated 1 attribute"));
    for (csv, words) in [
        ("tag,value\nfront,1\nfront,hot\n", &["line 3", "'hot' is not of type float"][..]),
        ("tag,value,variable,step\nfront,1,t,0\nfront,1,none,0\n", &["none"]),
        ("tag,valeu\nfront,1\n", &["'valeu'", "`value`"]),
        ("", &["the file is empty"]),
    ] {
        let before = t.run(["find", "store", "--count"]).ok().out();
        let run = t.run_with(["annotate", "store", "--csv", "-", "--run", "a"], csv.as_bytes());
        assert!(!run.err().contains("annotated"), "{csv}");
        run.says(words);
        assert_eq!(t.run(["find", "store", "--count"]).ok().out(), before, "{csv}");
    }
}

#[test]
fn parquet_is_taken_through_python() {
    // The file that `make build` made, if it did.
    let built = checkout().join(".venv/bin/python");
    let python = match std::env::var("FIELDSTONE_PYTHON") {
        Ok(named) => named,
        Err(_) if built.exists() => built.to_string_lossy().into_owned(),
        Err(_) => "python3".to_owned(),
    };
    let script = "import pyarrow as pa, pyarrow.parquet as pq, datetime\n\
        pq.write_table(pa.table({'tag': ['front', 'front'], 'value': [1.5, float('nan')], 'variable': ['t', 't'],\n\
        'step': pa.array([0, 6]), 'start': [[0, 1], [2, 3]], 'count': [[1, 1], [4, 5]]}), 'f.parquet')\n\
        pq.write_table(pa.table({'tag': ['note', 'when'], 'value': ['7', '']}), 'g.parquet')\n\
        pq.write_table(pa.table({'tag': ['seen'], 'value': [datetime.datetime(2026, 11, 21, 6)]}), 'h.parquet')\n";
    let t = tagged();
    let has_it = std::process::Command::new(&python)
        .args(["-c", &format!("import fieldstone\n{script}")])
        .current_dir(t.path())
        .status()
        .is_ok_and(|status| status.success());
    if !require("pyarrow", has_it, "a Python with fieldstone and pyarrow, named by FIELDSTONE_PYTHON") {
        return;
    }
    let taken = |file: &str| {
        let mut command = t.command(["annotate", "store", "--parquet", file, "--run", "a"]);
        command.env("FIELDSTONE_PYTHON", &python);
        finish(command, b"")
    };
    for file in ["f.parquet", "g.parquet", "h.parquet"] {
        taken(file).ok();
    }
    let found = t.run(["find", "store", "tag=front"]).ok().out();
    assert_eq!(found, "a\t0\tt\tfront\t1.5\t-\t0:1,1:2\na\t6\tt\tfront\tNaN\t-\t2:6,3:8\n");
    let kinds = t.run(["tags", "store", "tag in (note, when, seen)"]).ok().out();
    let mut kinds: Vec<&str> = kinds.lines().collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["note\t0\ttext\t-", "seen\t0\tdatetime\t-", "when\t0\ttext\t-"]);
    assert_eq!(
        t.run(["find", "store", "tag=seen"]).ok().out(),
        "a\t-\t-\tseen\t2026-11-21T06:00:00Z\t-\t-\n"
    );
    taken("absent.parquet").code(3).says(&["absent.parquet"]);
}

#[test]
fn deleting_says_what_goes_first() {
    let t = tagged();
    assert_eq!(
        t.run(["delete", "store", "tags", "tag=maximum"]).ok().out(),
        "would delete 1 tag, 3 attributes\n"
    );
    assert_eq!(t.run(["find", "store", "tag=maximum", "--count"]).ok().out(), "3\n");
    let before = t.run(["version", "store"]).ok().out();
    let done =
        t.run(["delete", "store", "attributes", "tag=maximum and value<0", "--doit", "--json"]).ok().json();
    assert_eq!((done["attributes"].as_u64(), done["done"].as_bool()), (Some(1), Some(true)));
    assert_eq!(t.run(["find", "store", "tag=maximum", "--count"]).ok().out(), "2\n");
    let then = t.run(["find", "store", "tag=maximum", "--count", "--at", before.trim()]).ok().out();
    assert_eq!(then, "3\n");
    t.run(["delete", "store", "runs"]).code(2).says(&["no query", "everything"]);
    // Its fields stay, and so does the run that they name.
    t.run(["delete", "store", "runs", "run=a", "--doit"]).ok();
    assert_eq!(t.run(["find", "store", "--count"]).ok().out(), "0\n");
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 3);
}

#[test]
fn the_engine_may_go() {
    let t = tagged();
    let before = t.run(["find", "store"]).ok().out();
    std::fs::remove_dir_all(t.file("store/catalog")).unwrap();
    assert_eq!(t.run(["find", "store"]).ok().out(), before);
    let report = t.run(["rebuild", "store", "--json"]).ok().json();
    assert_eq!(report["attributes"], 5);
    assert!(report["engine"].as_str().unwrap().ends_with("index.sqlite"), "{report}");
    assert_eq!(t.run(["find", "store"]).ok().out(), before);
}

#[test]
fn errors_name_what_is_meant() {
    let t = tagged();
    t.run(["find", "store", "tag=maximum and vlaue>3"]).code(2).says(&["vlaue>3\n", "^", "`value`"]);
    assert!(t.run(["find", "store", "tag=maxmum"]).ok().err().contains("did you mean `maximum`?"));
    t.run(["find", "nowhere"]).code(3);
    let on = |words: &str| t.run(["annotate", "store"].into_iter().chain(words.split(' ')));
    on("maximum 3 --run c").code(3).says(&["'c'"]);
    on("maximum 3 --run a --variable v --step 6").code(3).says(&["'v'"]);
    on("maximum hot --run a").code(2).says(&["'hot' is not of type float"]);
    on("maximum 3 --run a --variable t --step 6 --box 0:99,0:1").code(2);
    on("maximum 3").code(2).says(&["--run"]);
    on("maximum --run a").code(2).says(&["--csv"]);
    on("maximum 3 --run a --type flaot").code(2);
    t.run(["find", "store", "--txn", "1"]).code(2).says(&["id of a transaction"]);
    for verb in ["find", "runs", "steps", "variables", "tags", "rebuild"] {
        t.run([verb, "nowhere"]).code(3);
    }
}
