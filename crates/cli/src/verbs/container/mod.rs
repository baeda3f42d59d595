//! `fieldstone container`: netCDF classic files and partitioned containers, as files of their own.

mod dump;
mod header;
mod object;
mod offsets;
mod stats;

use clap::{Args, Subcommand};
use fieldstone::{Error, ErrorKind};

use crate::output::{Done, Out, Stop};

const EXAMPLES: &str = "\
Examples:
  fieldstone container dump simulation.nc --header
  fieldstone container header simulation.nc
  fieldstone container stats events.nc --depth 2
  fieldstone container offsets simulation.nc

A container is a self-describing array file: netCDF classic (CDF-1, CDF-2, CDF-5), or partitioned.";

/// Show, check and change array files: netCDF classic and partitioned containers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Dump(dump::Arguments),
    Header(header::Arguments),
    Stats(stats::Arguments),
    Offsets(offsets::Arguments),
}

/// Does what the second word says.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let done = match &arguments.action {
        Action::Dump(arguments) => dump::run(arguments, out),
        Action::Header(arguments) => header::run(arguments, out),
        Action::Stats(arguments) => stats::run(arguments, out),
        Action::Offsets(arguments) => offsets::run(arguments, out),
    };
    done.map_err(|stop| match stop {
        Stop::Error(error) => hinted(error).into(),
        Stop::PipeClosed => Stop::PipeClosed,
    })
}

/// The error with a next step that fits a container, where it has none of its own.
fn hinted(error: Error) -> Error {
    let hint = match error.kind() {
        _ if error.hint().is_some() => return error,
        ErrorKind::Corrupt => "take a copy of the file that is whole; what is before the offset may be sound",
        ErrorKind::NotFound => "check the path",
        _ => return error,
    };
    error.with_hint(hint)
}
