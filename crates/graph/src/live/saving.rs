//! Decides when segments in memory are written to disk, and runs the thread that does it.

use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_journal::beside::Beside;

/// Bytes of segments in memory from which on they are written to disk, once they have been there for some
/// time.
const SAVE: u64 = 8 << 20;
/// That time in nanoseconds: rows that come in a flood are then written together.
const SETTLED: u64 = 1_000_000_000;
/// Bytes from which on they are written at once.
const FLOOD: u64 = 64 << 20;

/// See the module.
#[derive(Debug, Default)]
pub struct Saving {
    thread: Beside,
    /// The time since when more than a little is in memory, by the monotonic clock; 0 if it is not.
    waits_since: AtomicU64,
}

impl Saving {
    /// Whether `in_memory` bytes must be written to disk by `now`, nanoseconds of the monotonic clock.
    pub fn is_due(&self, in_memory: u64, now: u64) -> bool {
        let since = &self.waits_since;
        if in_memory < SAVE {
            since.store(0, Ordering::Relaxed);
            return false;
        }
        let now = now.max(1);
        let first = since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        in_memory >= FLOOD || first.is_err_and(|first| now.saturating_sub(first) >= SETTLED)
    }

    /// Runs this work on a thread of its own, unless one is already running. If no thread can be started, the
    /// work is not done.
    pub fn start(&self, work: impl FnOnce() + Send + 'static) {
        let _ = self.thread.start("graph-save", work);
    }

    /// Waits until nothing is being written.
    pub fn join(&self) {
        self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_written_at_once_and_less_later() {
        let saving = Saving::default();
        assert!(saving.is_due(FLOOD, 5));
        assert!(!saving.is_due(SAVE - 1, 6), "little is kept");
        assert!(!saving.is_due(SAVE, 7));
        assert!(!saving.is_due(SAVE, 6 + SETTLED));
        assert!(saving.is_due(SAVE, 7 + SETTLED));
        assert!(!saving.is_due(0, 8 + SETTLED) && !saving.is_due(SAVE, 9 + SETTLED), "the wait begins again");
    }
}
