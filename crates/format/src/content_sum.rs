//! A checksum of long content that many ranks compute in parts, in any order.
//!
//! Content is a set of items. Each item has the number of its array, its number in the array, and bytes. The
//! checksum is the sum, modulo 2^128, of the XXH3-128 of each item: of the array's number and the item's
//! (u64, little-endian), then its bytes. It is stored as 16 bytes, the most significant first.
//!
//! Invariant: neither the distribution of items over ranks nor their order changes the sum.
//!
//! ```
//! use fieldstone_format::content_sum::ContentSum;
//! let (mut whole, mut part, mut rest) = (ContentSum::new(), ContentSum::new(), ContentSum::new());
//! whole.add(0, 0, b"one");
//! whole.add(0, 1, b"two");
//! rest.add(0, 1, b"two");
//! part.add(0, 0, b"one");
//! part.join(&rest.to_bytes());
//! assert_eq!(part.to_bytes(), whole.to_bytes());
//! ```

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Bytes of an item if the content is bytes without elements: 1 MiB; the last one of an array is shorter.
pub const BLOCK: u64 = 1 << 20;

/// Bytes of the checksum.
pub const BYTES: usize = 16;

/// Items up to this many bytes are copied to the stack and hashed at once.
const SMALL: usize = 128;

/// The sum over some items; see the module's description.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContentSum(u128);

impl ContentSum {
    /// The sum of nothing.
    pub fn new() -> ContentSum {
        ContentSum::default()
    }

    /// Adds item `index` of array `array`.
    pub fn add(&mut self, array: u64, index: u64, bytes: &[u8]) {
        let heads = [array.to_le_bytes(), index.to_le_bytes()];
        let (mut small, len) = ([0u8; 16 + SMALL], 16 + bytes.len());
        let sum = match small.get_mut(..len) {
            Some(item) => {
                item[..16].copy_from_slice(heads.as_flattened());
                item[16..].copy_from_slice(bytes);
                xxh3_128(item)
            }
            None => {
                let mut hasher = Xxh3::new();
                hasher.update(heads.as_flattened());
                hasher.update(bytes);
                hasher.digest128()
            }
        };
        self.0 = self.0.wrapping_add(sum);
    }

    /// Adds the sum of other items.
    pub fn join(&mut self, other: &[u8; BYTES]) {
        self.0 = self.0.wrapping_add(u128::from_be_bytes(*other));
    }

    /// The checksum.
    pub fn to_bytes(self) -> [u8; BYTES] {
        self.0.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_summed_alike_whatever_their_length_and_order() {
        for len in [0, 1, SMALL - 1, SMALL, SMALL + 1, 1000] {
            let bytes: Vec<u8> = (0..len).map(|n| n as u8).collect();
            let mut sum = ContentSum::new();
            sum.add(3, 7, &bytes);
            let item = [&3u64.to_le_bytes()[..], &7u64.to_le_bytes(), &bytes].concat();
            assert_eq!(u128::from_be_bytes(sum.to_bytes()), xxh3_128(&item));
        }
        let sum_of = |items: &[(u64, u64, &[u8])]| {
            let mut sum = ContentSum::new();
            items.iter().for_each(|(array, index, bytes)| sum.add(*array, *index, bytes));
            sum
        };
        let (first, second) = ((0, 0, &b"ab"[..]), (0, 1, &b"cd"[..]));
        assert_eq!(sum_of(&[first, second]), sum_of(&[second, first]));
        assert_ne!(sum_of(&[first, second]), sum_of(&[(0, 1, b"ab"), (0, 0, b"cd")]), "places count");
        assert_ne!(sum_of(&[first]), sum_of(&[(1, 0, b"ab")]), "arrays count");
    }
}
