//! init, schema and show: stores before their first field, what a schema says, what a field is.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::harness::TestStore;
use fieldstone::prelude::*;
use serde_json::json;

const KEY: &str = "run=a variable=t step=6";

#[test]
fn a_store_is_made_with_its_schema_before_the_first_field() {
    let t = TestStore::empty();
    assert!(t.run(["init", "store", "--schema", "mars"]).ok().err().contains("made, schema mars"));
    let status = t.run(["status", "store", "--json"]).ok().json();
    assert_eq!((&status["schema"], &status["states"]), (&json!("mars"), &json!({})));
    assert!(status["id"].is_string(), "{status}");
    assert_eq!(t.run(["list", "store"]).ok().out(), "");
    let files = t.files("store");
    assert!(t.run(["init", "store"]).ok().err().contains("there already"));
    assert_eq!(t.run(["init", "store", "--schema", "mars", "--json"]).ok().json()["created"], json!(false));
    t.run(["init", "store", "--schema", "simulation"]).code(4).says(&["another schema"]);
    assert_eq!(t.files("store"), files, "a store that is there stays as it is");
    // Archiving takes the schema that is there, and no other.
    t.run_with(["archive", "store", "run=a", "variable=t"], b"x").code(2);
    let key =
        ["class=od", "expver=1", "stream=oper", "date=20260101", "time=0", "type=an", "step=0", "param=130"];
    t.run_with(["archive", "store"].iter().chain(&key), b"x").ok();
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 1);
    t.run(["init", "elsewhere", "--schema", "absent.schema"]).code(3).says(&["absent.schema"]);
    assert!(!t.file("elsewhere").exists());
    std::fs::write(t.file("my.schema"), "[model [name [n]]]").unwrap();
    t.run(["init", "own", "--schema", "my.schema"]).ok();
    assert_eq!(t.run(["schema", "show", "own"]).ok().out(), "[model [name [n]]]\n");
}

#[test]
fn a_wrong_schema_is_told_by_its_place() {
    let t = TestStore::empty();
    let text = "# my schema\nstep: Intger;\n\t[run [variable [step]]]\n";
    std::fs::write(t.file("my.schema"), text).unwrap();
    let output = t.run(["schema", "check", "my.schema"]).code(2).err();
    assert_eq!(
        output,
        "error: my.schema:2:7: `Intger` is not a type\n 2 | step: Intger;\n   |       ^\nhint: did you mean `Integer`?\n"
    );
    // Every verb that reads a schema file shows the place.
    t.run(["schema", "show", "my.schema"]).code(2).says(&["my.schema:2:7"]);
    let report = t.run(["schema", "check", "my.schema", "--json"]).code(2).json();
    assert_eq!(
        report["errors"],
        json!([{"line": 2, "column": 7, "message": "`Intger` is not a type", "hint": "did you mean `Integer`?"}])
    );
    let output =
        t.run_with(["schema", "check", "-"], "[run [variable\n\t[step, ü ?? ]]]".as_bytes()).code(2).err();
    assert!(output.contains("\n 2 |  [step, ü ?? ]]]\n   |            ^\n"), "{output}");
    // A line of any length is shown around the place.
    let long = format!("[{}run [variable [step]]] ]", "a, ".repeat(500).replace('a', "k"));
    let output = t.run_with(["schema", "check", "-"], long.as_bytes()).code(2).err();
    assert!(output.lines().all(|line| line.chars().count() < 160), "{output}");
    t.run_with(["schema", "check", "-"], b"\xff\xfe").code(2).says(&["UTF-8"]);
    t.run(["schema", "check", "absent"]).code(3).says(&["absent"]);
}

#[test]
fn a_right_schema_is_shown_and_its_dead_rules_are_named() {
    let t = TestStore::empty();
    let dead = t.run_with(["schema", "check", "-"], b"[a [b [c, *]]]\n[a [b [c]]]").ok().out();
    assert_eq!(
        dead,
        "warning: no key reaches rule 2, [a [b [c]]]: rule 1, [a [b [c, *]]], takes them all\n-: 2 rules, 3 keywords: right\n"
    );
    let shown = t.run(["schema", "show", "simulation"]).ok().out();
    std::fs::write(t.file("my.schema"), &shown).unwrap();
    assert!(t.run(["schema", "check", "my.schema"]).ok().out().ends_with(": right\n"));
    let schema = t.run(["schema", "show", "simulation", "--json"]).ok().json();
    assert_eq!((&schema["name"], &schema["text"]), (&json!("simulation"), &json!(shown)));
    assert_eq!(
        schema["catalog"],
        json!({"project": "project", "run": ["run"], "step": "step", "variable": "variable"})
    );
    let level = &schema["rules"][0]["levels"][2];
    assert_eq!((&level["open"], &level["keywords"][0]["name"]), (&json!(true), &json!("step")));
    assert_eq!(
        (&level["keywords"][0]["type"], &level["keywords"][0]["required"]),
        (&json!("Integer"), &json!(false))
    );
    t.run(["schema", "show", "nowhere"]).code(3).says(&["nowhere", "a store or a schema file"]);
}

#[test]
fn keys_are_tried_without_a_store() {
    let t = TestStore::empty();
    assert_eq!(
        t.run(["schema", "key", "simulation", "step=06", "run=a,variable=t"]).ok().out(),
        "{run=a}{variable=t}{step=6}\ndataset\trun\ta\tText\nindex\tvariable\tt\tText\nfield\tstep\t6\tInteger\n"
    );
    let key = t.run(["schema", "key", "simulation", "run=a", "variable=t", "--json"]).ok().json();
    assert_eq!(key["levels"], json!([{"run": "a"}, {"variable": "t"}, {}]));
    t.run(["schema", "key", "simulation", "runn=a", "variable=t"]).code(2).says(&["lacks", "`run`"]);
    let keys =
        t.run(["schema", "expand", "simulation", "run=a", "variable=t/u", "step=0/to/12/by/6"]).ok().out();
    assert_eq!(keys.lines().count(), 6);
    assert!(keys.starts_with("{run=a}{variable=t}{step=0}\n{run=a}{variable=t}{step=6}\n"), "{keys}");
    t.run(["schema", "expand", "simulation", "run=a"]).code(2).says(&["list values for variable"]);
}

#[test]
fn one_field_is_shown_with_all_that_is_known() {
    let t = TestStore::with(&[KEY]);
    let values: Vec<f32> = (0..40).map(|i| i as f32 / 8.0).collect();
    t.archive_floats(KEY, &values, "2,2,10");
    t.archive("run=a variable=t step=6 level=1", b"a field with a longer key");
    let key = ["show", "store", "run=a", "variable=t", "step=6", "level=1"];
    assert!(t.run(key).ok().out().contains("  first     a field with a longer key\n"));
    t.archive("run=b variable=q", b"\x00\x01\x02");
    assert!(t.run(["show", "store", "run=b"]).ok().out().contains("  content   bytes\n"));

    let t = TestStore::with(&[KEY]);
    t.archive_floats(KEY, &values, "2,2,10");
    let shown = t.run(["show", "store", "run=a"]).ok().out();
    for line in [
        "{run=a}{variable=t}{step=6}",
        "  step      6  (Integer)",
        "  content   array",
        "  type      <f4",
        "  shape     2 x 2 x 10",
        "  bytes     160",
        "  values    0.0 to 4.875",
        "  first     0.0  0.125  0.25  0.375  0.5  0.625 …",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    assert!(shown.contains("  versions  2; older: 20"), "{shown}");
    let shown = t.run(["show", "store", "run=a", "--json"]).ok().json();
    assert_eq!(
        (&shown["nbytes"], &shown["shape"], &shown["content"]),
        (&json!(160), &json!([2, 2, 10]), &json!("array"))
    );
    assert_eq!(shown["values"], json!([0.0, 0.125, 0.25, 0.375, 0.5, 0.625]));
    let masked: Vec<_> = shown["versions"].as_array().unwrap().iter().map(|v| v["masked"].clone()).collect();
    assert_eq!(masked, [json!(false), json!(true)]);
    t.run(["show", "store", "run=zz"]).code(3).says(&["no field has run=zz"]);
}

#[test]
fn an_overview_is_bounded() {
    let t = TestStore::empty();
    let store = fieldstone::open(&t.file("store").to_string_lossy(), &Default::default()).unwrap();
    for step in 0..1000 {
        let key = [("run", "a"), ("variable", "t"), ("step", &step.to_string())];
        store.archive(&key, fieldstone::Value::Bytes(b"abc"), &Default::default()).unwrap();
    }
    store.close().unwrap();
    assert_eq!(
        t.run(["show", "store", "--width", "80"]).ok().out(),
        "store: 1000 fields in 1 dataset, 3000 bytes, schema simulation\n\
         keyword   values\n\
         run            1  a\n\
         variable       1  t\n\
         step        1000  0/1/2/3/4/5/…/999\n"
    );
    let shown = t.run(["show", "store", "step=0/1", "--json"]).ok().json();
    assert_eq!(
        (&shown["fields"], &shown["axes"]["step"]),
        (&json!(2), &json!({"count": 2, "first": "0", "last": "1"}))
    );
    // A million fields or ten: the first lines come before the last are looked for.
    let mut command = t.command(["list", "store"]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut first = [0; 27];
    std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut first).unwrap();
    assert_eq!(&first, b"{run=a}{variable=t}{step=0}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_stores_schema_is_extended_from_text_file_and_stdin() {
    let t = TestStore::empty();
    std::fs::write(t.file("my.schema"), "step: Integer; [run [variable [step]]]").unwrap();
    t.run(["init", "store", "--schema", "my.schema"]).ok();
    t.run_with(["archive", "store", "run=a", "variable=t", "step=0"], b"x").ok();
    let added = t.run(["schema", "add", "store", "number?: Integer;", "--json"]).ok().json();
    assert_eq!(added["added"], json!(["[run [variable [step, number?]]]"]));
    t.run_with(["archive", "store", "run=a", "variable=t", "step=0", "number=07"], b"y").ok();
    assert_eq!(t.run(["get", "store", "run=a,variable=t,step=0"]).ok().out(), "xy", "the request names both");
    assert_eq!(t.run(["list", "store", "number=7"]).ok().out(), "{run=a}{variable=t}{step=0,number=7}\n");
    std::fs::write(t.file("more.schema"), "[centre [x [y]]]\n[a [b [c").unwrap();
    t.run(["schema", "add", "store", "more.schema"]).code(2).says(&["more.schema:2:9", "expected `]`", "^"]);
    assert_eq!(
        t.run_with(["schema", "add", "store", "-"], b"[centre [x [y]]]").ok().out(),
        "added: [centre [x [y]]]\n"
    );
    t.run(["schema", "add", "store", "[centre [x [y]]]"]).code(2).says(&["accepts all keys"]);
    t.run(["schema", "add", "absent", "x?;"]).code(3);
    assert!(!t.file("absent").exists());
    let shown = t.run(["schema", "show", "store"]).ok().out();
    assert_eq!(shown.matches("extension;").count(), 2, "{shown}");
    std::fs::write(t.file("whole.schema"), &shown).unwrap();
    t.run(["schema", "check", "whole.schema"]).ok();
}
