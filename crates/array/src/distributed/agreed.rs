//! What all ranks have to say alike before they begin a step together.

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Collective: checks that all ranks give the same text. A rank that failed before passes its error.
///
/// Errors: `Conflict` that shows the first two that differ, with the ranks.
pub(crate) fn alike(
    team: &Team,
    step: &'static str,
    local: Result<String>,
    hint: &'static str,
) -> Result<String> {
    let hash = local.as_ref().map_or(0, |text| xxh3_64(text.as_bytes()));
    let text = team.agree(step, local)?;
    let most = team.max(step, Ok(vec![hash, !hash]))?;
    if most.first().copied() == most.get(1).map(|word| !word) {
        return Ok(text);
    }
    let all = team.allgather(step, Ok(text.into_bytes()))?;
    let other = all.iter().position(|other| *other != all[0]).unwrap_or(0);
    let shown = |rank: usize| String::from_utf8_lossy(&all[rank]).into_owned();
    Err(Code::CollectiveMismatch
        .error(format!("rank 0 gives {}; rank {other} {}", shown(0), shown(other)))
        .with_hint(hint))
}
