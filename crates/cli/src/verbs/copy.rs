//! `fieldstone copy`: fields, and what stands on them, into another store.

use clap::Args;
use fieldstone::json;
use fieldstone::transfer::copy;

use crate::arguments::Reading;
use crate::output::{Done, Out};
use crate::transfer::{Transfer, print};

const EXAMPLES: &str = "\
Examples:
  fieldstone copy store run=a,step=0/to/24 --to archive
  fieldstone copy store run=a --to /archive/store --lenient --json
  fieldstone copy store --find 'tag=maximum and value>9000' --to extremes

Attributes, tags, parameters of runs, times of steps and declarations of variables come along; with
--fields-only they stay, and are counted. What the target declares otherwise is a conflict, and nothing is
copied. Arrays keep type, shape, chunks and whether they are compressed; fields that are not complete are copied
as they are. A new target gets the schema of the source, an old one keeps its own. All fields arrive or
none; what the other store has is read back and compared first. Fields that are there already and equal
are not written again. Fields that cannot be read are passed over and named, and it ends with 5.";

/// Copy fields, and what stands on them, into another store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    transfer: Transfer,
}

/// Prints a line, or a JSON document.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let from = arguments.store.open()?;
    let report = arguments.transfer.run(&from, copy, false, out)?;
    print(&report, "copied", json::moved::copied, out)
}
