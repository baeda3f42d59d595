//! `fieldstone rebuild`: rebuilds the catalog's engine and the graph's segments from the store's logs.

use clap::Args;
use fieldstone::json;
use fieldstone::prelude::*;

use crate::arguments::Reading;
use crate::output::{Done, Out, count};
use crate::progress::Ticker;

const EXAMPLES: &str = "\
Examples:
  fieldstone rebuild store

The store's logs hold the truth; the catalog's engine and the graph's segments are indexes over them that answer
queries. The store keeps them up to date, and rebuilds them when they are lost or damaged. This verb does so now. No
answer changes.

With --json: logs, commits, attributes, fields and engine, the file or server where it is, and of the graph relations.";

/// Rebuild the catalog's engine and the graph's segments from the logs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
}

/// Rebuilds.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    let ticker = Ticker::start(format!("rebuilding {}", store.url()), out);
    let report = store.catalog().rebuild()?;
    let graph = store.graph().rebuild()?;
    drop(ticker);
    if out.json() {
        return out.document(&json::catalog::rebuilt(&report, graph.relations));
    }
    let parts = [
        count(report.logs, "log"),
        count(report.commits, "commit"),
        count(report.attributes, "attribute"),
        count(report.fields, "field"),
        count(graph.relations, "relation"),
    ];
    out.line(format_args!("rebuilt {}: {}", report.engine, parts.join(", ")))
}
