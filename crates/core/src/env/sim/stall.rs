//! Calls that tests can suspend, so that other threads run while one is in the middle of a call.

use std::sync::Arc;

use super::{Op, OpKind, SimWorld, World};
use crate::sync::plain::{Condvar, Mutex, MutexGuard};

/// The calls to suspend, and how many are suspended now.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    held: Mutex<Vec<HeldCalls>>,
    moved: Condvar,
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
    /// Suspends calls of a kind on paths that contain `part`, until the returned value is dropped.
    pub fn stall(&self, kind: OpKind, part: &str) -> Stall {
        self.0.stalls.lock().push(HeldCalls { kind, part: part.to_owned(), waiting: 0 });
        Stall { world: self.0.clone(), kind, part: part.to_owned() }
    }
}
