//! The structures of a store as text.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::schema::Selection;
use fieldstone_format::entry::{Blocks, Location};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_journal::medium::Inspect;
use fieldstone_journal::takeover::Takeover;

use crate::api::PlaceFile;
use crate::read::{Part, Scan};
use crate::snapshot::Snapshot;

/// Logs, commits, segments and takeovers, then every version of every field that a request selects.
pub fn dump(inspect: &dyn Inspect, snapshot: &Arc<Snapshot>, selection: Selection) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for log in &snapshot.logs {
        let header = &log.header;
        lines.push(format!(
            "log {} by {}@{} process {}, {} bytes",
            PlaceFile::Own(log.writer, 0),
            header.user,
            header.host,
            header.process,
            log.ends.end() + inspect.tail(log)?
        ));
        inspect.check(log, &mut |ends, outcome| {
            lines.push(match outcome {
                Ok(record) => format!(
                    "  commit {} at {}, {} bytes: stamp {}, {} fields of {} bytes, {} segments{}{}",
                    record.sequence,
                    ends.frame,
                    ends.length,
                    record.stamp,
                    record.fields,
                    record.bytes,
                    record.segments.len(),
                    record.transaction.map(|id| format!(", prepared under {id}")).unwrap_or_default(),
                    record.decision.map_or(String::new(), |d| {
                        let verb = if d.committed { "commits" } else { "aborts" };
                        format!(", {verb} {} in {} logs", d.transaction, d.covers.len())
                    }),
                ),
                Err(e) => format!("  commit {} at {}: {}", ends.sequence, ends.frame, e.message()),
            });
        })?;
        for segment in &log.segments {
            let r = &segment.reference;
            lines.push(format!(
                "  segment at {} of {}: {} bytes, {} entries of {} commits",
                r.offset,
                PlaceFile::Own(log.writer, r.file),
                r.length,
                r.entries,
                r.weight
            ));
        }
    }
    for takeover in snapshot.taken.takeovers().all() {
        lines.extend(takeover_lines(takeover)?);
    }
    let mut scan = Scan::new(snapshot.clone(), selection, None)?.with_removed(true).lenient(true);
    while let Some(versions) = scan.next_key()? {
        lines.push(versions.name());
        for (i, part) in versions.parts.iter().enumerate() {
            let state = match part.entry.is_removal() {
                true => "removed",
                false if i < versions.live => "live",
                false => "masked",
            };
            lines.push(format!("  {state} {}", part_text(part)));
        }
    }
    Ok(lines)
}

/// A takeover, its tables, and the logs that it replaces.
fn takeover_lines(takeover: &Arc<Takeover>) -> Result<Vec<String>> {
    let header = &takeover.header;
    let mut lines = vec![format!(
        "takeover {} by {}@{} process {}, {} bytes: replaces {} logs",
        takeover.shown,
        header.maker.user,
        header.maker.host,
        header.maker.process,
        takeover.bytes,
        takeover.rows(TakeoverTable::Names)
    )];
    for (table, reference) in &takeover.record.tables {
        lines.push(format!("  table {table:?}: {} rows, height {}", reference.rows, reference.height));
    }
    takeover.each_log(|log| {
        let row = &log.row;
        lines.push(format!(
            "  log {}: {} commits, up to stamp {}, first taken over by takeover {}",
            log.writer, row.sequence, row.stamp, row.taken
        ));
        Ok(())
    })?;
    Ok(lines)
}

fn part_text(part: &Part) -> String {
    let entry = &part.entry;
    let what = match &entry.array {
        Some(array) => {
            let piece = array.piece.as_ref().map(|p| format!(" piece [{p}]")).unwrap_or_default();
            format!("{} {:?}{piece}", array.dtype, array.shape)
        }
        None => "bytes".to_owned(),
    };
    let place = match &entry.location {
        Location::None => "created, no bytes yet".to_owned(),
        Location::AttemptTombstone(tombstone) => format!("tombstone of attempt {}", tombstone.attempt),
        Location::Inline { data, .. } => format!("{} bytes in the index", data.len()),
        Location::External(e) if e.parts > 1 => {
            format!("{} at {} in {} parts, one every {} bytes", e.url, e.offset, e.parts, e.stride)
        }
        Location::External(e) => format!("{} at {}", e.url, e.offset),
        Location::Grown(grown) if grown.holes > 0 => {
            format!("{} at {}, {} elements written by nobody", grown.path, grown.offset, grown.holes)
        }
        Location::Grown(grown) => format!("{} at {}", grown.path, grown.offset),
        Location::Removed { only: None } => {
            return format!("commit {} stamp {}", part.commit.sequence, part.order.0);
        }
        Location::Removed { only: Some(only) } => {
            return format!(
                "commit {} stamp {}: what writer {} committed as {}.{}",
                part.commit.sequence, part.order.0, only.writer, only.sequence, only.ordinal
            );
        }
        Location::Blocks { file, offset, blocks, .. } => {
            let blocks = match blocks {
                Blocks::Inline(blocks) => format!("{} blocks", blocks.len()),
                Blocks::Table { offset, .. } => format!("blocks by the table at {offset}"),
            };
            format!("{} at {offset}, {blocks}", PlaceFile::Own(part.holder, *file))
        }
    };
    format!("commit {} stamp {}: {what}, {} bytes, {place}", part.commit.sequence, part.order.0, entry.length)
}
