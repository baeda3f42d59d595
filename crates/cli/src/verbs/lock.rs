//! `fieldstone lock`, `unlock` and `locks`: calls that nobody may make in whole datasets.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{LockKind, json};

use crate::arguments::Reading;
use crate::in_force::{TargetFields, print_count, print_list};
use crate::output::{Done, Out};

/// Examples of `lock`.
pub const LOCK: &str = "\
Examples:
  fieldstone lock store run=a --archive
  fieldstone lock store run=a/b --archive --wipe
  fieldstone locks store
  fieldstone unlock store run=a --archive

A lock holds for everybody, its setter too, until the owner of the dataset, the owner of the store (of its folder logs) or
root unlocks it. --archive refuses archives and removals, --list lists and axes, --retrieve reads of fields, --wipe wipes
and purges. It takes whole datasets: keywords of the first level of keys (fieldstone schema show STORE).

With --json: datasets, the number of those that are locked.";

/// Examples of `unlock`.
pub const UNLOCK: &str = "\
Examples:
  fieldstone unlock store run=a --archive
  fieldstone unlock store --archive --list --retrieve --wipe

With --json: datasets, the number of those that were locked.";

/// Examples of `locks`.
pub const LOCKS: &str = "\
Examples:
  fieldstone locks store
  fieldstone locks store --json

When the output is not a terminal, each line has dataset, kind, user and time, separated by tabs.

With --json: rows of dataset, what, by and since.";

/// Datasets, and the calls to lock.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    target: TargetFields,
    /// Archives and removals
    #[arg(long)]
    archive: bool,
    /// Lists and axes
    #[arg(long)]
    list: bool,
    /// Reads of fields
    #[arg(long)]
    retrieve: bool,
    /// Wipes and purges
    #[arg(long)]
    wipe: bool,
}

/// The store whose locks are listed.
#[derive(Debug, Args)]
pub struct Listed {
    #[command(flatten)]
    store: Reading,
}

/// Locks datasets, or unlocks them.
pub fn run(arguments: &Arguments, locks: bool, out: &mut Out) -> Done {
    let given = [arguments.archive, arguments.list, arguments.retrieve, arguments.wipe];
    let kinds: Vec<LockKind> =
        LockKind::ALL.into_iter().zip(given).filter(|(_, given)| *given).map(|(kind, _)| kind).collect();
    if kinds.is_empty() {
        return Err(fieldstone::Code::CommandLine
            .error("no kind of lock is given")
            .with_hint("give one or more of --archive, --list, --retrieve, --wipe")
            .into());
    }
    let requests = arguments.target.selecting.requests()?;
    let store = arguments.target.store.open_existing()?;
    let mut datasets = 0;
    for kind in kinds {
        let mut sum = 0;
        for request in requests {
            sum += if locks { store.lock(request, kind)? } else { store.unlock(request, kind)? };
        }
        datasets = datasets.max(sum);
    }
    store.close()?;
    let done = if locks { "locked" } else { "unlocked" };
    print_count(datasets, "dataset", |what| format!("{done} {what}"), out)
}

/// Lists the locks in force.
pub fn list(arguments: &Listed, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    let locks = store.locks()?;
    store.close()?;
    let rows = locks.iter().map(|lock| {
        let cells = [lock.dataset.clone(), lock.what.name().to_owned()];
        (cells, &*lock.by, lock.since)
    });
    print_list(["dataset", "lock"], rows, || json::reports::locks(&locks), out)
}
