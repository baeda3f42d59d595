//! The state of a simulation: the world, its processes, its readers, and the model; and the meaning of outcomes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fieldstone::{Code, Error, ErrorKind, Field, Mode, OpenOptions, Result, Store};
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::{Random, SimWorld};

use crate::call::{self, Call};
use crate::look::Look;
use crate::model::Model;
use crate::model::change::{Commit, CommitId, Content};
use crate::model::fields::Shown;
use crate::plan::PROCESSES;
use crate::process::{self, ALICE, Outcome, PLACES, Process, Purpose, Stopped, Transactions};

/// The folder of the store.
pub const ROOT: &str = "/s";
/// Hosts of readers; that of the last has no writer, and its user owns nothing.
pub const READERS: [&str; 3] = ["ant", "cat", "dog"];
/// The host of the administrator, who makes backups.
pub const ADMIN: &str = "elk";
const SECOND: u64 = 1_000_000_000;

/// An error of the simulation: the store is wrong.
pub type Checked<T = ()> = std::result::Result<T, String>;

/// A version that a reader kept.
#[derive(Debug, Clone)]
pub struct KeptVersion {
    /// Its text.
    pub version: String,
    /// The fields that were visible.
    pub look: Look,
    /// Whether it held commits that a power cut may lose.
    pub is_unsure: bool,
    /// Keys of fields in it that were erased since: it shows them no more.
    pub erased: BTreeSet<String>,
    /// Whether attributes were erased since: it may show fewer.
    pub lacks_attributes: bool,
    /// How often somebody had hidden fields, or shown them again.
    pub hides: u64,
}

/// A simulation.
#[derive(Debug)]
pub struct Simulation {
    /// The world.
    pub world: SimWorld,
    /// Its staleness in nanoseconds, on the weak profile.
    pub staleness: Option<u64>,
    /// Whether there are hard links.
    pub has_links: bool,
    /// Writing processes.
    pub processes: Vec<Process>,
    /// Handles of readers, by host.
    pub readers: Vec<Option<Store>>,
    /// The model.
    pub model: Model,
    /// Transactions.
    pub transactions: Transactions,
    /// Transactions that were committed without a flush, which the decision reported.
    pub raced: BTreeSet<u32>,
    /// Attempts, in the order in which they began.
    pub attempts: Vec<(u32, &'static str)>,
    /// Versions that readers kept.
    pub kept: Vec<KeptVersion>,
    /// Fields that readers hold, with their content.
    pub held: Vec<(Field, Shown)>,
    /// The stamp of the last relation.
    pub stamp: u64,
    /// Handles that were opened.
    pub opened: u64,
    /// How far a host's clock ever was ahead, nanoseconds.
    pub ahead: i64,
    /// Rounds of maintenance.
    pub maintenances: u64,
    /// Rounds in which logs were taken over.
    pub compactions: u64,
    /// How often somebody purged.
    pub purges: u64,
    /// How often somebody hid fields, or showed them again.
    pub hides: u64,
    /// The content of the backup, if there is one.
    pub backup: Option<Look>,
    /// Calls that failed.
    pub failures: u64,
    /// Processes that died, each with at most one file under a temporary name.
    pub deaths: u64,
    /// Files under temporary names that the last power cut left. It may bring back any name whose removal
    /// was not durable, also of processes that hold no handle of the simulation, such as one that erases.
    pub left_by_cut: u64,
    /// Whether the current step had trouble, so that readers need a look at everything.
    pub is_troubled: bool,
    /// Whether there was no trouble so far.
    pub is_calm: bool,
    /// Notes on what the steps did, for a person who replays a plan.
    pub notes: Vec<String>,
}

/// The options of a handle.
pub fn options(mode: Mode, attempt: &str, at: Option<String>) -> OpenOptions {
    let attempt = (!attempt.is_empty()).then(|| attempt.to_owned());
    OpenOptions { mode, attempt, at, catalog: Some("memory:".to_owned()), ..OpenOptions::default() }
}

/// Opens the store.
pub fn open(env: &Env, mode: Mode, attempt: &str, at: Option<String>) -> Result<Store> {
    fieldstone::open_in(env.clone(), ROOT, Path::new(ROOT), &options(mode, attempt, at))
}

/// How many of the files have a temporary name. Without links, `.new-marker` stays: a host that does not see the marker yet finds
/// that name taken (store format, 15.1).
pub fn temporary(files: &[PathBuf]) -> u64 {
    let is_temporary = |name: &str| name.starts_with(".new-") && name != ".new-marker";
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    names.filter(|name| is_temporary(name)).count() as u64
}

impl Simulation {
    /// A world with processes, without a store.
    pub fn new(seed: u64) -> Simulation {
        let mut random = Random::derived(seed, 2);
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        PLACES.iter().for_each(|(host, user)| world.set_uid(host, *user));
        READERS.iter().filter(|host| **host == "dog").for_each(|host| world.set_uid(host, 503));
        world.set_uid(ADMIN, 0);
        let has_links = !random.one_in(5);
        world.set_links(has_links);
        let staleness = random.one_in(4).then(|| (1 + random.below(30)) * SECOND);
        staleness.iter().for_each(|staleness| world.weak(*staleness));
        let processes = PLACES.iter().map(|(host, user)| Process::new(world.process(host), *user));
        Simulation {
            processes: processes.collect(),
            world,
            has_links,
            staleness,
            readers: READERS.iter().map(|_| None).collect(),
            model: Model::default(),
            transactions: Transactions::default(),
            raced: BTreeSet::new(),
            attempts: Vec::new(),
            kept: Vec::new(),
            held: Vec::new(),
            stamp: 1_704_067_200_000_000_000,
            opened: 0,
            ahead: 0,
            maintenances: 0,
            compactions: 0,
            purges: 0,
            hides: 0,
            backup: None,
            deaths: 0,
            left_by_cut: 0,
            failures: 0,
            is_troubled: false,
            is_calm: true,
            notes: Vec::new(),
        }
    }

    /// Adds a note on the current step.
    pub fn note(&mut self, text: impl FnOnce() -> String) {
        self.notes.push(text());
    }

    /// Lets enough time pass that every host sees every change, and every handle looks by itself.
    pub fn settle(&mut self) {
        let trouble = if self.is_troubled { 2 * SECOND } else { 0 };
        match self.staleness {
            Some(staleness) => self.world.advance(staleness + 2 * SECOND),
            None => self.world.advance(trouble),
        }
    }

    /// The stamp of the next relation.
    pub fn next_stamp(&mut self) -> u64 {
        self.stamp += 1_000;
        self.stamp
    }

    /// The pending commit of a process in a transaction, which is made if there is none.
    pub fn pending(&mut self, who: usize, transaction: Option<u32>) -> CommitId {
        let Process { user, attempt, .. } = self.processes[who];
        let content = Content::Changes(Vec::new());
        let model = &mut self.model;
        let pending = &mut self.processes[who].pending;
        *pending
            .entry(transaction)
            .or_insert_with(|| model.open(Commit { user, attempt, transaction, content }))
    }

    /// Makes calls in the main thread, without trouble.
    pub fn call(&self, who: usize, calls: &[Call], transaction: Option<u32>) -> Outcome {
        match self.processes[who].idle() {
            Some(store) => call::make(store, calls, &self.transactions.session(transaction)),
            None => Ok(()),
        }
    }

    /// As [`launch`](Self::launch), for an action that depends on what others did before: it does not stop.
    pub fn launch_at_once(&mut self, who: usize, calls: Vec<Call>, purpose: Purpose) -> Checked {
        self.processes[who].armed.stop = None;
        self.launch(who, calls, purpose)
    }

    /// Starts a process's action, with its troubles: it ends, or stops.
    pub fn launch(&mut self, who: usize, calls: Vec<Call>, purpose: Purpose) -> Checked {
        self.depart(purpose);
        let (stop, is_troubled) = self.processes[who].arm(&self.world);
        self.is_troubled |= is_troubled;
        let transaction = purpose.transaction();
        let Some(stop) = stop else {
            let outcome = self.call(who, &calls, transaction);
            self.world.clear_faults();
            return self.arrive(who, purpose, outcome, is_troubled);
        };
        let session = self.transactions.session(transaction);
        let Some(store) = self.processes[who].idle() else { return Ok(()) };
        let thread = process::start(store, calls, session, Some(stop.clone()))?;
        let stopped = Stopped::new(thread, stop.clone(), purpose, is_troubled);
        if stop.wait() {
            self.note(|| format!("{who} stops in it"));
            self.processes[who].stopped = Some(stopped);
            return Ok(());
        }
        let outcome = stopped.resume()?;
        self.world.clear_faults();
        self.arrive(who, purpose, outcome, is_troubled)
    }

    /// The model learns that commits are under way.
    pub fn depart(&mut self, purpose: Purpose) {
        // If files show late, a flush and a decision at once may not see each other: nobody learns that the decision
        // left out the flush (J-19).
        let shared = purpose.transaction().filter(|transaction| self.model.has_flight_in(*transaction, &[]));
        self.raced.extend(shared.filter(|_| self.staleness.is_some()));
        match purpose {
            Purpose::Flush(_, commit) => self.model.depart(commit, None),
            Purpose::Decide(_, own, decision, _) => {
                own.iter().for_each(|own| self.model.depart(*own, None));
                self.model.depart(decision, own);
            }
            Purpose::Maintain => {}
        }
    }

    /// Whether a call failed because others ended the log of its process.
    pub fn has_lost_log(&self, error: &Error) -> bool {
        self.maintenances > 0 && error.code() == Code::LogEnded
    }

    /// Judges the outcome of maintenance, which may fail only in trouble.
    fn maintained(&mut self, who: usize, outcome: Outcome, is_troubled: bool) -> Checked {
        self.is_troubled |= is_troubled;
        match outcome {
            Err((_, error)) if is_troubled || !self.has_links || !self.processes[who].is_alive() => {
                self.failures += 1;
                self.note(|| format!("{who} cannot maintain the store: {}", process::text(&error)));
                Ok(())
            }
            Err((_, error)) => Err(format!("{who} cannot maintain the store: {}", process::text(&error))),
            Ok(()) => Ok(()),
        }
    }

    /// Judges the outcome of a process's action.
    pub fn arrive(&mut self, who: usize, purpose: Purpose, outcome: Outcome, is_troubled: bool) -> Checked {
        if matches!(purpose, Purpose::Maintain) {
            return self.maintained(who, outcome, is_troubled);
        }
        let lost_log = outcome.as_ref().is_err_and(|(_, error)| self.has_lost_log(error));
        if lost_log {
            // Others may have seen it before.
            self.kept.retain(|kept| !kept.is_unsure);
        }
        let is_troubled = is_troubled || lost_log;
        let may_fail = is_troubled || self.processes[who].is_shaky || !self.processes[who].is_alive();
        let transaction = purpose.transaction();
        self.processes[who].pending.remove(&transaction);
        match &outcome {
            Ok(()) => self.note(|| format!("{who} succeeds")),
            Err((number, error)) => {
                let text = process::text(error);
                self.note(|| format!("{who} gets an error at call {number}: {text}"));
            }
        }
        if let Err((number, error)) = &outcome {
            self.is_troubled = true;
            self.failures += 1;
            // A call may keep values that it refused.
            if self.processes[who].is_alive()
                && let Some(store) = &self.processes[who].store
            {
                drop(store.discard(self.transactions.session(transaction)));
            }
            if may_fail {
                self.processes[who].is_shaky = true;
            }
            let kind = error.kind();
            if !may_fail && kind != ErrorKind::Conflict {
                return Err(format!("{who}, call {number} of {purpose:?}: {}", process::text(error)));
            }
        }
        match purpose {
            Purpose::Flush(transaction, commit) => self.flushed(transaction, commit, outcome, may_fail),
            Purpose::Decide(transaction, own, decision, commits) => {
                let error = outcome.err().map(|(_, error)| error);
                self.decided((transaction, commits), own, decision, error, may_fail)
            }
            Purpose::Maintain => Ok(()),
        }
    }

    fn flushed(
        &mut self,
        transaction: Option<u32>,
        commit: CommitId,
        outcome: Outcome,
        may_fail: bool,
    ) -> Checked {
        let Err((_, error)) = outcome else {
            self.model.arrive(commit);
            return self.check_covered(transaction);
        };
        let ends = transaction.map(|transaction| self.model.ends(transaction)).unwrap_or_default();
        let deciding = transaction.is_some_and(|t| self.model.has_flight_in(t, &[commit]));
        let has_ended = ends.iter().any(Option::is_some) || deciding;
        match error.kind() {
            ErrorKind::Conflict if has_ended && !may_fail => self.model.refuse(commit),
            ErrorKind::Conflict if !may_fail && self.may_be_forgotten(transaction) => {
                self.model.refuse(commit)
            }
            // Its log ended before it, for all and for ever.
            _ if self.has_lost_log(&error) => self.model.refuse(commit),
            _ if may_fail => self.model.doubt(commit),
            _ => return Err(format!("a flush is refused: {}", process::text(&error))),
        }
        Ok(())
    }

    fn decided(
        &mut self,
        (transaction, commits): (u32, bool),
        own: Option<CommitId>,
        decision: CommitId,
        error: Option<Error>,
        may_fail: bool,
    ) -> Checked {
        let all: Vec<CommitId> = own.into_iter().chain([decision]).collect();
        let before = self.model.ends(transaction);
        let Some(error) = error else {
            if before.len() == 1 && before.contains(&Some(!commits)) {
                return Err(format!("transaction {transaction} was decided twice, in two ways"));
            }
            all.iter().for_each(|id| self.model.arrive(*id));
            return self.check_covered(Some(transaction));
        };
        let is_shared = self.model.has_flight_in(transaction, &all);
        if may_fail || is_shared {
            all.iter().for_each(|id| self.model.doubt(*id));
            self.raced.insert(transaction);
        } else if before.iter().any(Option::is_some) || self.may_be_forgotten(Some(transaction)) {
            all.iter().for_each(|id| self.model.refuse(*id));
        } else {
            return Err(format!("transaction {transaction} cannot be decided: {}", process::text(&error)));
        }
        Ok(())
    }

    /// Whether a transaction may lie below the floor: it began a day ago by some clock, and nobody flushed into it (R16).
    pub fn may_be_forgotten(&self, transaction: Option<u32>) -> bool {
        let Some(number) = transaction else { return false };
        let Some(id) = self.transactions.ids.get(number as usize) else { return false };
        let latest = self.world.now().saturating_add(self.ahead).unsigned_abs();
        // An id begins with the stamp of its beginning.
        let begun = id.0[..8].iter().fold(0, |begun: u64, byte| begun << 8 | u64::from(*byte));
        begun.saturating_add(24 * 3_600 * SECOND) <= latest && !self.model.has_content(number)
    }

    /// No acknowledged flush into a transaction is behind its end.
    fn check_covered(&mut self, transaction: Option<u32>) -> Checked {
        let Some(transaction) = transaction.filter(|transaction| !self.raced.contains(transaction)) else {
            return Ok(());
        };
        match self.model.keep_covered(transaction) {
            true => Ok(()),
            false => Err(format!("a flush into transaction {transaction} was acknowledged after its end")),
        }
    }

    /// A process that has stopped goes on to the end of its action.
    pub fn resume(&mut self, who: usize) -> Checked {
        let Some(stopped) = self.processes[who].stopped.take() else { return Ok(()) };
        let (purpose, is_troubled) = (stopped.purpose, stopped.is_troubled);
        let outcome = stopped.resume()?;
        self.world.clear_faults();
        self.arrive(who, purpose, outcome, is_troubled)
    }

    /// A process dies, also in the action in which it has stopped.
    pub fn die(&mut self, who: usize) -> Checked {
        self.world.kill(&self.processes[who].env);
        if self.processes[who].stopped.is_some() {
            self.is_troubled = true;
        }
        let resumed = self.resume(who);
        if self.processes[who].store.is_some() {
            self.deaths += 1;
        }
        self.processes[who].die(&self.world);
        resumed
    }

    /// A process that trouble killed has no handle any more.
    pub fn bury(&mut self) -> Checked {
        for who in 0..PROCESSES {
            let process = &self.processes[who];
            if process.store.is_some() && process.stopped.is_none() && !process.is_alive() {
                self.die(who)?;
            }
        }
        Ok(())
    }

    /// A process opens the store as another process of its host.
    pub fn open(&mut self, who: usize, attempt: &'static str) -> Checked {
        self.die(who)?;
        let (host, user) = PLACES[who];
        let mut process = Process::new(self.world.process(host), user);
        self.opened += 1;
        match open(&process.env, Mode::Append, attempt, None) {
            Ok(store) => process.store = Some(store),
            Err(error) => return Err(format!("{who} cannot open the store: {}", process::text(&error))),
        }
        if !attempt.is_empty() {
            let known = self.attempts.iter().position(|known| *known == (user, attempt));
            let place = known.unwrap_or_else(|| {
                self.attempts.push((user, attempt));
                self.attempts.len() - 1
            });
            process.attempt = Some(place as u32);
        }
        self.processes[who] = process;
        Ok(())
    }

    /// The power fails: all processes die, and of the possible disks the seed draws one.
    pub fn cut_power(&mut self, seed: u64) -> Checked {
        let after = self.world.power_cut(seed);
        for who in 0..PROCESSES {
            self.die(who)?;
        }
        self.readers.iter_mut().for_each(|reader| *reader = None);
        self.model.cut_power();
        self.held.clear();
        self.kept.retain(|kept| !kept.is_unsure);
        self.world = after;
        self.world.set_tracing(false);
        self.left_by_cut = temporary(&self.world.files());
        self.is_troubled = true;
        Ok(())
    }

    /// Makes the folders, in which all users may make files.
    pub fn share(&self) -> Checked {
        let disk = self.world.process(PLACES[0].0).disk;
        for folder in ["", "/logs", "/data", "/boards"] {
            let path = format!("{ROOT}{folder}");
            let made = disk.create_dir_all(Path::new(&path));
            let shared = made.and_then(|()| self.world.permissions().set_mode(Path::new(&path), 0o1777));
            shared.map_err(|error| format!("cannot make {path}: {error}"))?;
        }
        Ok(())
    }

    /// Whether a process is one of the owner's, who alone shares transactions.
    pub fn is_alice(&self, who: usize) -> bool {
        self.processes[who].user == ALICE
    }
}

impl Purpose {
    /// The transaction of the calls.
    pub fn transaction(self) -> Option<u32> {
        match self {
            Purpose::Flush(transaction, _) => transaction,
            Purpose::Decide(transaction, ..) => Some(transaction),
            Purpose::Maintain => None,
        }
    }
}
