//! Places of values that others may be equal to: a heap of files of one model segment repeats its
//! coordinates, and the store keeps their bytes once (J-12).
//!
//! Invariants:
//! * only durable bytes of this writer's own files are named, so that an entry that shares them is as
//!   good as one with bytes of its own;
//! * at most [`MOST`] places are remembered; beyond it the oldest half is forgotten.

use std::collections::HashMap;

/// Most places that are remembered, about 64 bytes each.
const MOST: usize = 1 << 14;

/// Places by digest of the stored bytes: file and offset, as in an entry's location.
#[derive(Debug, Default)]
pub struct Shared {
    recent: HashMap<u128, (u32, u64)>,
    older: HashMap<u128, (u32, u64)>,
}

impl Shared {
    /// The place of equal bytes.
    pub fn find(&self, digest: u128) -> Option<(u32, u64)> {
        self.recent.get(&digest).or_else(|| self.older.get(&digest)).copied()
    }

    /// Remembers a place.
    pub fn insert(&mut self, digest: u128, place: (u32, u64)) {
        if self.recent.len() >= MOST / 2 {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(digest, place);
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Shared};

    #[test]
    fn the_newest_places_are_remembered() {
        let mut shared = Shared::default();
        let all = 2 * MOST as u64;
        (0..all).for_each(|n| shared.insert(u128::from(n), (0, n)));
        assert_eq!(shared.find(u128::from(all - 1)), Some((0, all - 1)));
        assert_eq!(shared.find(u128::from(all) - MOST as u128 / 2), Some((0, all - MOST as u64 / 2)));
        assert_eq!(shared.find(0), None);
        assert!(shared.recent.len() + shared.older.len() <= MOST);
    }
}
