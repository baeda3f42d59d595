//! State that belongs to one process (J-26): after a fork the child gets its own, and never touches the
//! parent's locks, buffers or log.
//!
//! Invariants:
//! * looking for a process's value takes no lock: one that another thread held at a fork would never be
//!   released in the child;
//! * values are added at the head and stay until all of them are dropped, so a reference to one lasts as
//!   long as the whole;
//! * a value is dropped by its own process alone: what a child inherits may be half changed, and is left as it is.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use fieldstone_core::env::Identity;

/// A value per process. The parent's value stays behind the child's, which passes it over.
pub struct PerProcess<T> {
    identity: Arc<dyn Identity>,
    /// The newest process's value; owned, and never removed before `self` is dropped.
    newest: AtomicPtr<Node<T>>,
}

struct Node<T> {
    process: u32,
    value: T,
    /// The one that was there before, or null.
    before: *mut Node<T>,
}

// SAFETY: the nodes are owned like values of a `Vec<T>` and go to another thread with the whole.
unsafe impl<T: Send> Send for PerProcess<T> {}
// SAFETY: `get` gives `&T` to any thread and takes a `T` from it, as a lock-free stack that is never
// popped: the first needs `T: Sync`, the second `T: Send`.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

impl<T> PerProcess<T> {
    /// A value of the process that `identity` names now.
    pub fn new(identity: Arc<dyn Identity>, value: T) -> PerProcess<T> {
        let node = Node { process: identity.process(), value, before: ptr::null_mut() };
        PerProcess { identity, newest: AtomicPtr::new(Box::into_raw(Box::new(node))) }
    }

    /// This process's value, made by `fresh` at its first use after a fork. Of several threads that make
    /// one at once, one's is kept.
    pub fn get(&self, fresh: impl Fn() -> T) -> &T {
        let process = self.identity.process();
        let mut head = self.newest.load(Ordering::Acquire);
        if let Some(node) = find(head, process) {
            return &node.value;
        }
        let mine = Box::into_raw(Box::new(Node { process, value: fresh(), before: head }));
        loop {
            // SAFETY: `mine` came from a box and is not shared before the exchange succeeds.
            unsafe { (*mine).before = head };
            match self.newest.compare_exchange(head, mine, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // SAFETY: it is in the list now, where it stays until `self` is dropped.
                    return unsafe { &(*mine).value };
                }
                Err(newer) => head = newer,
            }
            if let Some(node) = find(head, process) {
                // SAFETY: it came from a box above, and no exchange has put it into the list.
                drop(unsafe { Box::from_raw(mine) });
                return &node.value;
            }
        }
    }
}

/// A process's node in the list that begins here. The lifetime is that of the list's owner.
fn find<'a, T>(mut at: *mut Node<T>, process: u32) -> Option<&'a Node<T>> {
    // SAFETY: every pointer of the list came from a box, is changed by nobody once it is in the list, and
    // stays until the owner is dropped.
    while let Some(node) = unsafe { at.as_ref() } {
        if node.process == process {
            return Some(node);
        }
        at = node.before;
    }
    None
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let own = self.identity.process();
        let mut at = *self.newest.get_mut();
        while !at.is_null() {
            // SAFETY: nobody else has `self` any more; each node came from a box and is freed once.
            let Node { process, value, before } = *unsafe { Box::from_raw(at) };
            at = before;
            if process != own {
                // A thread of that process may have been changing it when this one was forked.
                std::mem::forget(value);
            }
        }
    }
}

impl<T> std::fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PerProcess({})", self.identity.process())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// A machine whose process number the test sets.
    #[derive(Debug)]
    pub(crate) struct Numbered(pub(crate) AtomicU32);

    impl Identity for Numbered {
        fn host(&self) -> String {
            "h".into()
        }
        fn process(&self) -> u32 {
            self.0.load(Ordering::SeqCst)
        }
        fn uid(&self) -> u32 {
            0
        }
        fn user_name(&self, _: u32) -> String {
            "u".into()
        }
        fn alive(&self, _: u32) -> bool {
            true
        }
    }

    #[test]
    fn each_process_has_its_own_and_threads_share_one() {
        let identity = Arc::new(Numbered(AtomicU32::new(1)));
        let dropped = Arc::new(AtomicU32::new(0));
        struct Counted(u32, Arc<AtomicU32>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.1.fetch_add(1, Ordering::SeqCst);
            }
        }
        let values = PerProcess::new(identity.clone(), Counted(1, dropped.clone()));
        for process in [1, 2, 3, 2, 1] {
            identity.0.store(process, Ordering::SeqCst);
            assert_eq!(values.get(|| Counted(process, dropped.clone())).0, process);
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        identity.0.store(4, Ordering::SeqCst);
        let made = AtomicU32::new(0);
        let barrier = std::sync::Barrier::new(8);
        let found: Vec<usize> = std::thread::scope(|scope| {
            let ask = || {
                barrier.wait();
                let fresh = || {
                    made.fetch_add(1, Ordering::SeqCst);
                    Counted(4, dropped.clone())
                };
                ptr::from_ref(values.get(fresh)) as usize
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            all.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        assert!(found.len() == 8 && found.iter().all(|value| *value == found[0]), "{found:?}");
        assert_eq!(dropped.load(Ordering::SeqCst), made.load(Ordering::SeqCst) - 1, "those not kept");
        drop(values);
        let own = made.load(Ordering::SeqCst);
        assert_eq!(dropped.load(Ordering::SeqCst), own, "its own, and none of the others'");
    }

    #[test]
    fn nobody_waits_for_a_thread_that_was_left_behind() {
        let identity = Arc::new(Numbered(AtomicU32::new(1)));
        let values = Arc::new(PerProcess::new(identity.clone(), 1));
        identity.0.store(2, Ordering::SeqCst);
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        let (begun, has_begun) = std::sync::mpsc::channel();
        let wait = fieldstone_core::sync::Mutex::new(wait);
        let slow = std::thread::spawn({
            let values = values.clone();
            move || {
                let fresh = || {
                    let _ = begun.send(());
                    let _ = wait.lock().recv();
                    2
                };
                *values.get(fresh)
            }
        });
        assert!(has_begun.recv().is_ok());
        // As in a child that was forked while the other thread was at it.
        identity.0.store(3, Ordering::SeqCst);
        let (done, answer) = std::sync::mpsc::channel();
        let child = std::thread::spawn({
            let values = values.clone();
            move || done.send(*values.get(|| 3)).is_ok()
        });
        assert_eq!(answer.recv_timeout(std::time::Duration::from_secs(20)), Ok(3));
        assert!(child.join().is_ok() && go_on.send(()).is_ok());
        assert_eq!(slow.join().ok(), Some(2));
    }
}
