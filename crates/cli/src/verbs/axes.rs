//! `fieldstone axes`: the values that each keyword has.

use clap::Args;
use fieldstone::{KeyValue, Quoted, ReadOptions, json};

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Format, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone axes store
  fieldstone axes store run=a,variable=t

Each line is a part of a request: step=0/6/12. On a terminal it also shows the number of values.
With --json: {\"step\": [\"0\", \"6\"], ...}; with --jsonl: {\"keyword\": \"step\", \"values\": [...]} a line.";

/// Show the values that each keyword has
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
}

/// Prints a line per keyword.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open()?;
    let axes = store.all_of(requests).axes(&ReadOptions::default())?;
    match out.format() {
        Format::Json => out.document(&json::fields::axes(&axes)),
        Format::JsonLines => out.items("axes", axes.iter().map(|axis| Ok(json::fields::axis(axis)))),
        Format::Text if out.width().is_some() => {
            let columns =
                [Column::text("keyword"), Column::number("values"), Column::text("").least(10).rank(6)];
            let mut table = Table::new(columns);
            for (name, values) in &axes {
                table.row(vec![name.to_string(), values.len().to_string(), list(values)], out)?;
            }
            table.finish(out)
        }
        Format::Text => {
            axes.iter().try_for_each(|(name, values)| out.line(format_args!("{name}={}", list(values))))
        }
    }
}

/// The values as a request has them.
fn list(values: &[KeyValue]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| Quoted(&value.text()).to_string()).collect();
    quoted.join("/")
}
