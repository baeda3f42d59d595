//! `fieldstone stats`: counts and sizes.

use clap::Args;
use fieldstone::json;
use serde_json::Value;

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Out, size};

const EXAMPLES: &str = "\
Examples:
  fieldstone stats store
  fieldstone stats store run=a --json";

/// Count fields, bytes and files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
}

/// Prints a line per count.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open()?;
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
