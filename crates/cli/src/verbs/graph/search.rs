//! `fieldstone graph search`: vertices by words.

use clap::Args;

use crate::graph::{Graphed, props_cell, vertex_json};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph search store plasma 'tur*'
  fieldstone graph search store --type file nc 2026

Words are runs of letters and digits, in any case; all of them stand in the id, in the property name, or in a property
that was declared as text. A * behind a word stands for any end.

With --json: {\"vertices\": [...]} of type, id, static, props, stamp, time, user and deleted.";

/// Find vertices by words in their ids, names and texts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// The words
    #[arg(required = true)]
    words: Vec<String>,
    /// Vertices of this type alone
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// At most so many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

/// Searches.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    let graph = store.graph();
    let words = arguments.words.join(" ");
    let found = graph.search(&words, arguments.kind.as_deref(), arguments.limit, None)?;
    if out.json() {
        let row = |vertex| vertex_json(vertex, &graph.user_name(vertex.user));
        return out.items("vertices", found.iter().map(|vertex| Ok(row(vertex))));
    }
    let mut table = Table::new([
        Column::text("vertex").least(16).rank(9),
        Column::text("user").least(4).rank(4),
        Column::text("properties").least(8).rank(5),
    ]);
    for vertex in &found {
        let all: Vec<_> = vertex.fixed.iter().chain(&vertex.props).cloned().collect();
        table.row(vec![vertex.name.to_string(), graph.user_name(vertex.user), props_cell(&all)], out)?;
    }
    table.finish(out)
}
