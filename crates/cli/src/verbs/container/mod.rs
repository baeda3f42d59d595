//! `fieldstone container`: netCDF classic files and partitioned containers, as files of their own.

mod convert;
mod dump;
mod header;
mod merge;
mod offsets;
mod stats;
mod validate;

use clap::{Args, Subcommand, ValueEnum};
use fieldstone::container::{CreateOptions, Format, Version};
use fieldstone::{Error, ErrorKind};

use crate::output::{Done, EarlyEnd, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone container dump simulation.nc --header
  fieldstone container header simulation.nc
  fieldstone container stats events.nc --depth 2
  fieldstone container offsets simulation.nc
  fieldstone container validate *.nc

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
    Validate(validate::Arguments),
    Convert(convert::Arguments),
    Merge(merge::Arguments),
}

/// Does what the second word says.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let done = match &arguments.action {
        Action::Dump(arguments) => dump::run(arguments, out),
        Action::Header(arguments) => header::run(arguments, out),
        Action::Stats(arguments) => stats::run(arguments, out),
        Action::Offsets(arguments) => offsets::run(arguments, out),
        Action::Validate(arguments) => validate::run(arguments, out),
        Action::Convert(arguments) => convert::run(arguments, out),
        Action::Merge(arguments) => merge::run(arguments, out),
    };
    done.map_err(|stop| match stop {
        EarlyEnd::Error(error) => hinted(error).into(),
        other => other,
    })
}

/// The error with a next step that fits a container, where it has none of its own.
fn hinted(error: Error) -> Error {
    let hint = match error.kind() {
        _ if error.hint().is_some() => return error,
        ErrorKind::Corrupt => "all that is wrong with a file: fieldstone container validate FILE",
        ErrorKind::NotFound => "check the path",
        _ => return error,
    };
    error.with_hint(hint)
}

/// A container's format, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wanted {
    Cdf1,
    Cdf2,
    Cdf5,
    Partitioned,
}

impl Wanted {
    fn options(self) -> CreateOptions {
        let format = match self {
            Wanted::Cdf1 => Format::Classic(Version::Cdf1),
            Wanted::Cdf2 => Format::Classic(Version::Cdf2),
            Wanted::Cdf5 => Format::Classic(Version::Cdf5),
            Wanted::Partitioned => Format::Partitioned,
        };
        CreateOptions { format, ..CreateOptions::default() }
    }
}
