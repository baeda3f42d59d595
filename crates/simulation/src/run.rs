//! Running a plan: each step by its actor, then a look that the model must explain.

use fieldstone_core::sync::schedule;

use crate::actors::{act, reader};
use crate::call::Call;
use crate::model::change::Change;
use crate::plan::{Step, StepPlan, Verb};
use crate::process::Purpose;
use crate::simulation::{Checked, Simulation};

/// A run without errors.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Steps that were made.
    pub steps: usize,
    /// Calls of the simulated disk.
    pub calls: u64,
}

/// A run that found an error.
#[derive(Debug, Clone)]
pub struct Wrong {
    /// The number of the step.
    pub step: usize,
    /// The error.
    pub why: String,
    /// Notes on each step.
    pub notes: Vec<String>,
}

/// Runs a plan. Threads take turns as the plan's seed draws.
pub fn run(plan: &StepPlan) -> Result<Done, Wrong> {
    let run = schedule::run(plan.seed, || {
        let mut simulation = Simulation::new(plan.seed);
        let outcome = all(&mut simulation, plan);
        // No thread may wait for ever.
        (0..simulation.processes.len()).for_each(|who| drop(simulation.die(who)));
        match outcome {
            Ok(()) => Ok(Done { steps: plan.steps.len(), calls: simulation.world.counters().total() }),
            Err((step, why)) => Err(Wrong { step, why, notes: std::mem::take(&mut simulation.notes) }),
        }
    });
    run.outcome.unwrap_or_else(|why| Err(Wrong { step: plan.steps.len(), why, notes: Vec::new() }))
}

fn all(simulation: &mut Simulation, plan: &StepPlan) -> Result<(), (usize, String)> {
    let (staleness, links) = (simulation.staleness.map(|ns| ns / 1_000_000_000), simulation.has_links);
    simulation.note(|| format!("staleness in seconds: {staleness:?}, links: {links}"));
    prologue(simulation).map_err(|why| (0, why))?;
    for (number, step) in plan.steps.iter().enumerate() {
        simulation.note(|| format!("step {number}: {step}"));
        one(simulation, step).map_err(|why| (number, why))?;
    }
    let last = Step { who: 0, verb: Verb::Wait, seed: plan.seed };
    reader::finish(simulation, &last).map_err(|why| (plan.steps.len(), why))
}

fn one(simulation: &mut Simulation, step: &Step) -> Checked {
    simulation.is_troubled = false;
    act(simulation, step)?;
    simulation.bury()?;
    simulation.is_calm &= !simulation.is_troubled;
    reader::check(simulation, step)?;
    match step.verb {
        Verb::Power => reader::verify(simulation, false),
        _ => Ok(()),
    }
}

/// Makes the store, with a run of each user, and opens a handle for each process.
fn prologue(simulation: &mut Simulation) -> Checked {
    simulation.share()?;
    for who in 0..simulation.processes.len() {
        simulation.open(who, "")?;
    }
    for (who, run) in [(0, "a"), (3, "b"), (2, "c")] {
        let change = Change::Run(run.to_owned(), vec!["t".to_owned(), "u".to_owned()]);
        let commit = simulation.pending(who, None);
        simulation.model.add(commit, vec![change.clone()]);
        simulation.launch(who, vec![Call::Take(change, false), Call::Flush], Purpose::Flush(None, commit))?;
        simulation.settle();
    }
    Ok(())
}
