//! Calls that tests can suspend, so that other threads run while one is in the middle of a call: all calls of a kind
//! ([`Stall`]), or all calls of a process from its n-th on ([`ProcessStop`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Op, OpKind, Process, SimWorld, World};
use crate::env::Env;
use crate::sync::plain::{Condvar, Mutex, MutexGuard};

/// The calls to suspend, and how many are suspended now.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    held: Mutex<Vec<HeldCalls>>,
    moved: Condvar,
    stops: Stops,
}

/// The stopped processes. Their threads may belong to a run of a schedule, which must know that they wait; so these
/// locks are the schedule's.
#[derive(Debug, Default)]
struct Stops {
    /// How many there are, so that a call takes no lock if there are none.
    count: AtomicUsize,
    all: crate::sync::Mutex<Vec<StoppedProcess>>,
    moved: crate::sync::Condvar,
}

#[derive(Debug)]
struct StoppedProcess {
    process: Process,
    /// Calls before the one that is suspended.
    left: u64,
    /// Whether a call is suspended.
    is_waiting: bool,
    /// Whether the work of the process has ended without reaching that call.
    has_ended: bool,
}

impl Stops {
    fn pass(&self, op: &Op) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let is_own =
            |stop: &&mut StoppedProcess| stop.process.id == op.process && stop.process.host == op.host;
        let mut all = self.all.lock();
        let Some(own) = all.iter_mut().find(is_own) else { return };
        if own.left > 0 {
            own.left -= 1;
            return;
        }
        own.is_waiting = true;
        self.moved.notify_all();
        while all.iter_mut().any(|stop| is_own(&stop)) {
            all = self.moved.wait(all);
        }
    }
}

/// A process that stops at one of its calls, and stays there until [`ProcessStop::resume`].
#[derive(Debug, Clone)]
pub struct ProcessStop {
    world: Arc<World>,
    process: Process,
}

impl ProcessStop {
    /// Waits until the process is suspended, or its work has [ended](Self::end); returns whether it is suspended.
    pub fn wait(&self) -> bool {
        let stops = &self.world.stalls.stops;
        let mut all = stops.all.lock();
        loop {
            match all.iter().find(|stop| stop.process == self.process) {
                Some(stop) if stop.is_waiting => return true,
                Some(stop) if !stop.has_ended => all = stops.moved.wait(all),
                _ => return false,
            }
        }
    }

    /// Records that the work has ended.
    pub fn end(&self) {
        let stops = &self.world.stalls.stops;
        let mut all = stops.all.lock();
        all.iter_mut().filter(|stop| stop.process == self.process).for_each(|stop| stop.has_ended = true);
        stops.moved.notify_all();
    }

    /// Lets the process go on.
    pub fn resume(&self) {
        let stops = &self.world.stalls.stops;
        let mut all = stops.all.lock();
        all.retain(|stop| stop.process != self.process);
        stops.count.store(all.len(), Ordering::Release);
        stops.moved.notify_all();
    }
}

#[derive(Debug)]
struct HeldCalls {
    kind: OpKind,
    part: String,
    waiting: usize,
}

impl Stalls {
    fn lock(&self) -> MutexGuard<'_, Vec<HeldCalls>> {
        self.held.lock()
    }

    fn find<'a>(held: &'a mut [HeldCalls], op: &Op) -> Option<&'a mut HeldCalls> {
        let path = op.path.to_string_lossy();
        held.iter_mut().find(|held| held.kind == op.kind && path.contains(&held.part))
    }

    /// Returns once the call is not suspended any more.
    pub(super) fn pass(&self, op: &Op) {
        self.stops.pass(op);
        let mut held = self.lock();
        let Some(own) = Stalls::find(&mut held, op) else { return };
        own.waiting += 1;
        self.moved.notify_all();
        while Stalls::find(&mut held, op).is_some() {
            held = self.moved.wait(held);
        }
    }
}

/// Suspends calls until it is dropped.
#[derive(Debug)]
pub struct Stall {
    world: Arc<World>,
    kind: OpKind,
    part: String,
}

impl Stall {
    /// Waits until this number of calls is suspended.
    pub fn wait_for(&self, calls: usize) {
        let stalls = &self.world.stalls;
        let mut held = stalls.lock();
        while !held.iter().any(|h| h.kind == self.kind && h.part == self.part && h.waiting >= calls) {
            held = stalls.moved.wait(held);
        }
    }
}

impl Drop for Stall {
    fn drop(&mut self) {
        self.world.stalls.lock().retain(|held| held.kind != self.kind || held.part != self.part);
        self.world.stalls.moved.notify_all();
    }
}

impl SimWorld {
    /// Stops a process at its n-th call from now, counted from 1.
    pub fn stop_nth(&self, env: &Env, n: u64) -> ProcessStop {
        let process = Process { host: env.identity.host().into(), id: env.identity.process() };
        let stops = &self.0.stalls.stops;
        let mut all = stops.all.lock();
        let left = n.max(1) - 1;
        all.push(StoppedProcess { process: process.clone(), left, is_waiting: false, has_ended: false });
        stops.count.store(all.len(), Ordering::Release);
        drop(all);
        ProcessStop { world: self.0.clone(), process }
    }

    /// Suspends calls of a kind on paths that contain `part`, until the returned value is dropped.
    pub fn stall(&self, kind: OpKind, part: &str) -> Stall {
        self.0.stalls.lock().push(HeldCalls { kind, part: part.to_owned(), waiting: 0 });
        Stall { world: self.0.clone(), kind, part: part.to_owned() }
    }
}
