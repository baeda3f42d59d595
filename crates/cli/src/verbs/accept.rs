//! `fieldstone accept`: gives up lost data for good, and records that.

use clap::Args;
use fieldstone::json;

use crate::arguments::Writing;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone verify store
  fieldstone accept store logs/00112233445566778899aabbccddeeff.log --why 'removed by mistake, no backup'
  fieldstone accept store data/00112233445566778899aabbccddeeff-1.data

Name the file as messages name it. For a log that is missing or has become shorter, this gives up all commits that
cannot be read; for a missing data log, all fields with bytes in it; a damaged mesh or kept partition; otherwise the
damaged fields of the file (a log, a data log, a takeover, an array file). The decision is final: data given up never count again, even if the file comes back
from a backup, so mend first what a backup has (fieldstone repair). From then on list, axes, find, verify and all other
verbs work without those data; status and verify list what was accepted, by whom and when. Only the owner of the lost
file, the owner of the store (of its folder logs) and root may accept a loss.

With --json: file, what, fields, keys, user, time and why.";

/// Give up data that a file lost, for good
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The file that lost something
    #[arg(value_name = "FILE")]
    name: String,
    /// The reason, for those who read the record
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

/// Accepts the loss, and prints what was given up.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open_existing()?;
    let report = store.accept(&arguments.name, arguments.why.as_deref().unwrap_or_default())?;
    store.close()?;
    if out.json() {
        return out.document(&json::reports::accepted(&report));
    }
    out.line(format_args!("{report}"))?;
    report.keys.iter().try_for_each(|key| out.line(format_args!("given up: {key}")))?;
    match report.fields - report.keys.len() as u64 {
        0 => Ok(()),
        more => out.line(format_args!("and {} more", count(more, "field"))),
    }
}
