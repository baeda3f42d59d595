//! `fieldstone copy`: fields, and what stands on them, into another store.

use std::io::Write;

use clap::Args;
use fieldstone::transfer::{TransferOptions, copy, open_target};
use serde_json::json;

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Out};
use crate::progress::Bar;
use crate::transferred::{done, left_rows, note_left, what};

const EXAMPLES: &str = "\
Examples:
  fieldstone copy store run=a,step=0/to/24 --to archive
  fieldstone copy store run=a --to /archive/store --lenient --json
  fieldstone copy store --find 'tag=maximum and value>9000' --to extremes

Attributes, tags, parameters of runs, times of steps and declarations of variables come along; with
--fields-only they stay, and are counted. What the target declares otherwise is a conflict, and nothing is
copied. Arrays keep type, shape, chunks and whether they are compressed; fields that are not complete are copied
as they are. A new target gets the schema of the source, an old one keeps its own. All fields arrive or
none; what the other store has is read back and compared first. Fields that are there already and equal
are not written again.";

/// Copy fields, and what stands on them, into another store
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
    let from = arguments.store.open()?;
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
    let report = copy(&from, what, &to, &options)?;
    drop(bar);
    to.close()?;
    if out.json() {
        out.document(&json!({
            "fields": report.fields,
            "bytes": report.bytes,
            "unchanged": report.unchanged,
            "attributes": report.attributes,
            "left": left_rows(&report.left),
        }))?;
    } else {
        writeln!(out, "copied {}", done(&report))?;
        note_left(&report.left, out);
    }
    Ok(())
}
