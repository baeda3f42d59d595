//! `fieldstone copy`: fields into another store.

use std::io::Write;

use clap::Args;
use fieldstone::transfer::{TransferOptions, copy, open_target};
use serde_json::json;

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone copy store run=a,step=0/to/24 --to archive
  fieldstone copy store run=a --to /archive/store --lenient --json

Arrays keep type, shape, chunks and whether they are compressed; fields that are not complete are copied
as they are. A new target gets the schema of the source, an old one keeps its own. All fields arrive or
none; what the other store has is read back and compared first. Fields that are there already and equal
are not written again.";

/// Copy fields into another store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
    /// The other store: a folder; made where it is absent
    #[arg(long, value_name = "OTHER")]
    to: String,
    /// Take what exists, where a listed value has no field
    #[arg(long)]
    lenient: bool,
}

/// Prints a line, or a JSON document.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let request = arguments.selecting.parse()?;
    let from = arguments.store.open()?;
    let to = open_target(&arguments.to, &*from)?;
    let options = TransferOptions { strict: !arguments.lenient, progress: None };
    let report = copy(&*from, &[request], &*to, &options)?;
    to.close()?;
    if out.json() {
        out.document(&json!({
            "fields": report.fields,
            "bytes": report.bytes,
            "unchanged": report.unchanged,
        }))?;
    } else {
        let there = match report.unchanged {
            0 => String::new(),
            n => format!(", {n} there already"),
        };
        writeln!(out, "copied {}, {} bytes{there}", count(report.fields, "field"), report.bytes)?;
    }
    Ok(())
}
