//! Ranks of a job that fail: each rank at each of its collectives, before it, in it, or for good. All ranks get an
//! error that names the rank, or none does; each step is complete or absent, in store and files; and the run goes on.
//!
//! A seed decides the order of ranks. `FIELDSTONE_CRASH=full` tries 200 seeds at each collective, spread over ranks,
//! kinds of failure, layouts and levels; otherwise each is tried once with a failure that ranks agree upon, and every
//! fifth with another.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone::Result;
use fieldstone::env::comm::threads::Faults;
use fieldstone::env::sim::SimWorld;
use fieldstone_testkit::require::full;

use crate::array_job::{Ranks, SCENES, STEPS, Scene, SharedTold, Told, check, job, told};

const RANKS: usize = 3;

/// How a rank fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Step,
    Call,
    Death,
}

/// A failure of one rank, and the layout of the arrays.
#[derive(Debug, Clone, Copy)]
struct Case {
    kind: Kind,
    rank: usize,
    scene: Scene,
}

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for kind in [Kind::Step, Kind::Call, Kind::Death] {
        for scene in SCENES {
            all.extend((0..RANKS).map(|rank| Case { kind, rank, scene }));
        }
    }
    all
}

/// The first error of each rank; the text is empty for a rank without one.
fn first_errors(told: &Told, outcomes: &[Result<()>]) -> Vec<String> {
    let of = |rank: usize| {
        let noted = told.errors.iter().find(|(of, ..)| *of == rank).map(|(.., error)| error.clone());
        noted.or(outcomes[rank].as_ref().err().map(ToString::to_string))
    };
    (0..RANKS).filter_map(of).collect()
}

/// One job in which a rank fails at its n-th collective; whether the failure happened.
fn fails(case: Case, nth: u64, seed: u64) -> bool {
    let Case { kind, rank, scene } = case;
    let faults = match kind {
        Kind::Step => Faults::step(rank, nth),
        Kind::Call => Faults::call(rank, nth),
        Kind::Death => Faults::death(rank, nth),
    };
    let (world, all) = (SimWorld::new(seed), SharedTold::default());
    world.set_tracing(false);
    let ranks = Ranks { count: RANKS, seed: Some(seed), faults: faults.clone() };
    let outcomes = job(&world.process("a"), &ranks, scene, 0..STEPS, &all);
    let place = format!("{case:?} at {nth}, seed {seed}");
    let all = told(&all);
    let errors = first_errors(&all, &outcomes);
    assert!(
        errors.is_empty() || errors.len() == RANKS,
        "{place}: an error of one is not one of all: {errors:?}"
    );
    let names = |error: &String| error.contains(&format!("rank {rank}"));
    assert!(errors.iter().all(names), "{place}: {errors:?}");
    let began = outcomes.iter().all(Result::is_ok);
    if kind == Kind::Step && began {
        // A failure costs at most one step, and the ranks go on together.
        let lost = STEPS as usize - all.flushed.len();
        assert_eq!(
            lost,
            usize::from(!errors.is_empty()),
            "{place}: {:?} were flushed, {errors:?}",
            all.flushed
        );
    }
    check(&world, scene, &all.flushed, &place);
    faults.struck()
}

/// The case for the n-th collective.
fn tried(all: &[Case], nth: u64) -> Vec<Case> {
    if full() {
        // If 200 is not a multiple of the cases, the next collective begins with another one.
        return all.iter().cycle().skip(nth as usize * 200 % all.len()).take(200).copied().collect();
    }
    let pick = |kinds: std::ops::Range<usize>| {
        let some = &all[kinds];
        some[nth as usize * 7 % some.len()]
    };
    let of_kind = all.len() / 3;
    let other = nth.is_multiple_of(5).then(|| pick(of_kind..all.len()));
    std::iter::once(pick(0..of_kind)).chain(other).collect()
}

/// Results of the jobs so far.
#[derive(Debug, Default)]
struct Tally {
    runs: u64,
    struck: u64,
    /// For each kind of failure, the last collective in which one happened.
    last: BTreeMap<String, u64>,
}

#[test]
fn a_rank_that_fails_or_dies_in_any_collective_fails_all_and_leaves_each_step_whole_or_away() {
    let (cases, next, tally) = (cases(), AtomicU64::new(1), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let tried = tried(&cases, nth);
            let struck: Vec<Case> = (1..)
                .zip(&tried)
                .filter(|(n, case)| fails(**case, nth, nth * 1_000 + n))
                .map(|(_, case)| *case)
                .collect();
            let mut tally = tally.lock().unwrap();
            tally.runs += tried.len() as u64;
            tally.struck += struck.len() as u64;
            for case in &struck {
                let last = tally.last.entry(format!("{:?}", case.kind)).or_default();
                *last = nth.max(*last);
            }
            if full() && nth.is_multiple_of(10) {
                println!("collective {nth}: {} jobs, {} with a failure", tally.runs, tally.struck);
            }
            // No job has this many collectives.
            if struck.is_empty() && nth > 100 {
                break;
            }
        }
    };
    let workers = if full() { std::thread::available_parallelism().map_or(1, usize::from) } else { 1 };
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let tally = tally.into_inner().unwrap();
    println!("{tally:?}");
    assert!(tally.last.len() == 3 && tally.last.values().all(|last| *last > 100), "{tally:?}");
}
