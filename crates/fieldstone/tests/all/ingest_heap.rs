//! Ingest of a heap: folders and patterns, one schema for all files in it, a report by keys and reasons that also
//! survives an interruption. The helper is the stand-in of the ingest tests.
use std::path::{Path, PathBuf};

use fieldstone::prelude::*;
use fieldstone::{
    Code, ErrorKind, IngestOptions, IngestReport, NamedFiles, OpenOptions, Request, ingest, ingest_into,
    suggest_schema,
};
use serde_json::json;

use super::ingest::{Files, done, grib_key, memory, message, netcdf, stand_in};

/// A folder with these empty files.
fn folder(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"").unwrap();
    }
    folder
}

/// Files that paths name, relative to the folder; and other entries, with the reason.
fn named(root: &Path, paths: &[&str], shallow: bool) -> (Vec<String>, Vec<String>) {
    let paths: Vec<PathBuf> = paths.iter().map(|path| root.join(path)).collect();
    let found = NamedFiles::of(&paths, shallow, false);
    let below = |path: &Path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
    let files = found.files.iter().map(|path| below(path)).collect();
    (files, found.skipped.iter().map(|s| format!("{}: {}: {}", below(&s.path), s.what, s.why)).collect())
}

#[test]
fn folders_are_walked_in_the_order_of_names() {
    let root = folder(&["b/2.nc", "b/1.nc", "b/sub/deep/3.nc", "b/.hidden", "b/.git/x", "a.nc"]);
    let root = root.path();
    let all = ["a.nc", "b/1.nc", "b/2.nc", "b/sub/deep/3.nc"].map(str::to_owned);
    assert_eq!(named(root, &["a.nc", "b"], false), (all.to_vec(), vec![]));
    assert_eq!(named(root, &["b"], true).0, all[1..3]);
    // A named file is taken, whatever its name; the reader reports missing ones.
    assert_eq!(named(root, &["b/.hidden", "none"], false).0, ["b/.hidden", "none"]);
    std::fs::create_dir(root.join("empty")).unwrap();
    assert_eq!(named(root, &["empty"], false).1, ["empty: the folder: it holds no files"]);
    // A link to a parent folder does not loop, and a store is not entered.
    std::os::unix::fs::symlink(root.join("b"), root.join("b/sub/round")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("b/lost")).unwrap();
    std::fs::create_dir(root.join("b/heap.store")).unwrap();
    std::fs::write(root.join("b/heap.store/fieldstone.store"), b"").unwrap();
    let (files, skipped) = named(root, &["b"], false);
    assert_eq!(files, all[1..]);
    assert_eq!(skipped[0], "b/lost: the file: a broken link");
    assert!(skipped[1].starts_with("b/heap.store: the folder: it is a store"), "{skipped:?}");
}

#[test]
fn patterns_name_files_of_any_depth_each_once() {
    let root = folder(&["a1.nc", "a2.nc", "b.grib", "x/a3.nc", "x/y/a4.nc", "x/y/c[1].nc", ".a5.nc"]);
    let root = root.path();
    let files = |patterns: &[&str]| named(root, patterns, false).0;
    assert_eq!(files(&["a*.nc"]), ["a1.nc", "a2.nc"]);
    assert_eq!(files(&["**/a?.nc"]), ["a1.nc", "a2.nc", "x/a3.nc", "x/y/a4.nc"]);
    assert_eq!(files(&["x/*/*.nc"]), ["x/y/a4.nc", "x/y/c[1].nc"]);
    assert_eq!(files(&["*.nc", "a1*", "[b]*"]), ["a1.nc", "a2.nc", "b.grib"], "each once");
    assert_eq!(files(&["x/y/c[1].nc"]), ["x/y/c[1].nc"], "an existing file's name is not a pattern");
    assert_eq!(files(&["?"]), ["x/a3.nc", "x/y/a4.nc", "x/y/c[1].nc"], "a folder that matches is walked");
    assert_eq!(
        named(root, &["*.nx"], false),
        (vec![], vec!["*.nx: the pattern: no file matches it".to_owned()])
    );
}

#[test]
fn the_schema_of_a_new_store_fits_the_heap() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let grib = write("g/a.grib", b"TTAAii CCCC\r\r\nGRIB\0\0\0\x02rest");
    let netcdf = write("n/a.nc", b"CDF\x01 GRIB\0\0\0\x01");
    let text = write("t/readme.txt", b"words");
    let behind = write("h/user.h5", &[vec![0; 1024], b"\x89HDF\r\n\x1a\n".to_vec()].concat());
    let absent = root.path().join("absent");
    for (paths, schema) in [
        (vec![&absent, &grib, &netcdf], "mixed"),
        (vec![&netcdf, &grib], "mixed"),
        (vec![&grib, &behind], "mixed"),
        (vec![&absent, &grib, &text], "mars"),
        (vec![&netcdf, &text], "simulation"),
        (vec![&text], "simulation"),
        (vec![], "simulation"),
    ] {
        assert_eq!(suggest_schema(&paths), schema, "{paths:?}");
    }
    assert_eq!(suggest_schema(&[root.path()]), "mixed", "of a folder all that it holds");
    assert_eq!(suggest_schema(&[root.path().join("g*/*")]), "mars", "of a pattern what it matches");
}

fn take(store: &fieldstone::Store, paths: &[&PathBuf]) -> IngestReport {
    ingest(store, paths, &IngestOptions { helper: stand_in(), ..Default::default() }).unwrap()
}

fn text(key: &[(String, String)]) -> String {
    key.iter().map(|(keyword, value)| format!("{keyword}={value}")).collect::<Vec<_>>().join(",")
}

#[test]
fn one_store_takes_both_and_says_under_which_key() {
    let (files, store) = (Files::new(), memory("mixed"));
    let first = files.add("ocean.nc", netcdf("ocean", '1'));
    let second = files.add("other.nc", netcdf("ocean", '2'));
    let at = |step: &str, payload: &str| message(grib_key(step), json!([]), payload);
    let grib = files.add("fc.grib", done(vec![at("0", "a"), at("6", "b")]));
    for unchanged in [false, true] {
        let report = take(&store, &[&first, &second, &grib]);
        let keys: Vec<String> = report.taken.iter().map(|taken| text(&taken.key)).collect();
        assert_eq!(keys[0], "run=ocean");
        assert_eq!(keys[1], format!("run=ocean,source={}", "2".repeat(12)));
        assert!(keys[2].contains("class=od") && keys[2].contains("param=167"), "{}", keys[2]);
        assert!(!keys[2].contains("step"), "the common key leaves out what differs: {}", keys[2]);
        let counts = |taken: &fieldstone::Taken| if unchanged { taken.unchanged } else { taken.fields };
        assert_eq!(report.taken.iter().map(counts).collect::<Vec<_>>(), [3, 3, 2]);
        assert_eq!(report.fields(), if unchanged { 0 } else { 8 });
        assert_eq!((report.files, report.done), (3, 3));
        let bytes: u64 = report.taken.iter().map(|taken| taken.bytes).sum();
        assert_eq!(report.nbytes(), bytes);
    }
    let count = |request: &str| {
        let request = Request::parse(request).unwrap();
        store.list(&request, &Default::default()).unwrap().count()
    };
    assert_eq!((count("param=?*"), count("variable=?*"), count("step=?*"), count("")), (2, 6, 6, 8));
    // Runs of both kinds are in the catalog, by the roles of their rules.
    let runs = store.catalog().runs(&fieldstone::catalog::query::Query::all()).unwrap();
    let names: Vec<String> = runs.into_iter().map(|run| run.decl.run.name).collect();
    assert_eq!(names, ["ocean", "od/0001/oper/20240101/0000"]);
}

#[test]
fn reasons_stand_together_and_nothing_taken_is_an_error_for_who_asks() {
    let (files, store) = (Files::new(), memory("mars"));
    let error = |message: &str| json!([[{"kind": "error", "error_kind": "Invalid", "message": message, "hint": null}, ""]]);
    let paths = ["a", "b", "c", "d", "e"].map(|name| files.add(name, error("neither GRIB nor netCDF")));
    let last = files.add("f", error("empty file"));
    let all: Vec<&PathBuf> = paths.iter().chain([&last]).collect();
    let report = take(&store, &all);
    let reasons = report.reasons();
    let counts: Vec<(&str, usize)> = reasons.iter().map(|r| (r.why, r.skipped.len())).collect();
    assert_eq!(counts, [("neither GRIB nor netCDF", 5), ("empty file", 1)]);
    let shown = reasons[0].to_string();
    assert!(shown.ends_with("c and 2 more: neither GRIB nor netCDF"), "{shown}");
    let error = report.check().unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Invalid, Code::NothingTaken));
    assert!(error.to_string().contains("and 2 more: neither GRIB nor netCDF; "), "{error}");
    assert!(error.to_string().contains("empty file"), "{error}");
    // With a taken file it is an ordinary report; so is an empty one.
    let good = files.add("good", done(vec![message(grib_key("0"), json!([]), "m")]));
    assert!(take(&store, &[&good, &last]).check().is_ok());
    assert!(take(&store, &[]).check().is_ok());
}

#[test]
fn an_ingest_that_is_interrupted_leaves_its_report_and_goes_on() {
    let (files, store) = (Files::new(), memory("mars"));
    let at = |step: &str| done(vec![message(grib_key(step), json!([]), step)]);
    let paths = [files.add("1", at("1")), files.add("2", at("2")), files.add("3", at("3"))];
    // An interrupt also kills the helper: its end is not a fault of the file.
    let killed = files.add("2", json!([[{"signal": 2}, ""]]));
    let stop = |p: &fieldstone::Progress<'_>| match p.index {
        0 => Ok(()),
        _ => Err(fieldstone::Error::invalid("interrupted")),
    };
    let options = IngestOptions { helper: stand_in(), progress: Some(&stop), ..Default::default() };
    let mut report = IngestReport::default();
    let error = ingest_into(&store, &[&paths[0], &killed, &paths[2]], &options, &mut report).unwrap_err();
    assert!(error.message().contains("1 files were taken before it"), "{error}");
    assert_eq!((report.files, report.done, report.taken.len()), (3, 1, 1));
    assert_eq!(report.skipped, []);
    files.add("2", at("2"));
    let report = take(&store, &[&paths[0], &paths[1], &paths[2]]);
    let fields: Vec<(u64, u64)> = report.taken.iter().map(|t| (t.fields, t.unchanged)).collect();
    assert_eq!(fields, [(0, 1), (1, 0), (1, 0)]);
}

#[test]
fn a_run_of_a_heap_is_archived_annotated_and_copied_as_in_any_store() {
    let store = memory("mixed");
    let file = Files::new();
    take(&store, &[&file.add("fc.grib", done(vec![message(grib_key("6"), json!([]), "a")]))]);
    let key = [("run", "mine"), ("variable", "t"), ("step", "6")];
    store.archive(&key, fieldstone::Value::Bytes(b"x"), &Default::default()).unwrap();
    store.flush(None).unwrap();
    let to =
        fieldstone::open("memory:", &OpenOptions { schema: Some("simulation".into()), ..Default::default() });
    let to = to.unwrap();
    // The target lacks one role set of the source: attributes and declarations stay, the fields go.
    let report = fieldstone::transfer::copy(
        &store,
        vec![Request::parse("run=mine").unwrap()],
        &to,
        &Default::default(),
    );
    assert_eq!(report.unwrap().fields, 1);
    let back =
        fieldstone::transfer::copy(&to, vec![Request::new()], &memory("mixed"), &Default::default()).unwrap();
    assert_eq!((back.fields, back.left.len()), (1, 0), "{back:?}");
}
