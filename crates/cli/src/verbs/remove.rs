//! `fieldstone remove`: removes fields.

use std::collections::HashSet;

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{Code, ListOptions, RemoveOptions, Session};
use serde_json::json;

use crate::arguments::{Selecting, Writing};
use crate::output::{Done, Out, count, size};

const EXAMPLES: &str = "\
Examples:
  fieldstone remove store run=a variable=t step=24
  fieldstone remove store run=a variable=t step=24 --doit
  fieldstone remove store run=a step=30/to/48/by/6 --doit
  fieldstone list store run=a --compact > old; fieldstone remove store @old --doit

Without --doit it only prints what it would remove. It removes all of the fields or none; those of other users' datasets
are Denied. Attributes and lineage stay: `delete` deletes attributes. Older versions of the store still show the fields
(--at), and their bytes keep their space until a `purge`.

With --json: fields, nbytes, done.";

/// Remove fields
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
    /// Do it; without this option it only prints what it would remove
    #[arg(long)]
    doit: bool,
}

/// Removes, or prints what it would remove.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open_existing()?;
    for request in requests {
        if store.select(request)?.names_nothing() {
            return Err(Code::RequestTooBroad
                .error("a removal of everything was asked for")
                .with_hint("list values of the fields to remove, such as run=a or step=0/to/24; * lists none")
                .into());
        }
    }
    let (mut fields, mut nbytes, mut known) = (0, 0u64, HashSet::new());
    for entry in store.all_of(requests).list(&ListOptions::default())? {
        let entry = entry?;
        // Two requests may select one field.
        if requests.len() == 1 || known.insert(entry.key) {
            fields += 1;
            nbytes = nbytes.saturating_add(entry.nbytes);
        }
    }
    // Also without --doit: so it fails where the removal would.
    for request in requests {
        store.remove(request, &RemoveOptions::default())?;
    }
    if !arguments.doit {
        store.discard(Session::default())?;
    }
    store.close()?;
    if out.json() {
        return out.document(&json!({"fields": fields, "nbytes": nbytes, "done": arguments.doit}));
    }
    let what = match fields {
        0 => "nothing".to_owned(),
        _ => format!("{}, {}", count(fields, "field"), size(nbytes)),
    };
    out.line(format_args!("{} {what}", if arguments.doit { "removed" } else { "would remove" }))?;
    if fields > 0 && !arguments.doit {
        out.note("nothing was removed: give --doit to do it");
    }
    Ok(())
}
