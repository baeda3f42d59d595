//! Ingest: files through the helper process into a store.
//!
//! The rules are tested with a stand-in for the helper (`ingest/stand_in.py`): there a "file" lists the frames and
//! actions of its answer. Real files of many centres go through the real helper in the last test and in
//! `python/tests/test_ingest.py`.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fieldstone::helper::{Helper, HelperOptions};
use fieldstone::prelude::*;
use fieldstone::{
    ErrorKind, FieldStore, FieldStoreExt, IngestOptions, IngestReport, ListOptions, OpenOptions, ReadOptions,
    Request, Value, ingest,
};
use fieldstone_format::grib::fields::fields;
use fieldstone_testkit::require::full;
use fieldstone_testkit::samples::{python_with, sample};
use serde_json::json;

pub fn stand_in() -> HelperOptions {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/ingest/stand_in.py");
    HelperOptions { python: Some(script), patience: Duration::from_secs(20) }
}

pub fn memory(schema: &str) -> fieldstone::Store {
    fieldstone::open("memory:", &OpenOptions { schema: Some(schema.to_owned()), ..Default::default() })
        .unwrap()
}

/// Files for the stand-in, in a folder of their own.
pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new() -> Files {
        Files(tempfile::tempdir().unwrap())
    }

    pub fn add(&self, name: &str, deeds: serde_json::Value) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, deeds.to_string()).unwrap();
        path
    }
}

fn take(store: &fieldstone::Store, paths: &[PathBuf]) -> IngestReport {
    let options = IngestOptions { helper: stand_in(), ..Default::default() };
    ingest(store, paths, &options).unwrap()
}

/// Key and bytes of every field.
fn contents(store: &dyn FieldStore) -> BTreeMap<String, Vec<u8>> {
    let fields = store.retrieve(&Request::new(), &Default::default()).unwrap();
    let one = |field: fieldstone::Field| (field.key().unwrap().to_string(), field.lenient().read().unwrap());
    fields.iter().map(|field| one(field.unwrap())).collect()
}

fn keys(store: &dyn FieldStore) -> Vec<String> {
    contents(store).into_keys().collect()
}

pub fn message(key: serde_json::Value, apart: serde_json::Value, payload: &str) -> serde_json::Value {
    json!([{"kind": "field", "grib": key, "apart": apart, "offset": 0}, payload])
}

pub fn grib_key(step: &str) -> serde_json::Value {
    json!({"class": "od", "expver": "0001", "stream": "oper", "date": "20240101", "time": "0000", "type": "fc",
        "levtype": "sfc", "step": step, "param": "167"})
}

/// A netCDF file: its offer, a variable in two steps, and its header.
pub fn netcdf(run: &str, digit: char) -> serde_json::Value {
    let sha256 = digit.to_string().repeat(64);
    let field = |step: u64, payload: &str| {
        json!([{"kind": "field", "key": {"run": run, "variable": "t", "step": step}, "dtype": "|u1", "shape": [2]},
            payload])
    };
    let header = json!({"source": {"sha256": sha256}}).to_string();
    json!([
        [{"kind": "offer", "format": "netcdf", "run": run, "sha256": sha256}, ""],
        field(0, "ab"),
        field(1, "cd"),
        [{"kind": "field", "key": {"run": run, "variable": "@header"}, "opaque": true}, header],
        [{"kind": "done"}, ""]
    ])
}

pub fn done(frames: Vec<serde_json::Value>) -> serde_json::Value {
    frames.into_iter().chain([json!([{"kind": "done"}, ""])]).collect()
}

#[test]
fn a_netcdf_file_is_taken_once() {
    let (files, store) = (Files::new(), memory("simulation"));
    let path = files.add("a.nc", netcdf("a", '1'));
    let report = take(&store, std::slice::from_ref(&path));
    let taken = &report.taken[0];
    assert_eq!((taken.fields, taken.unchanged, report.skipped.len()), (3, 0, 0));
    assert_eq!(
        keys(&store),
        ["{run=a}{variable=@header}{}", "{run=a}{variable=t}{step=0}", "{run=a}{variable=t}{step=1}"]
    );
    let version = store.version().unwrap();
    for paths in [vec![path.clone()], vec![path.clone(), path]] {
        let report = take(&store, &paths);
        assert!(report.taken.iter().all(|t| (t.fields, t.bytes, t.unchanged) == (0, 0, 3)), "{report:?}");
    }
    assert_eq!(store.version().unwrap(), version, "nothing was written");
}

#[test]
fn another_file_of_the_same_name_is_kept_apart() {
    let (files, store) = (Files::new(), memory("simulation"));
    let (one, two) = (files.add("one", netcdf("a", '1')), files.add("two", netcdf("a", '2')));
    for _ in 0..2 {
        take(&store, &[one.clone(), two.clone()]);
    }
    let source = ",source=222222222222";
    assert_eq!(
        keys(&store),
        [
            "{run=a}{variable=@header}{source=222222222222}".to_owned(),
            "{run=a}{variable=@header}{}".to_owned(),
            format!("{{run=a}}{{variable=t}}{{step=0{source}}}"),
            "{run=a}{variable=t}{step=0}".to_owned(),
            format!("{{run=a}}{{variable=t}}{{step=1{source}}}"),
            "{run=a}{variable=t}{step=1}".to_owned(),
        ]
    );
}

#[test]
fn fields_of_a_simulation_are_not_replaced_by_a_file() {
    let (files, store) = (Files::new(), memory("simulation"));
    let key = [("run", "a"), ("variable", "t"), ("step", "0")];
    store.archive(&key, Value::Bytes(b"mine"), &Default::default()).unwrap();
    store.flush(None).unwrap();
    take(&store, &[files.add("a.nc", netcdf("a", '1'))]);
    assert_eq!(store.get(&key, &ReadOptions::default()).unwrap().read().unwrap(), b"mine");
    assert_eq!(keys(&store).len(), 4);
}

#[test]
fn further_keywords_stand_in_every_key() {
    let (files, store) = (Files::new(), memory("simulation"));
    let path = files.add("a.nc", netcdf("a", '1'));
    let with = |key: &[(&str, &str)]| {
        let key = key.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        ingest(&store, &[&path], &IngestOptions { key, helper: stand_in(), ..Default::default() }).unwrap()
    };
    assert_eq!(with(&[("project", "p"), ("run", "b"), ("member", "3")]).taken[0].fields, 3);
    assert!(keys(&store).iter().all(|key| key.starts_with("{project=p,run=b}") && key.contains("member=3")));
    assert_eq!(with(&[("project", "p"), ("run", "b"), ("member", "3")]).taken[0].unchanged, 3);
    // Another project is another place.
    assert_eq!(with(&[("run", "b")]).taken[0].fields, 3);
    for (key, why) in [(("step", "1"), "step comes from the file"), (("member", "x"), "member")] {
        let report = with(&[key]);
        assert!(report.taken.is_empty());
        assert!(report.skipped[0].why.contains(why), "{report:?}");
        assert_eq!(report.skipped[0].what, "the file");
    }
}

#[test]
fn a_schema_without_a_place_is_told() {
    let files = Files::new();
    let (nc, grib) =
        (files.add("a.nc", netcdf("a", '1')), done(vec![message(grib_key("0"), json!([]), "m")]));
    let grib = files.add("a.grib", grib);
    for (schema, path, why) in [
        ("mars", nc, "cannot hold netCDF fields (hint: "),
        ("simulation", grib, "cannot hold GRIB messages (hint: "),
    ] {
        let store = memory(schema);
        let report = take(&store, &[path]);
        assert!(report.taken.is_empty() && report.skipped[0].why.contains(why), "{report:?}");
        assert!(keys(&store).is_empty());
    }
}

#[test]
fn messages_of_one_key_are_told_apart() {
    let (files, store) = (Files::new(), memory("mars"));
    let key = || grib_key("0");
    let path = files.add(
        "a.grib",
        done(vec![
            message(key(), json!([["level", "2"], ["grid", "x"]]), "first"),
            message(key(), json!([["level", "2"], ["grid", "x"]]), "first"),
            message(key(), json!([["level", "2"], ["grid", "y"]]), "other grid"),
            message(key(), json!([["level", "10"], ["grid", "x"]]), "other level"),
            message(key(), json!([["level", "10"], ["grid", "y"]]), "other both"),
            message(key(), json!([["level", "2"], ["grid", "x"]]), "nothing differs"),
            message(key(), json!([["level", "2"], ["grid", "x"]]), "still nothing"),
        ]),
    );
    let report = take(&store, std::slice::from_ref(&path));
    assert_eq!((report.taken[0].fields, report.taken[0].unchanged), (6, 1));
    let found = contents(&store);
    let base = "{class=od,expver=0001,stream=oper,date=20240101,time=0000,domain=g}{type=fc,levtype=sfc}{step=0,param=167";
    let expected = [
        ("", "first"),
        (",grid=y", "other grid"),
        (",level=10", "other level"),
        (",grid=y,level=10", "other both"),
        (",ordinal=2", "nothing differs"),
        (",ordinal=3", "still nothing"),
    ];
    assert_eq!(found.len(), expected.len(), "{:?}", found.keys());
    for (further, bytes) in expected {
        let key = format!("{base}{further}}}");
        assert_eq!(found.get(&key).map(Vec::as_slice), Some(bytes.as_bytes()), "{key}: {:?}", found.keys());
    }
    let version = store.version().unwrap();
    let report = take(&store, std::slice::from_ref(&path));
    assert_eq!((report.taken[0].fields, report.taken[0].unchanged), (0, 7));
    let report = take(&store, &[path.clone(), path]);
    assert!(report.taken.iter().all(|taken| (taken.fields, taken.unchanged) == (0, 7)));
    assert_eq!(store.version().unwrap(), version);
}

/// `type` is a keyword of the second level for messages with MARS keys and of the third for others.
#[test]
fn axes_hold_messages_with_and_without_mars_keys() {
    let (files, store) = (Files::new(), memory("mars"));
    let mut key = grib_key("0");
    key["type"] = "an".into();
    let other = json!({"centre": "kwbc", "date": "20240102", "time": "0600", "levtype": "sfc", "step": "0",
        "param": "167", "type": "fc"});
    for (name, key) in [("one", key), ("two", other)] {
        take(&store, &[files.add(name, done(vec![message(key, json!([]), name)]))]);
    }
    for request in ["", "step=0"] {
        let axes = store.axes(&Request::parse(request).unwrap(), &ReadOptions::default()).unwrap();
        let texts = |keyword: &str| -> Vec<String> {
            let found = axes.iter().filter(|(name, _)| &**name == keyword);
            found.flat_map(|(_, values)| values.iter().map(|value| value.text().into_owned())).collect()
        };
        assert_eq!(texts("type"), ["an", "fc"], "{request}");
        assert_eq!(texts("date"), ["20240101", "20240102"], "{request}");
    }
}

#[test]
fn messages_of_two_files_are_told_apart_too() {
    let (files, store) = (Files::new(), memory("mars"));
    let file = |name: &str, level: &str| {
        files.add(name, done(vec![message(grib_key("0"), json!([["level", level]]), name)]))
    };
    let report = take(&store, &[file("one", "2"), file("two", "10")]);
    assert_eq!(report.taken.iter().map(|taken| taken.fields).sum::<u64>(), 2);
    assert_eq!(contents(&store).into_values().collect::<Vec<_>>(), [b"two", b"one"]);
}

#[test]
fn a_message_that_changed_is_a_new_version() {
    let (files, store) = (Files::new(), memory("mars"));
    take(&store, &[files.add("a", done(vec![message(grib_key("0"), json!([]), "old")]))]);
    let before = store.version().unwrap();
    let report = take(&store, &[files.add("a", done(vec![message(grib_key("0"), json!([]), "new")]))]);
    assert_eq!(report.taken[0].fields, 1);
    assert_eq!(contents(&store).into_values().collect::<Vec<_>>(), [b"new"]);
    let all = store.list(&Request::new(), &ListOptions { masked: true, ..Default::default() }).unwrap();
    assert_eq!((all.count(), before != store.version().unwrap()), (2, true));
}

#[test]
fn a_message_that_does_not_fit_is_skipped_and_equal_reasons_are_told_once() {
    let (files, store) = (Files::new(), memory("mars"));
    let mut key = grib_key("0");
    key.as_object_mut().unwrap().remove("expver");
    let bad = || message(key.clone(), json!([]), "bad");
    let frames = vec![bad(), bad(), message(grib_key("0"), json!([]), "good"), bad()];
    let report = take(&store, &[files.add("a", done(frames))]);
    assert_eq!(report.taken[0].fields, 1);
    assert_eq!(report.skipped.len(), 1, "{report:?}");
    assert_eq!(report.skipped[0].what, "message at byte 0 and 2 more");
    assert!(report.skipped[0].why.contains("expver"), "{report:?}");
}

#[test]
fn a_key_that_contradicts_a_message_skips_it() {
    let (files, store) = (Files::new(), memory("mars"));
    let frames = [0, 6].map(|step| message(grib_key(&step.to_string()), json!([]), "m")).to_vec();
    let key = vec![("step".to_owned(), "6".to_owned())];
    let options = IngestOptions { key, helper: stand_in(), ..Default::default() };
    let report = ingest(&store, &[files.add("a", done(frames))], &options).unwrap();
    assert_eq!((report.taken[0].fields, report.skipped.len()), (1, 1));
    assert!(report.skipped[0].why.contains("its step is 0, but the given key says 6"), "{report:?}");
}

#[test]
fn many_reasons_are_counted() {
    let (files, store) = (Files::new(), memory("mars"));
    let skips = (0..250).map(|i| json!([{"kind": "skipped", "what": "x", "why": format!("{i}")}, ""]));
    let report = take(&store, &[files.add("a", done(skips.collect()))]);
    assert_eq!((report.taken.len(), report.skipped.len()), (0, 101));
    assert_eq!(report.skipped[100].what, "150 more parts");
}

#[test]
fn a_reader_that_fails_takes_its_file_with_it_and_nothing_else() {
    let good = |files: &Files, name: &str| files.add(name, netcdf(name, '1'));
    let deeds = [
        ("crash", json!({"signal": 11}), "reader crashed (signal 11)"),
        ("exit", json!({"exit": 3}), "reader ended (exit code 3): last words"),
        ("garbage", json!({"raw": "\u{1}\u{0}\u{0}\u{0}{"}), "reader the helper"),
        (
            "error",
            json!({"kind": "error", "error_kind": "Corrupt", "message": "bad", "hint": "so"}),
            "bad (hint: so)",
        ),
        ("wrong", json!({"kind": "image"}), "another question"),
    ];
    let (files, store) = (Files::new(), memory("simulation"));
    let mut paths = vec![good(&files, "first")];
    for (name, deed, _) in &deeds {
        // The action comes after two fields and before the header.
        let mut frames = netcdf(name, '2');
        frames[3] = json!([deed, ""]);
        paths.push(files.add(name, frames));
    }
    paths.push(good(&files, "last"));
    let report = take(&store, &paths);
    assert_eq!(report.taken.len(), 2, "{report:?}");
    for (skipped, (name, _, why)) in report.skipped.iter().zip(&deeds) {
        assert!(skipped.path.ends_with(name) && skipped.what == "the file", "{skipped}");
        assert!(skipped.why.contains(why), "{skipped}");
    }
    assert_eq!(report.skipped.len(), deeds.len());
    assert!(
        keys(&store).iter().all(|key| key.contains("=first") || key.contains("=last")),
        "{:?}",
        keys(&store)
    );
}

#[test]
fn what_a_dropped_file_brought_does_not_count_as_taken() {
    let (files, store) = (Files::new(), memory("mars"));
    let bad = json!([message(grib_key("0"), json!([]), "m"), [{"signal": 11}, ""]]);
    let report = take(
        &store,
        &[files.add("bad", bad), files.add("good", done(vec![message(grib_key("0"), json!([]), "m")]))],
    );
    assert_eq!((report.skipped.len(), report.taken[0].fields), (1, 1));
    assert_eq!(keys(&store).len(), 1);
}

#[test]
fn a_reader_that_says_nothing_is_ended() {
    let (files, store) = (Files::new(), memory("mars"));
    let mut options = IngestOptions { helper: stand_in(), ..Default::default() };
    // Longer than a helper needs to start on a busy machine.
    options.helper.patience = Duration::from_secs(4);
    let slow = files.add("slow", json!([[{"sleep": 60}, ""]]));
    let good = files.add("good", done(vec![message(grib_key("0"), json!([]), "m")]));
    let report = ingest(&store, &[slow, good], &options).unwrap();
    assert!(report.skipped[0].why.contains("did not answer for 4 s"), "{report:?}");
    assert_eq!(report.taken.len(), 1);
}

#[test]
fn a_helper_that_cannot_start_is_an_error_with_a_next_step() {
    let (files, store) = (Files::new(), memory("simulation"));
    let path = files.add("a.nc", netcdf("a", '1'));
    let script = files.0.path().join("python");
    for (text, why) in [
        (None, "cannot start the helper with"),
        (
            Some("#!/bin/sh\necho \"python: No module named fieldstone\" >&2\nexit 1\n"),
            "No module named fieldstone",
        ),
    ] {
        if let Some(text) = text {
            std::fs::write(&script, text).unwrap();
            Command::new("chmod").args(["+x"]).arg(&script).status().unwrap();
        }
        let helper = HelperOptions { python: Some(script.clone()), ..Default::default() };
        let options = IngestOptions { helper, ..Default::default() };
        let error = ingest(&store, &[&path], &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains(why), "{error}");
        assert!(error.hint().unwrap().contains("pip install 'fieldstone"), "{error}");
    }
}

#[test]
fn pieces_make_one_field_and_an_ill_fitting_file_is_dropped() {
    let (files, store) = (Files::new(), memory("simulation"));
    let piece = |start: u64, payload: &str| {
        json!([{"kind": "field", "key": {"run": "a", "variable": "t"}, "dtype": "|u1", "shape": [4],
            "start": [start], "count": [2]}, payload])
    };
    let report = take(&store, &[files.add("a", done(vec![piece(0, "ab"), piece(2, "cd")]))]);
    assert_eq!((report.taken[0].fields, report.taken[0].bytes), (1, 4));
    assert_eq!(
        store.get_box(&[("run", "a"), ("variable", "t")], None, &Default::default()).unwrap(),
        b"abcd"
    );

    let mut frames = netcdf("b", '1');
    frames[2][0]["key"]["member"] = json!("no number");
    let report = take(&store, &[files.add("b", frames)]);
    assert!(report.taken.is_empty() && report.skipped[0].why.contains("member"), "{report:?}");
    assert_eq!(keys(&store).len(), 1);
}

#[test]
fn progress_is_told_in_bytes_and_can_end_the_ingest() {
    let (files, store) = (Files::new(), memory("mars"));
    let half = || json!([{"kind": "progress", "done": 1, "of": 2}, ""]);
    let one = files.add("one", done(vec![half()]));
    let two = files.add("two", done(vec![half(), message(grib_key("0"), json!([]), "m")]));
    let sizes = [&one, &two].map(|path| std::fs::metadata(path).unwrap().len());
    let seen = RefCell::new(Vec::new());
    let note = |p: &fieldstone::Progress<'_>| {
        assert_eq!((p.of, p.files), (sizes[0] + sizes[1], 2));
        seen.borrow_mut().push((p.index, p.done));
        Ok(())
    };
    let options = IngestOptions { helper: stand_in(), progress: Some(&note), ..Default::default() };
    ingest(&store, &[&one, &two], &options).unwrap();
    let expected = [(0, sizes[0] / 2), (0, sizes[0]), (1, sizes[0] + sizes[1] / 2), (1, sizes[0] + sizes[1])];
    assert_eq!(seen.into_inner(), expected);

    let store = memory("mars");
    let stop = |p: &fieldstone::Progress<'_>| match p.index {
        1 => Err(fieldstone::Error::unavailable("stopped")),
        _ => Ok(()),
    };
    let options = IngestOptions { helper: stand_in(), progress: Some(&stop), ..Default::default() };
    let error = ingest(&store, &[&one, &two], &options).unwrap_err();
    assert!(error.message().ends_with("stopped") && error.message().contains("two"), "{error}");
    assert!(keys(&store).is_empty() && store.unflushed() == 0);
}

#[test]
fn what_was_archived_before_and_not_flushed_is_left_alone() {
    let (files, store) = (Files::new(), memory("simulation"));
    let key = [("run", "mine"), ("variable", "t")];
    store.archive(&key, Value::Bytes(b"mine"), &Default::default()).unwrap();
    let mut bad = netcdf("b", '1');
    bad[3] = json!([{"signal": 11}, ""]);
    take(&store, &[files.add("a", netcdf("a", '1')), files.add("b", bad)]);
    assert_eq!(store.unflushed(), 1);
    assert_eq!(keys(&store).len(), 3);
    store.flush(None).unwrap();
    assert_eq!(store.get(&key, &ReadOptions::default()).unwrap().read().unwrap(), b"mine");
}

#[test]
fn the_helper_answers_single_questions() {
    let mut helper = Helper::start(&stand_in()).unwrap();
    let (facts, values) = helper.decode(b"message").unwrap();
    assert_eq!((facts.shape, values.len()), (vec![1], 8));
    assert_eq!(helper.plot(&Default::default(), &[b"12345678"]).unwrap(), b"12345678");
    let error = helper.decode(b"bad").unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Corrupt, "no message"));
    let error = helper.decode(b"crash").unwrap_err();
    assert!(error.message().contains("crashed (signal 11)"), "{error}");
    assert_eq!(helper.decode(b"message").unwrap_err().kind(), ErrorKind::Unavailable, "it stays dead");
}

/// Every real GRIB file, through the real helper, comes back byte for byte.
#[test]
fn real_grib_files_come_back_byte_for_byte() {
    let Some((python, grib)) = real() else { return };
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(grib).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let helper = HelperOptions { python: Some(python), ..Default::default() };
    let options = IngestOptions { helper, ..Default::default() };
    paths.retain(|path| path.is_file());
    let mut at = 0..;
    paths.retain(|_| at.next().is_some_and(|n| full() || n % 3 == 0));
    // All in one store: equal keys of different files are distinguished.
    let store = memory("mars");
    let report = ingest(&store, &paths, &options).unwrap();
    let found: BTreeSet<Vec<u8>> = contents(&store).into_values().collect();
    let mut all = BTreeSet::new();
    for path in &paths {
        let bytes = std::fs::read(path).unwrap();
        let (messages, damaged) = split(&bytes);
        // The messages of one with several fields are taken separately; python/tests/test_grib.py compares these with
        // eccodes'.
        let fields = messages.iter().flat_map(|message| fields(message).unwrap());
        for message in fields {
            assert!(found.contains(&*message), "{}: {} bytes are lost", path.display(), message.len());
            all.insert(message.into_owned());
        }
        let skipped: Vec<_> = report.skipped.iter().filter(|skipped| skipped.path == *path).collect();
        assert_eq!(!skipped.is_empty(), damaged, "{}: {skipped:?}", path.display());
    }
    assert_eq!(found.len(), all.len());
    let least = if full() { (40, 400) } else { (13, 60) };
    assert!(paths.len() > least.0 && all.len() > least.1, "{} files, {} messages", paths.len(), all.len());
    let version = store.version().unwrap();
    let again = ingest(&store, &paths, &options).unwrap();
    assert!(again.taken.iter().all(|taken| taken.fields == 0), "{again:?}");
    assert_eq!((store.version().unwrap(), again.skipped), (version, report.skipped));
}

/// The messages of a file, and whether it has bytes that begin like a message and are not one.
fn split(bytes: &[u8]) -> (Vec<&[u8]>, bool) {
    let (mut found, mut damaged, mut at) = (Vec::new(), false, 0);
    while let Some(next) =
        bytes[at..].windows(8).position(|w| w.starts_with(b"GRIB") && matches!(w[7], 1 | 2))
    {
        let start = at + next;
        let rest = &bytes[start..];
        let length = match rest[7] {
            2 => rest.get(8..16).map(|n| u64::from_be_bytes(n.try_into().unwrap())),
            _ => Some(u64::from(rest[4]) << 16 | u64::from(rest[5]) << 8 | u64::from(rest[6])),
        };
        let whole =
            length.and_then(|n| rest.get(..usize::try_from(n).ok()?)).filter(|m| m.ends_with(b"7777"));
        match whole {
            Some(message) => found.push(message),
            None => damaged = true,
        }
        at = start + whole.map_or(4, <[u8]>::len);
    }
    (found, damaged)
}

/// The Python with the real helper and the folder of real files, if both exist.
fn real() -> Option<(PathBuf, PathBuf)> {
    let grib = sample("grib")?;
    Some((python_with("python", "fieldstone._helper.grib")?, grib))
}
