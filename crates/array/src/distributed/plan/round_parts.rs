//! The memory of a round of an exchange: what goes to each rank, and what comes from it.
//!
//! Parts stand one after another in the order of ranks, so that the communicator takes them from where they are. What a
//! rank has for itself is apart: it is not sent.
//!
//! Invariants: room is as much as a round asked for, and is kept from round to round and from call to call; what is in it
//! before it is filled is not said.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Parts, PartsMut, Team};
use fieldstone_core::sync::{Mutex, MutexGuard};

/// Memory of exchanges that is kept between calls, for all who have a clone: at most one window, what is sent in a round and
/// what comes. Touched anew in each call it took a quarter of the processor time of small steps.
#[derive(Debug, Clone, Default)]
pub struct RoundMemory(Arc<Mutex<RoundBuffers>>);

/// The buffers of one call.
#[derive(Debug, Default)]
pub(super) struct RoundBuffers {
    pub sent: Vec<u8>,
    pub own: Vec<u8>,
    pub taken: Vec<u8>,
    pub window: Vec<u8>,
}

impl RoundMemory {
    fn buffers(&self) -> MutexGuard<'_, RoundBuffers> {
        self.0.lock()
    }

    /// Lends the buffers to one call; another one that begins before its end has buffers of its own.
    pub(super) fn lend<T>(&self, call: impl FnOnce(&mut RoundBuffers) -> T) -> T {
        let mut buffers = std::mem::take(&mut *self.buffers());
        let result = call(&mut buffers);
        *self.buffers() = buffers;
        result
    }

    /// Gives it back to the system.
    pub fn release(&self) {
        *self.buffers() = RoundBuffers::default();
    }
}

/// What goes to each rank in a round, or comes from it; what this rank has for itself is apart from it.
pub struct RoundParts {
    rank: usize,
    /// One after another in the order of ranks, without this rank's own.
    bytes: Vec<u8>,
    lens: Vec<usize>,
    /// What this rank has for itself.
    pub own: Vec<u8>,
}

impl RoundParts {
    /// In memory that is at hand.
    pub fn new(team: &Team, bytes: Vec<u8>, own: Vec<u8>) -> RoundParts {
        RoundParts { rank: team.rank(), bytes, lens: vec![0; team.size()], own }
    }

    /// The memory: of what is sent or comes, and of what is this rank's own.
    pub fn into_memory(self) -> (Vec<u8>, Vec<u8>) {
        (self.bytes, self.own)
    }

    /// Makes room for parts of these lengths; what is in them then is not said.
    pub fn make_room(&mut self, len_of: impl Fn(usize) -> usize) {
        for (other, len) in self.lens.iter_mut().enumerate() {
            *len = if other == self.rank { 0 } else { len_of(other) };
        }
        fit(&mut self.bytes, self.lens.iter().sum());
    }

    /// Makes room for what this rank has for itself, too.
    pub fn make_all_room(&mut self, len_of: impl Fn(usize) -> usize) {
        self.make_room(&len_of);
        fit(&mut self.own, len_of(self.rank));
    }

    /// The part of each rank, this one's own among them.
    pub fn each(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lens.iter().enumerate().map(move |(other, len)| match other == self.rank {
            true => &self.own[..],
            false => rest.split_off(..*len).unwrap_or_default(),
        })
    }

    pub fn each_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let (mut rest, mut own) = (&mut self.bytes[..], Some(&mut self.own[..]));
        let rank = self.rank;
        self.lens.iter().enumerate().map(move |(other, len)| match other == rank {
            true => own.take().unwrap_or_default(),
            false => rest.split_off_mut(..*len).unwrap_or_default(),
        })
    }

    /// Collective: sends these, and takes those that come.
    pub fn exchange(&self, taken: &mut RoundParts, team: &Team, longest: usize) -> Result<()> {
        let sent = Parts { bytes: &self.bytes, lens: &self.lens };
        team.exchange(sent, PartsMut { bytes: &mut taken.bytes, lens: &taken.lens }, longest)
    }
}

/// Makes a buffer this long. What is in it is not said; pages that nobody has touched stay so.
pub fn fit(buffer: &mut Vec<u8>, len: usize) {
    if len > buffer.capacity() {
        // The old one goes first: both would be more than a share.
        *buffer = Vec::new();
        *buffer = vec![0; len];
    }
    buffer.resize(len, 0);
}
