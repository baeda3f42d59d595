//! `fieldstone upgrade`: a store goes on in the newest version of the format.

use clap::Args;
use fieldstone::json;
use fieldstone::prelude::*;

use crate::arguments::Writing;
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone status store
  fieldstone upgrade store

A store keeps the format version that it was created with, so that hosts with different releases can write it. After an
upgrade, older releases can still read the parts that they know, but can no longer write; so upgrade the software on all
hosts first. Existing data are not rewritten. An upgrade cannot be undone. Only the store's owner may upgrade it.

With --json: before and format, the versions before and after.";

/// Raise a store to the newest version of the format
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
}

/// Upgrades.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open_existing()?;
    let (before, format) = store.upgrade()?;
    store.close()?;
    if out.json() {
        return out.document(&json::reports::upgraded(before, format));
    }
    match before == format {
        true => out.line(format_args!("{}: of format {format} already", store.url())),
        false => out.line(format_args!("{}: of format {format}, was {before}", store.url())),
    }
}
