//! A Bloom filter over the keys of a segment: ten bits for each key, six probes, double hashing from XXH3-64.

use xxhash_rust::xxh3::xxh3_64;

const BITS_PER_KEY: usize = 10;
const HASHES: u8 = 6;
/// Segments with fewer entries than this have no filter: one block answers as fast.
const SMALL: usize = 64;

/// The hash of an encoded key that filters use.
#[inline]
pub fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// A Bloom filter.
#[derive(Debug, Clone)]
pub struct Filter {
    bits: Box<[u8]>,
    hashes: u8,
}

impl Filter {
    /// A filter from its stored bytes.
    pub fn new(bits: Box<[u8]>, hashes: u8) -> Filter {
        Filter { bits, hashes }
    }

    /// Builds the filter of the keys with these hashes; empty for a small segment.
    pub fn build(hashes: &[u64]) -> Filter {
        if hashes.len() < SMALL {
            return Filter { bits: Box::default(), hashes: 0 };
        }
        let mut filter =
            Filter { bits: vec![0; (hashes.len() * BITS_PER_KEY).div_ceil(8)].into(), hashes: HASHES };
        for &hash in hashes {
            for bit in filter.probes(hash) {
                filter.bits[bit / 8] |= 1 << (bit % 8);
            }
        }
        filter
    }

    /// Whether a key with this hash may be in the segment.
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        self.bits.is_empty() || self.probes(hash).all(|bit| self.bits[bit / 8] >> (bit % 8) & 1 == 1)
    }

    fn probes(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let bits = self.bits.len() as u64 * 8;
        let step = hash >> 32 | 1;
        (0..u64::from(self.hashes)).map(move |i| (hash.wrapping_add(i.wrapping_mul(step)) % bits) as usize)
    }

    /// The bytes to store.
    pub fn bytes(&self) -> &[u8] {
        &self.bits
    }

    /// Number of probes.
    pub fn hashes(&self) -> u8 {
        self.hashes
    }
}
