//! Jobs of distributed arrays in the simulated world: killed in a system call, by a power cut, on a disk that fails or
//! is full. Each flushed step is complete, no other step is there in part, and the run goes on. `array_ranks.rs` does
//! the same to single ranks.
//!
//! `FIELDSTONE_CRASH=full` makes 1,000 kills, otherwise 40.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone::ErrorKind;
use fieldstone::env::Env;
use fieldstone::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_testkit::require::full;
use fieldstone_testkit::{Random, seeded};

use crate::array_job::{Ranks, SCENES, STEPS, Scene, SharedTold, check, job, told};

/// Calls that an undisturbed job makes, by kind.
fn count(scene: Scene) -> BTreeMap<OpKind, u64> {
    let (world, flushed) = (SimWorld::new(1), SharedTold::default());
    world.set_tracing(false);
    for outcome in job(&world.process("a"), &Ranks::of(3), scene, 0..STEPS, &flushed) {
        outcome.unwrap();
    }
    let calls = world.counters();
    assert_eq!(told(&flushed).flushed, (0..STEPS).collect());
    check(&world, scene, &told(&flushed).flushed, "undisturbed");
    OpKind::ALL.map(|kind| (kind, calls.count(kind))).into_iter().collect()
}

/// A kind of call and its number, drawn so that rare kinds also come.
fn draw(dice: &mut Random, calls: &BTreeMap<OpKind, u64>) -> (OpKind, u64) {
    let kinds: Vec<(OpKind, u64)> =
        calls.iter().filter(|(_, n)| **n > 0).map(|(kind, n)| (*kind, *n)).collect();
    let (kind, most) = *dice.pick(&kinds);
    (kind, 1 + dice.below(most))
}

/// Runs a job under a plan of faults: the world, its process, and its flushes.
fn disturbed(seed: u64, scene: Scene, plan: impl FnOnce(&SimWorld, &Env)) -> (SimWorld, Env, BTreeSet<i64>) {
    let (world, flushed) = (SimWorld::new(seed), SharedTold::default());
    world.set_tracing(false);
    let env = world.process("a");
    plan(&world, &env);
    let outcomes = job(&env, &Ranks::of(3), scene, 0..STEPS, &flushed);
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    assert!(failed == 0 || failed == 3, "an error of one rank is not one of all: {outcomes:?}");
    let flushed = told(&flushed).flushed.clone();
    (world, env, flushed)
}

fn rounds(short: usize, long: usize) -> impl Iterator<Item = (usize, Scene)> {
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
    // Ranks are threads: the n-th call differs from run to run, and a few are not made.
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
        let (world, flushed) = (SimWorld::new(seed as u64), SharedTold::default());
        let env = world.process("a");
        for outcome in job(&env, &Ranks::of(3), scene, 0..1, &flushed) {
            outcome.unwrap();
        }
        world.set_capacity(Some(0));
        for outcome in job(&env, &Ranks::of(3), scene, 1..2, &flushed) {
            let Err(error) = outcome else { continue };
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{scene:?}: {error}");
        }
        world.set_capacity(None);
        assert_eq!(told(&flushed).flushed, BTreeSet::from([0]), "{scene:?}");
        for outcome in job(&env, &Ranks::of(3), scene, 2..3, &flushed) {
            outcome.unwrap();
        }
        check(&world, scene, &BTreeSet::from([0, 2]), &format!("{scene:?}, full"));
    }
}
