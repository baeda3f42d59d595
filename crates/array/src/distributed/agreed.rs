//! Checks that all ranks pass the same arguments before they begin a step together.

use fieldstone_core::env::comm::{Step, Team};
use fieldstone_core::{Code, Error, Result};
use xxhash_rust::xxh3::xxh3_64;

/// Collective: checks that all ranks pass the same text. A rank that failed before passes its error.
///
/// Errors: `Conflict` with the first two texts that differ, and their ranks.
pub(crate) fn alike(
    team: &Team,
    step: impl Into<Step>,
    local: Result<String>,
    hint: &'static str,
) -> Result<String> {
    let step = step.into();
    let words = local.as_ref().map_err(Error::replicate).map(|text| {
        let hash = xxh3_64(text.as_bytes());
        vec![hash, !hash]
    });
    let most = team.max(step, words)?;
    let text = local?;
    match most[0] == !most[1] {
        true => Ok(text),
        false => Err(differing(team, step, &text, "gives ", hint)?),
    }
}

/// Collective: the error for ranks whose texts differ: `Conflict` with the first two texts that differ, and their
/// ranks; of several lines, the first that differs. The message has `verb` between a rank and its text.
pub(crate) fn differing(
    team: &Team,
    step: impl Into<Step>,
    text: &str,
    verb: &str,
    hint: &str,
) -> Result<Error> {
    let step = step.into();
    let all = team.allgather(step, Ok(text.as_bytes().to_vec()))?;
    let text_of =
        |rank: usize| all.get(rank).map_or_else(Default::default, |text| String::from_utf8_lossy(text));
    let other = all.iter().position(|text| Some(text) != all.first()).unwrap_or(0);
    let (first, second) = (text_of(0), text_of(other));
    let (mut lines, mut others) = (first.lines(), second.lines());
    let (own, its) = loop {
        match (lines.next(), others.next()) {
            (Some(own), Some(its)) if own == its => {}
            (own, its) => break (own, its),
        }
    };
    let said = |rank: usize, line: Option<&str>| match line {
        Some(line) => format!("rank {rank} {verb}{line}"),
        None => format!("rank {rank} has no further line"),
    };
    Ok(Code::CollectiveMismatch.error(format!("{}; {}", said(0, own), said(other, its))).with_hint(hint))
}
