//! The memory of a round of an exchange: the data for each rank, and from each rank.
//!
//! Parts are consecutive in rank order, so that the communicator sends them from where they are. A rank's own data
//! are separate, because they are not sent.
//!
//! Invariants: the space is as large as a round requested, and is kept from round to round and from call to call; its
//! content before it is filled is unspecified.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::comm::{Parts, PartsMut, Team};
use fieldstone_core::sync::{Mutex, MutexGuard};

/// Memory of exchanges that is kept between calls, shared by all clones: at most one window, the data sent in a round
/// and those received. When each call allocated it again, that took a quarter of the processor time of small steps
///
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

    /// Lends the buffers to one call; a call that begins before its end has buffers of its own.
    pub(super) fn lend<T>(&self, call: impl FnOnce(&mut RoundBuffers) -> T) -> T {
        let mut buffers = std::mem::take(&mut *self.buffers());
        let result = call(&mut buffers);
        *self.buffers() = buffers;
        result
    }

    /// Returns the memory to the system.
    pub fn release(&self) {
        *self.buffers() = RoundBuffers::default();
    }
}

/// The data for each rank in a round, or from each rank, with this rank's own data separate.
pub struct RoundParts {
    rank: usize,
    /// Consecutive in rank order, without this rank's own.
    bytes: Vec<u8>,
    lens: Vec<usize>,
    /// This rank's own data.
    pub own: Vec<u8>,
}

impl RoundParts {
    /// Makes parts in existing memory.
    pub fn new(team: &Team, bytes: Vec<u8>, own: Vec<u8>) -> RoundParts {
        RoundParts { rank: team.rank(), bytes, lens: vec![0; team.size()], own }
    }

    /// The memory: of the sent or received data, and of this rank's own.
    pub fn into_memory(self) -> (Vec<u8>, Vec<u8>) {
        (self.bytes, self.own)
    }

    /// Makes space for parts of these lengths, with unspecified content.
    pub fn make_room(&mut self, len_of: impl Fn(usize) -> usize) {
        for (other, len) in self.lens.iter_mut().enumerate() {
            *len = if other == self.rank { 0 } else { len_of(other) };
        }
        fit(&mut self.bytes, self.lens.iter().sum());
    }

    /// Makes space for this rank's own data, too.
    pub fn make_all_room(&mut self, len_of: impl Fn(usize) -> usize) {
        self.make_room(&len_of);
        fit(&mut self.own, len_of(self.rank));
    }

    /// The part of each rank, including this one's own.
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

    /// Collective: sends these parts, and receives others into `taken`.
    pub fn exchange(&self, taken: &mut RoundParts, team: &Team, longest: usize) -> Result<()> {
        let sent = Parts { bytes: &self.bytes, lens: &self.lens };
        team.exchange(sent, PartsMut { bytes: &mut taken.bytes, lens: &taken.lens }, longest)
    }
}

/// Gives a buffer this length. Its content is unspecified; untouched pages stay untouched.
pub fn fit(buffer: &mut Vec<u8>, len: usize) {
    if len > buffer.capacity() {
        // Free the old buffer first, because both together would exceed a share.
        *buffer = Vec::new();
        *buffer = vec![0; len];
    }
    buffer.resize(len, 0);
}
