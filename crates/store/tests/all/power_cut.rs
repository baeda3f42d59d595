//! The power fails during the work, at each call in turn; several of the possible disk images are drawn and checked
//! against the model: flushed data exist, unflushed data do not.
//!
//! `FIELDSTONE_CRASH=full` cuts at every call with more images of each, otherwise at some.

use crate::faults::{self, Model, Step, Work, check, full, open, visible};
use fieldstone_core::env::sim::SimWorld;

/// Runs `steps` until call `n`, where the process dies; returns the world at that moment, and the model.
fn until(seed: u64, steps: &[Step], n: u64) -> (SimWorld, Model, bool) {
    let world = SimWorld::new(seed);
    world.set_tracing(false);
    world.set_links(!seed.is_multiple_of(5));
    let mut model = Model::default();
    let env = world.process("a");
    world.kill_nth(&env, None, n);
    let result = open(&env).and_then(|store| {
        let result = {
            let mut work = Work::new(&store, &mut model, "mine", seed);
            steps.iter().try_for_each(|&step| work.step(step))
        };
        std::mem::forget(store);
        result
    });
    let killed = !env.identity.alive(env.identity.process());
    assert!(killed || result.is_ok(), "{result:?}");
    (world, model, killed)
}

/// Cuts the power at call `n`, `images` times; returns whether the work reached that call.
fn cut(seed: u64, steps: &[Step], n: u64, images: u64, count: &mut u64) -> bool {
    let (world, model, killed) = until(seed, steps, n);
    for image in 0..images {
        let after = world.power_cut(image);
        *count += 1;
        if let Err(wrong) = check(&after, "a", &model) {
            panic!("seed {seed}, {steps:?}, power cut at call {n}, image {image}: {wrong}");
        }
    }
    killed
}

#[test]
fn a_power_cut_at_any_call_keeps_what_was_flushed_and_no_more() {
    let (stride, images) = if full() { (1, 12) } else { (7, 4) };
    let mut cuts = 0;
    let plans: [&[Step]; 5] = [
        &[Step::Small, Step::Large, Step::Overwrite],
        &[Step::Large, Step::Commit, Step::Small],
        &[Step::Pieces, Step::Created, Step::Abort, Step::Commit],
        &[Step::Commit, Step::Overwrite, Step::Pieces, Step::Large],
        &[Step::Kinds, Step::Large, Step::Kinds],
    ];
    for (seed, steps) in (2..).zip(plans) {
        // Every call that makes the store is tested, because the most syncs meet there.
        let mut n = 1;
        while cut(seed, steps, n, if n < 45 { images + 4 } else { images }, &mut cuts) {
            n += if n < 45 { 1 } else { stride };
        }
    }
    println!("{cuts} power cuts");
}

#[test]
fn what_was_there_before_survives_a_second_cut() {
    let mut random = faults::seeded(77);
    for round in 0..if full() { 200 } else { 20 } {
        let (world, mut model, _) = until(round, &[Step::Small, Step::Overwrite], 40 + random.below(120));
        let mut world = world.power_cut(round);
        for cut in 0..3 {
            world.set_tracing(false);
            let store = open(&world.process("a")).unwrap();
            let seen = visible(&store).unwrap();
            assert!(model.allows(&seen), "round {round}, cut {cut}: {:?}", faults::describe(&seen));
            // From now on, the surviving state is the base.
            model.before = seen.clone();
            model.after = seen;
            let env = world.process("a");
            world.kill_nth(&env, None, 1 + random.below(90));
            let _ = open(&env)
                .and_then(|store| Work::new(&store, &mut model, &format!("round{cut}"), round).all());
            world = world.power_cut(random.next_u64());
        }
        check(&world, "a", &model).unwrap_or_else(|wrong| panic!("round {round}: {wrong}"));
    }
}

/// Two hosts write one store, and the power fails for both. The work of each is checked by its own run.
#[test]
fn two_hosts_lose_nothing_when_the_power_goes_for_both() {
    let mut random = faults::seeded(5);
    for round in 0..if full() { 300 } else { 25 } {
        let world = SimWorld::new(round);
        world.set_tracing(false);
        let mut models = [Model::default(), Model::default()];
        let envs = ["a", if round % 2 == 0 { "a" } else { "b" }].map(|host| world.process(host));
        let stores = envs.each_ref().map(|env| open(env).unwrap());
        let kill = 60 + random.below(200);
        envs.iter().for_each(|env| world.kill_nth(env, None, kill));
        // In turns, so that the calls of the two interleave.
        {
            let [first, second] = &mut models;
            let mut works =
                [Work::new(&stores[0], first, "one", round), Work::new(&stores[1], second, "two", !round)];
            let mut alive = [true, true];
            for turn in 0..14 {
                let who = random.below(2) as usize;
                alive[who] = alive[who] && works[who].step(faults::STEPS[turn % 8]).is_ok();
            }
        }
        stores.into_iter().for_each(std::mem::forget);
        for image in 0..4 {
            let after = world.power_cut(image);
            let seen = visible(&open(&after.process("b")).unwrap()).unwrap();
            for (model, run) in models.iter().zip(["{run=one}", "{run=two}"]) {
                let mut own = seen.clone();
                own.retain(|key, _| key.starts_with(run));
                assert!(
                    model.allows(&own),
                    "round {round}, image {image}, {run}: {:?}",
                    faults::describe(&own)
                );
            }
            let rest = Model { before: seen.clone(), after: seen, acknowledged: 0 };
            check(&after, "b", &rest).unwrap_or_else(|wrong| panic!("round {round}, image {image}: {wrong}"));
        }
    }
}

/// Before a commit is confirmed, a power cut may tear its log's header or the duplicated parts of its frame, and
/// leave the rest intact: the commit may be shown, and nothing is damaged. With a board slot or a later commit, the
/// same is damage.
#[test]
fn a_torn_commit_that_nobody_confirmed_is_no_damage() {
    let world = SimWorld::new(9);
    let mut model = Model::default();
    let store = open(&world.process("a")).unwrap();
    Work::new(&store, &mut model, "mine", 9).step(Step::Created).unwrap();
    let file =
        |part: &str| world.files().into_iter().find(|path| path.to_str().unwrap().contains(part)).unwrap();
    let (log, board) = (file(".log"), file(".board"));
    let length = world.read(&log).unwrap().len() as u64;
    for at in [30, length - 5] {
        let confirmed = world.fork_image();
        confirmed.flip(&log, at, 1).unwrap();
        let wrong = check(&confirmed, "a", &model).unwrap_err();
        assert!(wrong.starts_with("verify"), "{wrong}");
        let torn = confirmed.fork_image();
        torn.process("a").disk.unlink(&board).unwrap();
        check(&torn, "a", &model).unwrap();
    }
}
