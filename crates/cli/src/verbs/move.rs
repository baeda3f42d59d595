//! `fieldstone move`: fields into another store.

use std::io::Write;

use clap::Args;
use fieldstone::transfer::{TransferOptions, move_fields, open_target};
use fieldstone::{Mode, OpenOptions};
use serde_json::json;

use crate::arguments::Selecting;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone move store run=a,step=0/to/24 --to archive
  fieldstone move store run=a --to /archive/store --lenient --json

Copies as `fieldstone copy` does, and removes the fields here after what the other store has was compared.
A newer version written meanwhile stays, and is reported on stderr. What was moved stays readable in older
versions (--at). A crash leaves a field in one store or in both.";

/// Move fields into another store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The store: a folder
    store: String,
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
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    // NotFound where no store is, as for all verbs that need one.
    fieldstone::open(&arguments.store, &reading)?;
    let from = fieldstone::open(&arguments.store, &OpenOptions::default())?;
    let to = open_target(&arguments.to, &*from)?;
    let options = TransferOptions { strict: !arguments.lenient, progress: None };
    let report = move_fields(&*from, &[request], &*to, &options)?;
    to.close()?;
    for key in &report.kept {
        out.note(format_args!("{key} was written again meanwhile: the newer version stays here"));
    }
    if out.json() {
        out.document(&json!({
            "fields": report.fields,
            "bytes": report.bytes,
            "unchanged": report.unchanged,
            "removed": report.removed,
            "kept": report.kept,
        }))?;
    } else {
        let there = match report.unchanged {
            0 => String::new(),
            n => format!(", {n} there already"),
        };
        writeln!(out, "moved {}, {} bytes{there}", count(report.fields, "field"), report.bytes)?;
    }
    Ok(())
}
