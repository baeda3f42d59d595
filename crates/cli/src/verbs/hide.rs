//! `fieldstone hide` and `unhide`: whole datasets and indexes that readers do not see for a while.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{Mode, OpenOptions, json};

use crate::in_force::{TargetFields, print_count, print_list};
use crate::output::{Done, Out};

/// Examples of `hide`.
pub const HIDE: &str = "\
Examples:
  fieldstone hide store run=a
  fieldstone hide store run=a variable=t/u
  fieldstone hide store --list
  fieldstone unhide store run=a

Lists, reads, axes and queries of the catalog pass over hidden fields, for everybody, until unhide. Their files stay, and
purge leaves them alone. It takes whole datasets, or whole indexes of them: keywords of the first two levels of keys
(fieldstone schema show STORE). Fields that others flush meanwhile, or later, are
not hidden.

Without a request it lists what is hidden. With --json: fields, the number of those that vanished; of a list rows of
request, by and since.";

/// Examples of `unhide`.
pub const UNHIDE: &str = "\
Examples:
  fieldstone unhide store run=a
  fieldstone unhide store

Shows again what hides within the request hid; without a request all that is hidden. It is refused if only hides of more
than the request concern it: unhide one of these as a whole, then hide what is to stay hidden.

With --json: fields, the number of those that are there again.";

/// Datasets or indexes to hide.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    target: TargetFields,
    /// List what is hidden
    #[arg(long, conflicts_with = "request")]
    list: bool,
}

/// Hides fields, or lists what is hidden.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    if !arguments.list && !arguments.target.selecting.request.is_empty() {
        return set(&arguments.target, true, out);
    }
    let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let hidden = fieldstone::open(&arguments.target.store.store, &options)?.hidden()?;
    let rows = hidden.iter().map(|one| ([one.request.clone()], &*one.by, one.since));
    print_list(["request"], rows, || json::reports::hidden(&hidden), out)
}

/// Shows fields again.
pub fn show(target: &TargetFields, out: &mut Out) -> Done {
    set(target, false, out)
}

fn set(target: &TargetFields, hides: bool, out: &mut Out) -> Done {
    let requests = target.selecting.requests()?;
    let store = target.store.open_existing()?;
    let mut fields = 0;
    for request in requests {
        fields += if hides { store.hide(request)? } else { store.unhide(request)? };
    }
    store.close()?;
    print_count(fields, "field", |what| format!("{} {what}", if hides { "hid" } else { "showed" }), out)
}
