//! `fieldstone where`: in which file, at which offset the bytes of a field begin.

use clap::Args;
use fieldstone::{ListOptions, json};

use crate::arguments::{Reading, Selecting};
use crate::catalog::or_dash;
use crate::output::{Done, Out};
use crate::table::{self, Column};

const EXAMPLES: &str = "\
Examples:
  fieldstone where store run=a,variable=t,step=6
  fieldstone where store run=a | cut -f1 | cut -d: -f1 | sort -u

Each line has file:offset, a tab, and the key. File names are relative to the store's folder.
With --json: {\"fields\": [{\"key\", \"location\"}, ...]}; with --jsonl these objects, one a line.";

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
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open()?;
    let entries = store.all_of(requests).list(&ListOptions::default())?;
    let columns = [Column::text("location").least(12), Column::text("key").least(12)];
    let shape = |entry| json::fields::located(&entry);
    table::list(out, "fields", entries, shape, columns, |entry| {
        vec![or_dash(entry.place.as_ref()), entry.key.to_string()]
    })
}
