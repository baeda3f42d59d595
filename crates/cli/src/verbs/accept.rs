//! `fieldstone accept`: a loss is given up for good, on record.

use clap::Args;
use fieldstone::json;

use crate::arguments::Writing;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone verify store
  fieldstone accept store logs/00112233445566778899aabbccddeeff.log --why 'removed by mistake, no backup'
  fieldstone accept store data/00112233445566778899aabbccddeeff-1.data

The file is named as messages name it. Of a log that is missing, or shorter than it was, all commits that cannot be read
are given up; of a data log that is missing, all fields with bytes in it; else the fields of the file that are damaged. It
is final: what is given up never counts again, also where the file comes back from a backup, so look for one first. From
then on list, axes, find, verify and all else go on without it; status and verify list what was accepted, by whom and when.
Only the owner of the lost file, the owner of the store (of its folder logs) and root may do so.

With --json: file, what, fields, keys, user, time and why.";

/// Give up what a log or data log lost, for good
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The file that lost something
    #[arg(value_name = "FILE")]
    name: String,
    /// Why, for those who read the record
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

/// Accepts, and says what was given up.
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
