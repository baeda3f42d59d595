//! `fieldstone move`: fields, and what stands on them, into another store.

use clap::Args;
use fieldstone::transfer::move_to;
use fieldstone::{Mode, OpenOptions, json};

use crate::output::{Done, Out};
use crate::transfer::{Transfer, print};

const EXAMPLES: &str = "\
Examples:
  fieldstone move store run=a,step=0/to/24 --to archive
  fieldstone move store run=a --to /archive/store --lenient --json
  fieldstone list store --compact > old.req; fieldstone move store @old.req --to archive

Copies as `fieldstone copy` does, and removes here what it carried, after what the other store has was compared.
With --find names are taken as they stand; `like` asks for a pattern: --find \"run like 'a*'\".
Attributes go with their field, runs, steps and variables once nothing of them stays.
A newer version written meanwhile stays, and is reported on stderr. What was moved stays readable in older
versions (--at). A crash leaves a field in one store or in both, also where other moves cross this one. For that,
what the other store has already is written there again.";

/// Move fields, and what stands on them, into another store
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
