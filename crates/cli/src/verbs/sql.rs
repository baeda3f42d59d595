//! `fieldstone sql`: a read-only statement over the catalog's views.

use clap::Args;
use fieldstone::json;

use crate::arguments::Reading;
use crate::catalog::value_cell;
use crate::output::{Done, Out};
use crate::table::{self, Column};

const EXAMPLES: &str = "\
Examples:
  fieldstone sql store 'select run, count(*) from attributes group by run'
  fieldstone sql store 'select name, type, unit from tags' --json

Runs one SELECT over the views runs, steps, variables, tags and attributes, which the guide \"tag and find\" describes.
It cannot write. When the output is not a terminal, tabs separate the columns.

With --json: {\"rows\": [...]}, an object for each row, with the names of the columns.";

/// Ask the catalog's views in SQL
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    /// One SELECT statement
    #[arg(value_name = "STATEMENT")]
    statement: String,
}

/// Asks.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let (names, rows) = arguments.store.open()?.catalog().sql(&arguments.statement)?;
    let columns = names.iter().map(|name| Column::text(name).least(6));
    let shape = |row| json::catalog::row(&names, row);
    let rows = rows.iter().map(Vec::as_slice).map(Ok);
    table::list(out, "rows", rows, shape, columns, |row| row.iter().map(value_cell).collect())
}
