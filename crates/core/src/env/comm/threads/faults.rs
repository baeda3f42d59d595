//! Failures to inject into a run of threads: which rank fails, at which of its calls, and how.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a rank fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Its part of a team's step fails before the step, as if by an error of its own.
    Step,
    /// The rank dies: it runs nothing more except the destructors of the objects that it held.
    Death,
    /// The communicator's call fails, first on this rank and then on all.
    Call,
}

#[derive(Debug, Clone)]
struct Fault {
    kind: FaultKind,
    rank: usize,
    nth: u64,
    struck: Arc<AtomicBool>,
}

/// Failures of single ranks, each at one of the rank's calls, counted from 1. Clones share the record of failures
/// that have occurred.
#[derive(Debug, Clone, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// No failures.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// Fails this rank's part (`Unavailable`) in the n-th step that a [`Team`](super::super::Team) of `rank` agrees
    /// upon. A collective of a team is one step; a collective of its file is two, before and after.
    pub fn step(rank: usize, nth: u64) -> Faults {
        Faults::one(FaultKind::Step, rank, nth)
    }

    /// Kills `rank` at its n-th collective call.
    pub fn death(rank: usize, nth: u64) -> Faults {
        Faults::one(FaultKind::Death, rank, nth)
    }

    /// Fails the n-th collective call of `rank` (`Unavailable`); the communicator is unusable after that.
    pub fn call(rank: usize, nth: u64) -> Faults {
        Faults::one(FaultKind::Call, rank, nth)
    }

    fn one(kind: FaultKind, rank: usize, nth: u64) -> Faults {
        Faults(vec![Fault { kind, rank, nth, struck: Arc::default() }])
    }

    /// Adds the failures of `other`.
    pub fn and(mut self, other: Faults) -> Faults {
        self.0.extend(other.0);
        self
    }

    /// Whether all of the failures have occurred: a test that tries every n stops when this stays false.
    pub fn struck(&self) -> bool {
        self.0.iter().all(|fault| fault.struck.load(Ordering::SeqCst))
    }

    /// Whether a failure of this kind occurs at the `count`-th call of `rank`.
    pub(super) fn strikes(&self, kind: FaultKind, rank: usize, count: u64) -> bool {
        let of_it = |f: &&Fault| f.kind == kind && f.rank == rank && f.nth == count;
        self.0.iter().filter(of_it).inspect(|f| f.struck.store(true, Ordering::SeqCst)).count() > 0
    }
}
