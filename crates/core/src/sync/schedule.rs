//! Who goes on: threads of one run, of which one runs at a time, as a seed says.
//!
//! A thread of a run is a thread of the system, so that its id, what is local to it and what C libraries keep for it are as
//! usual; it sleeps until it is its turn. Where all threads wait, the run is broken off: each of them unwinds. So it is
//! where a thread panics and meets another one while it unwinds.
//!
//! The same seed and the same calls give the same run. The seed draws how often threads take turns, too: some runs change
//! at each step, in others a thread goes far while another one stands still.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::processor::Processor;

/// Steps after which a run has no end.
const STEPS: u64 = 1 << 20;
/// Of so many steps a thread may be changed at one, more or less often: drawn for each run.
const RARELY: [usize; 4] = [1, 2, 6, 20];
/// What tasks wait for that wait for the end of any other.
const ANY_END: usize = 1;

/// What a run came to.
#[derive(Debug)]
pub struct Run<T> {
    /// What the body returned; else why the run was broken off, or the message of the panic.
    pub outcome: Result<T, String>,
    /// A sum of who went on at each step: equal runs have equal ones.
    pub digest: u64,
}

/// What unwinds the threads of a run that is broken off.
struct BrokenOff;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    /// For what has this address, or this odd number.
    Waits(usize),
    Ended,
}

#[derive(Debug)]
struct Task {
    status: Status,
    /// Whether it waits no longer than until all others wait, too: for a time.
    timed: bool,
    thread: Option<Thread>,
}

#[derive(Debug)]
struct State {
    seed: u64,
    /// How often something was drawn.
    drawn: u64,
    rarely: usize,
    tasks: Vec<Task>,
    running: usize,
    steps: u64,
    digest: u64,
    broken: Option<String>,
}

impl State {
    fn new(seed: u64) -> State {
        let root = Task { status: Status::Ready, timed: false, thread: None };
        let mut state = State {
            seed,
            drawn: 0,
            rarely: 1,
            tasks: vec![root],
            running: 0,
            steps: 0,
            digest: 0,
            broken: None,
        };
        state.rarely = RARELY[state.below(RARELY.len())];
        state
    }

    /// Draws a number below a bound.
    fn below(&mut self, bound: usize) -> usize {
        self.drawn += 1;
        (xxh3_64_with_seed(&self.drawn.to_le_bytes(), self.seed) % bound.max(1) as u64) as usize
    }

    /// Draws who goes on; `from` is who asks.
    fn draw(&mut self, from: usize) -> Option<usize> {
        self.steps += 1;
        let ready = |tasks: &[Task]| -> Vec<usize> {
            (0..tasks.len()).filter(|&task| tasks[task].status == Status::Ready).collect()
        };
        let mut able = ready(&self.tasks);
        if able.is_empty() {
            self.tasks.iter_mut().filter(|task| task.timed).for_each(|task| task.status = Status::Ready);
            able = ready(&self.tasks);
        }
        let next = match able.contains(&from) && self.below(self.rarely) > 0 {
            true => Some(from),
            false if able.is_empty() => None,
            false => Some(able[self.below(able.len())]),
        }?;
        self.digest = self.digest.rotate_left(5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ next as u64;
        Some(next)
    }

    fn break_off(&mut self, why: impl FnOnce() -> String) {
        self.broken.get_or_insert_with(why);
        self.tasks.iter().filter_map(|task| task.thread.as_ref()).for_each(Thread::unpark);
    }
}

#[derive(Debug)]
struct Schedule {
    state: Mutex<State>,
}

impl Schedule {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread of a run.
#[derive(Debug, Clone)]
pub(super) struct Member {
    schedule: Arc<Schedule>,
    task: usize,
}

thread_local! {
    static SELF: RefCell<Option<Member>> = const { RefCell::new(None) };
}

/// This thread, where it is one of a run, to wake others.
pub(super) fn waker() -> Option<Member> {
    SELF.try_with(|own| own.borrow().clone()).ok().flatten()
}

/// This thread, where it is one of a run, to wait for others. One that unwinds breaks its run off: nobody waits for what it
/// does then.
pub(super) fn member() -> Option<Member> {
    let member = waker()?;
    if !thread::panicking() {
        return Some(member);
    }
    member.break_off("a thread panicked");
    None
}

/// Lets another thread on, in a run.
pub(crate) fn pause() {
    if let Some(member) = member() {
        member.pause();
    }
}

impl Member {
    /// Lets another thread on.
    pub(super) fn pause(&self) {
        self.step(Status::Ready, false);
    }

    /// Waits until somebody [wakes](Self::wake) those who wait for this.
    pub(super) fn wait(&self, what: usize) {
        self.step(Status::Waits(what), false);
    }

    /// The same, but no longer than until all other threads wait; whether it was woken.
    pub(super) fn wait_some_time(&self, what: usize) -> bool {
        self.step(Status::Waits(what), true)
    }

    fn step(&self, status: Status, timed: bool) -> bool {
        {
            let mut state = self.schedule.lock();
            state.tasks[self.task].status = status;
            state.tasks[self.task].timed = timed;
            self.hand_on(&mut state);
        }
        self.resume();
        // Who was woken has it taken off by [`wake`](Self::wake).
        !std::mem::take(&mut self.schedule.lock().tasks[self.task].timed)
    }

    fn hand_on(&self, state: &mut State) {
        match state.draw(self.task) {
            _ if state.steps > STEPS => state.break_off(|| format!("no end after {STEPS} steps")),
            None => state.break_off(|| "all threads wait".to_owned()),
            Some(next) => {
                state.running = next;
                if next != self.task {
                    state.tasks[next].thread.iter().for_each(Thread::unpark);
                }
            }
        }
    }

    /// Sleeps until it is this thread's turn.
    fn resume(&self) {
        loop {
            let state = self.schedule.lock();
            if state.broken.is_some() {
                drop(state);
                resume_unwind(Box::new(BrokenOff));
            }
            if state.running == self.task {
                return;
            }
            drop(state);
            thread::park();
        }
    }

    /// Those who wait for this may go on when it is their turn.
    pub(super) fn wake(&self, what: usize) {
        let mut state = self.schedule.lock();
        let waiting = state.tasks.iter_mut().filter(|task| task.status == Status::Waits(what));
        waiting.for_each(|task| (task.status, task.timed) = (Status::Ready, false));
    }

    /// One of those who wait for this.
    pub(super) fn wake_one(&self, what: usize) {
        let mut state = self.schedule.lock();
        let waiting = |task: &usize| state.tasks[*task].status == Status::Waits(what);
        let waiting: Vec<usize> = (0..state.tasks.len()).filter(waiting).collect();
        if !waiting.is_empty() {
            let one = waiting[state.below(waiting.len())];
            (state.tasks[one].status, state.tasks[one].timed) = (Status::Ready, false);
        }
    }

    /// Another thread of the run, which is about to be started.
    pub(super) fn another(&self) -> Member {
        let mut state = self.schedule.lock();
        state.tasks.push(Task { status: Status::Ready, timed: false, thread: None });
        Member { schedule: self.schedule.clone(), task: state.tasks.len() - 1 }
    }

    /// It was started, or cannot be.
    pub(super) fn started(&self, thread: Option<Thread>) {
        let mut state = self.schedule.lock();
        if thread.is_none() {
            state.tasks[self.task].status = Status::Ended;
        }
        state.tasks[self.task].thread = thread;
    }

    /// What this thread does, from its turn to its end.
    pub(super) fn work<T>(self, work: impl FnOnce() -> T) -> T {
        SELF.with(|own| own.replace(Some(self.clone())));
        self.resume();
        let outcome = catch_unwind(AssertUnwindSafe(work));
        SELF.with(|own| own.replace(None));
        {
            let mut state = self.schedule.lock();
            state.tasks[self.task].status = Status::Ended;
        }
        self.wake(self.end());
        self.wake(ANY_END);
        self.hand_on(&mut self.schedule.lock());
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// What those wait for who wait for the end of this thread: no address is odd.
    fn end(&self) -> usize {
        2 * self.task + 3
    }

    /// Whether this thread has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.schedule.lock().tasks[self.task].status == Status::Ended
    }

    /// Waits for the end of another thread.
    pub(super) fn join(&self, other: &Member) {
        self.pause();
        while !other.has_ended() {
            self.wait(other.end());
        }
    }

    pub(super) fn break_off(&self, why: &str) {
        self.schedule.lock().break_off(|| why.to_owned());
    }

    fn join_all(&self) {
        let at_work = |state: &State| {
            let mut others = state.tasks.iter().enumerate().filter(|(task, _)| *task != self.task);
            others.any(|(_, task)| task.status != Status::Ended)
        };
        while at_work(&self.schedule.lock()) {
            self.wait(ANY_END);
        }
    }
}

/// Runs a body, and the threads that it starts by [`thread`](super::thread), as a seed says; returns when all of them have
/// ended.
pub fn run<T: Send>(seed: u64, body: impl FnOnce() -> T + Send) -> Run<T> {
    let schedule = Arc::new(Schedule { state: Mutex::new(State::new(seed)) });
    let member = Member { schedule: schedule.clone(), task: 0 };
    let outcome = thread::scope(|scope| {
        let root = scope.spawn(|| {
            // To wake a thread on another processor takes several times as long as most steps.
            Processor::of_this_thread().iter().for_each(Processor::stay);
            member.started(Some(thread::current()));
            member.clone().work(|| {
                let outcome = body();
                member.join_all();
                outcome
            })
        });
        root.join()
    });
    let state = schedule.lock();
    let outcome = outcome.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        text.or_else(|| state.broken.clone()).unwrap_or_else(|| "a thread panicked".to_owned())
    });
    Run { outcome, digest: state.digest }
}
