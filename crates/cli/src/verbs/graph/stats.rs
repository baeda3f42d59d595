//! `fieldstone graph stats`: what there is in the graph.

use clap::Args;
use fieldstone::json;

use crate::catalog::moment_cell;
use crate::graph::Graphed;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph stats store

It counts vertices and versions of relations in each segment, so one that is in two segments counts twice.

With --json: segments, vertices, relations, bytes, problems, and archives of url and before.";

/// Count what there is in the graph
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
}

/// Counts.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    let stats = store.graph().stats()?;
    store.close()?;
    if out.json() {
        return out.document(&json::graph::stats(&stats));
    }
    let relations = match stats.relations {
        1 => "1 version of a relation".to_owned(),
        n => format!("{n} versions of relations"),
    };
    let (vertices, segments) = (stats.vertices, count(stats.segments, "segment"));
    out.line(format_args!("{relations}, {vertices} vertices, {segments} of {} bytes", stats.bytes))?;
    for archive in &stats.archives {
        let before = moment_cell(i64::try_from(archive.before).unwrap_or(i64::MAX));
        out.line(format_args!("what was hidden at {before} is in {}", archive.url))?;
    }
    stats.problems.iter().try_for_each(|problem| out.line(format_args!("problem: {problem}")))
}
