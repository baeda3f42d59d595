//! Arrays of jobs in transfers: groups with their files, meshes, kept partitions and imports; a run goes on in the target.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone::arrays::{
    ArrayJob, GroupOptions, Hints, JobOptions, LevelChoice, MeshContent, MeshCoordinate, MeshEdges, MeshRows,
    MeshVector, PartitionOptions, PartitionSource, SetOptions, StoredMesh, View, groups_of,
};
use fieldstone::catalog::{MeshLocation, Query, RunName, StorageOrder};
use fieldstone::container::Attrs;
use fieldstone::env::comm::single::SingleComm;
use fieldstone::env::sim::SimWorld;
use fieldstone::env::{Env, FileKind};
use fieldstone::prelude::*;
use fieldstone::transfer::{TransferOptions, TransferReport, copy, move_to};
use fieldstone::{
    ArchiveOptions, Compression, DType, ListOptions, OpenOptions, ReadOptions, Request, Result, Session,
    Store, Target, Value, open_in,
};
use fieldstone_array::container::access::Selection;
use fieldstone_array::container::{Container, Mode};
use fieldstone_format::netcdf::NcType;

fn open(path: &Path) -> Store {
    fieldstone::open(&path.display().to_string(), &OpenOptions::default()).unwrap()
}

/// Two stores in one folder.
fn stores(folder: &Path) -> (Store, Store) {
    (open(&folder.join("hot")), open(&folder.join("cold")))
}

fn run() -> RunName {
    RunName { project: String::new(), name: "r".into() }
}

fn doubles(count: u64, first: u64) -> Vec<u8> {
    (first..first + count).flat_map(|n| (n as f64).to_ne_bytes()).collect()
}

fn requests(text: &str) -> Vec<Request> {
    vec![Request::parse(text).unwrap()]
}

fn copied(from: &Store, text: &str, to: &Store) -> Result<TransferReport> {
    copy(from, requests(text), to, &TransferOptions::default())
}

fn moved(from: &Store, text: &str, to: &Store) -> Result<TransferReport> {
    move_to(from, requests(text), to, &TransferOptions { strict: false, ..TransferOptions::default() })
}

fn left(report: &TransferReport) -> Vec<(&str, u64)> {
    report.left.iter().map(|left| (left.kind, left.count)).collect()
}

/// Steps of a pair of sets in Fortran order, of particles, and of a set with elements that nobody wrote.
fn write(store: &Store, level: u64, steps: std::ops::Range<i64>) {
    let level = LevelChoice::number(level).unwrap();
    let job = ArrayJob::open(store, None, Some("r"), &JobOptions::default()).unwrap();
    let pair = ["p", "q"].map(|name| SetOptions::new(name, DType::F8, &[3, 4]));
    let (order, attrs) = (StorageOrder::Fortran, vec![("note".to_owned(), "a pair".into())]);
    let pair = GroupOptions { level, order, attrs, ..GroupOptions::new(pair) };
    let pair = job.group("pair", &pair).unwrap();
    let mut set = SetOptions::new("x", DType::F8, &[0, 2]);
    set.shape[0] = None;
    let particles = job.group("particles", &GroupOptions { level, ..GroupOptions::new([set]) }).unwrap();
    let holes = GroupOptions { level, ..GroupOptions::new([SetOptions::new("h", DType::F8, &[9])]) };
    let holes = job.group("holes", &holes).unwrap();
    holes.view(&View::irregular(vec![1, 2, 5], None, None), None).unwrap();
    for step in steps {
        let first = step as u64 * 100;
        pair.write_dense("p", step, &doubles(12, first)).unwrap();
        if step != 4 {
            pair.write_dense("q", step, &doubles(12, first + 50)).unwrap();
        }
        particles.view(&View::joined(step as u64), None).unwrap();
        particles.write_dense("x", step, &doubles(2 * step as u64, first)).unwrap();
        holes.write_dense("h", step, &doubles(3, first)).unwrap();
        job.flush().unwrap();
    }
    job.close().unwrap();
}

/// For each key the bytes, the type, the shape, the elements that nobody wrote, the time, and whether it is in a file.
type Content = (Vec<u8>, Option<DType>, Option<Vec<u64>>, u64, i64, bool);

fn contents(store: &Store) -> BTreeMap<String, Content> {
    let entries = match store.list(&Request::new(), &ListOptions::default()) {
        Err(e) if e.kind() == fieldstone::ErrorKind::NotFound => return BTreeMap::new(),
        entries => entries.unwrap(),
    };
    let content = |entry: Result<fieldstone::ListEntry>| {
        let entry = entry.unwrap();
        let key: Vec<(String, String)> =
            entry.key.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let pairs: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let field = store.get(&pairs, &ReadOptions::default()).unwrap().lenient();
        let (dtype, shape) = (field.dtype().unwrap(), field.shape().unwrap());
        let in_file = field.stored_array().unwrap().is_some();
        let (holes, time) = (field.holes().unwrap(), field.time());
        (entry.key.to_string(), (field.read().unwrap(), dtype, shape, holes, time, in_file))
    };
    entries.map(content).collect()
}

/// The array files of a store, each with the steps that other programs see in it.
fn files(store: &Store) -> BTreeMap<PathBuf, Vec<i64>> {
    let env = store.backend().env().clone();
    let root = store.backend().folder().unwrap();
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.join("arrays")]);
    while let Some(folder) = folders.pop() {
        for (name, kind) in env.disk.list_dir(&folder).unwrap_or_default() {
            let path = folder.join(&name);
            match kind {
                FileKind::Directory => folders.push(path),
                _ if name.ends_with(".nc") => {
                    let comm = Arc::new(SingleComm::new(env.disk.clone()));
                    // A killed transfer may leave a file that nothing names, marked as unfinished.
                    let Ok(file) = Container::open(&path, Mode::Read, comm, &env) else { continue };
                    let var = file.var("step").unwrap();
                    let whole = Selection::all(&var.shape());
                    let mut steps = vec![0; whole.count.iter().product::<u64>() as usize * 8];
                    file.elements().get(&var, &whole, &mut steps, NcType::Int64, true).unwrap();
                    let steps = steps.as_chunks().0.iter().map(|step| i64::from_ne_bytes(*step));
                    found.insert(path, steps.collect());
                }
                // The name of a log whose commits name files of the folder (R28).
                _ if name.starts_with(".writer-") => {}
                _ => panic!("{} is left", path.display()),
            }
        }
    }
    found
}

/// The number of steps that the files of a store show; each array in a file is at a step that its file shows.
fn shown(store: &Store) -> usize {
    let files = files(store);
    for found in groups_of(store, &run()).unwrap() {
        for (step, sets) in found.steps {
            for set in sets {
                let name = &found.group.sets[set].variable.name;
                let field = store.run("r").unwrap().read(name, Some(step)).unwrap();
                if let Some(stored) = field.stored_array().unwrap() {
                    assert!(files[&stored.path].contains(&step), "{name} at {step} in {:?}", stored.path);
                }
            }
        }
    }
    files.values().map(Vec::len).sum()
}

fn groups(store: &Store) -> Vec<String> {
    let found = groups_of(store, &run()).unwrap();
    found.iter().map(|found| format!("{:?} {} of {:?}", found.group, found.incomplete, found.steps)).collect()
}

#[test]
fn groups_go_with_their_files_and_their_runs_go_on() {
    for level in 1..=3 {
        let folder = tempfile::tempdir().unwrap();
        let (hot, cold) = stores(folder.path());
        write(&hot, level, 0..3);
        write(&hot, level, 3..6);
        hot.run("r").unwrap().annotate("note", "x", &Target::variable("p").step(1)).unwrap();
        hot.flush(None).unwrap();
        let (before, declared) = (contents(&hot), groups(&hot));
        assert_eq!(before.len(), 6 + 5 + 6 + 6);
        let report = copied(&hot, "run=r", &cold).unwrap();
        assert_eq!((report.fields, left(&report)), (23, vec![]), "level {level}");
        assert_eq!((contents(&cold), groups(&cold)), (before.clone(), declared.clone()), "level {level}");
        // An array without elements needs no file; those of two jobs share files.
        let there = shown(&cold);
        assert!(there == shown(&hot) - 1 || level == 3 && there < shown(&hot), "level {level}: {there}");
        assert!(files(&cold).len() <= files(&hot).len(), "level {level}");
        assert_eq!(copied(&hot, "run=r", &cold).unwrap().unchanged, 23, "level {level}");
        assert_eq!(contents(&cold), before);
        // A move writes what is there again, and removes groups and runs.
        let report = moved(&hot, "run=r", &cold).unwrap();
        assert_eq!((report.unchanged, report.removed, left(&report)), (23, 23, vec![]), "level {level}");
        assert_eq!((contents(&cold), groups(&cold)), (before.clone(), declared), "level {level}");
        assert!(contents(&hot).is_empty() && hot.catalog().runs(&Query::all()).unwrap().is_empty());
        assert!(hot.catalog().declarations(&run(), &Session::default()).unwrap().is_empty());
        assert!(cold.verify(&Request::new()).unwrap().damaged.is_empty());
        // The job goes on in the target, and reads what came there.
        let job = ArrayJob::open(&cold, None, Some("r"), &JobOptions::default()).unwrap();
        let pair = job.declared_group("pair").unwrap();
        assert_eq!(pair.last_step().unwrap(), Some(5));
        assert_eq!(pair.read_dense("q", 5, None).unwrap(), doubles(12, 550));
        pair.write_dense("p", 6, &doubles(12, 600)).unwrap();
        pair.write_dense("q", 6, &doubles(12, 650)).unwrap();
        job.flush().unwrap();
        assert_eq!(pair.last_step().unwrap(), Some(6));
        job.close().unwrap();
        // And back: the run goes on where it was.
        moved(&cold, "run=r", &hot).unwrap();
        assert_eq!((contents(&hot).len(), contents(&cold).len()), (25, 0));
        write(&hot, level, 7..9);
        assert_eq!(contents(&hot).len(), 25 + 2 * 4);
        assert!(before.iter().all(|(key, content)| contents(&hot)[key] == *content), "level {level}");
    }
}

#[test]
fn a_group_stays_for_fields_and_jobs_that_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, cold) = stores(folder.path());
    write(&hot, 3, 0..4);
    // Some steps: the group is in both stores.
    let before = contents(&hot);
    let report = moved(&hot, "run=r,step=0/1", &cold).unwrap();
    assert_eq!((report.removed, left(&report)), (8, vec![]));
    assert_eq!((contents(&hot).len(), contents(&cold).len()), (8, 8));
    assert!(contents(&cold).iter().all(|(key, content)| before[key] == *content));
    let names = |store: &Store| -> Vec<String> {
        let found = groups_of(store, &run()).unwrap();
        found.into_iter().map(|found| found.group.name).collect()
    };
    assert_eq!((names(&hot).len(), names(&cold).len()), (3, 3));
    // A job that is open may write further steps.
    let job = ArrayJob::open(&hot, None, Some("r"), &JobOptions::default()).unwrap();
    let pair = job.declared_group("pair").unwrap();
    pair.write_dense("p", 4, &doubles(12, 4)).unwrap();
    job.flush().unwrap();
    moved(&hot, "run=r", &cold).unwrap();
    assert_eq!((contents(&hot).len(), contents(&cold).len()), (0, 17));
    assert_eq!(names(&hot).len(), 3);
    pair.write_dense("p", 5, &doubles(12, 5)).unwrap();
    job.close().unwrap();
    assert_eq!(contents(&hot).len(), 1);
    moved(&hot, "run=r", &cold).unwrap();
    assert_eq!((contents(&hot).len(), contents(&cold).len()), (0, 18));
    assert!(hot.catalog().runs(&Query::all()).unwrap().is_empty());
    assert_eq!(names(&cold).len(), 3);
    // Only one set of a group: the group stays for the other.
    let report = moved(&cold, "run=r,variable=p", &hot).unwrap();
    assert_eq!((report.removed, names(&hot), names(&cold).len()), (6, vec!["pair".to_owned()], 3));
}

#[test]
fn a_transfer_that_fails_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, cold) = stores(folder.path());
    write(&hot, 2, 0..3);
    let stop = |done: u64, all: u64| match done == all {
        true => Err(fieldstone::Error::invalid("that is enough")),
        false => Ok(()),
    };
    let options = TransferOptions { progress: Some(&stop), ..TransferOptions::default() };
    for moving in [false, true] {
        let outcome = match moving {
            true => move_to(&hot, requests("run=r"), &cold, &options),
            false => copy(&hot, requests("run=r"), &cold, &options),
        };
        let error = outcome.unwrap_err();
        assert!(error.message().contains("enough"), "{error}");
        assert!(files(&cold).is_empty() && contents(&cold).is_empty());
    }
    assert_eq!(contents(&hot).len(), 12);
    // A group that contradicts the target's.
    let job = ArrayJob::open(&cold, None, Some("r"), &JobOptions::default()).unwrap();
    let level = LevelChoice::number(1).unwrap();
    let other = [SetOptions::new("p", DType::F8, &[7])];
    job.group("pair", &GroupOptions { level, ..GroupOptions::new(other) }).unwrap();
    job.close().unwrap();
    let error = copied(&hot, "run=r", &cold).unwrap_err();
    assert_eq!(error.kind(), fieldstone::ErrorKind::Conflict, "{error}");
    assert!(files(&cold).is_empty());
    // An array that cannot be read stays, and so does its group.
    let third = open(&folder.path().join("third"));
    let found = groups_of(&hot, &run()).unwrap();
    let path = folder.path().join("hot").join(&found[1].files[0].path);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
    let hot = open(&folder.path().join("hot"));
    let report = moved(&hot, "run=r", &third).unwrap();
    assert_eq!((report.damaged.len(), report.removed), (1, 11));
    assert_eq!((contents(&third).len(), groups_of(&hot, &run()).unwrap().len()), (11, 1));
    assert!(third.verify(&Request::new()).unwrap().damaged.is_empty());
}

#[test]
fn a_store_without_files_takes_arrays_into_its_logs() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, _) = stores(folder.path());
    let memory = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    let job = ArrayJob::open(&hot, None, Some("r"), &JobOptions::default()).unwrap();
    let group = job.group("g", &GroupOptions::new([SetOptions::new("p", DType::F8, &[12])])).unwrap();
    group.write_dense("p", 0, &doubles(12, 0)).unwrap();
    job.close().unwrap();
    mesh(&hot, "wing");
    let report = copied(&hot, "", &memory).unwrap();
    assert_eq!((report.fields, left(&report)), (1, vec![("mesh", 1), ("array file", 1)]));
    let field = memory.run("r").unwrap().read("p", Some(0)).unwrap();
    let mut bytes = field.read().unwrap();
    field.dtype().unwrap().unwrap().swap_bytes(&mut bytes);
    assert_eq!(bytes, doubles(12, 0));
    let report = copied(&memory, "run=r", &open(&folder.path().join("third"))).unwrap();
    assert_eq!((report.fields, left(&report)), (1, vec![]));
}

/// A strip of triangles.
fn mesh(store: &Store, name: &str) {
    let x: Vec<f64> = (0..12).map(f64::from).collect();
    let y: Vec<f64> = (0..12).map(|i| f64::from(i % 2)).collect();
    let faces: Vec<i64> = (0..10).flat_map(|i| [i, i + 1, i + 2]).collect();
    let coordinate = |values| MeshCoordinate { values, attrs: Attrs::default() };
    let content = MeshContent {
        name,
        coordinates: vec![coordinate(&x), coordinate(&y)],
        edges: None,
        faces: Some(MeshRows { width: 3, nodes: &faces }),
        volumes: None,
        base: 0,
        fill: None,
        attrs: Attrs::default(),
    };
    StoredMesh::create(store, &content, &[], &Session::default()).unwrap();
    store.flush(None).unwrap();
}

/// This process's part of a mesh, and where it came from.
fn part(job: &ArrayJob, mesh: &str) -> (Vec<i64>, PartitionSource) {
    let mesh = job.mesh(mesh).unwrap();
    let given = (MeshEdges::Mesh(&mesh), MeshVector::Block);
    let part = job.partition(Ok(given), &PartitionOptions::default()).unwrap();
    (part.part().nodes().to_vec(), part.part().source())
}

#[test]
fn meshes_and_kept_partitions_go_along() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, cold) = stores(folder.path());
    mesh(&hot, "wing");
    mesh(&hot, "wing2");
    let raw = folder.path().join("raw");
    std::fs::write(&raw, doubles(6, 0)).unwrap();
    let job = ArrayJob::open(&hot, None, Some("r"), &JobOptions::default()).unwrap();
    let on_mesh = GroupOptions {
        mesh: Some("wing".into()),
        location: Some(MeshLocation::Face),
        ..GroupOptions::new([SetOptions::new("c", DType::F8, &[])])
    };
    let group = job.group("cells", &on_mesh).unwrap();
    group.write_dense("c", 0, &doubles(10, 0)).unwrap();
    let (nodes, source) = part(&job, "wing");
    assert_eq!(source, PartitionSource::Computed);
    let variables = vec![imported("a", 6)];
    job.import_raw(&raw, Ok(variables), false).unwrap();
    job.close().unwrap();
    let on = hot.run("r").unwrap();
    on.annotate("hot", 1.0, &Target::variable("c").step(0)).unwrap();
    hot.flush(None).unwrap();
    let report = moved(&hot, "run=r", &cold).unwrap();
    assert_eq!((report.removed, left(&report)), (1, vec![]));
    let catalog = cold.catalog();
    let session = Session::default();
    let names: Vec<String> = catalog.meshes(&session).unwrap().into_iter().map(|mesh| mesh.name).collect();
    assert_eq!(names, ["wing"]);
    assert_eq!(catalog.imports(&run(), &session).unwrap().len(), 1);
    let decl = catalog.meshes(&session).unwrap().remove(0);
    assert_eq!(catalog.histories(&session).unwrap(), hot.catalog().histories(&session).unwrap());
    assert_eq!(StoredMesh::open(&cold, "wing").unwrap().coordinates().unwrap()[0].len(), 12);
    assert!(cold.verify(&Request::new()).unwrap().damaged.is_empty());
    assert!(hot.catalog().runs(&Query::all()).unwrap().is_empty());
    // The source keeps what other data may need.
    assert_eq!(hot.catalog().meshes(&session).unwrap().len(), 2);
    let job = ArrayJob::open(&cold, None, Some("r"), &JobOptions::default()).unwrap();
    assert_eq!(part(&job, "wing"), (nodes, PartitionSource::Parts));
    let group = job.group("cells", &on_mesh).unwrap();
    assert_eq!(group.read_dense("c", 0, None).unwrap(), doubles(10, 0));
    job.close().unwrap();
    // Everything: other names of the mesh, too; its file is there.
    copied(&hot, "", &cold).unwrap();
    let all = cold.catalog().meshes(&session).unwrap();
    assert!(all.len() == 2 && all.iter().all(|mesh| mesh.path == decl.path && mesh.sums == decl.sums));
    // A damaged mesh stays, and the rest goes.
    let third = open(&folder.path().join("third"));
    let path = folder.path().join("cold").join(&decl.path);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 20;
    bytes[last] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
    let report = copied(&cold, "run=r", &third).unwrap();
    assert_eq!((report.fields, left(&report)), (1, vec![("mesh", 1)]));
    assert!(third.catalog().meshes(&session).unwrap().is_empty());
}

fn imported(name: &str, len: u64) -> fieldstone::catalog::ImportedVariable {
    fieldstone::catalog::ImportedVariable { name: name.into(), dtype: DType::F8, offset: 0, shape: vec![len] }
}

/// Opaque bytes of many parts, that fill memory and files, or shrink to almost nothing.
#[test]
fn long_opaque_fields_come_along_part_by_part() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, cold) = stores(folder.path());
    let mut random = fieldstone_testkit::seeded(7);
    let noise: Vec<u8> = (0..(17 << 20) / 8 + 3).flat_map(|_| random.below(u64::MAX).to_le_bytes()).collect();
    let flat = vec![7; (16 << 20) + 5];
    for (step, bytes) in [("0", &noise), ("1", &flat)] {
        for (variable, compression) in [("t", Compression::None), ("u", Compression::Zstd(1))] {
            let key = [("run", "r"), ("variable", variable), ("step", step)];
            let options = ArchiveOptions { compression: Some(compression), ..ArchiveOptions::default() };
            hot.archive(&key, Value::Bytes(bytes), &options).unwrap();
        }
    }
    hot.flush(None).unwrap();
    let report = copied(&hot, "", &cold).unwrap();
    assert_eq!((report.fields, report.damaged), (4, vec![]));
    assert!(contents(&cold) == contents(&hot));
    assert_eq!(copied(&hot, "", &cold).unwrap().unchanged, 4);
    let size = |store: &str| -> u64 {
        let files = std::fs::read_dir(folder.path().join(store).join("data")).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    assert!(size("cold").abs_diff(size("hot")) < 1 << 20, "{} {}", size("cold"), size("hot"));
    assert!(cold.verify(&Request::new()).unwrap().damaged.is_empty());
    // One that cannot be read to its end is not there.
    let third = open(&folder.path().join("third"));
    let data = std::fs::read_dir(folder.path().join("hot/data")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[(16 << 20) + 9] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let hot = open(&folder.path().join("hot"));
    let report = moved(&hot, "run=r", &third).unwrap();
    assert_eq!((report.damaged.len(), report.removed, contents(&third).len()), (1, 3, 3));
}

/// Tags say where the files of a run's arrays go.
#[test]
fn e46_tags_are_hints_for_files_of_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let (hot, _) = stores(folder.path());
    // A tag on a variable needs one.
    let job = ArrayJob::open(&hot, None, Some("r"), &JobOptions::default()).unwrap();
    job.group("of q", &GroupOptions::new([SetOptions::new("q", DType::F8, &[3])])).unwrap();
    job.close().unwrap();
    let run = hot.run("r").unwrap();
    run.annotate("hint.striping_factor", 8, &Target::run()).unwrap();
    run.annotate("hint.striping_unit", "1048576", &Target::run()).unwrap();
    run.annotate("hint.cb_nodes", "no number", &Target::run()).unwrap();
    run.annotate("hint.striping_factor", 2, &Target::variable("q")).unwrap();
    run.annotate("hint.striping_factor", 99, &Target::variable("q").step(0)).unwrap();
    hot.flush(None).unwrap();
    let job = ArrayJob::open(&hot, None, Some("r"), &JobOptions::default()).unwrap();
    let untaken = |name: &str, hints: &[(&str, &str)]| {
        let hints = Hints::new(hints.iter().copied()).unwrap();
        let options = GroupOptions { hints, ..GroupOptions::new([SetOptions::new(name, DType::F8, &[3])]) };
        let group = job.group(&format!("of {name}"), &options).unwrap();
        group.write_dense(name, 0, &doubles(3, 0)).unwrap();
        group.why().split_once("no library took the hints ").unwrap().1.to_owned()
    };
    assert_eq!(untaken("p", &[]), "striping_factor=8 striping_unit=1048576");
    assert_eq!(untaken("q", &[]), "striping_factor=2 striping_unit=1048576");
    assert_eq!(untaken("s", &[("striping_factor", "3")]), "striping_factor=3 striping_unit=1048576");
    job.close().unwrap();
}

/// Killed in any call: each array is in the source, in the target or in both, its files show what is there once the run goes
/// on, and the same move ends what is left.
#[test]
fn a_killed_move_leaves_each_array_somewhere() {
    for n in (1..).step_by(7) {
        let world = SimWorld::new(n);
        world.set_tracing(false);
        let open_as =
            |env: &Env, path: &str| open_in(env.clone(), path, Path::new(path), &OpenOptions::default());
        let level = n % 3 + 1;
        let first = world.process("a");
        let before = {
            let hot = open_as(&first, "/hot").unwrap();
            write(&hot, level, 0..2);
            open_as(&first, "/cold").unwrap().flush(None).unwrap();
            contents(&hot)
        };
        let env = world.process("a");
        world.kill_nth(&env, None, n);
        let done = open_as(&env, "/hot").and_then(|hot| {
            let cold = open_as(&env, "/cold")?;
            move_to(&hot, requests("run=r"), &cold, &TransferOptions::default())
        });
        let world = if n % 2 == 0 { world.power_cut(n) } else { world };
        let env = world.process("a");
        let (hot, cold) = (open_as(&env, "/hot").unwrap(), open_as(&env, "/cold").unwrap());
        let (mut here, there) = (contents(&hot), contents(&cold));
        assert!(there.is_empty() || there == before, "killed at call {n}");
        here.extend(there);
        assert_eq!(here, before, "killed at call {n}");
        moved(&hot, "run=r", &cold).unwrap();
        assert_eq!((contents(&hot).len(), contents(&cold)), (0, before), "killed at call {n}");
        // The next job completes files.
        write(&cold, level, 2..3);
        assert!(shown(&cold) >= 8, "killed at call {n}");
        assert!(cold.verify(&Request::new()).unwrap().damaged.is_empty(), "killed at call {n}");
        if done.is_ok() {
            return;
        }
        assert!(n < 5000, "the move never ends");
    }
}
