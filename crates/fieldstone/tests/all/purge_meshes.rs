//! Purges free meshes and kept partitions that nothing names any more, and what ended writers left unfinished (R37).

use std::path::Path;
use std::time::Duration;

use fieldstone::arrays::{
    ArrayJob, GroupOptions, JobOptions, MeshEdges, MeshVector, PartitionOptions, SetOptions, StoredMesh,
};
use fieldstone::catalog::query::text::parse;
use fieldstone::catalog::{Deletion, MeshLocation, RunName};
use fieldstone::env::sim::SimWorld;
use fieldstone::env::{Env, FileKind};
use fieldstone::prelude::*;
use fieldstone::{
    DType, ErrorKind, OpenOptions, PurgeOptions, PurgeReport, Request, Session, Store, WipeOptions, hold,
    open_in,
};
use fieldstone_testkit::require::full;

use crate::own_files::make_mesh;

const HOUR: u64 = 3_600_000_000_000;
const DAY: u64 = 24 * HOUR;
const NODES: usize = 12;

fn open(env: &Env) -> Store {
    open_in(env.clone(), "/s", Path::new("/s"), &OpenOptions::default()).unwrap()
}

/// The names in the folders of meshes and kept partitions.
fn names(world: &SimWorld) -> Vec<String> {
    let disk = world.process("z").disk;
    let in_folder = |folder: &str| {
        let listed = disk.list_dir(&Path::new("/s").join(folder)).unwrap_or_default();
        listed.into_iter().filter(|(_, kind)| *kind == FileKind::File).map(|(name, _)| name)
    };
    let mut names: Vec<String> = ["meshes", "histories"].into_iter().flat_map(in_folder).collect();
    names.sort();
    names
}

/// The meshes and partitions that are there.
fn files(world: &SimWorld) -> usize {
    names(world).iter().filter(|name| !name.starts_with('.') && !name.starts_with("open-")).count()
}

fn job_of(store: &Store, run: &str) -> ArrayJob {
    ArrayJob::open(store, None, Some(run), &JobOptions::default()).unwrap()
}

/// Writes a group on a mesh.
fn write_on(job: &ArrayJob, mesh: &str) {
    let on_mesh = GroupOptions {
        mesh: Some(mesh.into()),
        location: Some(MeshLocation::Face),
        ..GroupOptions::new([SetOptions::new("c", DType::F8, &[])])
    };
    let group = job.group("cells", &on_mesh).unwrap();
    group.write_dense("c", 0, &[1; 8 * (NODES - 2)]).unwrap();
}

/// A job that writes a group on a mesh, and keeps a partition of it.
fn job_on(store: &Store, run: &str, mesh: &str) {
    let job = job_of(store, run);
    write_on(&job, mesh);
    let open = job.mesh(mesh).unwrap();
    job.partition(Ok((MeshEdges::Mesh(&open), MeshVector::Block)), &PartitionOptions::default()).unwrap();
    job.close().unwrap();
}

/// A store with a mesh, of which run `r` has a group and a partition.
fn written() -> SimWorld {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let store = open(&world.process("a"));
    make_mesh(&store, "wing", NODES).unwrap();
    store.flush(None).unwrap();
    job_on(&store, "r", "wing");
    store.close().unwrap();
    world
}

fn delete(world: &SimWorld, run: &str) {
    let store = open(&world.process("a"));
    let runs = Deletion::Runs(parse(&format!("run={run}")).unwrap());
    store.catalog().delete(&runs, true, true, &Session::default()).unwrap();
    store.flush(None).unwrap();
    store.close().unwrap();
}

fn purge(world: &SimWorld, grace: u64) -> PurgeReport {
    purge_on(world, "a", grace)
}

fn purge_on(world: &SimWorld, host: &str, grace: u64) -> PurgeReport {
    let store = open(&world.process(host));
    let grace = Duration::from_nanos(grace);
    let report = store.purge(&PurgeOptions { all: true, doit: true, grace, ..PurgeOptions::default() });
    store.close().unwrap();
    report.unwrap()
}

fn dry(world: &SimWorld) -> PurgeReport {
    let options = PurgeOptions { all: true, grace: Duration::ZERO, ..PurgeOptions::default() };
    open(&world.process("a")).purge(&options).unwrap()
}

fn is_sound(world: &SimWorld) {
    let report = open(&world.process("b")).verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
}

fn meshes(world: &SimWorld) -> Vec<String> {
    let store = open(&world.process("b"));
    let all = store.catalog().meshes(&Session::default()).unwrap();
    all.into_iter().map(|mesh| mesh.name).collect()
}

#[test]
fn r37_a_mesh_goes_a_grace_after_the_last_group_on_it() {
    let world = written();
    let all = names(&world);
    assert_eq!(all.len(), 3, "{all:?}");
    world.advance(2 * DAY);
    purge(&world, 0);
    assert_eq!(names(&world), all, "a group names it");
    delete(&world, "r");
    let before = dry(&world);
    assert_eq!(names(&world), all);
    let report = purge(&world, HOUR);
    assert!(before.condemned >= 3 && report.condemned >= 3 && report.waiting >= 3, "{before:?} {report:?}");
    assert_eq!((files(&world), meshes(&world)), (3, vec![]));
    is_sound(&world);
    world.advance(HOUR / 2);
    assert!(purge(&world, HOUR).waiting >= 3);
    assert_eq!(files(&world), 3, "the grace");
    world.advance(HOUR);
    purge(&world, HOUR);
    assert_eq!(names(&world), Vec::<String>::new());
    is_sound(&world);
    // It can be made again.
    let store = open(&world.process("a"));
    make_mesh(&store, "wing", NODES).unwrap();
    store.flush(None).unwrap();
    job_on(&store, "r", "wing");
    store.close().unwrap();
    world.advance(2 * DAY);
    purge(&world, 0);
    assert_eq!(names(&world), all);
    is_sound(&world);
}

#[test]
fn r37_a_mesh_that_nobody_named_stays() {
    let world = written();
    let store = open(&world.process("a"));
    make_mesh(&store, "tail", NODES + 1).unwrap();
    // The same file under another name.
    make_mesh(&store, "wing2", NODES).unwrap();
    store.flush(None).unwrap();
    store.close().unwrap();
    delete(&world, "r");
    world.advance(2 * DAY);
    purge(&world, 0);
    assert_eq!(files(&world), 4, "{:?}", names(&world));
    assert_eq!(meshes(&world), ["tail", "wing", "wing2"]);
    is_sound(&world);
}

#[test]
fn r37_a_file_without_a_declaration_goes_after_a_day() {
    let world = written();
    let store = open(&world.process("a"));
    make_mesh(&store, "tail", NODES + 1).unwrap();
    store.discard(None).unwrap();
    store.close().unwrap();
    drop(store);
    assert_eq!(files(&world), 4);
    world.advance(DAY / 2);
    purge(&world, 0);
    assert_eq!(files(&world), 4, "it is young");
    world.advance(DAY);
    purge(&world, 0);
    assert_eq!((files(&world), meshes(&world)), (3, vec!["wing".to_owned()]));
    is_sound(&world);
}

#[test]
fn r37_a_wiped_run_names_no_mesh() {
    let world = written();
    world.advance(HOUR);
    let store = open(&world.process("a"));
    let wipe = WipeOptions { doit: true, ..WipeOptions::default() };
    store.wipe(&Request::parse("run=r").unwrap(), &wipe).unwrap();
    store.close().unwrap();
    world.advance(HOUR);
    purge(&world, 0);
    assert_eq!((files(&world), meshes(&world)), (0, vec![]), "{:?}", names(&world));
    is_sound(&world);
    // A search by coordinates passes over it.
    let store = open(&world.process("b"));
    let searched = store.catalog().attributes(&parse("box(x=0..1)").unwrap());
    let error = searched.map(drop).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Invalid && error.to_string().contains("has a dimension 'x'"),
        "{error}"
    );
}

#[test]
fn r37_nothing_goes_while_a_job_may_name_it() {
    let world = written();
    delete(&world, "r");
    let all = names(&world);
    let other = open(&world.process("b"));
    let job = job_of(&other, "s");
    let mesh = job.mesh("wing").unwrap();
    world.advance(3 * DAY);
    purge(&world, 0);
    assert!(all.iter().all(|name| names(&world).contains(name)), "{:?}", names(&world));
    drop(mesh);
    write_on(&job, "wing");
    job.close().unwrap();
    world.advance(DAY);
    purge(&world, 0);
    assert_eq!(names(&world), all, "a group names it again");
    assert_eq!(meshes(&world), ["wing"]);
    other.close().unwrap();
    is_sound(&world);
}

#[test]
fn r37_a_flag_of_a_job_that_was_killed_keeps_nothing() {
    let world = written();
    delete(&world, "r");
    let env = world.process("b");
    let other = open(&env);
    let job = job_of(&other, "s");
    let mesh = job.mesh("wing").unwrap();
    world.kill(&env);
    std::mem::forget((mesh, job, other));
    let lost = |name: &str| format!("/s/meshes/{name}.nc.0011.{}.part", env.identity.writer_name());
    let living = world.process("b");
    let kept = format!("/s/meshes/y.nc.0011.{}.part", living.identity.writer_name());
    for path in [&lost("x"), &kept] {
        world.process("a").disk.create_alike(Path::new(path)).unwrap();
    }
    world.advance(DAY);
    let all = names(&world);
    purge(&world, 0);
    assert_eq!(names(&world), all, "another host cannot know that the job has ended");
    purge_on(&world, "b", 0);
    assert_eq!(names(&world), [kept.rsplit('/').next().unwrap()]);
}

#[test]
fn r37_a_transaction_that_may_count_keeps_a_mesh() {
    let world = written();
    delete(&world, "r");
    let store = open(&world.process("b"));
    let within = store.begin().unwrap();
    make_mesh(&store, "again", NODES).unwrap();
    let mut decl = store.catalog().mesh("again", &Session::default()).unwrap();
    store.discard(None).unwrap();
    decl.name = "again".into();
    store.catalog().create_meshes(vec![decl], &Session::from(within)).unwrap();
    store.flush(within).unwrap();
    world.advance(DAY);
    purge(&world, 0);
    assert_eq!(files(&world), 3, "{:?}", names(&world));
    store.decide(within, true).unwrap();
    assert_eq!(meshes(&world), ["again", "wing"]);
    is_sound(&world);
}

#[test]
fn r37_a_hold_keeps_condemned_files() {
    let world = written();
    delete(&world, "r");
    purge(&world, HOUR);
    let keeper = open(&world.process("b"));
    let held = hold(&keeper, Duration::from_nanos(3 * DAY), "tape").unwrap();
    world.advance(2 * DAY);
    let report = purge(&world, 0);
    assert!(report.kept.is_some() && report.waiting >= 3, "{report:?}");
    assert_eq!(files(&world), 3);
    drop(held);
    keeper.close().unwrap();
    world.advance(2 * DAY);
    purge(&world, 0);
    assert_eq!(names(&world), Vec::<String>::new());
}

#[test]
fn r37_a_mesh_that_a_group_came_to_name_is_declared_again() {
    let world = written();
    let store = open(&world.process("a"));
    let run = RunName { project: String::new(), name: "r".into() };
    let groups = store.catalog().array_groups(&run, &Session::default()).unwrap();
    store.close().unwrap();
    delete(&world, "r");
    purge(&world, HOUR);
    assert_eq!(meshes(&world), Vec::<String>::new());
    // Its flag and its look showed late.
    let late = open(&world.process("b"));
    late.create_run("s").create().unwrap();
    let run = RunName { project: String::new(), name: "s".into() };
    late.catalog().create_groups(&run, groups, &Session::default()).unwrap();
    late.flush(None).unwrap();
    late.close().unwrap();
    world.advance(2 * HOUR);
    purge(&world, HOUR);
    assert_eq!(meshes(&world), ["wing"]);
    is_sound(&world);
    purge(&world, 0);
    let left = names(&world);
    assert!(left.iter().any(|name| name.ends_with(".nc")), "{left:?}");
    is_sound(&world);
}

#[test]
fn r37_a_condemned_file_is_not_taken_for_a_new_mesh() {
    let world = written();
    delete(&world, "r");
    purge(&world, HOUR);
    let store = open(&world.process("b"));
    make_mesh(&store, "new", NODES).unwrap();
    // It is not flushed yet.
    world.advance(2 * HOUR);
    purge(&world, HOUR);
    store.flush(None).unwrap();
    store.close().unwrap();
    world.advance(2 * HOUR);
    purge(&world, HOUR);
    assert_eq!((files(&world), meshes(&world)), (1, vec!["new".to_owned()]), "{:?}", names(&world));
    is_sound(&world);
    assert!(StoredMesh::open(&open(&world.process("b")), "new").is_ok());
    assert_eq!(StoredMesh::open(&open(&world.process("b")), "wing").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn r37_only_own_files_go() {
    let world = written();
    delete(&world, "r");
    world.advance(2 * DAY);
    world.set_uid("c", 1007);
    let other = open(&world.process("c"));
    let grace = Duration::ZERO;
    let _ = other.purge(&PurgeOptions { all: true, doit: true, grace, ..PurgeOptions::default() });
    drop(other);
    assert_eq!(files(&world), 3, "{:?}", names(&world));
    is_sound(&world);
}

/// Two meshes, one of which nothing names.
fn one_free() -> SimWorld {
    let world = written();
    let store = open(&world.process("a"));
    make_mesh(&store, "tail", NODES + 1).unwrap();
    store.flush(None).unwrap();
    let job = job_of(&store, "t");
    let on_mesh = GroupOptions {
        mesh: Some("tail".into()),
        location: Some(MeshLocation::Node),
        ..GroupOptions::new([SetOptions::new("c", DType::F8, &[])])
    };
    job.group("cells", &on_mesh).unwrap().write_dense("c", 0, &[1; 8 * (NODES + 1)]).unwrap();
    job.close().unwrap();
    store.close().unwrap();
    delete(&world, "r");
    world
}

#[test]
fn r37_a_purge_that_dies_at_any_call_frees_nothing_that_is_named() {
    let world = one_free();
    let store = open(&world.process("a"));
    world.set_tracing(true);
    world.clear_trace();
    let at_once = PurgeOptions { all: true, doit: true, grace: Duration::ZERO, ..PurgeOptions::default() };
    store.purge(&at_once).unwrap();
    let calls = world.counters().total();
    let step = if full() { 1 } else { 11 };
    for n in (1..=calls).step_by(step) {
        let world = one_free();
        let env = world.process("a");
        let store = open(&env);
        world.kill_nth(&env, None, n);
        let _ = store.purge(&at_once);
        if env.identity.alive(env.identity.process()) {
            break;
        }
        std::mem::forget(store);
        let world = if n % 2 == 0 { world.power_cut(n) } else { world };
        is_sound(&world);
        assert!(meshes(&world).contains(&"tail".to_owned()), "{n}");
        assert!(StoredMesh::open(&open(&world.process("b")), "tail").is_ok(), "{n}");
        // After a power cut the first call ends the logs, and the next one frees their files.
        for _ in 0..2 {
            world.advance(2 * DAY);
            purge(&world, 0);
        }
        assert_eq!((files(&world), meshes(&world)), (1, vec!["tail".to_owned()]), "{n} {:?}", names(&world));
        is_sound(&world);
    }
}
