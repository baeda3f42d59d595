//! The program `simulate`: runs seeds of the simulation, and reports, shrinks and replays those that fail.
//!
//! ```text
//! simulate [--seeds A..B] [--every N] [--steps N] [--for SECONDS]   many seeds, until one fails
//! simulate --jobs N …                                              the same in N processes
//! simulate --seed N [--steps N]                                    one seed
//! simulate --plan FILE                                             a plan, with a note on each step
//! simulate --fault NAME|all [--seeds A..B]                         seeds until a planted fault is found
//! ```

use std::io::{self, Write};
use std::ops::Range;
use std::process::{Child, Command, ExitCode};

use fieldstone::Env;
use fieldstone_core::planted::{self, Planted};
use fieldstone_simulation::plan::StepPlan;
use fieldstone_simulation::run::{Wrong, run};
use fieldstone_simulation::shrink::shrink;

/// Steps of a plan, unless the caller says otherwise.
const STEPS: usize = 60;
/// Seeds after which a planted fault counts as not found.
const ENOUGH: u64 = 500;

/// The arguments of a call.
struct Arguments {
    seeds: Range<u64>,
    /// The distance of two seeds.
    every: u64,
    steps: usize,
    /// Seconds after which no new seed begins.
    seconds: Option<u64>,
    /// Processes: stores of one process share locks, which two runs must not.
    jobs: u64,
    plan: Option<String>,
    faults: Vec<Planted>,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments {
        seeds: 0..1_000,
        every: 1,
        steps: STEPS,
        seconds: None,
        jobs: 1,
        plan: None,
        faults: Vec::new(),
    };
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
        let wrong = || format!("{option} {value} is not a valid value");
        let number = || value.parse::<u64>().map_err(|_| wrong());
        match option.as_str() {
            "--seeds" => {
                let (from, to) = value.split_once("..").ok_or_else(wrong)?;
                let to = if to.is_empty() { Ok(u64::MAX) } else { to.parse() };
                arguments.seeds = from.parse().map_err(|_| wrong())?..to.map_err(|_| wrong())?;
            }
            "--seed" => arguments.seeds = number()?..number()? + 1,
            "--steps" => arguments.steps = number()? as usize,
            "--for" => arguments.seconds = Some(number()?),
            "--every" => arguments.every = number()?.max(1),
            "--jobs" => arguments.jobs = number()?.max(1),
            "--plan" => arguments.plan = Some(value),
            "--fault" if value == "all" => arguments.faults = Planted::ALL.to_vec(),
            "--fault" => arguments.faults = vec![Planted::named(&value).ok_or_else(wrong)?],
            _ => {
                return Err(format!(
                    "{option} is not an option: --seeds, --seed, --every, --steps, --for, --jobs, --plan, --fault"
                ));
            }
        }
    }
    Ok(arguments)
}

fn say(text: &str) {
    // There is nobody to report a closed pipe to.
    let _ = writeln!(io::stdout(), "{text}");
}

/// The counts of runs without errors.
#[derive(Default)]
struct Tally {
    seeds: u64,
    steps: u64,
    calls: u64,
}

/// Runs seeds; returns the plan of the first that fails.
fn seeds(arguments: &Arguments, tally: &mut Tally) -> Option<(StepPlan, Wrong)> {
    let clock = Env::real().clock;
    let end = arguments.seconds.map(|seconds| clock.monotonic() + seconds * 1_000_000_000);
    let mut seed = arguments.seeds.start;
    while seed < arguments.seeds.end && end.is_none_or(|end| clock.monotonic() < end) {
        let plan = StepPlan::of(seed, arguments.steps);
        match run(&plan) {
            Ok(done) => {
                tally.seeds += 1;
                tally.steps += done.steps as u64;
                tally.calls += done.calls;
            }
            Err(wrong) => return Some((plan, wrong)),
        }
        seed += arguments.every;
    }
    None
}

/// Runs seeds in several processes, which report by themselves, until one of them fails.
fn processes(arguments: &Arguments) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let start = |job: u64| -> Result<Child, String> {
        let Arguments { seeds, steps, seconds, jobs, .. } = arguments;
        let mut command = Command::new(&program);
        command.arg("--seeds").arg(format!("{}..{}", seeds.start + job, seeds.end));
        command.arg("--every").arg(jobs.to_string()).arg("--steps").arg(steps.to_string());
        if let Some(seconds) = seconds {
            command.arg("--for").arg(seconds.to_string());
        }
        command.spawn().map_err(|error| format!("cannot start {}: {error}", program.display()))
    };
    let mut children = (0..arguments.jobs).map(start).collect::<Result<Vec<Child>, String>>()?;
    let mut is_good = true;
    while !children.is_empty() && is_good {
        Env::real().clock.sleep(50_000_000);
        let mut running = Vec::new();
        for mut child in children {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => is_good &= status.success(),
                None => running.push(child),
            }
        }
        children = running;
    }
    // A process that fails has shrunk and shown its plan.
    for mut child in children {
        let _ = child.kill();
        let _ = child.wait();
    }
    Ok(is_good)
}

/// Shows a failed plan, as short as it gets, and the command that replays it.
fn report(plan: &StepPlan, wrong: Wrong) {
    say(&format!("seed {} fails at step {}: {}", plan.seed, wrong.step, wrong.why));
    let (short, wrong) = shrink(plan, wrong);
    say(&format!("\nthe same in {} steps: {}\n", short.steps.len(), wrong.why));
    wrong.notes.iter().for_each(|note| say(&format!("  {note}")));
    let path = std::env::temp_dir().join(format!("simulation-{}.plan", plan.seed));
    match std::fs::write(&path, short.to_string()) {
        Ok(()) => say(&format!("\nreplay it: simulate --plan {}\n\n{short}", path.display())),
        Err(error) => say(&format!("\nthe plan cannot be kept in {}: {error}\n\n{short}", path.display())),
    }
}

/// Replays a plan from a file.
fn replay(path: &str) -> Result<bool, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let plan: StepPlan = text.parse()?;
    match run(&plan) {
        Ok(done) => {
            say(&format!("{} steps, {} calls of the disk: no error", done.steps, done.calls));
            Ok(true)
        }
        Err(wrong) => {
            wrong.notes.iter().for_each(|note| say(note));
            say(&format!("step {}: {}", wrong.step, wrong.why));
            Ok(false)
        }
    }
}

/// Plants faults, one after another, and says how many seeds find each.
fn faults(arguments: &Arguments) -> bool {
    let mut all = true;
    for fault in &arguments.faults {
        planted::plant(Some(*fault));
        let end = arguments.seeds.start.saturating_add(ENOUGH).min(arguments.seeds.end);
        let own =
            Arguments { seeds: arguments.seeds.start..end, plan: None, faults: Vec::new(), ..*arguments };
        let found = seeds(&own, &mut Tally::default());
        planted::plant(None);
        all &= found.is_some();
        let first = |why: &str| why.lines().next().unwrap_or_default().to_owned();
        say(&match found {
            Some((plan, wrong)) => {
                format!("{:<22} found by seed {:>3}: {}", fault.name(), plan.seed, first(&wrong.why))
            }
            None => format!("{:<22} not found by {} seeds", fault.name(), end - own.seeds.start),
        });
    }
    all
}

/// Runs seeds, and reports the first that fails.
fn campaign(arguments: &Arguments) -> bool {
    let (clock, mut tally) = (Env::real().clock, Tally::default());
    let begin = clock.monotonic();
    let found = seeds(arguments, &mut tally);
    let seconds = (clock.monotonic() - begin) as f64 / 1e9;
    let Tally { seeds, steps, calls } = tally;
    say(&format!("{seeds} seeds, {steps} steps, {calls} calls of the disk, {seconds:.1} s"));
    let is_good = found.is_none();
    found.into_iter().for_each(|(plan, wrong)| report(&plan, wrong));
    is_good
}

fn main() -> ExitCode {
    let done = parse(std::env::args().skip(1)).and_then(|arguments| match &arguments.plan {
        Some(path) => replay(path),
        None if !arguments.faults.is_empty() => Ok(faults(&arguments)),
        None if arguments.jobs > 1 => processes(&arguments),
        None => Ok(campaign(&arguments)),
    });
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("simulate: {why}");
            ExitCode::from(2)
        }
    }
}
