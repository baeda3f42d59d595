//! `fieldstone graph edges`: the relations at a vertex.

use clap::Args;
use fieldstone::graph::Versions;

use crate::catalog::moment_cell;
use crate::graph::{Graphed, edge_json, props_or_url, stamp, vertex};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph edges store job:17
  fieldstone graph edges store /data/a.nc wasWrittenBy
  fieldstone graph edges store job:17 write --versions --limit 100

A relation is called as this end calls it. Where a program reads, a line has type, far end, time, user and properties,
with tabs between.

With --json: {\"edges\": [...]} of type, src, dst, props, stamp, time, until, user, deleted and archived: the
store that properties were moved to, or null.";

/// List the relations at a vertex
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// TYPE:ID, or the path of a file
    vertex: String,
    /// Relations of this type alone, as either end calls them
    kind: Option<String>,
    /// As it was at this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME", conflicts_with = "versions")]
    at: Option<String>,
    /// Every version, deletions too
    #[arg(long)]
    versions: bool,
    /// At most so many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

/// Lists.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let name = vertex(&arguments.vertex)?;
    let versions = match &arguments.at {
        Some(at) => Versions::At(stamp(at)?),
        None if arguments.versions => Versions::ALL,
        None => Versions::NOW,
    };
    let store = arguments.store.open()?;
    let graph = store.graph();
    let edges = graph.edges(&name, arguments.kind.as_deref(), versions, arguments.limit, None)?;
    if out.json() {
        return out.items("edges", edges.iter().map(|edge| Ok(edge_json(edge, &graph.user_name(edge.user)))));
    }
    let mut table = Table::new([
        Column::text("type").least(8).rank(9),
        Column::text("far end").least(16).rank(8),
        Column::text("time").rank(6),
        Column::text("user").least(4).rank(4),
        Column::text("properties").least(8).rank(5),
    ]);
    for edge in &edges {
        let kind = if edge.deleted { format!("{} deleted", edge.kind) } else { edge.kind.clone() };
        let row = vec![
            kind,
            edge.far.to_string(),
            moment_cell(edge.time),
            graph.user_name(edge.user),
            props_or_url(&edge.props, edge.archived.as_deref()),
        ];
        table.row(row, out)?;
    }
    table.finish(out)
}
