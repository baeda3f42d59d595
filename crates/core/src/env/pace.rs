//! Work at a steady rate: whoever writes much beside others waits between its parts, so that theirs come in between.

use std::sync::Arc;

use super::Clock;

/// Bytes a second that are not exceeded.
#[derive(Debug)]
pub struct Pace {
    clock: Arc<dyn Clock>,
    /// `None` for as fast as it goes.
    rate: Option<u64>,
    /// When what is spent so far is due, by the clock.
    due: u64,
}

impl Pace {
    /// A pace that begins now.
    pub fn new(clock: &Arc<dyn Clock>, rate: Option<u64>) -> Pace {
        Pace { clock: clock.clone(), rate, due: clock.monotonic() }
    }

    /// Waits until these bytes are due. Time in which nothing was written is not made up for.
    pub fn spend(&mut self, bytes: u64) {
        let Some(rate) = self.rate else { return };
        let time = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let now = self.clock.monotonic();
        self.due = self.due.saturating_add(u64::try_from(time).unwrap_or(u64::MAX)).max(now);
        if now < self.due {
            self.clock.sleep(self.due - now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::sim::SimWorld;

    #[test]
    fn bytes_take_as_long_as_the_rate_says() {
        let clock = SimWorld::new(1).process("a").clock;
        let begin = clock.monotonic();
        let mut pace = Pace::new(&clock, Some(1_000_000));
        for _ in 0..10 {
            pace.spend(100_000);
        }
        let took = clock.monotonic() - begin;
        assert!((1_000_000_000..1_050_000_000).contains(&took), "{took}");
        // A pause counts for the bytes before it alone.
        clock.sleep(5_000_000_000);
        pace.spend(500_000);
        let begin = clock.monotonic();
        pace.spend(500_000);
        assert!(clock.monotonic() - begin >= 500_000_000);
        // Without a rate nothing waits.
        let begin = clock.monotonic();
        Pace::new(&clock, None).spend(u64::MAX);
        assert!(clock.monotonic() - begin < 1_000_000);
    }
}
