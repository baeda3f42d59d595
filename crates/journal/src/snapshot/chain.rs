//! Lists and maps that only grow, of which every snapshot has a state of its own: cloning one costs little,
//! however long it is.
//!
//! Both keep what came lately apart from the rest, which all clones share, and move it there now and then.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// How many items stand apart.
const RECENT: usize = 128;

/// A list that is appended to.
#[derive(Debug, Clone)]
pub struct Chain<T> {
    base: Arc<Vec<T>>,
    recent: Vec<T>,
}

impl<T> Default for Chain<T> {
    fn default() -> Chain<T> {
        Chain { base: Arc::default(), recent: Vec::new() }
    }
}

impl<T: Clone> Chain<T> {
    pub fn push(&mut self, item: T) {
        self.recent.push(item);
        if self.recent.len() > RECENT {
            Arc::make_mut(&mut self.base).append(&mut self.recent);
        }
    }

    pub fn len(&self) -> usize {
        self.base.len() + self.recent.len()
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        self.base.get(index).or_else(|| self.recent.get(index.checked_sub(self.base.len())?))
    }

    /// The items from one on.
    pub fn since(&self, index: usize) -> impl Iterator<Item = &T> {
        let (base, recent) = (index.min(self.base.len()), index.saturating_sub(self.base.len()));
        self.base[base..].iter().chain(&self.recent[recent.min(self.recent.len())..])
    }
}

/// A map whose entries are replaced, never removed.
#[derive(Debug, Clone)]
pub struct Layers<K, V> {
    base: Arc<HashMap<K, V>>,
    recent: HashMap<K, V>,
}

impl<K, V> Default for Layers<K, V> {
    fn default() -> Layers<K, V> {
        Layers { base: Arc::default(), recent: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Layers<K, V> {
    pub fn get(&self, key: &K) -> Option<&V> {
        self.recent.get(key).or_else(|| self.base.get(key))
    }

    pub fn insert(&mut self, key: K, value: V) {
        self.recent.insert(key, value);
        if self.recent.len() > RECENT {
            Arc::make_mut(&mut self.base).extend(self.recent.drain());
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let older = self.base.iter().filter(|(key, _)| !self.recent.contains_key(key));
        older.chain(&self.recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_keep_their_state() {
        let (mut chain, mut layers) = (Chain::default(), Layers::default());
        let mut states = Vec::new();
        for n in 0..1000usize {
            chain.push(n);
            layers.insert(n / 2, n);
            if n % 97 == 0 {
                states.push((n, chain.clone(), layers.clone()));
            }
        }
        for (n, chain, layers) in states {
            assert_eq!(chain.len(), n + 1);
            for from in [0, n / 2, n, n + 1, n + 5] {
                assert!(chain.since(from).copied().eq(from..=n), "{n} from {from}");
            }
            assert_eq!((chain.get(n), chain.get(n + 1)), (Some(&n), None));
            let mut entries: Vec<(usize, usize)> = layers.iter().map(|(k, v)| (*k, *v)).collect();
            entries.sort_unstable();
            assert!(entries.iter().copied().eq((0..=n / 2).map(|k| (k, (2 * k + 1).min(n)))));
            assert_eq!((layers.get(&0), layers.get(&(n + 1))), (Some(&1.min(n)), None));
        }
    }
}
