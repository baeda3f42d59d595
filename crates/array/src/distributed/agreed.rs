//! What all ranks have to say alike before they begin a step together.

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};
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
    Err(differing(team, step, &text, "gives ", hint)?)
}

/// Collective: the error of ranks that found out that their texts are not alike: `Conflict` that shows the first two that
/// differ, with the ranks; `verb` stands between a rank and its text.
pub(crate) fn differing(
    team: &Team,
    step: &'static str,
    text: &str,
    verb: &str,
    hint: &str,
) -> Result<Error> {
    let all = team.allgather(step, Ok(text.as_bytes().to_vec()))?;
    let said = |rank: usize| {
        all.get(rank).map_or_else(String::new, |text| String::from_utf8_lossy(text).into_owned())
    };
    let other = all.iter().position(|text| Some(text) != all.first()).unwrap_or(0);
    Ok(Code::CollectiveMismatch
        .error(format!("rank 0 {verb}{}; rank {other} {verb}{}", said(0), said(other)))
        .with_hint(hint))
}
