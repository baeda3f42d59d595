//! A cache of recently read values, limited in bytes: it drops the values unused for longest first.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Approximate overhead of an entry.
const OVERHEAD: usize = 128;

/// Values by key. Finding, adding and dropping a value take constant time: blocks may be tiny, and then there are
/// tens of thousands.
#[derive(Debug)]
pub(super) struct LruCache<K, V> {
    most: usize,
    /// Value, its size, and the time of its last use.
    values: HashMap<K, (V, usize, u64)>,
    /// Keys by the time of their last use.
    order: BTreeMap<u64, K>,
    now: u64,
    bytes: usize,
}

impl<K: Copy + Eq + Hash, V: Clone> LruCache<K, V> {
    /// Makes a cache that keeps `most` bytes, but always the latest two values.
    pub fn new(most: usize) -> LruCache<K, V> {
        LruCache { most, values: HashMap::new(), order: BTreeMap::new(), now: 0, bytes: 0 }
    }

    /// The value of a key; marks it as used.
    pub fn get(&mut self, key: K) -> Option<V> {
        let (value, _, asked) = self.values.get_mut(&key)?;
        if *asked != self.now {
            self.order.remove(asked);
            self.now += 1;
            *asked = self.now;
            self.order.insert(self.now, key);
        }
        Some(value.clone())
    }

    /// Keeps a value of `bytes`.
    pub fn add(&mut self, key: K, value: V, bytes: usize) {
        self.now += 1;
        let bytes = bytes.saturating_add(OVERHEAD);
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some((_, old, asked)) = self.values.insert(key, (value, bytes, self.now)) {
            self.order.remove(&asked);
            self.bytes -= old;
        }
        self.order.insert(self.now, key);
        while self.bytes > self.most && self.values.len() > 2 {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some((_, old, _)) = self.values.remove(&oldest) {
                self.bytes -= old;
            }
        }
    }

    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::container::counting_key::CountingKey;

    #[test]
    fn what_was_asked_for_longest_ago_goes_first() {
        let mut cache = LruCache::new(4 * (100 + OVERHEAD));
        (0..4).for_each(|key| cache.add(key, key * 10, 100));
        assert_eq!((cache.get(0), cache.get(0), cache.get(2)), (Some(0), Some(0), Some(20)));
        cache.add(4, 40, 100);
        assert_eq!([0, 1, 2, 3, 4].map(|key| cache.get(key)), [Some(0), None, Some(20), Some(30), Some(40)]);
        cache.add(5, 50, 200);
        assert_eq!([0, 2, 3, 4, 5].map(|key| cache.get(key)), [None, None, Some(30), Some(40), Some(50)]);
        assert_eq!(cache.bytes(), 400 + 3 * OVERHEAD);
    }

    #[test]
    fn the_latest_two_stay_however_large() {
        let mut cache = LruCache::new(10);
        (0..5).for_each(|key| cache.add(key, (), 1000));
        assert_eq!([2, 3, 4].map(|key| cache.get(key)), [None, Some(()), Some(())]);
    }

    #[test]
    fn a_key_that_is_added_twice_counts_once() {
        let mut cache = LruCache::new(10_000);
        (0..3).for_each(|value| cache.add("block", value, 500 + value));
        assert_eq!((cache.get("block"), cache.bytes()), (Some(2), 502 + OVERHEAD));
    }

    #[test]
    fn one_of_very_many_is_found_without_a_look_at_the_others() {
        let compared = Cell::new(0);
        let mut cache = LruCache::new(usize::MAX);
        let many = 20_000;
        (0..many).for_each(|i| cache.add(CountingKey(i, &compared), i, 1));
        for i in 0..many {
            let key = CountingKey(i * 7919 % many, &compared);
            assert_eq!(cache.get(key), Some(key.0));
        }
        assert!(compared.get() < 4 * many, "{}", compared.get());
    }
}
