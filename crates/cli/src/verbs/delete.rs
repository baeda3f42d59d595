//! `fieldstone delete`: deletes runs, steps, variables, tags and attributes from the catalog.

use clap::{Args, ValueEnum};
use fieldstone::catalog::query::Expr;
use fieldstone::catalog::{DeleteReport, Deletion};
use fieldstone::{Code, json};

use crate::arguments::Writing;
use crate::catalog::{Asking, note_why_nothing_goes};
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone delete store attributes 'tag=maximum and value<0'
  fieldstone delete store attributes 'tag=maximum and value<0' --doit
  fieldstone delete store tags tag=scratch --doit
  fieldstone delete store steps 'run=a and step>24' --doit
  fieldstone delete store runs run=a --fields --doit
  fieldstone delete store runs \"run like 'scratch*'\" --doit

Without --doit it only prints what it would delete. It takes names literally, including *, ? and [; write `like`
for a pattern. If several projects have a run of that name, name the project too: project=p and run=a.
Deleting a run deletes its steps, variables and attributes; deleting a step or a variable deletes its attributes;
deleting a tag deletes its attributes in all runs. Fields stay unless you give --fields. Deleted content can still be
read with --at. Users delete only what is theirs: attributes that they wrote, and everything in runs that they made.

With --json: the numbers of runs, steps, variables, tags, attributes and fields, others (attributes of other users
that stay) and done.";

/// The kind of object to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Runs,
    Steps,
    Variables,
    Tags,
    Attributes,
}

/// Delete runs, steps, variables, tags or attributes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The kind of object to delete: runs, steps, variables, tags or attributes
    #[arg(value_enum)]
    what: What,
    #[command(flatten)]
    asking: Asking,
    /// Also delete their fields
    #[arg(long)]
    fields: bool,
    /// Do it; without this option it only prints what it would delete
    #[arg(long)]
    doit: bool,
}

/// Deletes, or prints what it would delete.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let query = arguments.asking.parse()?;
    if matches!(&query.expr, Expr::All(all) if all.is_empty()) {
        return Err(Code::CommandLine
            .error("there is no query: that would be everything")
            .with_hint("name what goes, such as run=a; `everything` deletes all")
            .into());
    }
    let session = query.session.clone();
    let store = arguments.store.open()?;
    let catalog = store.catalog();
    let what = match arguments.what {
        What::Runs => Deletion::Runs(query),
        What::Steps => Deletion::Steps(query),
        What::Variables => Deletion::Variables(query),
        What::Tags => Deletion::Tags(query),
        What::Attributes => Deletion::Attributes(query),
    };
    let report = catalog.delete(&what, arguments.fields, arguments.doit, &session)?;
    if report == (DeleteReport { done: report.done, ..DeleteReport::default() }) {
        note_why_nothing_goes(catalog, what.query(), out);
    }
    store.close()?;
    if out.json() {
        return out.document(&json::catalog::deleted(&report));
    }
    let parts = [
        (report.runs, "run"),
        (report.steps, "step"),
        (report.variables, "variable"),
        (report.tags, "tag"),
        (report.attributes, "attribute"),
        (report.fields, "field"),
    ];
    let parts: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| count(*n, word)).collect();
    let all = if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
    out.line(format_args!("{} {all}", if report.done { "deleted" } else { "would delete" }))?;
    if report.others > 0 {
        out.note(format_args!("{} of other users stay", count(report.others, "attribute")));
    }
    if !report.done && !parts.is_empty() {
        out.note("nothing was deleted: give --doit to do it");
    }
    Ok(())
}
