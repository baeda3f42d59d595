//! `fieldstone graph archive`: hidden versions move to another store.

use clap::Args;
use fieldstone::graph::archive;
use fieldstone::json;

use crate::arguments::Writing;
use crate::graph::stamp;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph archive store --before 2026-01-01 --to /archive/graph
  fieldstone graph archive store --before 2026-01-01 --to /archive/graph --doit

Without --doit it only prints what it would move. It moves the properties of a version of a vertex or relation if its
user put a newer version before that moment, so that reads at that moment or later give the same answers. The graph
still knows which versions existed when, and lineages stay whole; a read of moved properties names the store that has
them. Only your own versions move.

With --json: vertices, relations, bytes, others (versions that other users can move) and done.";

/// Move what hidden versions say to another store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// Move versions that newer ones hide at this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME")]
    before: String,
    /// The target store; created if it does not exist
    #[arg(long, value_name = "STORE")]
    to: String,
    /// Do it; without it only say what would move
    #[arg(long)]
    doit: bool,
}

/// Moves, or says what would move.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let before = stamp(&arguments.before)?;
    let store = arguments.store.open()?;
    let report = archive(&store, before, &arguments.to, arguments.doit)?;
    store.close()?;
    if out.json() {
        return out.document(&json::graph::archived(&report));
    }
    let done = if report.done { "moved" } else { "would move" };
    let (vertices, relations) = (count(report.vertices, "version"), count(report.relations, "version"));
    out.line(format_args!(
        "{done} {vertices} of vertices, {relations} of relations, {} bytes",
        report.bytes
    ))?;
    if report.others > 0 {
        out.note(format_args!("{} of other users stay", count(report.others, "version")));
    }
    if !report.done && report.vertices + report.relations > 0 {
        out.note("nothing was moved: give --doit to do it");
    }
    Ok(())
}
