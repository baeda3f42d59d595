//! The stamps that a process assigns.
//!
//! Invariant: an assigned stamp is above every stamp that this process has read or assigned before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::env::Clock;
use fieldstone_journal::medium::{clock_stamp, is_believed};

/// The stamps of one process.
#[derive(Debug)]
pub struct Stamps {
    clock: Arc<dyn Clock>,
    /// The greatest stamp that was assigned or read.
    last: AtomicU64,
}

impl Stamps {
    /// The stamps of a process that has read none.
    pub fn new(clock: Arc<dyn Clock>) -> Stamps {
        Stamps { clock, last: AtomicU64::new(0) }
    }

    /// A stamp above all that were read or assigned.
    pub fn next(&self) -> u64 {
        self.several(1).0
    }

    /// The first of `count` stamps above all that were read or assigned, and the clock: nanoseconds since
    /// 1970.
    pub fn several(&self, count: u64) -> (u64, i64) {
        let clock = self.clock.now();
        let now = clock_stamp(clock);
        let first = |last: u64| now.max(last.saturating_add(1));
        let next = |last: u64| first(last).saturating_add(count.saturating_sub(1));
        let before = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        // This cannot fail: the closure always returns a value.
        (first(before.unwrap_or_default()), clock)
    }

    /// Whether other processes accept a stamp.
    pub fn is_believed(&self, stamp: u64) -> bool {
        // Rows are for hosts with correct clocks, even if this host's clock is a century off.
        is_believed(stamp, clock_stamp(self.clock.now()).cast_signed())
    }

    /// Notes a stamp that was read: later assigned stamps are above it.
    pub fn note(&self, stamp: u64) {
        if self.is_believed(stamp) {
            self.last.fetch_max(stamp, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_core::env::Env;

    #[test]
    fn stamps_are_above_what_was_read_and_given_away() {
        let stamps = Stamps::new(Env::real().clock);
        let (first, time) = stamps.several(1_000_000_000_000);
        assert_eq!(first, clock_stamp(time));
        assert_eq!(stamps.next(), first + 1_000_000_000_000, "a batch has all of its own");
        let read = first + (1 << 50);
        stamps.note(read);
        assert_eq!(stamps.next(), read + 1);
        let century_ahead = u64::MAX / 2;
        assert!(!stamps.is_believed(century_ahead));
        stamps.note(century_ahead);
        assert_eq!(stamps.next(), read + 2, "nobody follows such a stamp");
    }
}
