//! The transactions that one process opened and nobody has ended, as far as it knows: its commits list them.
//!
//! The lock is held for a moment, and no other lock is taken under it.

use std::collections::BTreeSet;

use fieldstone_core::sync::Mutex;
use fieldstone_format::Id;

/// Open transactions of one process.
#[derive(Debug, Default)]
pub struct Begun(Mutex<BTreeSet<Id>>);

impl Begun {
    /// Adds one that begins.
    pub fn add(&self, transaction: Id) {
        self.0.lock().insert(transaction);
    }

    /// Drops one that has ended.
    pub fn remove(&self, transaction: Id) {
        self.0.lock().remove(&transaction);
    }

    /// Whether this process opened a transaction that is not known to have ended.
    pub fn contains(&self, transaction: Id) -> bool {
        self.0.lock().contains(&transaction)
    }

    /// All of them, in the order of their ids.
    pub fn open(&self) -> Vec<Id> {
        self.0.lock().iter().copied().collect()
    }
}
