//! `fieldstone graph fields`: the fields that an execution wrote.

use clap::Args;
use fieldstone::Session;
use fieldstone::json;

use crate::graph::{Graphed, vertex};
use crate::output::{Done, Out};
use crate::table::{self, Column};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph fields store job:17
  fieldstone graph fields store process:17/node1-4711 --json

For a job this includes the fields of its processes; for a commit it lists the fields that the commit made visible.
Fields that were replaced or removed since are not listed. When the output is not a terminal, each line has key and
bytes, separated by a tab.

With --json: {\"fields\": [...]} as in fieldstone list.";

/// List the fields that an execution wrote
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// TYPE:ID
    vertex: String,
}

/// Lists.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let name = vertex(&arguments.vertex)?;
    let store = arguments.store.open()?;
    let entries = store.tracer(&Session::default()).fields_of(&name)?;
    let columns = [Column::text("key").least(16).rank(9), Column::number("bytes").rank(5)];
    let shape = |entry| json::fields::entry(&entry);
    table::list(out, "fields", entries, shape, columns, |entry| {
        vec![entry.key.to_string(), entry.nbytes.to_string()]
    })
}
