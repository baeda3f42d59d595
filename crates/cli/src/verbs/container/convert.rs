//! `fieldstone container convert`: the same objects and data in another format.

use std::path::PathBuf;

use clap::Args;
use fieldstone::{container, json};

use super::Wanted;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone container convert events.fsp events.nc --format cdf5
  fieldstone container convert events.nc events.fsp --format partitioned

If the format cannot hold an object, the error names it and OUT stays as it was. An existing file at OUT stays until
the new one is complete.

With --json: the vars and bytes that were copied.";

/// Write a container in another format
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The container to read
    #[arg(value_name = "FILE")]
    from: PathBuf,
    /// The container to write
    #[arg(value_name = "OUT_FILE")]
    into: PathBuf,
    /// The format to write
    #[arg(long, value_enum)]
    format: Wanted,
}

/// Converts.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let done = container::convert(&arguments.from, &arguments.into, &arguments.format.options())?;
    if out.json() {
        return out.document(&json::container::converted(&done));
    }
    out.note(format_args!(
        "{}: {}, {} bytes",
        arguments.into.display(),
        count(done.vars, "variable"),
        done.bytes
    ));
    Ok(())
}
