//! `fieldstone repoint`: records that data outside the store were moved.

use clap::Args;
use fieldstone::outside::repoint;
use fieldstone::{Error, json};

use crate::arguments::Writing;
use crate::catalog::Asking;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone repoint store /scratch/me /archive/me
  fieldstone repoint store /scratch/me /archive/me \"run like 'astro*'\"

Runs with data in files outside the store name a folder. This verb replaces OLD with NEW in each folder at or below OLD,
for all runs or for those that the query finds; the query takes names literally, and `like` asks for a pattern. It does
not touch any file, and older versions (--at) keep the old folder. If one of the runs belongs to another user, the call
is Denied and changes nothing.

With --json: {\"runs\": [...]}, their names.";

/// Record the new folder of data outside the store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The old folder
    old: String,
    /// The new folder
    new: String,
    #[command(flatten)]
    asking: Asking,
}

/// Repoints.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let query = arguments.asking.parse()?;
    let store = arguments.store.open()?;
    let runs = repoint(&store, &absolute(&arguments.old)?, &absolute(&arguments.new)?, &query)?;
    store.close()?;
    if out.json() {
        return out.document(&json::moved::repointed(&runs));
    }
    out.line(format_args!("repointed {}", count(runs.len() as u64, "run")))
}

/// The path as runs keep it.
fn absolute(path: &str) -> fieldstone::Result<String> {
    let absolute = std::path::absolute(path);
    let absolute = absolute.map_err(|e| Error::invalid(format!("{path}: {e}")))?;
    absolute.into_os_string().into_string().map_err(|path| Error::invalid(format!("{path:?} is not UTF-8")))
}
