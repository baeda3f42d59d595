//! For tests: keys that count their comparisons, which shows that many keys are not compared pair by pair.

use std::cell::Cell;
use std::hash::{Hash, Hasher};

/// A number, and the counter of its comparisons.
#[derive(Debug, Clone, Copy)]
pub struct CountingKey<'a>(pub usize, pub &'a Cell<usize>);

impl PartialEq for CountingKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.1.set(self.1.get() + 1);
        self.0 == other.0
    }
}

impl Eq for CountingKey<'_> {}

impl Hash for CountingKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
