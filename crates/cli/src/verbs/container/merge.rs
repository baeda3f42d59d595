//! `fieldstone container merge`: one file out of one file per process.

use std::path::PathBuf;

use clap::Args;
use fieldstone::{container, json};

use super::Wanted;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone container merge rank_*.nc -o all.nc
  fieldstone container merge rank_0.nc rank_1.nc -o all.fsp --format partitioned

The result is the file that the processes would have written together, in the order of the files. Objects of the
same name must have the same definition and data; otherwise the error names them and their files.

With --json: dims, attrs and vars of the result.";

/// Make one container of one per process
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The containers, in the order of their processes
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The container to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// The format to write
    #[arg(long, value_enum, default_value = "cdf5")]
    format: Wanted,
}

/// Merges.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let counts = container::merge(&arguments.files, &arguments.output, &arguments.format.options())?;
    if out.json() {
        return out.document(&json::container::merged(&counts));
    }
    out.note(format_args!("{}: {}", arguments.output.display(), count(counts.vars, "variable")));
    Ok(())
}
