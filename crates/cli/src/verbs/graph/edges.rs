//! `fieldstone graph edges`: the relations at a vertex.

use clap::Args;
use fieldstone::Session;
use fieldstone::graph::Versions;

use crate::graph::{Graphed, print_relations, stamp, vertex};
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph edges store job:17
  fieldstone graph edges store /data/a.nc wasWrittenBy
  fieldstone graph edges store job:17 write --versions --limit 100

Relations have the name that this end gives them. When the output is not a terminal, each line has type, far end, time,
user and properties, separated by tabs.

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
    /// The most relations to list
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
    let edges =
        graph.edges(&name, arguments.kind.as_deref(), versions, arguments.limit, &Session::default())?;
    print_relations(graph, &edges, false, out)
}
