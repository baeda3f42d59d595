//! Darshan logs of real jobs, through the real helper. Unit tests of the modules cover the rules of the rows.
//!
//! Python must have the package darshan, whose own six logs of one workflow are the truth on lineage.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fieldstone::Session;
use fieldstone::helper::HelperOptions;
use fieldstone::lineage::{GraphRows, LineageOptions, LineageReader, VertexName, read};
use fieldstone::{Code, Env, ErrorKind};
use fieldstone_core::value::Value;
use fieldstone_testkit::require::full;
use fieldstone_testkit::samples::{checkout, python_with, sample};
use fieldstone_testkit::seeded;

/// Options with a Python that reads Darshan logs, and the folder of the package darshan.
fn options() -> Option<(LineageOptions, PathBuf)> {
    let python = python_with("darshan", "darshan.backend.cffi_backend")?;
    let asked =
        Command::new(python).args(["-P", "-c", "import darshan; print(darshan.__path__[0])"]).output();
    let package = String::from_utf8(asked.unwrap().stdout).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/lineage/python.sh");
    let helper = HelperOptions { python: Some(script), patience: Duration::from_secs(120) };
    Some((LineageOptions { helper, ..LineageOptions::default() }, package.trim().into()))
}

fn logs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|suffix| suffix == "darshan")).collect();
    paths.sort();
    paths
}

fn read_all(paths: &[PathBuf], options: &LineageOptions) -> GraphRows {
    let env = Env::real();
    let mut reader = LineageReader::new(&env, options);
    let mut rows = GraphRows::default();
    for path in paths {
        rows.extend(reader.read(path).unwrap());
    }
    rows.extend(reader.finish().unwrap());
    rows
}

/// Jobs, processes with a record, files read and written, bytes of both.
fn facts(rows: &GraphRows) -> (usize, usize, [usize; 2], [i64; 2]) {
    let ids = |kind: &str| {
        let of_kind = rows.vertices.iter().filter(|put| &*put.vertex.kind == kind);
        of_kind.map(|put| &put.vertex.id).collect::<BTreeSet<_>>().len()
    };
    let (mut files, mut bytes) = ([const { BTreeSet::new() }; 2], [0; 2]);
    for put in &rows.relations {
        let Some(at) = ["read", "write"].iter().position(|kind| *kind == &*put.kind) else { continue };
        let Some(Value::Int(n)) = put.props.get("bytes").unwrap() else { panic!("{put:?}") };
        files[at].insert(&put.target.id);
        bytes[at] += n;
        assert!(put.time <= put.until, "{put:?}");
    }
    (ids("job"), ids("process"), files.map(|files| files.len()), bytes)
}

/// Jobs, processes, files and bytes in Darshan's own reports of these logs, without standard streams and with each file
/// counted by its lowest layer.
type Truth = (usize, usize, [usize; 2], [i64; 2]);
const TRUTH: [(&str, Truth); 11] = [
    ("sample-badost.darshan", (1, 2048, [1, 2048], [1_654_784, 549_755_813_888])),
    // One of the files was empty: it was read, but no byte of it.
    ("dxt.darshan", (1, 1, [100, 135], [22_519_602, 13_021_781])),
    ("example.darshan", (1, 128, [0, 1], [0, 2_199_023_259_968])),
    ("sample-goodost.darshan", (1, 48, [0, 48], [0, 51_539_607_552])),
    ("noposix.darshan", (1, 0, [1, 0], [1_812_408_359, 0])),
    ("ior_hdf5_example.darshan", (1, 4, [1, 1], [4_202_504, 4_195_800])),
    ("partial_data_dxt.darshan", (1, 0, [1, 0], [1_000_000, 0])),
    ("darshan-apmpi-2nodes-64mpi.darshan", (1, 1, [2, 0], [12_886, 0])),
    (
        "shane_ior-PNETCDF_id438100-438100_11-9-41525-10280033558448664385_1.darshan",
        (1, 1, [1, 1], [4_456_456, 4_194_476]),
    ),
    (
        "snyder_python3_id3116902-2110531_12-19-66999-7428115441680580108_1.darshan",
        // One of them was read by POSIX and by STDIO.
        (1, 1, [36, 0], [12_029_160_427, 0]),
    ),
    (
        "treddy_mpi-io-test_id4373053_6-2-60198-9815401321915095332_1.darshan",
        (1, 32, [1, 33], [2_147_483_648, 2_147_486_208]),
    ),
];

#[test]
fn what_real_logs_say_was_read_and_written() {
    let Some((options, _)) = options() else { return };
    let env = Env::real();
    let mut reader = LineageReader::new(&env, &options);
    for (name, expected) in TRUTH {
        let Some(path) = sample(&format!("darshan/{name}")) else { return };
        let rows = reader.read(&path).unwrap();
        assert_eq!(facts(&rows), expected, "{name}");
        assert_eq!(rows, reader.read(&path).unwrap(), "{name}: read twice it is the same");
    }
}

/// The 31 logs of a training run share the number of their job.
#[test]
fn every_log_is_a_job_of_its_own() {
    let Some((options, _)) = options() else { return };
    let Some(folder) = sample("darshan") else { return };
    let paths = logs(&folder);
    let rows = read_all(&paths, &options);
    assert_eq!(facts(&rows).0, paths.len());
    let numbers: BTreeSet<&str> = rows
        .vertices
        .iter()
        .filter(|put| &*put.vertex.kind == "job")
        .map(|put| put.vertex.id.split('-').next().unwrap())
        .collect();
    assert!(numbers.contains("3116902") && numbers.len() < paths.len() - 10, "{numbers:?}");
}

/// Vertices that `root` follows from: upstream over writes and reads, with a time that no hop exceeds, and a job with
/// its processes as one.
fn ancestors(rows: &GraphRows, root: &VertexName) -> BTreeSet<VertexName> {
    let mut parts: BTreeMap<&VertexName, &VertexName> = BTreeMap::new();
    for put in rows.relations.iter().filter(|put| &*put.kind == "contains") {
        parts.insert(&put.target, &put.source);
    }
    let whole = |vertex: &VertexName| parts.get(vertex).map_or(vertex, |job| *job).clone();
    let mut best: BTreeMap<VertexName, u64> = BTreeMap::from([(root.clone(), u64::MAX)]);
    let mut pending = vec![root.clone()];
    while let Some(vertex) = pending.pop() {
        let time = best[&vertex];
        for put in &rows.relations {
            let next = match &*put.kind {
                "write" if put.target == vertex => whole(&put.source),
                "read" if whole(&put.source) == vertex => put.target.clone(),
                _ => continue,
            };
            let (begin, until) = (put.time.unwrap(), put.until.unwrap());
            let then = until.min(time);
            if begin <= time && best.get(&next).is_none_or(|known| *known < then) {
                best.insert(next.clone(), then);
                pending.push(next);
            }
        }
    }
    best.remove(root);
    best.into_keys().collect()
}

#[test]
fn the_lineage_of_a_workflow_is_what_its_script_did() {
    let Some((options, package)) = options() else { return };
    let rows = read_all(&logs(&package.join("examples/darshan-graph")), &options);
    assert_eq!(facts(&rows).0, 6);
    let of_file = |name: &str| {
        let mut ids = rows.relations.iter().map(|put| &put.target);
        ids.find(|vertex| vertex.id.ends_with(&format!("/darshan-graph/{name}"))).unwrap().clone()
    };
    let [a, b, c, z] = ["A", "B", "C", "Z"].map(of_file);
    let number = |vertex: &VertexName| vertex.id.split('-').next().unwrap().to_owned();
    let of = |root: &VertexName| {
        let (jobs, files): (BTreeSet<_>, BTreeSet<_>) =
            ancestors(&rows, root).into_iter().partition(|vertex| &*vertex.kind == "job");
        (jobs.iter().map(number).collect::<Vec<_>>(), files)
    };
    assert_eq!(
        of(&c),
        (vec!["71296".into(), "71303".into(), "71326".into()], BTreeSet::from([a.clone(), b]))
    );
    assert_eq!(of(&a), (vec!["71296".into()], BTreeSet::new()));
    assert_eq!(of(&z), (vec!["71310".into()], BTreeSet::new()));
    // The reader of C began in the second in which C was written: it still follows from C.
    let reader = rows.vertices.iter().find(|put| number(&put.vertex) == "71344").unwrap();
    let upstream = ancestors(&rows, &reader.vertex);
    assert!(upstream.contains(&c) && upstream.iter().any(|vertex| number(vertex) == "71326"), "{upstream:?}");
    // A store's own walk gives the same result.
    let store = fieldstone::open("memory:", &fieldstone::OpenOptions::default()).unwrap();
    for _ in 0..2 {
        store.graph().put_vertices(rows.vertices.clone(), &Session::default()).unwrap();
        store.graph().put_relations(rows.relations.clone(), &Session::default()).unwrap();
    }
    let lineage = store.graph().trace(&c, &Default::default(), &Session::default()).unwrap();
    let jobs = lineage.vertices.iter().filter(|step| &*step.name.kind == "job");
    let jobs: BTreeSet<String> = jobs.map(|step| number(&step.name)).collect();
    assert_eq!(jobs.into_iter().collect::<Vec<_>>(), ["71296", "71303", "71326"]);
    assert!(!lineage.vertices.iter().any(|step| step.name == z), "{lineage:?}");
    let user = VertexName::new("user", "1000");
    assert_eq!(rows.relations.iter().filter(|put| &*put.kind == "run" && put.source == user).count(), 6);
}

#[test]
fn a_damaged_log_is_an_error_that_names_it_and_stays_where_it_is() {
    let Some((options, _)) = options() else { return };
    let Some(path) = sample("darshan/ior_hdf5_example.darshan") else { return };
    let whole = std::fs::read(&path).unwrap();
    let env = Env::real();
    let mut reader = LineageReader::new(&env, &options);
    let folder = tempfile::tempdir().unwrap();
    let mut random = seeded(11);
    let mut refused = 0;
    // After these come traces of single calls (DXT), which this library does not read.
    let cuts = [0, 7, 100, 500, 1000, 1500, 2000];
    for case in 0..cuts.len() + if full() { 24 } else { 4 } {
        let mut bytes = whole.clone();
        match cuts.get(case) {
            Some(cut) => bytes.truncate(*cut),
            // Most of the header, which the library trusts, and some of the rest.
            None => {
                let among = if case % 3 == 0 { bytes.len() } else { 600 };
                let at = random.below(among as u64) as usize;
                bytes[at] ^= 1 << random.below(8);
            }
        }
        let damaged = folder.path().join(format!("damaged-{case}.darshan"));
        std::fs::write(&damaged, &bytes).unwrap();
        if let Err(error) = reader.read(&damaged) {
            refused += 1;
            assert!(error.message().contains(&format!("damaged-{case}.darshan")), "{error}");
            // Either the library noticed, or it crashed, which only ended the helper.
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        } else {
            assert!(case >= cuts.len(), "a log that is cut was read");
        }
        assert_eq!(std::fs::read(&damaged).unwrap(), bytes, "case {case}");
    }
    // A few flips may all hit bytes that the library does not check.
    assert!(refused >= cuts.len() + usize::from(full()), "{refused}");
    // After all of them the reader still reads.
    assert_eq!(facts(&reader.read(&path).unwrap()).1, 4);
    let absent = reader.read(&folder.path().join("absent.darshan")).unwrap_err();
    assert_eq!(absent.code(), Code::FileNotFound);
}

#[test]
fn a_python_without_the_package_is_an_error_that_says_what_to_install() {
    let Some(python) = python_with("python", "json") else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("darshan.py"), "raise ImportError('hidden')").unwrap();
    let path = format!("{}:{}", folder.path().display(), checkout().join("python").display());
    let script = format!("#!/bin/sh\nPYTHONPATH={path} exec {} \"$@\"\n", python.display());
    std::fs::write(at("python"), script).unwrap();
    Command::new("chmod").arg("+x").arg(at("python")).status().unwrap();
    std::fs::write(at("a.darshan"), "").unwrap();
    let helper = HelperOptions { python: Some(at("python")), ..HelperOptions::default() };
    let options = LineageOptions { helper, ..LineageOptions::default() };
    let error = read(&Env::real(), &at("a.darshan"), &options).unwrap_err();
    assert_eq!(error.code(), Code::LibraryMissing, "{error}");
    assert!(error.message().contains("the Python package darshan"), "{error}");
    assert_eq!(error.hint(), Some("pip install 'fieldstone[darshan]'"));
}
