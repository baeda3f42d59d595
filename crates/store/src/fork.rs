//! State that belongs to one process: after a fork the child gets its own, and never touches the
//! parent's locks, buffers or log.

use std::sync::{Arc, OnceLock};

use fieldstone_core::env::Identity;

/// A value per process. The parent's value stays reachable only through older links of the chain,
/// which the child passes over.
pub struct PerProcess<T> {
    identity: Arc<dyn Identity>,
    first: Node<T>,
}

struct Node<T> {
    process: u32,
    value: T,
    next: OnceLock<Box<Node<T>>>,
}

impl<T> PerProcess<T> {
    /// A value of the process that `identity` names now.
    pub fn new(identity: Arc<dyn Identity>, value: T) -> PerProcess<T> {
        let process = identity.process();
        PerProcess { identity, first: Node { process, value, next: OnceLock::new() } }
    }

    /// This process's value, made by `fresh` at its first use after a fork.
    pub fn get(&self, fresh: impl Fn() -> T) -> &T {
        let process = self.identity.process();
        let mut node = &self.first;
        while node.process != process {
            node =
                node.next.get_or_init(|| Box::new(Node { process, value: fresh(), next: OnceLock::new() }));
        }
        &node.value
    }
}

impl<T> std::fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PerProcess({})", self.first.process)
    }
}
