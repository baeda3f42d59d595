//! What is to go wrong in a run of threads: which rank, at which of its calls, and how.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a rank fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    /// Its part of a team's step fails before the step, as its own error would.
    Step,
    /// It is gone: nothing of it runs any more but the destructors of what it held.
    Death,
    /// The communicator's call itself errs, on this rank first and then on all.
    Call,
}

#[derive(Debug, Clone)]
struct Fault {
    kind: FaultKind,
    rank: usize,
    nth: u64,
    struck: Arc<AtomicBool>,
}

/// Failures of single ranks, each at one of the rank's calls, counted from 1. Clones share whether they
/// have struck.
#[derive(Debug, Clone, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Nothing fails.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// At the n-th step that a [`Team`](super::super::Team) of `rank` agrees upon, this rank's part fails
    /// (`Unavailable`). A collective of a team is one step, one of its file is two: before and after.
    pub fn step(rank: usize, nth: u64) -> Faults {
        Faults::one(FaultKind::Step, rank, nth)
    }

    /// `rank` dies at its n-th collective call.
    pub fn death(rank: usize, nth: u64) -> Faults {
        Faults::one(FaultKind::Death, rank, nth)
    }

    /// The n-th collective call of `rank` errs (`Unavailable`); the communicator is of no use after that.
    pub fn call(rank: usize, nth: u64) -> Faults {
        Faults::one(FaultKind::Call, rank, nth)
    }

    fn one(kind: FaultKind, rank: usize, nth: u64) -> Faults {
        Faults(vec![Fault { kind, rank, nth, struck: Arc::default() }])
    }

    /// These failures and `other`'s.
    pub fn and(mut self, other: Faults) -> Faults {
        self.0.extend(other.0);
        self
    }

    /// Whether all of them have struck: a test that tries every n ends where this stays false.
    pub fn struck(&self) -> bool {
        self.0.iter().all(|fault| fault.struck.load(Ordering::SeqCst))
    }

    /// Whether a failure of this kind strikes `rank` at its `count`-th call.
    pub(super) fn strikes(&self, kind: FaultKind, rank: usize, count: u64) -> bool {
        let of_it = |f: &&Fault| f.kind == kind && f.rank == rank && f.nth == count;
        self.0.iter().filter(of_it).inspect(|f| f.struck.store(true, Ordering::SeqCst)).count() > 0
    }
}
