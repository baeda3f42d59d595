//! `fieldstone hand-over`: what belongs to a user belongs to another one from now on.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{Code, Mode, OpenOptions, json};

use crate::arguments::Writing;
use crate::in_force::print_list;
use crate::output::{Done, Out, count};

/// Examples.
pub const EXAMPLES: &str = "\
Examples:
  fieldstone hand-over store alice bob
  fieldstone hand-over store 1001 bob
  fieldstone hand-over store --list

All datasets and runs of the first user belong to the second one from now on: when somebody leaves, or a project changes
hands. Users are named by account or by number. The new owner may archive, remove, wipe, lock, hide and annotate there, and
decide on transactions that the old one left open. Content of the old one counts as before, but not if he
writes it there later. Datasets that he begins later are his own. Another hand-over gives everything back, and all stay on record.

The owner of the store and root may hand over. Without users it lists the hand-overs. With --json: from, to and datasets, the
number of datasets with fields that changed hands; of a list rows of from, to, by and since.";

/// Users who hand over and take.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The user who owns the datasets and runs
    from: Option<String>,
    /// The user who is to own them
    to: Option<String>,
    /// List the hand-overs
    #[arg(long, conflicts_with_all = ["from", "to"])]
    list: bool,
}

/// Hands over, or lists what was handed over.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let Some(from) = &arguments.from else {
        let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        let all = fieldstone::open(&arguments.store.store, &options)?.hand_overs()?;
        let rows = all.iter().map(|one| ([one.from.clone(), one.to.clone()], &*one.by, one.since));
        return print_list(["from", "to"], rows, || json::reports::hand_overs(&all), out);
    };
    let Some(to) = &arguments.to else {
        return Err(Code::CommandLine
            .error("no user is named who is to own the datasets and runs")
            .with_hint("give both: fieldstone hand-over STORE FROM TO")
            .into());
    };
    let store = arguments.store.open_existing()?;
    let report = store.hand_over(from, to)?;
    store.close()?;
    if out.json() {
        return out.document(&json::reports::handed_over(&report));
    }
    let datasets = count(report.datasets, "dataset");
    out.line(format_args!("handed over {datasets} of {} to {}", report.from, report.to))
}
