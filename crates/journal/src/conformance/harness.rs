//! The kind of followers that behaviours are shown of.

use fieldstone_core::Result;
use fieldstone_core::env::sim::Random;
use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;

use super::history::History;
use crate::follower::Follower;

/// One kind of follower.
pub trait Harness {
    /// A follower on an engine: an empty one when the number is given first, later another follower on the same rows,
    /// as a second process has it.
    fn open(&mut self, engine: usize, history: &History) -> Result<Box<dyn Follower>>;

    /// Whether several followers can be open on one engine.
    fn shares(&self) -> bool {
        true
    }

    /// Side records of a commit. `heads`: the logs, each with the last commit made so far.
    fn side(&mut self, dice: &mut Random, heads: &[(Id, u64)]) -> Vec<SideRecord>;
}
