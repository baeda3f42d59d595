//! A scheduler for tests: of the threads of a run, one runs at a time, chosen by a seed.
//!
//! A thread of a run is a thread of the system, so its id, its local storage and the state that C libraries keep for
//! it are as usual; it sleeps until its turn. If all threads wait, the scheduler aborts the run: each thread unwinds.
//! It also aborts a run in which a thread panics and synchronises with another thread while unwinding.
//!
//! The same seed and the same calls give the same run. The seed also draws how often threads take turns: some runs
//! switch at each step, in others one thread goes far while another stands still.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::processor::Processor;

/// A run with more steps counts as endless.
const STEPS: u64 = 1 << 20;
/// A thread switch happens on average once in this number of steps: one of them is drawn for each run.
const RARELY: [usize; 4] = [1, 2, 6, 20];
/// The address for which tasks wait that wait for the end of any other task.
const ANY_END: usize = 1;

/// The result of a run.
#[derive(Debug)]
pub struct Run<T> {
    /// The result of the body; else why the run was aborted, or the message of the panic.
    pub outcome: Result<T, String>,
    /// A checksum of the threads chosen at each step: equal runs have equal digests.
    pub digest: u64,
}

/// The payload with which the threads of an aborted run unwind.
struct BrokenOff;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    /// Waits for the object with this address, or for this odd number.
    Waits(usize),
    Ended,
}

#[derive(Debug)]
struct Task {
    status: Status,
    /// Whether it waits only until all others wait, too: for a limited time.
    timed: bool,
    thread: Option<Thread>,
}

#[derive(Debug)]
struct State {
    seed: u64,
    /// The number of draws so far.
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

    /// Draws the thread that runs next; `from` asks.
    fn draw(&mut self, from: usize) -> Option<usize> {
        self.steps += 1;
        let ready = |tasks: &[Task]| -> Vec<usize> {
            (0..tasks.len()).filter(|&task| tasks[task].status == Status::Ready).collect()
        };
        let mut able = ready(&self.tasks);
        if able.is_empty() {
            // All wait: the time of timed waits has passed.
            self.tasks.iter_mut().filter(|task| task.timed).for_each(|task| task.status = Status::Ready);
            able = ready(&self.tasks);
        }
        // Mostly the same thread goes on; a switch happens once in `rarely` steps, or if it has to wait.
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

/// This thread, if it belongs to a run, for waking others.
pub(super) fn waker() -> Option<Member> {
    SELF.try_with(|own| own.borrow().clone()).ok().flatten()
}

/// This thread, if it belongs to a run, for waiting for others. A thread that unwinds aborts its run, because no turn
/// would ever come for it.
pub(super) fn member() -> Option<Member> {
    let member = waker()?;
    if !thread::panicking() {
        return Some(member);
    }
    member.break_off("a thread panicked");
    None
}

/// Lets another thread run, in a run.
pub(crate) fn pause() {
    if let Some(member) = member() {
        member.pause();
    }
}

impl Member {
    /// Lets another thread run.
    pub(super) fn pause(&self) {
        self.step(Status::Ready, false);
    }

    /// Waits until another thread [wakes](Self::wake) the threads that wait for this.
    pub(super) fn wait(&self, what: usize) {
        self.step(Status::Waits(what), false);
    }

    /// As `wait`, but only until all other threads wait; returns whether it was woken.
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
        // For a woken thread, [`wake`](Self::wake) has already removed the entry.
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

    /// Sleeps until this thread's turn.
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

    /// Makes the threads that wait for this ready to run.
    pub(super) fn wake(&self, what: usize) {
        let mut state = self.schedule.lock();
        let waiting = state.tasks.iter_mut().filter(|task| task.status == Status::Waits(what));
        waiting.for_each(|task| (task.status, task.timed) = (Status::Ready, false));
    }

    /// Makes one of the threads that wait for this ready to run.
    pub(super) fn wake_one(&self, what: usize) {
        let mut state = self.schedule.lock();
        let waiting = |task: &usize| state.tasks[*task].status == Status::Waits(what);
        let waiting: Vec<usize> = (0..state.tasks.len()).filter(waiting).collect();
        if !waiting.is_empty() {
            let one = waiting[state.below(waiting.len())];
            (state.tasks[one].status, state.tasks[one].timed) = (Status::Ready, false);
        }
    }

    /// Adds a thread to the run, which is about to be started.
    pub(super) fn another(&self) -> Member {
        let mut state = self.schedule.lock();
        state.tasks.push(Task { status: Status::Ready, timed: false, thread: None });
        Member { schedule: self.schedule.clone(), task: state.tasks.len() - 1 }
    }

    /// Records that the thread was started, or cannot be.
    pub(super) fn started(&self, thread: Option<Thread>) {
        let mut state = self.schedule.lock();
        if thread.is_none() {
            state.tasks[self.task].status = Status::Ended;
        }
        state.tasks[self.task].thread = thread;
    }

    /// Runs this thread's work, from its first turn to its end.
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

    /// The number on which threads wait for the end of this thread; it is odd, as no address is.
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

/// Runs a body, and the threads that it starts by [`thread`](super::thread), in the order that a seed determines;
/// returns when all of them have ended.
pub fn run<T: Send>(seed: u64, body: impl FnOnce() -> T + Send) -> Run<T> {
    let schedule = Arc::new(Schedule { state: Mutex::new(State::new(seed)) });
    let member = Member { schedule: schedule.clone(), task: 0 };
    let outcome = thread::scope(|scope| {
        let root = scope.spawn(|| {
            // Waking a thread on another processor takes several times as long as most steps.
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
