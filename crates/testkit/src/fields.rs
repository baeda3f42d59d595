//! Bytes of fields, all different, so that a misplaced one is detected.

use crate::Random;

/// Bytes from a seed.
pub fn pattern(length: usize, seed: u64) -> Vec<u8> {
    Random::new(seed).bytes(length)
}

/// The bytes of a step of a run, the same in every process, so that one process can check another's.
pub fn content(run: &str, step: u64, length: usize) -> Vec<u8> {
    let run = run.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    Random::derived(run, step).bytes(length)
}
