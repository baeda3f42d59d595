//! `fieldstone hide` and `unhide`: whole datasets and indexes that readers do not see for a while.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{HiddenFields, Mode, OpenOptions, json};

use crate::arguments::{Selecting, Writing};
use crate::catalog::moment_cell;
use crate::output::{Done, Out, count};
use crate::table::{Column, Table};

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
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
    /// List what is hidden
    #[arg(long, conflicts_with = "request")]
    list: bool,
}

/// Datasets or indexes to show again.
#[derive(Debug, Args)]
pub struct Shown {
    #[command(flatten)]
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
}

/// Hides fields, or lists what is hidden.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    if arguments.list || arguments.selecting.request.is_empty() {
        let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        return list(fieldstone::open(&arguments.store.store, &options)?.hidden()?, out);
    }
    set(&arguments.store, &arguments.selecting, true, out)
}

/// Shows fields again.
pub fn show(arguments: &Shown, out: &mut Out) -> Done {
    set(&arguments.store, &arguments.selecting, false, out)
}

fn set(store: &Writing, selecting: &Selecting, hides: bool, out: &mut Out) -> Done {
    let requests = selecting.requests()?;
    let store = store.open_existing()?;
    let mut fields = 0;
    for request in requests {
        fields += if hides { store.hide(request)? } else { store.unhide(request)? };
    }
    store.close()?;
    if out.json() {
        return out.document(&serde_json::json!({ "fields": fields }));
    }
    let what = if fields == 0 { "nothing".to_owned() } else { count(fields, "field") };
    out.line(format_args!("{} {what}", if hides { "hid" } else { "showed" }))
}

fn list(hidden: Vec<HiddenFields>, out: &mut Out) -> Done {
    if out.json() {
        return out.document(&json::reports::hidden(&hidden));
    }
    let mut table = Table::new([
        Column::text("request").least(8).rank(9),
        Column::text("by").least(4).rank(8),
        Column::text("since").rank(7),
    ]);
    for one in hidden {
        table.row(vec![one.request, one.by, moment_cell(one.since)], out)?;
    }
    table.finish(out)
}
