//! Jobs of distributed arrays in the simulated world: killed in a system call, cut off the power, on a disk that fails or is
//! full, with ranks that fail or die in a collective. Each step that was flushed is whole, no other one is there by half, and
//! the run goes on.
//!
//! `FIELDSTONE_CRASH=full` makes 1,000 kills, otherwise 40, and lets ranks fail 200 times in each collective of a job,
//! otherwise once in every seventh.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fieldstone::arrays::{
    ArrayJob, GroupOptions, JobOptions, LevelChoice, Memory, MeshEdges, MeshVector, PartitionOptions,
    SetOptions, View, WriteOptions, dense_strides,
};
use fieldstone::catalog::ArrayLayout;
use fieldstone::env::Env;
use fieldstone::env::comm::Comm;
use fieldstone::env::comm::threads::{self, Faults};
use fieldstone::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone::{DType, ErrorKind, OpenOptions, ReadOptions, Request, Result, Store};
use fieldstone_testkit::require::full;
use fieldstone_testkit::{Random, seeded};

const NODES: u64 = 24;
const STEPS: i64 = 3;

/// A scene: where arrays lie, and at which level.
const SCENES: [(ArrayLayout, u64); 4] =
    [(ArrayLayout::Files, 1), (ArrayLayout::Files, 2), (ArrayLayout::Files, 3), (ArrayLayout::Fields, 0)];

fn open(env: &Env) -> Result<Store> {
    fieldstone::open_in(env.clone(), "/s", Path::new("/s"), &OpenOptions::default())
}

fn value(set: usize, step: i64, node: u64) -> f64 {
    (set as i64 * 1_000 + step * 100) as f64 + node as f64
}

/// Steps whose flush returned on all ranks.
type Flushed = Arc<Mutex<BTreeSet<i64>>>;

fn noted(flushed: &Flushed) -> BTreeSet<i64> {
    flushed.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// One rank's part in a job that writes some steps: a set by blocks, one by a map, each step a flush; and partitions, which
/// threads keep. Where something fails the job goes on with the next step, as long as its process lives.
fn rank(
    env: &Env,
    comm: Arc<dyn Comm>,
    (layout, level): (ArrayLayout, u64),
    steps: std::ops::Range<i64>,
    flushed: &Flushed,
) -> Result<()> {
    let store = open(env)?;
    let options = JobOptions { layout, buffer: 100, ..JobOptions::default() };
    let job = ArrayJob::open(&store, Some(comm), Some("r"), &options)?;
    let (rank, size) = (job.rank() as u64, job.size() as u64);
    let sets = ["p", "q"].map(|name| SetOptions::new(name, DType::F8, &[NODES]));
    let level = if level == 0 { LevelChoice::Auto } else { LevelChoice::number(level)? };
    let group = job.group("g", &GroupOptions { level, ..GroupOptions::new(sets) })?;
    group.view(&View::grid(&[size]), Some(&["p"]))?;
    let map: Vec<i64> = (0..NODES as i64).filter(|node| *node as u64 % size == rank).collect();
    group.view(&View::irregular(map.clone(), None, Some(0)), Some(&["q"]))?;
    let block = View::grid(&[size]).resolve(&[NODES], job.rank(), job.size())?;
    let block: Vec<u64> = block.written().runs().flat_map(|run| run.at..run.at + run.elements).collect();
    let parts = [block, map.iter().map(|node| *node as u64).collect()];
    for step in steps {
        let write = || -> Result<()> {
            for (set, name) in ["p", "q"].into_iter().enumerate() {
                let bytes: Vec<u8> =
                    parts[set].iter().flat_map(|node| value(set, step, *node).to_ne_bytes()).collect();
                let shape = [parts[set].len() as u64];
                let strides = dense_strides(DType::F8, &shape);
                let memory =
                    Memory { bytes: &bytes, dtype: DType::F8, shape: &shape, strides: &strides, origin: 0 };
                let how = WriteOptions { wait: step % 2 == 0, ..WriteOptions::default() };
                group.write_with(name, step, Ok(memory), &how)?;
            }
            partition(&job, step)?;
            job.flush()
        };
        match write() {
            Ok(()) if rank == 0 => drop(flushed.lock().map(|mut flushed| flushed.insert(step))),
            Ok(()) => {}
            Err(error) if !env.identity.alive(env.identity.process()) => return Err(error),
            // What is left of it is forgotten; what failed in a flush is gone already.
            Err(_) => job.discard()?,
        }
    }
    job.close()
}

/// A ring of nodes, of which each rank has a share of the edges.
fn partition(job: &ArrayJob, step: i64) -> Result<()> {
    let (rank, size) = (job.rank() as u64, job.size() as u64);
    let edges: Vec<i64> = (rank * NODES / size..(rank + 1) * NODES / size).map(|edge| edge as i64).collect();
    let next: Vec<i64> = edges.iter().map(|edge| (edge + 1) % NODES as i64).collect();
    let vector: Vec<i64> = (0..NODES as i64).map(|node| (node + step) % size as i64).collect();
    let given = (MeshEdges::Arrays(&edges, &next), MeshVector::Replicated(&vector));
    let part = job.partition(Ok(given), &PartitionOptions::default())?;
    let own: Vec<i64> = (0..NODES as i64).filter(|node| vector[*node as usize] as u64 == rank).collect();
    assert_eq!(part.nodes()[..own.len()], own, "{:?} at {step}", part.source());
    Ok(())
}

/// A job of some ranks, threads of one process.
fn job(
    env: &Env,
    ranks: usize,
    scene: (ArrayLayout, u64),
    steps: std::ops::Range<i64>,
    flushed: &Flushed,
) -> Vec<Result<()>> {
    job_with(env, ranks, scene, steps, flushed, Faults::none())
}

/// The same, whose ranks fail as it is said.
fn job_with(
    env: &Env,
    ranks: usize,
    scene: (ArrayLayout, u64),
    steps: std::ops::Range<i64>,
    flushed: &Flushed,
    faults: Faults,
) -> Vec<Result<()>> {
    let disk = env.disk.clone();
    threads::run(ranks, None, disk, faults, |comm| rank(env, comm, scene, steps.clone(), flushed))
}

/// The steps that are there, whole; nothing else may be there of a step.
fn visible(store: &Store, place: &str) -> BTreeSet<i64> {
    let mut seen = BTreeSet::new();
    for step in 0..STEPS + 2 {
        let read = ["p", "q"].map(|name| {
            let key = [("run", "r"), ("variable", name), ("step", &step.to_string())];
            let field = store.get(&key, &ReadOptions::default()).ok()?;
            let mut bytes = field.read().unwrap_or_else(|error| panic!("{place}: {name} at {step}: {error}"));
            let dtype = field.dtype().unwrap().unwrap();
            if !dtype.is_native() {
                dtype.swap_bytes(&mut bytes);
            }
            Some(bytes)
        });
        let expected = |set| (0..NODES).flat_map(|node| value(set, step, node).to_ne_bytes()).collect();
        match read {
            [Some(p), Some(q)] => {
                let (own_p, own_q): (Vec<u8>, Vec<u8>) = (expected(0), expected(1));
                assert!(p == own_p && q == own_q, "{place}: step {step} is another one");
                seen.insert(step);
            }
            [None, None] => {}
            _ => panic!("{place}: step {step} is there by half"),
        }
    }
    seen
}

/// Holds what a fresh process sees to what was flushed; then a job of other ranks goes on.
fn check(world: &SimWorld, scene: (ArrayLayout, u64), flushed: &BTreeSet<i64>, place: &str) {
    let env = world.process("a");
    let verified = |store: &Store| {
        let report = store.verify(&Request::new()).unwrap_or_else(|error| panic!("{place}: {error}"));
        assert!(report.damaged.is_empty(), "{place}: {:?}", report.damaged);
    };
    let store = open(&env).unwrap_or_else(|error| panic!("{place}: {error}"));
    let seen = visible(&store, place);
    assert!(flushed.is_subset(&seen), "{place}: {flushed:?} were flushed, {seen:?} are there");
    if !seen.is_empty() {
        verified(&store);
    }
    let more = Flushed::default();
    for outcome in job(&env, 2, scene, STEPS..STEPS + 2, &more) {
        outcome.unwrap_or_else(|error| panic!("{place}: the run does not go on: {error}"));
    }
    let mut expected = seen;
    expected.extend([STEPS, STEPS + 1]);
    assert_eq!(visible(&store, place), expected, "{place}");
    verified(&store);
}

/// Calls that an undisturbed job makes, by kind.
fn count(scene: (ArrayLayout, u64)) -> BTreeMap<OpKind, u64> {
    let (world, flushed) = (SimWorld::new(1), Flushed::default());
    world.set_tracing(false);
    for outcome in job(&world.process("a"), 3, scene, 0..STEPS, &flushed) {
        outcome.unwrap();
    }
    let calls = world.counters();
    assert_eq!(noted(&flushed), (0..STEPS).collect());
    check(&world, scene, &noted(&flushed), "undisturbed");
    OpKind::ALL.map(|kind| (kind, calls.count(kind))).into_iter().collect()
}

/// A kind of call and the how manieth, drawn so that rare kinds come, too.
fn draw(dice: &mut Random, calls: &BTreeMap<OpKind, u64>) -> (OpKind, u64) {
    let kinds: Vec<(OpKind, u64)> =
        calls.iter().filter(|(_, n)| **n > 0).map(|(kind, n)| (*kind, *n)).collect();
    let (kind, most) = *dice.pick(&kinds);
    (kind, 1 + dice.below(most))
}

/// Lets a job work under a plan of faults: the world, its process, and what was flushed.
fn disturbed(
    seed: u64,
    scene: (ArrayLayout, u64),
    plan: impl FnOnce(&SimWorld, &Env),
) -> (SimWorld, Env, BTreeSet<i64>) {
    let (world, flushed) = (SimWorld::new(seed), Flushed::default());
    world.set_tracing(false);
    let env = world.process("a");
    plan(&world, &env);
    let outcomes = job(&env, 3, scene, 0..STEPS, &flushed);
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    assert!(failed == 0 || failed == 3, "an error of one rank is not one of all: {outcomes:?}");
    (world, env, noted(&flushed))
}

fn rounds(short: usize, long: usize) -> impl Iterator<Item = (usize, (ArrayLayout, u64))> {
    (0..if full() { long } else { short }).map(|round| (round % SCENES.len(), SCENES[round % SCENES.len()]))
}

#[test]
fn a_kill_in_any_call_leaves_each_step_whole_or_away() {
    let counts: Vec<_> = SCENES.into_iter().map(count).collect();
    let (mut dice, mut kills, mut all) = (seeded(31), 0, 0);
    for (seed, (number, scene)) in (0..).zip(rounds(40, 1_000)) {
        let (kind, n) = draw(&mut dice, &counts[number]);
        let (world, env, flushed) = disturbed(seed, scene, |world, env| world.kill_nth(env, Some(kind), n));
        kills += usize::from(!env.identity.alive(env.identity.process()));
        all += 1;
        check(&world, scene, &flushed, &format!("{scene:?} killed at {kind:?} {n}"));
    }
    // Ranks are threads: which call is the n-th is another one each time, and a few are not made.
    assert!(10 * kills >= 8 * all, "{kills} kills of {all}");
}

#[test]
fn after_a_power_cut_each_step_is_whole_or_away() {
    let counts: Vec<_> = SCENES.into_iter().map(count).collect();
    let mut dice = seeded(32);
    for (seed, (number, scene)) in (0..).zip(rounds(60, 400)) {
        let (kind, n) = draw(&mut dice, &counts[number]);
        let cut = Plan::new(Fault::PowerOff).kind(kind).nth(n);
        let (world, _, flushed) = disturbed(seed, scene, |world, _| world.schedule(cut));
        for image in 0..2 {
            let place = format!("{scene:?}, power cut at {kind:?} {n}, image {image}");
            check(&world.power_cut(image), scene, &flushed, &place);
        }
    }
}

#[test]
fn a_disk_that_fails_or_is_full_costs_steps_that_are_named_and_no_other() {
    let counts: Vec<_> = SCENES.into_iter().map(count).collect();
    let mut dice = seeded(33);
    for (seed, (number, scene)) in (0..).zip(rounds(40, 600)) {
        let (kind, n) = draw(&mut dice, &counts[number]);
        let fault = *dice.pick(&[Fault::NoSpace, Fault::Io, Fault::IoPartial, Fault::Short]);
        let lasting = if dice.one_in(2) { 30 } else { 1 };
        let (world, _, flushed) = disturbed(seed, scene, |world, _| {
            for n in n..n + lasting {
                world.schedule(Plan::new(fault).kind(kind).nth(n));
            }
        });
        world.clear_faults();
        check(&world, scene, &flushed, &format!("{scene:?}, {fault:?} at {lasting} {kind:?} from {n} on"));
    }
}

#[test]
fn a_full_disk_loses_what_the_job_says_and_it_goes_on_when_there_is_room() {
    for (seed, scene) in SCENES.into_iter().enumerate() {
        let (world, flushed) = (SimWorld::new(seed as u64), Flushed::default());
        let env = world.process("a");
        for outcome in job(&env, 3, scene, 0..1, &flushed) {
            outcome.unwrap();
        }
        world.set_capacity(Some(0));
        for outcome in job(&env, 3, scene, 1..2, &flushed) {
            let Err(error) = outcome else { continue };
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{scene:?}: {error}");
        }
        world.set_capacity(None);
        assert_eq!(noted(&flushed), BTreeSet::from([0]), "{scene:?}");
        for outcome in job(&env, 3, scene, 2..3, &flushed) {
            outcome.unwrap();
        }
        check(&world, scene, &BTreeSet::from([0, 2]), &format!("{scene:?}, full"));
    }
}

#[test]
fn a_rank_that_fails_or_dies_in_any_collective_fails_all_and_leaves_each_step_whole_or_away() {
    let (seeds, stride) = if full() { (200, 1) } else { (1, 7) };
    let (mut dice, mut struck_at, mut runs) = (seeded(34), 0, 0u64);
    for nth in (1u64..).step_by(stride) {
        let mut struck = 0;
        for seed in 0..seeds {
            let scene = *dice.pick(&SCENES);
            let ranks = 2 + dice.below(3) as usize;
            let of = dice.below(ranks as u64) as usize;
            let faults = match dice.below(3) {
                0 => Faults::step(of, nth),
                1 => Faults::call(of, nth),
                _ => Faults::death(of, nth),
            };
            let (world, flushed) = (SimWorld::new(nth * 1_000 + seed), Flushed::default());
            world.set_tracing(false);
            let outcomes = job_with(&world.process("a"), ranks, scene, 0..STEPS, &flushed, faults.clone());
            let place = format!("{scene:?}, {ranks} ranks, {faults:?}");
            let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert!(
                failed == 0 || failed == ranks,
                "{place}: an error of one is not one of all: {outcomes:?}"
            );
            check(&world, scene, &noted(&flushed), &place);
            struck += u64::from(faults.struck());
        }
        runs += seeds;
        // No job has so many.
        if struck == 0 && nth > 100 {
            break;
        }
        struck_at = nth;
    }
    assert!(struck_at > 100, "the last collective that was struck is number {struck_at} of {runs} runs");
}
