//! Calls that look at the logs or the engine as a whole.

use std::collections::HashSet;

use fieldstone_core::Result;
use fieldstone_format::catalog::{declares, is_catalog};
use fieldstone_journal::Session;

use super::{CatalogCheck, RebuildReport};
use crate::engine::{Index, Sqlite, is_busy};
use crate::reader::connection::{Connection, Patience};
use crate::reader::following::Replayed;
use crate::reader::{EngineReader, Visibility};

/// Differences that a check names.
const NAMED: usize = 100;

/// Whether some commit of the logs declares something; the first that does ends the search.
pub fn has_declarations(reader: &EngineReader) -> Result<bool> {
    let feed = reader.store.journal.feed()?;
    for (writer, _) in feed.heads() {
        for commit in feed.commits(writer, 0)? {
            if commit?.side.iter().any(declares) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether the logs, or this handle, hold anything for the catalog. The engine is not asked, and not made.
pub fn has_records(reader: &EngineReader) -> Result<bool> {
    let view = reader.consistent_view(Visibility::All(&Session::default()))?;
    if view.has_own() {
        return Ok(true);
    }
    for (writer, _) in view.seen.feed.heads() {
        for commit in view.seen.feed.commits(writer, 0)? {
            if commit?.side.iter().any(is_catalog) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Makes the engine's tables anew.
pub fn rebuild(reader: &EngineReader) -> Result<RebuildReport> {
    reader.forget_apply_error();
    let feed = reader.store.journal.feed()?;
    let place = reader.follower.connections.location_for(&feed.heads())?;
    let mut work = |engine: &mut Connection| reader.follower.replay(engine.index()?, &feed);
    let outcome = reader.follower.connections.with(&place, Patience::Full, &mut work);
    let Replayed { applied, attributes } =
        outcome.map_err(|e| if is_busy(&e) { reader.follower.connections.held(&place, e) } else { e })?;
    Ok(RebuildReport {
        logs: applied.logs,
        commits: applied.commits,
        attributes,
        fields: applied.entries,
        engine: place.to_string(),
    })
}

/// Compares the engine with a replay, both as lines of text in memory.
pub fn verify(reader: &EngineReader) -> Result<CatalogCheck> {
    reader.raise_apply_error()?;
    let feed = reader.store.journal.feed()?;
    let mut replayed = Index::open(Box::new(Sqlite::memory()?), reader.store.journal.home().id)?;
    reader.follower.replay(&mut replayed, &feed)?;
    let mut check = CatalogCheck::default();
    check.damaged.extend(replayed.take_problems().iter().map(|e| e.message().to_owned()));
    let problems = feed.problems().into_iter().filter(|problem| problem.damage);
    check.damaged.extend(problems.map(|problem| format!("{}: {}", problem.file, problem.why)));
    let expected = replayed.dump()?;
    let found = reader.look(Visibility::Synced, &mut |index| index.dump())?;
    check.lines = expected.lines().count() as u64;
    let sides = [(&expected, &found, "the engine lacks"), (&found, &expected, "the logs do not say")];
    for (have, other, what) in sides {
        let other: HashSet<&str> = other.lines().collect();
        let missing = have.lines().filter(|line| !other.contains(line));
        let room = NAMED - check.different.len().min(NAMED);
        check.different.extend(missing.take(room).map(|line| format!("{what}: {line}")));
    }
    Ok(check)
}
