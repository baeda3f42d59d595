//! `fieldstone container stats`: objects and bytes, in all and below each path.

use std::path::PathBuf;

use clap::Args;
use fieldstone::container::{look, stats};
use fieldstone::json;

use crate::output::{Done, Format, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone container stats events.nc
  fieldstone container stats events.nc --depth 2
  fieldstone container stats events.nc --depth 0 --json

Each line has a path with its dimensions, attributes, variables and bytes of data; the path / holds objects without
a path, and the last line is the sum. Attributes of variables are not counted. When the output is not a terminal, tabs
separate the columns.

With --json: format, dims, attrs, vars, bytes and paths (path, dims, attrs, vars, bytes).";

/// Count objects and bytes, in all and below each path
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The container
    file: PathBuf,
    /// How many parts of a path are distinguished
    #[arg(long, default_value_t = 1, value_name = "PARTS")]
    depth: usize,
}

/// Prints a line per path.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let file = look::open(&arguments.file, look::Names::Paths)?;
    let stats = stats::totals(file.metadata(), arguments.depth)?;
    let shown = |path: &str| if path.is_empty() { "/".to_owned() } else { path.to_owned() };
    match out.format() {
        Format::JsonLines => {
            return out.items("paths", stats.paths.iter().map(|place| Ok(json::container::path(place))));
        }
        Format::Json => {
            return out.document(&json::container::totals(file.metadata().format(), &stats));
        }
        Format::Text => {}
    }
    let mut table = Table::new([
        Column::text("path").least(12).rank(9),
        Column::number("dimensions"),
        Column::number("attributes"),
        Column::number("variables").rank(7),
        Column::number("bytes").rank(6),
    ]);
    let sum = ("all".to_owned(), stats.counts, stats.bytes);
    let lines = stats.paths.iter().map(|place| (shown(&place.path), place.counts, place.bytes));
    for (path, counts, bytes) in lines.chain([sum]) {
        let numbers = [counts.dims, counts.attrs, counts.vars, bytes].map(|n| n.to_string());
        table.row([path].into_iter().chain(numbers).collect(), out)?;
    }
    table.finish(out)
}
