//! The meeting point of a run's threads: it decides whose turn it is, records who has arrived at the current
//! collective, and hands out its results.
//!
//! Invariants:
//! * the first caller of a collective determines it; a rank that calls another one breaks the meeting, and every
//!   later call fails with the same error;
//! * a rank that has gone makes the current collective and every later one fail;
//! * under a schedule exactly one rank runs: `running`. The others wait at a call, ready or not;
//! * a rank is woken only after the lock was released; otherwise it would wait once more, for the lock.

use std::ops::{Deref, DerefMut};
use std::panic;
use std::thread::{self, Thread};

use super::Contribution;
use super::faults::{FaultKind, Faults};
use crate::env::comm::{FileMode, Reduce};
use crate::env::sim::Random;
use crate::sync::plain::{Mutex, MutexGuard};
use crate::{Code, Error, Result};

/// A collective call, with the arguments that must be equal on all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    Barrier,
    Broadcast { root: usize },
    Allgather,
    Gather { root: usize },
    ExclusiveScan { values: usize },
    Allreduce { reduce: Reduce, values: usize },
    Alltoallv,
    Open { path: std::path::PathBuf, mode: FileMode },
    WriteAll { file: u64 },
    ReadAll { file: u64 },
    SetLen { file: u64, len: u64 },
    Sync { file: u64 },
}

/// The payload with which the thread of a dead rank unwinds.
pub(super) struct Died;

/// Decides which of the ready ranks runs.
#[derive(Debug)]
struct Schedule {
    rng: Random,
    running: Option<usize>,
    ready: Vec<bool>,
}

impl Schedule {
    fn draw(&mut self) {
        let ready: Vec<usize> = (0..self.ready.len()).filter(|rank| self.ready[*rank]).collect();
        self.running = ready.get(self.rng.below(ready.len() as u64) as usize).copied();
    }
}

#[derive(Debug)]
struct MeetingState {
    /// The current call and its first caller.
    call: Option<(usize, Call)>,
    /// The contribution of each rank that arrived.
    parts: Vec<Option<Contribution>>,
    arrived: usize,
    /// The outcome for each rank, until the rank takes it.
    outcomes: Vec<Option<Result<Contribution>>>,
    /// Why a rank has gone.
    gone: Vec<Option<String>>,
    /// The rank that went first, which caused others to go.
    first_gone: Option<usize>,
    broken: Option<Error>,
    /// Number of collective calls and of steps, for each rank.
    calls: Vec<u64>,
    steps: Vec<u64>,
    schedule: Option<Schedule>,
    files: u64,
    /// The threads of ranks that wait.
    waiting: Vec<Option<Thread>>,
}

/// The locked state. Dropping it releases the lock and then wakes the listed threads, because fields are dropped in
/// order.
struct Locked<'a> {
    state: MutexGuard<'a, MeetingState>,
    woken: Woken,
}

/// Threads to wake when this is dropped.
#[derive(Default)]
struct Woken(Vec<Thread>);

impl Drop for Woken {
    fn drop(&mut self) {
        self.0.iter().for_each(Thread::unpark);
    }
}

impl Deref for Locked<'_> {
    type Target = MeetingState;

    fn deref(&self) -> &MeetingState {
        &self.state
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut MeetingState {
        &mut self.state
    }
}

impl Locked<'_> {
    fn wake(&mut self, rank: usize) {
        self.woken.0.extend(self.state.waiting[rank].take());
    }
}

/// The ranks of one run.
#[derive(Debug)]
pub(super) struct Meeting {
    size: usize,
    state: Mutex<MeetingState>,
    faults: Faults,
}

impl Meeting {
    pub(super) fn new(size: usize, seed: Option<u64>, faults: Faults) -> Meeting {
        let schedule = seed.map(|seed| {
            let mut schedule =
                Schedule { rng: Random::derived(seed, 0xc0), running: None, ready: vec![true; size] };
            schedule.draw();
            schedule
        });
        let none = || (0..size).map(|_| None);
        let state = MeetingState {
            call: None,
            parts: none().collect(),
            arrived: 0,
            outcomes: (0..size).map(|_| None).collect(),
            gone: vec![None; size],
            first_gone: None,
            broken: None,
            calls: vec![0; size],
            steps: vec![0; size],
            schedule,
            files: 0,
            waiting: vec![None; size],
        };
        Meeting { size, state: Mutex::new(state), faults }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    fn lock(&self) -> Locked<'_> {
        let state = self.state.lock();
        Locked { state, woken: Woken::default() }
    }

    /// Releases the lock until another thread wakes this rank; may also return without reason.
    fn wait<'a>(&'a self, rank: usize, mut state: Locked<'a>) -> Locked<'a> {
        state.waiting[rank] = Some(thread::current());
        drop(state);
        thread::park();
        self.lock()
    }

    /// Waits until it is this rank's turn.
    fn turn<'a>(&'a self, rank: usize, mut state: Locked<'a>) -> Locked<'a> {
        while state.schedule.as_ref().is_some_and(|s| s.running != Some(rank)) {
            state = self.wait(rank, state);
        }
        state
    }

    /// Draws the next rank to run, and wakes it.
    fn pass(&self, state: &mut Locked<'_>) {
        let Some(schedule) = &mut state.schedule else { return };
        schedule.draw();
        if let Some(next) = schedule.running {
            state.wake(next);
        }
    }

    /// Called first on a rank's thread.
    pub(super) fn begin(&self, rank: usize) {
        drop(self.turn(rank, self.lock()));
    }

    /// A point at which another rank may run instead; fails on a rank that has gone.
    pub(super) fn point(&self, rank: usize) -> Result<()> {
        let mut state = self.lock();
        check_there(&state, rank)?;
        self.pass(&mut state);
        drop(self.turn(rank, state));
        Ok(())
    }

    /// Counts a step of a team; fails if a failure is due in this step.
    pub(super) fn step(&self, rank: usize, step: &str) -> Result<()> {
        let mut state = self.lock();
        state.steps[rank] += 1;
        match self.faults.strikes(FaultKind::Step, rank, state.steps[rank]) {
            true => Err(Code::IoFailed.error(format!("the injected failure of step `{step}`"))),
            false => Ok(()),
        }
    }

    /// Draws a number for a file that is being opened; the caller shares it with the other ranks.
    pub(super) fn file_number(&self) -> u64 {
        let mut state = self.lock();
        state.files += 1;
        state.files
    }

    /// Begins a collective call: counts it, injects a failure that is due, and lets others run.
    pub(super) fn enter(&self, rank: usize) -> Result<()> {
        self.point(rank)?;
        let mut state = self.lock();
        state.calls[rank] += 1;
        let count = state.calls[rank];
        if self.faults.strikes(FaultKind::Death, rank, count) {
            drop(state);
            self.leave(rank, "died of an injected failure");
            panic::resume_unwind(Box::new(Died));
        }
        if self.faults.strikes(FaultKind::Call, rank, count) {
            let error = Code::RankFailed.error(format!("the injected failure of a call of rank {rank}"));
            self.break_up(&mut state, &error);
            return Err(error);
        }
        Ok(())
    }

    /// Meets all other ranks in `call` with this rank's part. The last rank to arrive calls `join`, which makes each
    /// rank's outcome from all parts; the others wait for it.
    pub(super) fn meet(
        &self,
        rank: usize,
        call: Call,
        part: Contribution,
        join: impl FnOnce(Vec<Contribution>) -> Vec<Result<Contribution>>,
    ) -> Result<Contribution> {
        let mut state = self.lock();
        check_there(&state, rank)?;
        if let Some(broken) = &state.broken {
            return Err(broken.replicate());
        }
        if let Some(first) = state.first_gone {
            check_there(&state, first)?;
        }
        match &state.call {
            None => state.call = Some((rank, call)),
            Some((_, first)) if *first == call => {}
            Some((other, first)) => {
                let error = Code::CollectiveMismatch
                    .error(format!("rank {other} calls {first:?}, rank {rank} {call:?}"))
                    .with_hint("make the same collective calls in the same order on all ranks");
                self.break_up(&mut state, &error);
                return Err(error);
            }
        }
        state.parts[rank] = Some(part);
        state.arrived += 1;
        if state.arrived == self.size() {
            let parts = state.parts.iter_mut().filter_map(Option::take).collect();
            state.outcomes = join(parts).into_iter().map(Some).collect();
            let own = state.outcomes[rank].take();
            self.disperse(&mut state);
            return own.unwrap_or_else(|| Err(Error::internal("a collective of threads without an outcome")));
        }
        if let Some(schedule) = &mut state.schedule {
            schedule.ready[rank] = false;
        }
        self.pass(&mut state);
        loop {
            if state.schedule.as_ref().is_none_or(|s| s.running == Some(rank))
                && let Some(outcome) = state.outcomes[rank].take()
            {
                return outcome;
            }
            state = self.wait(rank, state);
        }
    }

    /// Ends the current collective: each waiting rank now has an outcome.
    fn disperse(&self, state: &mut Locked<'_>) {
        state.call = None;
        state.arrived = 0;
        let MeetingState { schedule, outcomes, .. } = &mut *state.state;
        match schedule {
            Some(schedule) => {
                for (ready, outcome) in schedule.ready.iter_mut().zip(outcomes) {
                    *ready |= outcome.is_some();
                }
            }
            None => (0..self.size).for_each(|rank| state.wake(rank)),
        }
    }

    /// Fails the current collective with `error`.
    fn fail(&self, state: &mut Locked<'_>, error: &Error) {
        for rank in 0..self.size() {
            if state.parts[rank].take().is_some() {
                state.outcomes[rank] = Some(Err(error.replicate()));
            }
        }
        self.disperse(state);
    }

    fn break_up(&self, state: &mut Locked<'_>, error: &Error) {
        self.fail(state, error);
        state.broken.get_or_insert_with(|| error.replicate());
    }

    /// Removes a rank: from now on the others' collectives fail. Only the first reason counts.
    pub(super) fn leave(&self, rank: usize, why: &str) {
        let mut state = self.lock();
        if state.gone[rank].is_none() {
            state.gone[rank] = Some(why.to_owned());
            state.first_gone.get_or_insert(rank);
            self.fail(&mut state, &gone(rank, why));
        }
    }

    /// Called last on a rank's thread.
    pub(super) fn end(&self, rank: usize) {
        self.leave(rank, "has ended");
        let mut state = self.lock();
        if let Some(schedule) = &mut state.schedule {
            schedule.ready[rank] = false;
        }
        self.pass(&mut state);
    }
}

fn gone(rank: usize, why: &str) -> Error {
    Code::RankFailed.error(format!("rank {rank} has gone: it {why}"))
}

/// Fails if the rank has gone.
fn check_there(state: &MeetingState, rank: usize) -> Result<()> {
    state.gone[rank].as_ref().map_or(Ok(()), |why| Err(gone(rank, why)))
}
