//! A short set of seeds, the planted faults, and plans of errors that were found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::sync::plain::{Mutex, MutexGuard};
use fieldstone_simulation::plan::StepPlan;
use fieldstone_simulation::run::run;
use fieldstone_simulation::shrink::shrink;

/// A planted fault is the process's: where tests are threads of one process, they take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock()
}

#[test]
fn seeds_show_what_the_model_says() {
    let _turn = turn();
    let only = std::env::var("FIELDSTONE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = only.map_or(0..60, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let plan = StepPlan::of(seed, 60);
        if let Err(wrong) = run(&plan) {
            let (short, wrong) = shrink(&plan, wrong);
            panic!("{}\n{}\n\n{short}", wrong.why, wrong.notes.join("\n"));
        }
    }
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    let _turn = turn();
    let calls = || run(&StepPlan::of(3, 40)).map(|done| done.calls).map_err(|wrong| wrong.why);
    assert_eq!(calls(), calls());
}

#[test]
fn a_plan_survives_as_text() {
    let plan = StepPlan::of(5, 50);
    assert_eq!(plan.to_string().parse(), Ok(plan));
    assert!("seed 1\n9 write 3".parse::<StepPlan>().is_err() && "1 write 3".parse::<StepPlan>().is_err());
}

/// `simulate --fault all` shows after how many seeds each is found.
#[test]
fn a_planted_fault_is_found_and_shrunk() {
    let _turn = turn();
    planted::plant(Some(Planted::OwnerUnchecked));
    let found = (0..100).map(|seed| StepPlan::of(seed, 60)).find_map(|plan| Some((run(&plan).err()?, plan)));
    let (wrong, plan) = found.expect("the fault is found");
    let (short, _) = shrink(&plan, wrong);
    planted::plant(None);
    assert!(short.steps.len() <= 8, "{short}");
    assert!(run(&short).is_ok(), "without the fault the plan shows nothing wrong");
}
