//! `fieldstone graph search`: vertices by words.

use clap::Args;

use crate::graph::{Graphed, print_vertices};
use crate::output::{Done, Out};
use fieldstone::Session;

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
    let found = graph.search(&words, arguments.kind.as_deref(), arguments.limit, &Session::default())?;
    print_vertices(graph, &found, out)
}
