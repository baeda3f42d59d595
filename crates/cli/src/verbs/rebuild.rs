//! `fieldstone rebuild`: the catalog's engine and the graph's segments, made again from the store's logs.

use clap::Args;
use fieldstone::json;
use fieldstone::prelude::*;

use crate::arguments::Reading;
use crate::output::{Done, Out, count};
use crate::progress::Ticker;

const EXAMPLES: &str = "\
Examples:
  fieldstone rebuild store

The truth is in the store's logs; the catalog's engine and the graph's segments, which answer questions, are indexes over
them. They follow them by themselves, and are made again where they are lost or damaged: this does so at once. No
answer changes.

With --json: logs, commits, attributes, fields and engine, the file or server where it is, and of the graph relations.";

/// Make the catalog's engine and the graph's segments again from the logs
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
