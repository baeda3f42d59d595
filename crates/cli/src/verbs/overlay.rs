//! `fieldstone overlay`: fields that appear under other values, too.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{Code, Mode, OpenOptions, Request, json};

use crate::in_force::{TargetFields, print_list};
use crate::output::{Done, Out, count};

/// Examples of `overlay`.
pub const OVERLAY: &str = "\
Examples:
  fieldstone overlay store class=rd,expver=xxxx --as expver=yyyy
  fieldstone overlay store run=a variable=t --as run=b
  fieldstone overlay store --list
  fieldstone overlay store run=a variable=t --as run=b --remove

Fields of the request appear under the other values, too: in lists, axes and reads, for everybody, those among them that are
archived later. No byte is copied. A field that was archived under such a key is read in its place. The catalog, lineage,
statistics, wipes and purges know each field by its own key alone.

Of each keyword with another value the request gives one value. A second time is a conflict (exit 4). Without a request it
lists the overlays in force. With --json: fields, the number of those that appear, or appeared; of a list rows of request,
values, by and since.";

/// Fields, and the values under which they appear.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    target: TargetFields,
    /// The values under which the fields appear, such as run=b
    #[arg(long = "as", value_name = "KEY=VALUE")]
    values: Vec<String>,
    /// End the overlay
    #[arg(long)]
    remove: bool,
    /// List the overlays in force
    #[arg(long, conflicts_with_all = ["request", "values", "remove"])]
    list: bool,
}

/// Makes an overlay, ends one, or lists those in force.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let TargetFields { store, selecting } = &arguments.target;
    if arguments.list || (selecting.request.is_empty() && arguments.values.is_empty()) {
        let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        let overlays = fieldstone::open(&store.store, &options)?.overlays()?;
        let rows = overlays.iter().map(|one| {
            let cells = [one.request.clone(), one.values.clone()];
            (cells, &*one.by, one.since)
        });
        return print_list(["request", "values"], rows, || json::reports::overlays(&overlays), out);
    }
    let request = selecting.parse()?;
    if arguments.values.is_empty() {
        return Err(Code::CommandLine
            .error("no value is given under which fields appear")
            .with_hint("give --as, such as --as run=b")
            .into());
    }
    let values = Request::parse(&arguments.values.join(","))?.single_pairs()?;
    let values: Vec<(&str, &str)> = values.iter().map(|(keyword, value)| (&**keyword, &**value)).collect();
    let store = store.open_existing()?;
    let fields = match arguments.remove {
        true => store.end_overlay(&request, &values)?,
        false => store.overlay(&request, &values)?,
    };
    store.close()?;
    if out.json() {
        return out.document(&serde_json::json!({ "fields": fields }));
    }
    let (what, shown) = (count(fields, "field"), arguments.values.join(","));
    match arguments.remove {
        true => out.line(format_args!("{what} no longer as {shown}")),
        false => out.line(format_args!("{what} also as {shown}")),
    }
}
