//! `fieldstone graph search`: vertices by words.

use clap::Args;

use crate::graph::{Graphed, print_vertices};
use crate::output::{Done, Out};
use fieldstone::Session;

const EXAMPLES: &str = "\
Examples:
  fieldstone graph search store plasma 'tur*'
  fieldstone graph search store --type file nc 2026

Words are sequences of letters and digits; case does not matter. A vertex matches if its id, its property name, or a
property that was declared as text has all of them. A * at the end of a word matches any ending.

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
    /// The most to list
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
