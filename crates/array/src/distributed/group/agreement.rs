//! Ranks are in one call, for one set and step: found out in the reduction that brings joined counts together.

use fieldstone_core::env::comm::Team;
use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::{Code, Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::distributed::agreed::differing;

/// A number of this rank among those of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// Of the lower ranks.
    pub before: u64,
    /// Of all.
    pub total: u64,
}

/// Collective: the sum of `count` over the lower ranks and over all, where all ranks say the same of what they are
/// doing; a rank that failed before passes its error.
///
/// Errors: `Conflict` that says who does what; `Invalid` where the sum is beyond 2^63.
pub fn same_call(team: &Team, step: &'static str, call: &str, count: Result<u64>) -> Result<Joined> {
    let hash = xxh3_64(call.as_bytes());
    let sums = team.sums(step, count.map(|count| vec![count, hash]))?;
    let (Some(before), [total, hashes]) = (sums.before.first(), &sums.total[..]) else {
        return Err(Error::internal("a reduction of two numbers gave others"));
    };
    // Ranks whose calls differ find another sum, all of them, but for one chance in 2^64.
    if *hashes != hash.wrapping_mul(team.size() as u64) {
        return Err(differing(team, step, call, "", "definitions, names and steps are equal on all ranks")?);
    }
    if i64::try_from(*total).is_err() {
        return Err(Code::TooLarge.error("the counts of all ranks make more than 2^63"));
    }
    Ok(Joined { before: *before, total: *total })
}

/// There is no set of a name.
pub fn no_set<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Error {
    let names: Vec<&str> = all.collect();
    let error = Code::VariableNotFound.error(format!("the group has no set '{name}'"));
    match did_you_mean(name, names.iter().copied()) {
        Some(hint) => error.with_hint(hint),
        None => error.with_hint(format!("its sets are {}", names.join(", "))),
    }
}
