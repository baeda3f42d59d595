//! `fieldstone reindex`: fields of one store under keys of another one, without a copy.

use clap::Args;
use fieldstone::transfer::open_target;
use fieldstone::{Code, Mode, OpenOptions, end_reindex, json, pointers, reindex};

use crate::arguments::{Selecting, Writing};
use crate::in_force::print_list;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone init by-month --schema month.schema
  fieldstone reindex store class=rd,expver=xxxx --to by-month
  fieldstone reindex store --list
  fieldstone reindex store class=rd,expver=xxxx --to by-month --end

The other store names the fields under keys of its own schema, and holds no byte of them: reads go on to where the bytes are, also
after the first store was compacted or purged. That store records who names its fields, and its purges leave them, until
--end. A new target gets the schema of the store.

Fields that the target's schema cannot name are left and printed. With --json: fields, kept (whether purges leave all of
them) and left; of a list rows of request, store, url, by and since.";

/// Let another store name fields, without a copy
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
    /// The store that names the fields
    #[arg(long, value_name = "STORE")]
    to: Option<String>,
    /// Purges no longer leave the fields for the other store
    #[arg(long, requires = "to")]
    end: bool,
    /// List the stores that name fields of this one
    #[arg(long, conflicts_with_all = ["request", "to"])]
    list: bool,
}

/// Lets another store name fields, ends that, or lists who does.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    if arguments.list {
        let all = pointers(&fieldstone::open(&arguments.store.store, &reading)?)?;
        let rows = all.iter().map(|one| ([one.request.clone(), one.url.clone()], &*one.by, one.since));
        return print_list(["request", "url"], rows, || json::reports::pointers(&all), out);
    }
    let Some(to) = &arguments.to else {
        return Err(Code::CommandLine
            .error("no store is given that names the fields")
            .with_hint("give --to STORE, or --list")
            .into());
    };
    let (request, from) = (arguments.selecting.parse()?, arguments.store.open_existing()?);
    let to = open_target(to, &from)?;
    if arguments.end {
        end_reindex(&from, &request, &to)?;
        from.close()?;
        return if out.json() { out.document(&serde_json::json!({})) } else { Ok(()) };
    }
    let report = reindex(&from, &request, &to)?;
    to.close()?;
    from.close()?;
    if out.json() {
        return out.document(&json::reports::reindexed(&report));
    }
    for (key, why) in &report.left {
        out.line(format_args!("left {key}: {why}"))?;
    }
    let kept = if report.kept { "" } else { "; purges there may take them" };
    out.line(format_args!("{} named{kept}", count(report.fields, "field")))
}
