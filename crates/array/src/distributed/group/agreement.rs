//! Checks in one reduction that ranks are in the same call, for one set and step; it also shows whether they join
//! counts.

use fieldstone_core::env::comm::{Step, Team};
use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::{Code, Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::distributed::agreed::differing;

/// A rank's number summed over ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// Over the lower ranks.
    pub before: u64,
    /// Over all ranks.
    pub total: u64,
}

/// Collective: the sum of `count` over the lower ranks and over all, if all ranks make the same call; a rank that
/// failed before passes its error.
///
/// Errors: `Conflict` that names the ranks and their calls; `Invalid` if the sum exceeds 2^63.
pub fn same_call(team: &Team, step: impl Into<Step>, call: &str, count: Result<u64>) -> Result<Joined> {
    let step = step.into();
    let hash = xxh3_64(call.as_bytes());
    let own = count.as_ref().map_or(0, |count| *count);
    let most = team.max(step, count.map(|count| vec![hash, !hash, count]))?;
    if most[0] != !most[1] {
        return Err(differing(team, step, call, "", "use equal definitions, names and steps on all ranks")?);
    }
    if most[2] == 0 {
        return Ok(Joined { before: 0, total: 0 });
    }
    let sums = team.sums(step, Ok(vec![own]))?;
    let (before, total) = (sums.before[0], sums.total[0]);
    // If the maximum is small enough, the sum has not wrapped.
    let fits = most[2] <= u64::MAX / team.size() as u64 && i64::try_from(total).is_ok();
    match fits {
        true => Ok(Joined { before, total }),
        false => Err(Code::TooLarge.error("the counts of all ranks add up to more than 2^63")),
    }
}

/// The error for a name that no set has.
pub fn no_set<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Error {
    let names: Vec<&str> = all.collect();
    let error = Code::VariableNotFound.error(format!("the group has no set '{name}'"));
    match did_you_mean(name, names.iter().copied()) {
        Some(hint) => error.with_hint(hint),
        None => error.with_hint(format!("its sets are {}", names.join(", "))),
    }
}
