//! A network and slots in one thread, from a seed that decides which frame comes next, is lost or comes
//! twice.
//!
//! Time passes only when nothing else can happen, so that lost frames are sent again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fieldstone_core::Result;
use fieldstone_core::env::Clock;
use fieldstone_core::env::sim::Random;
use fieldstone_core::sync::Mutex;
use fieldstone_format::Id;
use fieldstone_format::graph_message::ends::Address;
use fieldstone_graph::partition::Partitioner;
use fieldstone_graph::slot::ShelfContent;

use crate::network::{Arrival, Network};
use crate::server::{Serving, SlotServer, SlotSetup};
use crate::shelf::SlotShelf;
use crate::storage::SharedSegments;

/// Time that passes only when an end waits.
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

/// Faults of the network, as frames in each thousand.
#[derive(Debug, Clone, Copy, Default)]
pub struct NetworkFaults {
    /// Frames that never arrive.
    pub lost: u64,
    /// Frames that arrive twice.
    pub twice: u64,
    /// Frames that arrive with a flipped bit.
    pub damaged: u64,
}

/// A simulated network, with the slots on it.
#[derive(Debug)]
pub struct SimulatedNetwork {
    state: Mutex<SimulatedState>,
    clock: Arc<SimulatedTime>,
    lead: Id,
    storage: Arc<SharedSegments>,
}

#[derive(Debug)]
struct SimulatedState {
    slots: Vec<Option<SlotServer>>,
    wire: Vec<(Address, Vec<u8>)>,
    inboxes: BTreeMap<Address, VecDeque<Arrival>>,
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
        match to {
            Address::Slot(number) => {
                let slot = self.slots.get_mut(usize::from(number)).and_then(Option::as_mut);
                if slot.map(|slot| slot.handle(&frame, &mut out)) == Some(Serving::Stopped) {
                    self.close(to);
                }
            }
            Address::Client(_) => {
                if let Some(inbox) = self.inboxes.get_mut(&to) {
                    inbox.push_back(Arrival::Frame(frame));
                }
            }
        }
        self.wire.append(&mut out);
    }

    fn close(&mut self, end: Address) {
        match end {
            Address::Slot(number) => {
                if let Some(slot) = self.slots.get_mut(usize::from(number)) {
                    *slot = None;
                }
                self.inboxes.values_mut().for_each(|inbox| inbox.push_back(Arrival::Gone(end)));
            }
            Address::Client(_) => {
                self.inboxes.remove(&end);
                self.slots.iter_mut().flatten().for_each(|slot| slot.forget(end));
            }
        }
    }

    /// Lets slots work while no frame waits; returns whether any of them did something.
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
    /// A network with the slots of a partitioner and this content.
    pub fn new(
        partitioner: &Arc<dyn Partitioner>,
        contents: Vec<ShelfContent>,
        faults: NetworkFaults,
        seed: u64,
    ) -> Result<SimulatedNetwork> {
        let (clock, storage) = (Arc::new(SimulatedTime::default()), Arc::<SharedSegments>::default());
        let mut random = Random::new(seed);
        let lead = Id(std::array::from_fn(|_| random.below(256) as u8));
        let (mut slots, mut wire, mut contents) = (Vec::new(), Vec::new(), contents.into_iter());
        for number in 0..partitioner.slots() {
            let setup = SlotSetup {
                number,
                lead: Address::Client(lead),
                partitioner: partitioner.clone(),
                clock: clock.clone(),
                is_reliable: false,
                delay: 0,
            };
            let shelf = SlotShelf::new(contents.next().unwrap_or_default(), storage.clone());
            let mut slot = SlotServer::new(setup, shelf);
            slot.resume(&mut wire)?;
            slots.push(Some(slot));
        }
        let (inboxes, delivered) = Default::default();
        let state = SimulatedState { slots, wire, inboxes, faults, random, delivered };
        Ok(SimulatedNetwork { state: Mutex::new(state), clock, lead, storage })
    }

    /// The leading client, and the storage that slots share with it.
    pub fn lead(&self) -> (Id, Arc<SharedSegments>) {
        (self.lead, self.storage.clone())
    }

    /// The present content of the slots, without any message; frames in transit do not matter.
    pub fn contents(&self) -> Vec<ShelfContent> {
        let content = |slot: &Option<SlotServer>| {
            slot.as_ref().map(|slot| slot.shelf().content().clone()).unwrap_or_default()
        };
        self.state.lock().slots.iter().map(content).collect()
    }

    /// Its clock.
    pub fn clock(&self) -> Arc<SimulatedTime> {
        self.clock.clone()
    }

    /// Number of frames delivered so far.
    pub fn delivered(&self) -> u64 {
        self.state.lock().delivered
    }
}

impl Network for SimulatedNetwork {
    fn open(&self, end: Address) {
        let mut state = self.state.lock();
        let gone = (0..).zip(&state.slots).filter(|(_, slot)| slot.is_none());
        let inbox = gone.map(|(number, _)| Arrival::Gone(Address::Slot(number))).collect();
        state.inboxes.insert(end, inbox);
    }

    fn send(&self, to: Address, frame: Vec<u8>) {
        self.state.lock().wire.push((to, frame));
    }

    fn receive(&self, end: Address, wait: Duration) -> Arrival {
        let mut state = self.state.lock();
        loop {
            if let Some(arrival) = state.inboxes.get_mut(&end).and_then(VecDeque::pop_front) {
                return arrival;
            }
            if wait.is_zero() {
                return Arrival::Nothing;
            }
            let idles = state.wire.is_empty() || state.random(8) == 0;
            if idles && state.idle() {
                continue;
            }
            if state.wire.is_empty() {
                // Nothing can happen except that time passes.
                self.clock.sleep(wait.as_nanos() as u64 + 1);
                let mut out = Vec::new();
                state.slots.iter_mut().flatten().for_each(|slot| slot.again(&mut out));
                state.wire.append(&mut out);
                return Arrival::Nothing;
            }
            state.deliver();
        }
    }

    fn is_reliable(&self) -> bool {
        false
    }

    fn close(&self, end: Address) {
        self.state.lock().close(end);
    }
}
