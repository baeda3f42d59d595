//! The plan of a query, as text.

use std::fmt::Write;

use fieldstone_core::Result;

use super::Query;
use super::exec::Exec;
use super::hits::hits;
use crate::engine::{Flow, Tables};

/// Answers a query and describes how: the rows that were read for each searched run and tag, then the totals.
///
/// # Errors
/// See [`run`](super::run).
pub fn explain(tables: &mut dyn Tables, query: &Query) -> Result<String> {
    const SHOWN: usize = 100;
    let (mut exec, cond) = Exec::of(tables, &query.expr)?;
    exec.planner.notes = Some(Vec::new());
    hits(&mut exec, &cond, query, false, &mut |_| Ok(Flow::More))?;
    let stats = exec.lookup.stats;
    let notes = exec.planner.notes.unwrap_or_default();
    let mut text = String::new();
    for note in notes.iter().take(SHOWN) {
        let _ = writeln!(text, "{note}");
    }
    if notes.len() > SHOWN {
        let _ = writeln!(text, "… and {} more", notes.len() - SHOWN);
    }
    let _ = write!(
        text,
        "{} hits; read {} rows in {} ranges, {} rows of series, {} pairs of run and tag",
        stats.returned, stats.visited, stats.probes, stats.series, stats.partitions
    );
    Ok(text)
}
