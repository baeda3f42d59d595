//! `fieldstone stats`: counts and sizes.

use clap::Args;
use fieldstone::{StatsBy, StatsRow, json};
use serde_json::Value;

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Out, size};
use crate::table::{self, Column};

const EXAMPLES: &str = "\
Examples:
  fieldstone stats store
  fieldstone stats store run=a --json
  fieldstone stats store --by owner
  fieldstone stats store run=a --by variable

With --by, a row for each owner (the user to whom a dataset belongs), dataset, writer (by the id of its log), or value
of a keyword: fields, their bytes, the bytes that they take in the store, and those of hidden versions and removed
fields (dead). With --json: rows, each with name (null for fields without the keyword), fields, nbytes, stored, dead.";

/// Count fields, bytes and files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
    /// A row for each owner, dataset, writer, or value of a keyword
    #[arg(long, value_name = "KEYWORD")]
    by: Option<String>,
}

/// Prints a line per owner, dataset, writer or value.
fn rows(rows: &[StatsRow], by: &str, out: &mut Out) -> Done {
    let numbers = ["fields", "bytes", "stored", "dead"].map(Column::number);
    let columns = [Column::text(by).least(8)].into_iter().chain(numbers);
    table::list(out, "rows", rows.iter().map(Ok), json::fields::stats_row, columns, |row| {
        let numbers = [row.fields, row.nbytes, row.stored, row.dead].map(|number| number.to_string());
        let name = row.name.clone().unwrap_or_else(|| "-".to_owned());
        std::iter::once(name).chain(numbers).collect()
    })
}

/// Prints a line per count.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open()?;
    if let Some(by) = &arguments.by {
        return rows(&store.all_of(requests).stats_by(&StatsBy::parse(by))?, by, out);
    }
    let stats = store.all_of(requests).stats()?;
    let counts = json::fields::stats(&stats);
    if out.json() {
        return out.document(&counts);
    }
    let meanings = [
        ("datasets", "datasets"),
        ("indexes", "indexes"),
        ("fields", "visible fields"),
        ("bytes", "bytes of the visible fields"),
        ("stored_bytes", "bytes that they take in the store"),
        ("masked", "versions and pieces that newer ones hide"),
        ("writers", "writers"),
        ("segments", "segments"),
        ("files", "files of the store"),
        ("file_bytes", "bytes of all its files"),
    ];
    for (name, meaning) in meanings {
        let number = counts.get(name).and_then(Value::as_u64).unwrap_or(0);
        let short = if name.ends_with("bytes") && number >= 10 << 10 {
            format!(" ({})", size(number))
        } else {
            String::new()
        };
        out.line(format_args!("{number:>16} {meaning}{short}"))?;
    }
    Ok(())
}
