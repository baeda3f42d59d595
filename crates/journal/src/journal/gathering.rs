//! How long a flush waits for others to share its commit (J-3).
//!
//! Threads that shared a commit return from it at the same moment, and mostly flush again at the same moment. The
//! first of them would begin a commit alone, the others would wait for the next one: two half groups in turn.
//! So a flush that comes right behind a shared commit waits for as many as shared it, a third of that commit's
//! time at most. A thread that flushes alone never waits.
//!
//! Invariant: nothing here decides what a commit holds. A count that is wrong, because other threads came than
//! those that were awaited or a commit failed, costs that third once.

/// The flushes of one handle, as far as they are known.
#[derive(Debug, Default)]
pub struct Gathering {
    /// Flushes that wait for a commit that has not begun.
    waiting: usize,
    /// Flushes that the commit under way serves.
    served: usize,
    /// How many of those that the last commit served have not come again.
    expected: usize,
    /// When the last commit began and ended, by the monotonic clock, in nanoseconds.
    began: u64,
    ended: u64,
}

impl Gathering {
    /// A flush comes.
    pub fn arrive(&mut self) {
        self.waiting += 1;
        self.expected = self.expected.saturating_sub(1);
    }

    /// Whether a flush that could begin its commit now waits for others.
    pub fn is_worth_waiting(&self, now: u64) -> bool {
        let patience = self.ended.saturating_sub(self.began) / 3;
        self.expected > 0 && now.saturating_sub(self.ended) < patience
    }

    /// A commit of all that wait begins.
    pub fn begin(&mut self, now: u64) {
        self.served = std::mem::take(&mut self.waiting);
        self.expected = 0;
        self.began = now;
    }

    /// It is over.
    pub fn end(&mut self, now: u64) {
        self.expected = std::mem::take(&mut self.served);
        self.ended = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit from `began` to `ended` that serves `flushes`.
    fn shared(flushes: usize, began: u64, ended: u64) -> Gathering {
        let mut gathering = Gathering::default();
        (0..flushes).for_each(|_| gathering.arrive());
        gathering.begin(began);
        gathering.end(ended);
        gathering
    }

    #[test]
    fn a_thread_alone_never_waits() {
        let mut gathering = shared(1, 0, 1000);
        gathering.arrive();
        assert!(!gathering.is_worth_waiting(1000));
    }

    #[test]
    fn those_who_shared_a_commit_share_the_next() {
        let mut gathering = shared(3, 0, 1000);
        gathering.arrive();
        assert!(gathering.is_worth_waiting(1001));
        assert!(!gathering.is_worth_waiting(1334), "a third of the last commit's time at most");
        gathering.arrive();
        gathering.arrive();
        assert!(!gathering.is_worth_waiting(1001), "all are there");
        gathering.begin(1001);
        assert!(!gathering.is_worth_waiting(1002), "nobody is awaited during a commit");
    }
}
