//! Maps by place. A place is a hash already: it is not hashed once more.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use fieldstone_format::graph_segment::VertexPlace;

/// Takes bits of a place as they are. What comes beside a place, as the type of a relation, is mixed in.
#[derive(Debug, Default, Clone)]
pub struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 by the golden ratio, and odd.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u128(&mut self, place: u128) {
        self.0 ^= place as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map by place.
pub type PlaceMap<V> = HashMap<VertexPlace, V, BuildHasherDefault<PlaceHasher>>;

/// Relations of a vertex: number of the type and direction, far end.
pub type RelationSet = HashSet<(u32, VertexPlace), BuildHasherDefault<PlaceHasher>>;
