//! Time, randomness and identity of a simulated world.
//!
//! All hosts share one true time, which moves by a little with every call and by whole sleeps at
//! once, never by waiting; a host's clock shows that time plus its offset.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Process, World};
use crate::env::{Clock, Identity, Rand};

/// How far time moves with each call: a microsecond.
pub(super) const TICK: i64 = 1_000;

/// A small generator (SplitMix64): the same seed gives the same numbers on every machine.
#[derive(Debug, Clone)]
pub(in crate::env) struct Rng(u64);

impl Rng {
    /// A generator for one purpose: equal seeds with different `purpose`s are unrelated.
    pub(in crate::env) fn derived(seed: u64, purpose: u64) -> Rng {
        let mut first = Rng(seed);
        let mixed = first.next() ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93);
        Rng(Rng(mixed).next())
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, or 0 where `bound` is 0.
    pub(in crate::env) fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }
}

/// The clock of one host.
#[derive(Debug)]
pub(super) struct SimClock {
    pub(super) world: Arc<World>,
    pub(super) process: Process,
}

impl Clock for SimClock {
    fn now(&self) -> i64 {
        let mut state = self.world.lock();
        state.now = state.now.saturating_add(TICK);
        state.now.saturating_add(state.host(&self.process.host).offset)
    }

    fn monotonic(&self) -> u64 {
        let mut state = self.world.lock();
        state.now = state.now.saturating_add(TICK);
        u64::try_from(state.now).unwrap_or(0)
    }

    fn sleep(&self, nanoseconds: u64) {
        let nanoseconds = i64::try_from(nanoseconds).unwrap_or(i64::MAX);
        {
            let mut state = self.world.lock();
            state.now = state.now.saturating_add(nanoseconds);
        }
        // Whoever polls by sleeping lets the other threads run.
        std::thread::yield_now();
    }
}

/// The random bytes of one process: another stream for each process of a world.
#[derive(Debug)]
pub(super) struct SimRand(pub(super) Mutex<Rng>);

impl Rand for SimRand {
    fn fill(&self, buffer: &mut [u8]) {
        let mut rng = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&rng.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// A process of a simulated host.
#[derive(Debug)]
pub(super) struct SimIdentity {
    pub(super) world: Arc<World>,
    pub(super) process: Process,
}

impl Identity for SimIdentity {
    fn host(&self) -> String {
        self.process.host.to_string()
    }

    fn process(&self) -> u32 {
        self.process.id
    }

    fn uid(&self) -> u32 {
        self.world.lock().host(&self.process.host).uid
    }

    fn user_name(&self, uid: u32) -> String {
        format!("user{uid}")
    }

    fn alive(&self, process: u32) -> bool {
        let key = Process { host: self.process.host.clone(), id: process };
        let state = self.world.lock();
        !state.halted && state.processes.get(&key).is_some_and(|alive| *alive)
    }
}
