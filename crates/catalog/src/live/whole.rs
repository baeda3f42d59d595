//! Calls about the logs or the engine as a whole.

use fieldstone_core::Result;
use fieldstone_format::catalog::{declares, is_catalog};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::Session;
use fieldstone_journal::feed::Feed;

use super::{CatalogCheck, RebuildReport};
use crate::engine::{self, Index, Sqlite, is_busy};
use crate::reader::connection::{Connection, Patience};
use crate::reader::following::Replayed;
use crate::reader::{EngineReader, Visibility};

/// Maximum number of differences that a check lists.
const NAMED: usize = 100;

/// Whether some commit of the logs has such a record; the search ends at the first one.
fn any_record(feed: &Feed, is: fn(&SideRecord) -> bool) -> Result<bool> {
    for (writer, _) in feed.logs() {
        for commit in feed.commits(writer, 0)? {
            if commit?.side.iter().any(is) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether some commit of the logs declares something.
pub fn has_declarations(reader: &EngineReader) -> Result<bool> {
    any_record(&reader.store.journal.looks().feed()?, declares)
}

/// Whether the logs, or this handle, hold anything for the catalog. Does not use or create the engine.
pub fn has_records(reader: &EngineReader) -> Result<bool> {
    let moment = reader.consistent_read(Visibility::All(&Session::default()))?;
    Ok(moment.has_own() || any_record(&moment.seen.feed, is_catalog)?)
}

/// Builds the engine's tables again.
pub fn rebuild(reader: &EngineReader) -> Result<RebuildReport> {
    reader.forget_apply_error();
    let feed = reader.store.journal.looks().feed()?;
    let place = reader.connections.location_for(&feed.heads())?;
    let mut work = |engine: &mut Connection| reader.follower.replay(engine.index()?, &feed);
    let outcome = reader.connections.with(&place, Patience::Full, &mut work);
    let Replayed { applied, attributes } =
        outcome.map_err(|e| if is_busy(&e) { reader.connections.held(&place, e) } else { e })?;
    Ok(RebuildReport {
        logs: applied.logs,
        commits: applied.commits,
        attributes,
        fields: applied.entries,
        engine: place.to_string(),
    })
}

/// Compares the engine with a replay, line by line.
pub fn verify(reader: &EngineReader) -> Result<CatalogCheck> {
    reader.raise_apply_error()?;
    let moment = reader.consistent_read(Visibility::Synced)?;
    let feed = moment.seen.feed.clone();
    let mut replayed = Index::open(Box::new(Sqlite::temporary()?), reader.store.journal.home().id)?;
    reader.follower.replay(&mut replayed, &feed)?;
    let mut check = CatalogCheck::default();
    check.damaged.extend(replayed.take_problems().iter().map(|e| e.message().to_owned()));
    let problems = feed.problems().into_iter().filter(|problem| problem.damage);
    check.damaged.extend(problems.map(|problem| format!("{}: {}", problem.file, problem.why)));
    let compared =
        reader.look_from(moment, Visibility::Synced, &mut |index| engine::compare(&mut replayed, index))?;
    check.lines = compared.lines;
    let missing = compared.first_alone.iter().map(|line| format!("missing from the engine: {line}"));
    let unknown = compared.second_alone.iter().map(|line| format!("not in the logs: {line}"));
    check.different.extend(missing.chain(unknown).take(NAMED));
    Ok(check)
}
