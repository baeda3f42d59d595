//! `fieldstone move`: fields, and what stands on them, into another store.

use std::io::Write;

use clap::Args;
use fieldstone::transfer::{TransferOptions, move_to, open_target};
use fieldstone::{Mode, OpenOptions};
use serde_json::json;

use crate::arguments::Selecting;
use crate::output::{Done, Out};
use crate::progress::Bar;
use crate::transferred::{done, left_rows, note_left, what};

const EXAMPLES: &str = "\
Examples:
  fieldstone move store run=a,step=0/to/24 --to archive
  fieldstone move store run=a --to /archive/store --lenient --json

Copies as `fieldstone copy` does, and removes here what it carried, after what the other store has was compared.
Attributes go with their field, runs, steps and variables once nothing of them stays.
A newer version written meanwhile stays, and is reported on stderr. What was moved stays readable in older
versions (--at). A crash leaves a field in one store or in both.";

/// Move fields, and what stands on them, into another store
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
    /// Take the attributes that this query finds, and the fields under them, in place of a request
    #[arg(long, value_name = "QUERY")]
    find: Option<String>,
    /// Take fields alone, and say what stays behind
    #[arg(long)]
    fields_only: bool,
    /// Take what exists, where a listed value has no field
    #[arg(long)]
    lenient: bool,
}

/// Prints a line, or a JSON document.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let what = what(&arguments.selecting, arguments.find.as_deref())?;
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    // NotFound where no store is, as for all verbs that need one.
    fieldstone::open(&arguments.store, &reading)?;
    let from = fieldstone::open(&arguments.store, &OpenOptions::default())?;
    let to = open_target(&arguments.to, &*from)?;
    let bar = Bar::new("fields", out);
    let progress = |done: u64, of: u64| {
        bar.show(done, of);
        Ok(())
    };
    let options = TransferOptions {
        strict: !arguments.lenient,
        fields_only: arguments.fields_only,
        progress: Some(&progress),
    };
    let report = move_to(&from, what, &to, &options)?;
    drop(bar);
    to.close()?;
    for key in &report.kept {
        out.note(format_args!("{key} was written again meanwhile: the newer version stays here"));
    }
    if out.json() {
        out.document(&json!({
            "fields": report.fields,
            "bytes": report.bytes,
            "unchanged": report.unchanged,
            "attributes": report.attributes,
            "removed": report.removed,
            "kept": report.kept,
            "left": left_rows(&report.left),
        }))?;
    } else {
        writeln!(out, "moved {}", done(&report))?;
        note_left(&report.left, out);
    }
    Ok(())
}
