//! `fieldstone repoint`: data outside of the store that were moved.

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

Runs whose data lie in files outside of the store say where. All that say a folder below OLD say the same one
below NEW from then on; with a query those that it finds, in which names are taken as they stand: `like` asks
for a pattern. Files are not touched, and older versions (--at) answer
as they were recorded. A run of another user is denied, and nothing changes.

With --json: {\"runs\": [...]}, their names.";

/// Say where data outside lie that were moved
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The folder below which they lay
    old: String,
    /// The folder below which they lie
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
