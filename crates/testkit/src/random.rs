//! Numbers from a seed, which a failing test prints.
//!
//! ```
//! let mut random = fieldstone_testkit::seeded(7);
//! let piece = random.below(100);
//! assert!(piece < 100); // or the test prints `seed 7` with the failure
//! ```

use std::ops::{Deref, DerefMut};

pub use fieldstone_core::env::sim::Random;

/// A [`Random`] that prints its seed if its test fails.
#[derive(Debug)]
pub struct Seeded {
    seed: u64,
    random: Random,
}

/// The generator of a seed.
pub fn seeded(seed: u64) -> Seeded {
    Seeded { seed, random: Random::new(seed) }
}

impl Deref for Seeded {
    type Target = Random;
    fn deref(&self) -> &Random {
        &self.random
    }
}

impl DerefMut for Seeded {
    fn deref_mut(&mut self) -> &mut Random {
        &mut self.random
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.seed);
        }
    }
}

/// The seeds of a test: those below `count`, or the one in `FIELDSTONE_SEED`.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    let only = std::env::var("FIELDSTONE_SEED").ok().and_then(|seed| seed.parse().ok());
    only.map_or(0..count, |seed: u64| seed..seed + 1)
}
