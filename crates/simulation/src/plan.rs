//! Plans: the steps of a simulation as plain data.
//!
//! A seed gives the settings of the world and a list of steps. A step names a process, a verb, and a seed of its own,
//! from which the actor draws the rest: so a plan without some of its steps changes no other step, and the text of a
//! plan is short. Lines that begin with `#` are comments.
//!
//! ```
//! use fieldstone_simulation::plan::StepPlan;
//!
//! let plan = StepPlan::of(7, 20);
//! let same: StepPlan = plan.to_string().parse()?;
//! assert_eq!(same, plan);
//! # Ok::<(), String>(())
//! ```

use std::fmt;
use std::str::FromStr;

use fieldstone_core::env::sim::Random;

/// The number of processes that write.
pub const PROCESSES: usize = 5;

/// The action of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A process opens the store, in place of the one that had its number.
    Open,
    /// It closes its store.
    Close,
    /// It dies: its store is closed by nobody.
    Die,
    /// It writes fields, attributes and relations, mostly with a flush.
    Write,
    /// It removes a field.
    Remove,
    /// It begins a transaction.
    Begin,
    /// It commits or aborts a transaction.
    Decide,
    /// It forgets its unflushed data.
    Discard,
    /// It deletes attributes.
    Erase,
    /// It deletes a relation.
    Unrelate,
    /// It writes to a dataset that belongs to nobody yet.
    Claim,
    /// It writes to another user's dataset.
    Trespass,
    /// The disk will fail in its next action.
    Fault,
    /// It will die in its next action.
    Kill,
    /// It will stop in its next action.
    Stop,
    /// It goes on after a stop.
    Resume,
    /// Several processes write at once.
    Together,
    /// The power fails.
    Power,
    /// The clock of its host jumps.
    Clock,
    /// Time passes.
    Wait,
    /// A reader keeps the version that it sees.
    Remember,
    /// A reader opens a version that was kept.
    LookBack,
    /// Maintenance ends logs of processes that are gone, that are silent, or that seem gone.
    Maintain,
    /// Maintenance takes ended logs over.
    Compact,
    /// Maintenance drops what nothing shows any more.
    Purge,
    /// Days pass, and maintenance seals and forgets ended transactions.
    Forget,
    /// It wipes its user's runs, or variables of them.
    Wipe,
    /// It makes unreadable what a run of its user's hides.
    Expunge,
    /// It locks a run of its user's, in vain for nobody, and unlocks it.
    Lock,
    /// It shows a run of its user's under another name for a while.
    Overlay,
    /// It makes a rule of retention for which everything is too young, maintains the store, and ends the rule.
    Retain,
    /// In a copy of the world it moves a run of its user's to another store.
    Move,
    /// In a copy of the world another store names a run of its user's.
    Point,
    /// Maintenance sleeps while others do its work.
    Nap,
}

/// All verbs, each with its name and its weight in a drawn plan.
const VERBS: [(Verb, &str, u64); 34] = [
    (Verb::Open, "open", 6),
    (Verb::Close, "close", 2),
    (Verb::Die, "die", 3),
    (Verb::Write, "write", 44),
    (Verb::Remove, "remove", 5),
    (Verb::Begin, "begin", 9),
    (Verb::Decide, "decide", 9),
    (Verb::Discard, "discard", 2),
    (Verb::Erase, "erase", 3),
    (Verb::Unrelate, "unrelate", 5),
    (Verb::Claim, "claim", 3),
    (Verb::Trespass, "trespass", 2),
    (Verb::Fault, "fault", 6),
    (Verb::Kill, "kill", 5),
    (Verb::Stop, "stop", 6),
    (Verb::Resume, "resume", 6),
    (Verb::Together, "together", 6),
    (Verb::Power, "power", 3),
    (Verb::Clock, "clock", 3),
    (Verb::Wait, "wait", 2),
    (Verb::Remember, "remember", 6),
    (Verb::LookBack, "look-back", 5),
    (Verb::Maintain, "maintain", 9),
    (Verb::Compact, "compact", 9),
    (Verb::Purge, "purge", 7),
    (Verb::Forget, "forget", 4),
    (Verb::Wipe, "wipe", 5),
    (Verb::Expunge, "expunge", 4),
    (Verb::Lock, "lock", 3),
    (Verb::Overlay, "overlay", 3),
    (Verb::Retain, "retain", 3),
    (Verb::Move, "move", 4),
    (Verb::Point, "point", 3),
    (Verb::Nap, "nap", 4),
];

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The process.
    pub who: usize,
    /// Its action.
    pub verb: Verb,
    /// The seed of everything else.
    pub seed: u64,
}

impl Step {
    /// Numbers for this step; another `purpose`, other numbers.
    pub fn random(&self, purpose: u64) -> Random {
        Random::derived(self.seed, purpose)
    }
}

/// A seed for the settings, and the steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPlan {
    /// The seed.
    pub seed: u64,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl StepPlan {
    /// Draws a plan.
    pub fn of(seed: u64, steps: usize) -> StepPlan {
        let mut random = Random::derived(seed, 1);
        // Each plan leaves out some verbs, so that others come more often and meet.
        let drawn = |random: &mut Random| -> Vec<(Verb, u64)> {
            let kept = VERBS.iter().filter(|(verb, ..)| *verb == Verb::Write || !random.one_in(4));
            kept.map(|(verb, _, weight)| (*verb, *weight)).collect()
        };
        let verbs = drawn(&mut random);
        let all: u64 = verbs.iter().map(|(_, weight)| weight).sum();
        let mut draw = || {
            let mut place = random.below(all);
            let verb = verbs.iter().find(|(_, weight)| match place.checked_sub(*weight) {
                Some(rest) => {
                    place = rest;
                    false
                }
                None => true,
            });
            let verb = verb.map_or(Verb::Write, |(verb, _)| *verb);
            // Small seeds are easy to copy, and as good.
            Step { who: random.index(PROCESSES), verb, seed: random.below(1 << 32) }
        };
        StepPlan { seed, steps: (0..steps).map(|_| draw()).collect() }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = VERBS.iter().find(|(verb, ..)| *verb == self.verb).map_or("", |(_, name, _)| name);
        write!(f, "{} {name} {}", self.who, self.seed)
    }
}

impl fmt::Display for StepPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let wrong = || format!("'{text}' is not a valid step: write PROCESS VERB SEED");
        let [who, name, seed] = words[..] else { return Err(wrong()) };
        let (verb, ..) = VERBS.iter().find(|(_, known, _)| *known == name).ok_or_else(wrong)?;
        let who = who.parse().ok().filter(|who| *who < PROCESSES).ok_or_else(wrong)?;
        Ok(Step { who, verb: *verb, seed: seed.parse().map_err(|_| wrong())? })
    }
}

impl FromStr for StepPlan {
    type Err = String;

    fn from_str(text: &str) -> Result<StepPlan, String> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
        let mut lines = lines.filter(|line| !line.is_empty());
        let seed = lines.next().and_then(|line| line.strip_prefix("seed ")?.trim().parse().ok());
        let seed = seed.ok_or("the first line of a plan is: seed NUMBER")?;
        Ok(StepPlan { seed, steps: lines.map(Step::from_str).collect::<Result<_, _>>()? })
    }
}
