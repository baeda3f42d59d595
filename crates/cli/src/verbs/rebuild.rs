//! `fieldstone rebuild`: the catalog's engine, made again from the store's logs.

use clap::Args;
use serde_json::json;

use crate::arguments::Reading;
use crate::catalog::reading;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone rebuild store

The truth is in the store's logs; the engine that answers queries is an index over them. It follows them by
itself, and is made again by itself where it is lost or damaged: this does so at once. No answer changes.

With --json: logs, commits, attributes, fields and engine, the file or server where it is.";

/// Make the catalog's engine again from the logs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
}

/// Rebuilds.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let report = reading(&arguments.store)?.rebuild()?;
    if out.json() {
        return out.document(&json!({
            "logs": report.logs,
            "commits": report.commits,
            "attributes": report.attributes,
            "fields": report.fields,
            "engine": report.engine,
        }));
    }
    let parts = [
        count(report.logs, "log"),
        count(report.commits, "commit"),
        count(report.attributes, "attribute"),
        count(report.fields, "field"),
    ];
    out.line(format_args!("rebuilt {}: {}", report.engine, parts.join(", ")))
}
