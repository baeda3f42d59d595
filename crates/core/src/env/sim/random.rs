//! Numbers from a seed: the generator of simulated worlds, of the conformance suites and of tests.
//!
//! It is SplitMix64 (Steele, Lea and Flood: *Fast splittable pseudorandom number generators*, 2014): a counter that
//! advances by a fixed odd number, and a mixing of its bits. It is small, fast, and good enough to choose faults and
//! test data. It is predictable, so a real store must not take an id or a secret from it.
//!
//! Invariants: the same seed gives the same numbers on every machine and in every version, because reports of
//! failures record seeds; every call takes one number, except [`Random::fill`] and calls that return several values.
//!
//! ```
//! use fieldstone_core::env::sim::Random;
//! let (mut first, mut again) = (Random::new(7), Random::new(7));
//! assert_eq!(first.next_u64(), again.next_u64());
//! assert!(first.below(6) < 6);
//! ```

/// A generator whose numbers a seed determines.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Makes the generator of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A generator for one purpose: equal seeds with different `purpose`s are unrelated.
    pub fn derived(seed: u64, purpose: u64) -> Random {
        let mixed = Random(seed).next_u64() ^ purpose.wrapping_mul(0xd6e8_feb8_6659_fd93);
        Random(Random(mixed).next_u64())
    }

    /// A uniformly distributed number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }

    /// An index into a list of length `len`, or 0 if it is empty.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number in `from..to`, or `from` if the range is empty.
    pub fn within(&mut self, from: i64, to: i64) -> i64 {
        let span = if from < to { from.abs_diff(to) } else { 0 };
        from.wrapping_add_unsigned(self.below(span))
    }

    /// True with probability 1 in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// True with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// True with probability one half.
    pub fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// One element of a list.
    ///
    /// # Panics
    /// If the list is empty.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// Fills a buffer, taking one number for each eight bytes.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }

    /// A list of `len` random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.fill(&mut bytes);
        bytes
    }

    /// The same things in random order.
    pub fn shuffled<T>(&mut self, mut things: Vec<T>) -> Vec<T> {
        for end in (1..things.len()).rev() {
            things.swap(end, self.index(end + 1));
        }
        things
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests and reports record seeds, so their numbers must never change. Other implementations of SplitMix64 give
    /// the same first numbers for seed 1234567.
    #[test]
    fn a_seed_gives_the_numbers_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        let first = [(); 5].map(|()| random.next_u64());
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
        assert_eq!(Random::derived(42, 3).next_u64(), 13_823_566_817_567_940_586);
        assert_eq!(Random::new(0).bytes(11)[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
    }

    #[test]
    fn numbers_keep_their_bounds() {
        let mut random = Random::new(1);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for _ in 0..1_000 {
            let n = random.within(-3, 4);
            (low, high) = (low.min(n), high.max(n));
            assert!(random.index(3) < 3);
        }
        assert_eq!((low, high), (-3, 3));
        assert_eq!(
            (random.below(0), random.index(0), random.within(5, 5), random.within(5, 4)),
            (0, 0, 5, 5)
        );
        assert!(random.within(i64::MIN, i64::MAX) < i64::MAX);
        assert!((0..100).all(|_| random.one_in(1) && random.percent(100) && !random.percent(0)));
        assert!((0..100).all(|_| random.chance(1.0) && !random.chance(0.0)));
        let mut things = random.shuffled((0..20).collect());
        assert!(!things.is_sorted());
        things.sort_unstable();
        assert!(things.into_iter().eq(0..20));
    }
}
