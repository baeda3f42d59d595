//! `fieldstone version`: the text that names what is visible now.

use std::io::Write;

use clap::Args;
use fieldstone::prelude::*;
use serde_json::json;

use crate::arguments::Reading;
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  before=$(fieldstone version store)
  fieldstone list store --at $before
  fieldstone version store > before.txt
  fieldstone list store --at @before.txt

A version grows by a few bytes with each writer that the store has had. If it is too long for a command line, put it
into a file. For the program's own version see fieldstone --version.";

/// Print the store's version, for reading it as it is now later on
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
}

/// Prints it.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let version = arguments.store.open()?.version()?;
    match out.json() {
        true => out.document(&json!({ "version": version })),
        false => Ok(writeln!(out, "{version}")?),
    }
}
