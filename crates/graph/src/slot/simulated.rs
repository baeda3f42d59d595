//! A network and slots in one thread, from a seed: which frame comes next, what is lost, what comes twice.
//!
//! Time passes only when nothing else can happen, so that what was lost is sent again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fieldstone_core::Result;
use fieldstone_core::env::Clock;
use fieldstone_core::env::sim::Random;
use fieldstone_core::sync::Mutex;

use super::network::Network;
use super::server::{Serving, SlotServer};
use super::shelf::SlotShelf;
use crate::partition::Partitioner;

/// Time that passes only where somebody waits.
#[derive(Debug, Default)]
pub struct SimulatedTime(AtomicU64);

impl Clock for SimulatedTime {
    fn now(&self) -> i64 {
        self.monotonic() as i64
    }

    fn monotonic(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn sleep(&self, nanoseconds: u64) {
        self.0.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// What goes wrong, each of so many thousand frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct NetworkFaults {
    /// Never come.
    pub lost: u64,
    /// Come twice.
    pub twice: u64,
    /// Come with a bit flipped.
    pub damaged: u64,
}

/// A simulated network, with the slots on it.
#[derive(Debug)]
pub struct SimulatedNetwork {
    state: Mutex<SimulatedState>,
    clock: Arc<SimulatedTime>,
}

#[derive(Debug)]
struct SimulatedState {
    slots: Vec<Option<SlotServer>>,
    wire: Vec<(u32, Vec<u8>)>,
    inboxes: HashMap<u32, VecDeque<Vec<u8>>>,
    faults: NetworkFaults,
    random: Random,
    delivered: u64,
}

impl SimulatedState {
    fn random(&mut self, below: usize) -> usize {
        self.random.index(below)
    }

    fn happens(&mut self, of_thousand: u64) -> bool {
        of_thousand > 0 && (self.random(1000) as u64) < of_thousand
    }

    /// Delivers one frame, or loses it.
    fn deliver(&mut self) {
        let i = self.random(self.wire.len());
        let (to, mut frame) = self.wire.swap_remove(i);
        let NetworkFaults { lost, twice, damaged } = self.faults;
        if self.happens(lost) {
            return;
        }
        if self.happens(twice) {
            self.wire.push((to, frame.clone()));
        }
        if self.happens(damaged) {
            let bit = self.random(frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        self.delivered += 1;
        let mut out = Vec::new();
        match self.slots.get_mut(to as usize) {
            Some(slot) => {
                let stopped =
                    slot.as_mut().map(|slot| slot.handle(&frame, &mut out)) == Some(Serving::Stopped);
                if stopped {
                    *slot = None;
                }
            }
            None => self.inboxes.entry(to).or_default().push_back(frame),
        }
        self.wire.append(&mut out);
    }

    /// Lets slots do what they do when no frame waits; says whether any did something.
    fn idle(&mut self) -> bool {
        let (mut out, mut more) = (Vec::new(), false);
        let first = self.random(self.slots.len());
        for i in 0..self.slots.len() {
            let at = (first + i) % self.slots.len();
            if let Some(slot) = &mut self.slots[at] {
                more |= slot.idle(&mut out);
            }
            if more && i % 2 == 0 {
                break;
            }
        }
        self.wire.append(&mut out);
        more
    }
}

impl SimulatedNetwork {
    /// A network with as many slots as a partitioner has.
    pub fn new(
        partitioner: &Arc<dyn Partitioner>,
        shelves: &[Arc<SlotShelf>],
        faults: NetworkFaults,
        seed: u64,
    ) -> Result<SimulatedNetwork> {
        let clock = Arc::new(SimulatedTime::default());
        let (mut slots, mut wire) = (Vec::new(), Vec::new());
        for (number, shelf) in (0..).zip(shelves) {
            let mut slot =
                SlotServer::new(number, partitioner.clone(), shelf.clone(), clock.clone(), false, 0);
            slot.resume(&mut wire)?;
            slots.push(Some(slot));
        }
        let (inboxes, delivered) = Default::default();
        let state = SimulatedState { slots, wire, inboxes, faults, random: Random::new(seed), delivered };
        Ok(SimulatedNetwork { state: Mutex::new(state), clock })
    }

    /// Its time.
    pub fn clock(&self) -> Arc<SimulatedTime> {
        self.clock.clone()
    }

    /// Frames that came so far.
    pub fn delivered(&self) -> u64 {
        self.state.lock().delivered
    }
}

impl Network for SimulatedNetwork {
    fn send(&self, to: u32, frame: Vec<u8>) {
        self.state.lock().wire.push((to, frame));
    }

    fn receive(&self, end: u32, wait: Duration) -> Option<Vec<u8>> {
        let mut state = self.state.lock();
        loop {
            if let Some(frame) = state.inboxes.get_mut(&end).and_then(VecDeque::pop_front) {
                return Some(frame);
            }
            if wait.is_zero() {
                return None;
            }
            let idles = state.wire.is_empty() || state.random(8) == 0;
            if idles && state.idle() {
                continue;
            }
            if state.wire.is_empty() {
                // Nothing can happen but that time passes.
                self.clock.sleep(wait.as_nanos() as u64 + 1);
                let mut out = Vec::new();
                state.slots.iter_mut().flatten().for_each(|slot| slot.again(&mut out));
                state.wire.append(&mut out);
                return None;
            }
            state.deliver();
        }
    }

    fn is_reliable(&self) -> bool {
        false
    }

    fn serves(&self, slot: u32) -> bool {
        let state = self.state.lock();
        state.slots.get(slot as usize).is_some_and(Option::is_some)
    }

    fn leave(&self, slot: u32) {
        let mut state = self.state.lock();
        if let Some(slot) = state.slots.get_mut(slot as usize) {
            *slot = None;
        }
    }

    fn close(&self, end: u32) {
        self.state.lock().inboxes.remove(&end);
    }
}
