//! Maps with number keys that nobody can choose to make them collide: places, which are hashes already, and
//! numbers that this process assigned.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use fieldstone_format::graph_segment::VertexPlace;

/// Uses a place as it is, and mixes in the numbers next to it.
#[derive(Debug, Default, Clone)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio, and odd.
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u128(&mut self, place: u128) {
        self.0 ^= place as u64;
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// A map by place.
pub type PlaceMap<V> = HashMap<VertexPlace, V, BuildHasherDefault<NumberHasher>>;

/// Relations of a vertex: number of the type and direction, far end.
pub type RelationSet = HashSet<(u32, VertexPlace), BuildHasherDefault<NumberHasher>>;
