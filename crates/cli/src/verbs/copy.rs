//! `fieldstone copy`: copies fields, with their attributes and declarations, into another store.

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

Copies attributes, tags, parameters of runs, times of steps and declarations of variables along with the fields;
--fields-only leaves them and prints their number. If the target declares a variable or tag differently, the copy
is a conflict and copies nothing. Arrays keep their type, shape, chunks and compression; incomplete fields are
copied as they are. Fields keep the time of their first flush, their attempt and their lineage; --versions takes
the older values that they hide along. A new target gets the schema of the source, an existing one keeps its own. Either all fields
arrive or none: the program reads the copies back and compares them before they become visible. It does not
write fields again that the target already has with equal content. It skips and names fields that cannot be
read, and then ends with 5.";

/// Copy fields, with their attributes and declarations, into another store
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
