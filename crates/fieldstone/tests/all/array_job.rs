//! The job whose processes and ranks fail in `array_faults.rs` and `array_ranks.rs`, and the expected state afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fieldstone::arrays::{
    ArrayGroup, ArrayJob, GroupOptions, JobOptions, LevelChoice, Memory, MeshEdges, MeshVector,
    PartitionOptions, SetOptions, View, WriteOptions, dense_strides,
};
use fieldstone::catalog::ArrayLayout;
use fieldstone::env::Env;
use fieldstone::env::comm::Comm;
use fieldstone::env::comm::single::SingleComm;
use fieldstone::env::comm::threads::{self, Faults};
use fieldstone::env::sim::SimWorld;
use fieldstone::prelude::*;
use fieldstone::{DType, OpenOptions, ReadOptions, Request, Result, Store};
use fieldstone_array::container::access::Selection;
use fieldstone_array::container::{Container, Mode};
use fieldstone_format::netcdf::NcType;

pub const NODES: u64 = 24;
pub const STEPS: i64 = 3;

/// The layout and level of the arrays.
pub type Scene = (ArrayLayout, u64);

pub const SCENES: [Scene; 4] =
    [(ArrayLayout::Files, 1), (ArrayLayout::Files, 2), (ArrayLayout::Files, 3), (ArrayLayout::Fields, 0)];

/// Sets of group `g`, then the one of group `h`, whose length differs at each step.
const SETS: [&str; 3] = ["p", "q", "r"];

pub fn open(env: &Env) -> Result<Store> {
    fieldstone::open_in(env.clone(), "/s", Path::new("/s"), &OpenOptions::default())
}

fn value(set: usize, step: i64, at: u64) -> f64 {
    (set as i64 * 1_000 + step * 100) as f64 + at as f64
}

fn len(set: usize, step: i64) -> u64 {
    if set == 2 { 9 + step as u64 } else { NODES }
}

/// Reports of a job's ranks.
#[derive(Debug, Default)]
pub struct Told {
    /// Steps whose flush returned, on any rank.
    pub flushed: BTreeSet<i64>,
    /// Errors of steps, with rank and step.
    pub errors: Vec<(usize, i64, String)>,
}

pub type SharedTold = Arc<Mutex<Told>>;

pub fn told(told: &SharedTold) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One rank's part in a job that writes some steps: a set by blocks, one by a map, and one whose ranks join their
/// parts; each step is a flush; and partitions, which threads keep. A thread writes every other step. After a failure
/// the job goes on with the next step, as long as its process lives.
fn rank(
    env: &Env,
    comm: Arc<dyn Comm>,
    (layout, level): Scene,
    steps: std::ops::Range<i64>,
    all: &SharedTold,
) -> Result<()> {
    let store = open(env)?;
    let options = JobOptions { layout, buffer: 100, ..JobOptions::default() };
    let job = ArrayJob::open(&store, Some(comm), Some("r"), &options)?;
    let (rank, size) = (job.rank() as u64, job.size() as u64);
    let level = if level == 0 { LevelChoice::Auto } else { LevelChoice::number(level)? };
    let sets = ["p", "q"].map(|name| SetOptions::new(name, DType::F8, &[NODES]));
    let group = job.group("g", &GroupOptions { level, ..GroupOptions::new(sets) })?;
    let varying = SetOptions { shape: vec![None], ..SetOptions::new("r", DType::F8, &[]) };
    let other = job.group("h", &GroupOptions { level, ..GroupOptions::new([varying]) })?;
    group.view(&View::grid(&[size]), Some(&["p"]))?;
    let map: Vec<i64> = (0..NODES as i64).filter(|node| *node as u64 % size == rank).collect();
    group.view(&View::irregular(map.clone(), None, Some(0)), Some(&["q"]))?;
    let block = View::grid(&[size]).resolve(&[NODES], job.rank(), job.size())?;
    let block: Vec<u64> = block.written().runs().flat_map(|run| run.at..run.at + run.elements).collect();
    let map: Vec<u64> = map.iter().map(|node| *node as u64).collect();
    for step in steps {
        let write = || -> Result<()> {
            let joined: Vec<u64> = (rank * len(2, step) / size..(rank + 1) * len(2, step) / size).collect();
            other.view(&View::joined(joined.len() as u64), None)?;
            put(&group, 0, step, &block)?;
            put(&group, 1, step, &map)?;
            put(&other, 2, step, &joined)?;
            partition(&job, step)?;
            job.flush()
        };
        match write() {
            Ok(()) => drop(told(all).flushed.insert(step)),
            Err(error) => {
                told(all).errors.push((rank as usize, step, error.to_string()));
                if !env.identity.alive(env.identity.process()) {
                    return Err(error);
                }
                // Forget the rest of the step; a failed flush has dropped its writes already.
                job.discard()?;
            }
        }
    }
    job.close()
}

fn put(group: &ArrayGroup, set: usize, step: i64, part: &[u64]) -> Result<()> {
    let bytes: Vec<u8> = part.iter().flat_map(|at| value(set, step, *at).to_ne_bytes()).collect();
    let shape = [part.len() as u64];
    let strides = dense_strides(DType::F8, &shape);
    let memory = Memory { bytes: &bytes, dtype: DType::F8, shape: &shape, strides: &strides, origin: 0 };
    let how = WriteOptions { wait: step % 2 == 0, ..WriteOptions::default() };
    group.write_with(SETS[set], step, Ok(memory), &how).map(drop)
}

/// A ring of nodes; each rank has a share of the edges.
fn partition(job: &ArrayJob, step: i64) -> Result<()> {
    let (rank, size) = (job.rank() as u64, job.size() as u64);
    let edges: Vec<i64> = (rank * NODES / size..(rank + 1) * NODES / size).map(|edge| edge as i64).collect();
    let next: Vec<i64> = edges.iter().map(|edge| (edge + 1) % NODES as i64).collect();
    let vector: Vec<i64> = (0..NODES as i64).map(|node| (node + step) % size as i64).collect();
    let given = (MeshEdges::Arrays(&edges, &next), MeshVector::Replicated(&vector));
    let part = job.partition(Ok(given), &PartitionOptions::default())?;
    let own: Vec<i64> = (0..NODES as i64).filter(|node| vector[*node as usize] as u64 == rank).collect();
    assert_eq!(part.part().nodes()[..own.len()], own, "{:?} at {step}", part.part().source());
    Ok(())
}

/// Runs the ranks of a job as threads of one process, freely or in the order of a seed, with the planned failures.
#[derive(Debug, Clone)]
pub struct Ranks {
    pub count: usize,
    pub seed: Option<u64>,
    pub faults: Faults,
}

impl Ranks {
    pub fn of(count: usize) -> Ranks {
        Ranks { count, seed: None, faults: Faults::none() }
    }
}

pub fn job(
    env: &Env,
    ranks: &Ranks,
    scene: Scene,
    steps: std::ops::Range<i64>,
    told: &SharedTold,
) -> Vec<Result<()>> {
    let (disk, faults) = (env.disk.clone(), ranks.faults.clone());
    threads::run(ranks.count, ranks.seed, disk, faults, |comm| rank(env, comm, scene, steps.clone(), told))
}

/// The complete steps; fails if there is a partial one.
fn visible(store: &Store, place: &str) -> BTreeSet<i64> {
    let mut seen = BTreeSet::new();
    for step in 0..STEPS + 2 {
        let there: Vec<bool> =
            (0..).zip(SETS).map(|(set, name)| is_there(store, set, name, step, place)).collect();
        match &there[..] {
            [true, true, true] => drop(seen.insert(step)),
            [false, false, false] => {}
            _ => panic!("{place}: step {step} is there by half: {there:?}"),
        }
    }
    seen
}

/// Whether a set has a step; if so, its elements must be right.
fn is_there(store: &Store, set: usize, name: &str, step: i64, place: &str) -> bool {
    let key = [("run", "r"), ("variable", name), ("step", &step.to_string())];
    let Ok(field) = store.get(&key, &ReadOptions::default()) else { return false };
    let mut bytes = field.read().unwrap_or_else(|error| panic!("{place}: {name} at {step}: {error}"));
    let dtype = field.dtype().unwrap().unwrap();
    if !dtype.is_native() {
        dtype.swap_bytes(&mut bytes);
    }
    let expected: Vec<u8> = (0..len(set, step)).flat_map(|at| value(set, step, at).to_ne_bytes()).collect();
    assert!(bytes == expected, "{place}: {name} at step {step} is another one");
    true
}

/// Files of the job's arrays, in all folders.
fn files(env: &Env, folder: &Path, found: &mut Vec<PathBuf>) {
    for (name, kind) in env.disk.list_dir(folder).unwrap_or_default() {
        let path = folder.join(&name);
        match kind {
            fieldstone::env::FileKind::Directory => files(env, &path, found),
            _ if name.ends_with(".nc") => found.push(path),
            _ => {}
        }
    }
}

/// Steps that files show, each with a value of every set in the file; an unfinished file is marked so, and shows
/// nothing.
fn shown(env: &Env, place: &str) -> BTreeMap<i64, PathBuf> {
    let (mut all, mut found) = (BTreeMap::new(), Vec::new());
    files(env, Path::new("/s/arrays"), &mut found);
    for path in found {
        let comm = Arc::new(SingleComm::new(env.disk.clone()));
        let Ok(file) = Container::open(&path, Mode::Read, comm, env) else { continue };
        let Ok(var) = file.var("step") else { continue };
        let whole = Selection::all(&var.shape());
        let mut steps = vec![0; whole.count.iter().product::<u64>() as usize * 8];
        file.elements()
            .get(&var, &whole, &mut steps, NcType::Int64, true)
            .unwrap_or_else(|error| panic!("{place}: {}: {error}", path.display()));
        all.extend(steps.as_chunks().0.iter().map(|step| (i64::from_ne_bytes(*step), path.clone())));
    }
    all
}

/// Compares a fresh process's view with the flushes; then a job with other ranks goes on.
pub fn check(world: &SimWorld, scene: Scene, flushed: &BTreeSet<i64>, place: &str) {
    let env = world.process("a");
    let verified = |store: &Store| {
        let report = store.verify(&Request::new()).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert!(report.damaged.is_empty(), "{place}: {:?}", report.damaged);
    };
    let in_files = |seen: &BTreeSet<i64>| {
        for (step, path) in shown(&env, place) {
            assert!(
                seen.contains(&step),
                "{place}: {} shows step {step}, {seen:?} are there",
                path.display()
            );
        }
    };
    let store = open(&env).unwrap_or_else(|error| panic!("{place}: {error}"));
    let seen = visible(&store, place);
    assert!(flushed.is_subset(&seen), "{place}: {flushed:?} were flushed, {seen:?} are there");
    in_files(&seen);
    if !seen.is_empty() {
        verified(&store);
    }
    let more = SharedTold::default();
    for outcome in job(&env, &Ranks::of(2), scene, STEPS..STEPS + 2, &more) {
        outcome.unwrap_or_else(|error| panic!("{place}: the run does not go on: {error}"));
    }
    assert!(told(&more).errors.is_empty(), "{place}: the run does not go on: {:?}", told(&more).errors);
    let mut expected = seen;
    expected.extend([STEPS, STEPS + 1]);
    assert_eq!(visible(&store, place), expected, "{place}");
    in_files(&expected);
    // Files also show the last job's flushes.
    let last: BTreeSet<i64> = shown(&env, place).into_keys().filter(|step| *step >= STEPS).collect();
    let in_logs = scene.0 == ArrayLayout::Fields;
    assert_eq!(last.len(), if in_logs { 0 } else { 2 }, "{place}: files show {last:?}");
    verified(&store);
}
