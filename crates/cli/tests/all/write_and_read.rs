//! archive, get, list, axes, where, version: what goes in comes out.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::harness::TestStore;
use serde_json::json;

const KEY: &str = "run=a variable=t step=6";

#[test]
fn bytes_come_back_as_they_went_in() {
    let t = TestStore::empty();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    t.archive(KEY, &bytes);
    assert_eq!(t.run(["get", "store", "run=a", "variable=t", "step=6"]).ok().bytes(), bytes);
    assert_eq!(t.run(["get", "store", "{run=a}{variable=t}{step=6}"]).ok().bytes(), bytes);
}

#[test]
fn archive_takes_a_file_and_says_what_it_did_on_stderr() {
    let t = TestStore::empty();
    std::fs::write(t.file("in"), b"hello").unwrap();
    let done = t.run(["archive", "store", "run=a", "variable=t", "step=6", "in"]).ok();
    assert_eq!(
        (done.out(), done.err()),
        ("".into(), "archived {run=a}{variable=t}{step=6} (5 bytes)\n".into())
    );
    let done = t.run(["archive", "store", "--key", "run=a,variable=u", "in", "--quiet"]).ok();
    assert_eq!((done.out(), done.err()), ("".into(), "".into()));
    assert_eq!(t.run(["get", "store", "variable=u"]).ok().out(), "hello");
    let done = t.run_with(["archive", "store", "run=b", "variable=t", "-", "--json"], b"x").ok().json();
    assert_eq!((&done["key"], &done["nbytes"]), (&json!({"run": "b", "variable": "t"}), &json!(1)));
    assert_eq!(done["version"], t.run(["version", "store", "--json"]).ok().json()["version"]);
}

#[test]
fn several_fields_come_in_request_order() {
    let t =
        TestStore::with(&["run=a variable=t step=0", "run=a variable=u step=0", "run=a variable=t step=6"]);
    let got = t.run(["get", "store", "run=a,step=0,variable=u/t"]).ok();
    assert_eq!(got.out(), "run=a variable=u step=0run=a variable=t step=0");
    let got = t.run(["get", "store", "run=a,variable=t,step=0/6/12", "--lenient"]).ok();
    assert_eq!(got.out(), "run=a variable=t step=0run=a variable=t step=6");
    assert!(got.err().contains("step=12"), "{}", got.err());
}

#[test]
fn get_writes_a_file_that_is_whole_or_not_there() {
    let t = TestStore::with(&[KEY]);
    let report = t.run(["get", "store", "run=a", "-o", "out", "--json"]).ok().json();
    assert_eq!(report, json!({"file": "out", "fields": 1, "nbytes": 23, "missing": 0}));
    assert_eq!(t.read("out"), KEY.as_bytes());
    t.archive_floats("run=b variable=t", &[1.0], "1");
    t.run(["get", "store", "variable=t", "--npy", "-o", "mixed.npy"]).code(2);
    t.damage(b"riable=t ste"); // the bytes of the first field
    t.run(["get", "store", "run=a", "-o", "damaged"]).code(5);
    let names: Vec<_> = std::fs::read_dir(t.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    t.run(["get", "store", "run=b", "-o", "/dev/null"]).ok();
}

#[test]
fn arrays_keep_type_and_shape() {
    let t = TestStore::empty();
    let values: Vec<f32> = (0..24).map(|i| i as f32).collect();
    t.archive_floats(KEY, &values, "2,3,4");
    let listed = t.run(["list", "store", "--json"]).ok().json();
    let field = &listed["fields"][0];
    assert_eq!(
        (&field["dtype"], &field["shape"], &field["nbytes"]),
        (&json!("<f4"), &json!([2, 3, 4]), &json!(96))
    );
    assert_eq!((&field["min"], &field["max"], &field["missing"]), (&json!(0.0), &json!(23.0), &json!(0)));

    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    };
    let part = t.run(["get", "store", "run=a", "--box", "1,0:2,::"]).code(2);
    assert!(part.err().contains("more than one colon"), "{}", part.err());
    let part = t.run(["get", "store", "run=a", "--box", "1,0:2,3"]).ok();
    assert_eq!(floats(part.bytes()), [15.0, 19.0]);

    t.run(["get", "store", "run=a", "--box", "1,:,3", "--npy", "-o", "part.npy"]).ok();
    assert!(String::from_utf8_lossy(&t.read("part.npy")).contains("'shape': (3,)"));
    t.run(["get", "store", "run=a", "--npy", "-o", "whole.npy"]).ok();
    t.run(["archive", "store", "run=b", "variable=t", "--npy", "whole.npy"]).ok();
    t.run(["get", "store", "variable=t", "--npy", "-o", "both.npy"]).ok();
    let both = t.read("both.npy");
    assert!(String::from_utf8_lossy(&both).contains("'shape': (2, 2, 3, 4)"));
    assert_eq!(floats(&both[both.len() - 96..]), values);
}

#[test]
fn pieces_make_up_an_array() {
    let t = TestStore::empty();
    let piece = |start: &str, values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let options =
            ["archive", "store", "run=a", "variable=t", "--dtype", "f4", "--shape", "4", "--count", "2"];
        t.run_with(options.into_iter().chain(["--start", start]), &bytes)
    };
    piece("0", &[1.0, 2.0]).ok();
    assert!(t.run(["list", "store"]).ok().out().ends_with(" (incomplete)\n"));
    t.run(["get", "store", "run=a"]).code(3);
    assert_eq!(t.run(["get", "store", "run=a", "--lenient"]).ok().bytes().len(), 16);
    piece("3", &[1.0, 2.0]).code(2);
    piece("2", &[3.0, 4.0]).ok();
    let bytes: Vec<u8> = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(t.run(["get", "store", "run=a"]).ok().bytes(), bytes);
}

#[test]
fn lists_in_key_order_as_lines_and_as_json() {
    let keys = ["run=a variable=t step=10", "run=a variable=t step=2", "run=b variable=t step=2"];
    let t = TestStore::with(&keys);
    let lines = "{run=a}{variable=t}{step=2}\n{run=a}{variable=t}{step=10}\n{run=b}{variable=t}{step=2}\n";
    assert_eq!(t.run(["list", "store"]).ok().out(), lines);
    assert_eq!(t.run(["list", "store", "run=a", "step=2"]).ok().out().lines().count(), 1);
    assert_eq!(t.run(["list", "store", "--depth", "1"]).ok().out(), "{run=a}\n{run=b}\n");
    let document = t.run(["list", "store", "--json"]).ok().json();
    assert_eq!(document["fields"].as_array().unwrap().len(), 3);
    assert_eq!(document["fields"][1]["key"], json!({"run": "a", "variable": "t", "step": "10"}));
    let lines = t.run(["list", "store", "--jsonl"]).ok().out();
    for (line, field) in lines.lines().zip(document["fields"].as_array().unwrap()) {
        assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap(), *field);
    }
    let long = t.run(["list", "store", "run=b", "--long"]).ok().out();
    let columns: Vec<&str> = long.split_whitespace().collect();
    assert_eq!((columns.len(), columns[0], columns[6]), (7, "23", "{run=b}{variable=t}{step=2}"), "{long}");
    assert_eq!(t.run(["list", "store", "run=none"]).ok().out(), "");
    assert_eq!(t.run(["list", "store", "run=none", "--json"]).ok().json(), json!({"fields": []}));
    let depth = t.run(["list", "store", "--depth", "1", "--json"]).ok().json();
    assert_eq!(depth, json!({"fields": [{"key": {"run": "a"}}, {"key": {"run": "b"}}]}));
}

#[test]
fn a_line_of_the_list_is_a_request() {
    let key = "run=\"a b,{c}\"";
    let t = TestStore::empty();
    t.run_with(["archive", "store", key, "variable=\"x/y*\""], b"odd").ok();
    let line = t.run(["list", "store"]).ok().out();
    assert_eq!(t.run(["get", "store", line.trim_end()]).ok().out(), "odd", "{line}");
}

#[test]
fn older_versions_are_listed_and_read_when_asked_for() {
    let t = TestStore::empty();
    t.archive(KEY, b"old");
    let version = t.run(["version", "store"]).ok().out();
    t.archive(KEY, b"newer");
    assert_eq!(t.run(["get", "store", "run=a"]).ok().out(), "newer");
    assert_eq!(t.run(["get", "store", "run=a", "--at", version.trim()]).ok().out(), "old");
    assert_eq!(t.run(["version", "store", "--at", version.trim()]).ok().out(), version);
    std::fs::write(t.path().join("before"), &version).unwrap();
    assert_eq!(t.run(["get", "store", "run=a", "--at", "@before"]).ok().out(), "old");
    assert_eq!(t.run(["list", "store", "--since", "@before"]).ok().out().lines().count(), 1);
    t.run(["get", "store", "run=a", "--at", "@after"]).code(3).says(&["after", "check the path"]);
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 1);
    let masked = t.run(["list", "store", "--masked"]).ok().out();
    assert_eq!(masked, "{run=a}{variable=t}{step=6}\n{run=a}{variable=t}{step=6} (masked)\n");
}

#[test]
fn axes_are_parts_of_a_request() {
    let t = TestStore::with(&["run=a variable=t step=10", "run=a variable=u step=2"]);
    assert_eq!(t.run(["axes", "store"]).ok().out(), "run=a\nvariable=t/u\nstep=2/10\n");
    let json = t.run(["axes", "store", "variable=u", "--json"]).ok().json();
    assert_eq!(json, json!({"run": ["a"], "variable": ["u"], "step": ["2"]}));
}

#[test]
fn where_names_the_file_that_holds_the_bytes() {
    let t = TestStore::with(&[KEY]);
    let line = t.run(["where", "store"]).ok().out();
    let (place, key) = line.trim_end().split_once('\t').unwrap();
    assert_eq!(key, "{run=a}{variable=t}{step=6}");
    let (file, offset) = place.rsplit_once(':').unwrap();
    let (bytes, offset) = (t.read(&format!("store/{file}")), offset.parse::<usize>().unwrap());
    assert!(bytes[offset..].starts_with(KEY.as_bytes()), "{line}");
    let json = t.run(["where", "store", "--json"]).ok().json();
    assert_eq!(json["fields"][0]["location"]["offset"], offset);
}

#[test]
fn requests_may_be_split_by_the_shell() {
    let t = TestStore::with(&[KEY]);
    let words = ["list", "store", "retrieve,", "run", "=", "a", ",", "variable=t/u,", "step=0/to/6"];
    assert_eq!(t.run(words).ok().out().lines().count(), 1);
}

#[test]
fn the_target_of_a_request_is_the_file() {
    let t = TestStore::with(&["run=a variable=t step=6"]);
    let request = "retrieve, run=a, TARGET = \"out/all.grib\"";
    std::fs::create_dir(t.file("out")).unwrap();
    assert_eq!(t.run(["get", "store", request]).ok().out(), "");
    assert_eq!(t.read("out/all.grib"), b"run=a variable=t step=6");
    let report = t.run(["get", "store", "run=a", "target=b.grib", "--json"]).ok().json();
    assert_eq!((&report["file"], t.read("b.grib")), (&serde_json::json!("b.grib"), t.read("out/all.grib")));
    // -o has the last word; - is stdout.
    t.run(["get", "store", "run=a,target=c.grib", "-o", "d.grib"]).ok();
    assert!(t.file("d.grib").exists() && !t.file("c.grib").exists());
    assert_eq!(t.run(["get", "store", "run=a,target=c.grib", "-o", "-"]).ok().bytes(), t.read("d.grib"));
    t.run(["get", "store", "run=a,target=a/b"]).code(2).says(&["more than one file"]);
    t.run(["get", "store", "run=b,target=c.grib"]).code(3);
    assert!(!t.file("c.grib").exists());
}

#[test]
fn a_request_file_fills_its_targets() {
    let keys: Vec<String> = [0, 6, 12].iter().map(|step| format!("run=a variable=t step={step}")).collect();
    let t = TestStore::with(&[&keys[0], &keys[1], &keys[2]]);
    let text = "retrieve, run=a, variable=t, step=6, target=x.grib\nretrieve, step=0 # the rest stays\n\
                retrieve, step=12, target=y.grib\n";
    std::fs::write(t.file("all.mars"), text).unwrap();
    let reports = t.run(["get", "store", "@all.mars", "--json"]).ok().json();
    assert_eq!(reports.as_array().map(Vec::len), Some(2));
    assert_eq!(t.read("x.grib"), [keys[1].as_bytes(), keys[0].as_bytes()].concat());
    assert_eq!(t.read("y.grib"), keys[2].as_bytes());
    // Nothing is written where one of them finds nothing.
    std::fs::write(t.file("none.mars"), text.replace("step=12", "step=18").replace("x.grib", "z.grib"))
        .unwrap();
    t.run(["get", "store", "@none.mars"]).code(3);
    assert!(!t.file("z.grib").exists());
}

#[test]
fn remove_says_what_goes_and_removes_it_with_doit() {
    let keys = ["run=a variable=t step=0", "run=a variable=t step=6", "run=a variable=u step=0"];
    let t = TestStore::with(&keys);
    let all = t.run(["list", "store"]).ok().out();
    let before = t.run(["version", "store"]).ok().out();
    let would = t.run(["remove", "store", "run=a", "variable=t"]).ok();
    assert_eq!(would.out(), "would remove 2 fields, 46 bytes\n");
    assert!(would.err().contains("--doit"), "{}", would.err());
    assert_eq!(t.run(["list", "store"]).ok().out(), all);
    // Two requests for one field are one field.
    std::fs::write(t.file("two.req"), "run=a,step=6\nrun=a,variable=t,step=6\n").unwrap();
    let removed = t.run(["remove", "store", "@two.req", "--doit", "--json"]).ok().json();
    assert_eq!(removed, json!({"fields": 1, "nbytes": 23, "done": true}));
    t.run(["get", "store", "run=a,variable=t,step=6"]).code(3);
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 2);
    assert_eq!(t.run(["list", "store", "--at", before.trim()]).ok().out(), all);
    let nothing = t.run(["remove", "store", "run=zz", "--doit"]).ok();
    assert_eq!(nothing.out(), "removed nothing\n");
}

#[test]
fn remove_takes_neither_everything_nor_a_store_that_is_absent() {
    let t = TestStore::with(&[KEY]);
    for words in
        [&["remove", "store"][..], &["remove", "store", "run=*", "--doit"], &["remove", "store", "--doit"]]
    {
        assert!(t.run(words.iter().copied()).code(2).err().contains("everything"), "{words:?}");
    }
    t.run(["remove", "nowhere", "run=a", "--doit"]).code(3);
    assert!(!t.file("nowhere").exists());
    assert_eq!(t.run(["list", "store"]).ok().out().lines().count(), 1);
}
