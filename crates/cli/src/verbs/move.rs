//! `fieldstone move`: moves fields, with their attributes and declarations, into another store.

use clap::Args;
use fieldstone::transfer::move_to;
use fieldstone::{Mode, OpenOptions, json};

use crate::output::{Done, Out};
use crate::transfer::{Transfer, print};

const EXAMPLES: &str = "\
Examples:
  fieldstone move store run=a,step=0/to/24 --to archive
  fieldstone move store run=a --to /archive/store --lenient --json
  fieldstone move store run=a --older-than 5d --to archive
  fieldstone move store run=a --versions --to archive
  fieldstone list store --compact > old.req; fieldstone move store @old.req --to archive

Copies as `fieldstone copy` does, compares the copies, and then removes the originals. --find takes names literally;
write `like` for a pattern: --find \"run like 'a*'\". Attributes move with their field; runs, steps and variables go
once nothing in them is left. If a newer version of a field arrives during the move, that version stays, and a line on
stderr reports it. Older versions of the store (--at) still show the moved fields. After a crash, each field is in one
of the stores or in both, even if other moves cross this one. For that reason the program writes a field again that the
target already has.";

/// Move fields, with their attributes and declarations, into another store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The store: a folder
    store: String,
    #[command(flatten)]
    transfer: Transfer,
}

/// Prints a line, or a JSON document.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    // NotFound where no store is, as for all verbs that need one.
    fieldstone::open(&arguments.store, &reading)?;
    let from = fieldstone::open(&arguments.store, &OpenOptions::default())?;
    let report = arguments.transfer.run(&from, move_to, true, out)?;
    for key in &report.kept {
        out.note(format_args!("{key} was written again meanwhile: the newer version stays here"));
    }
    print(&report, "moved", json::moved::moved, out)
}
