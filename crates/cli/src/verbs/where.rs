//! `fieldstone where`: in which file, at which offset the bytes of a field begin.

use std::io::Write;

use clap::Args;
use fieldstone::ListOptions;
use serde_json::json;

use crate::arguments::{Reading, Selecting};
use crate::json;
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone where store run=a,variable=t,step=6
  fieldstone where store run=a | cut -f1 | cut -d: -f1 | sort -u

A line holds file:offset, a tab, and the key. Files are named relative to the store's folder.";

/// Show where the bytes of fields are
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
}

/// Prints a line per field.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let request = arguments.selecting.parse()?;
    let store = arguments.store.open()?;
    let entries = store.list(&request, &ListOptions::default())?;
    if out.json() {
        out.write_all(b"{\"fields\": [")?;
    }
    for (i, entry) in entries.enumerate() {
        let entry = entry?;
        if out.json() {
            out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
            let location = json::entry(&entry)["location"].take();
            out.json_value(&json!({"key": json::key(&entry.key, 3), "location": location}))?;
            continue;
        }
        match &entry.place {
            Some(place) => writeln!(out, "{place}\t{}", entry.key)?,
            None => writeln!(out, "-\t{}", entry.key)?,
        }
    }
    if out.json() {
        out.write_all(b"\n]}\n")?;
    }
    Ok(())
}
