//! `fieldstone trace`: where a result came from, or what came from it.

use clap::Args;
use fieldstone::graph::{TraceOptions, Way};
use serde_json::json;

use crate::graph::{Graphed, edge_json, stamp, vertex};
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone trace store /data/plot.png
  fieldstone trace store job:17 --down
  fieldstone trace store plot.png --at 2026-11-21T06:00 --json

WHAT is the path of a file, or TYPE:ID. The walk goes by cause: what was read after a result was written did not go
into it, and what a later write replaced did not come from the earlier one. A job and its processes count as one.

With --json: root, vertices of type, id and depth, edges of type, src, dst, props, stamp, time, until, user and deleted,
and truncated.";

/// Show where a result came from, or what came from it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// The path of a file, or TYPE:ID
    what: String,
    /// What came from it, not what it came from
    #[arg(long)]
    down: bool,
    /// Hops, at most
    #[arg(long, value_name = "HOPS")]
    depth: Option<u32>,
    /// As it was at this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// With --down: from this moment on
    #[arg(long, value_name = "TIME", requires = "down")]
    since: Option<String>,
    /// Follow what holds now, whatever the times
    #[arg(long)]
    any_time: bool,
    /// Vertices, at most
    #[arg(long, value_name = "VERTICES", default_value_t = 10_000)]
    limit: usize,
    /// Lines, at most, where it is printed as a tree
    #[arg(long, value_name = "LINES", default_value_t = 1_000)]
    lines: usize,
}

/// Traces.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let root = vertex(&arguments.what)?;
    let options = TraceOptions {
        way: if arguments.down { Way::Down } else { Way::Up },
        depth: arguments.depth,
        at: arguments.at.as_deref().map(stamp).transpose()?,
        since: arguments.since.as_deref().map(stamp).transpose()?,
        causal: !arguments.any_time,
        limit: arguments.limit,
    };
    let store = arguments.store.open()?;
    let graph = store.graph();
    let lineage = graph.trace(&root, &options, None)?;
    if out.json() {
        let edges = lineage.edges.iter().map(|edge| edge_json(edge, &graph.user_name(edge.user)));
        let vertices = lineage
            .vertices
            .iter()
            .map(|step| json!({"type": &*step.name.kind, "id": &*step.name.id, "depth": step.depth}));
        out.document(&json!({
            "root": [&*lineage.root.kind, &*lineage.root.id],
            "vertices": vertices.collect::<Vec<_>>(),
            "edges": edges.collect::<Vec<_>>(),
            "truncated": lineage.truncated,
        }))?;
    } else {
        out.line(lineage.tree(arguments.lines.max(1)))?;
    }
    Ok(store.close()?)
}
