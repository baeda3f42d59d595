//! `fieldstone audit`: the actions of a user, or everything that a file influenced.

use clap::Args;
use fieldstone::Session;
use fieldstone::graph::AuditOptions;
use fieldstone::json;

use crate::catalog::moment_cell;
use crate::graph::{Graphed, stamp, vertex};
use crate::output::{Done, Out};
use crate::table::{Column, Table, printable};

const EXAMPLES: &str = "\
Examples:
  fieldstone audit store --user alice --since 2026-11-01
  fieldstone audit store --file /data/mesh.nc
  fieldstone audit store --file mesh.nc --since 2026-11-21T06:00 --json

For a user it lists executions with what they executed, read and wrote (processes count with their job), and what
the user archived, declared, annotated, deleted, wiped and decided outside of executions, by commit. For a file it lists
the executions that executed, read and wrote it, then everything derived from it; with --since only what was derived
after that moment, for example since the file was damaged. When the output is not a terminal, each line has time,
user, execution, action and object, separated by tabs; a line of `derived` and a vertex names something derived
from the file.

With --json: rows of time, stamp, user, execution, action and object; derived, a list of type and id; and truncated.";

/// Show the actions of a user, or everything that a file influenced
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// Name of a user, or the uid
    #[arg(long, required_unless_present = "file")]
    user: Option<String>,
    /// The path of a file, or TYPE:ID
    #[arg(long)]
    file: Option<String>,
    /// Leave out actions that ended before this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Leave out actions that began after this moment
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// The most rows, and the most vertices derived from the file
    #[arg(long, value_name = "ROWS", default_value_t = 100_000)]
    limit: usize,
}

/// Audits.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    let graph = store.graph();
    let number = |name: &String| graph.user_number(name).map_or_else(|| name.clone(), |uid| uid.to_string());
    let options = AuditOptions {
        user: arguments.user.as_ref().map(number),
        file: arguments.file.as_deref().map(vertex).transpose()?,
        since: arguments.since.as_deref().map(stamp).transpose()?,
        until: arguments.until.as_deref().map(stamp).transpose()?,
        limit: arguments.limit,
    };
    let audit = graph.audit(&options, &Session::default())?;
    if out.json() {
        out.document(&json::graph::audit(&audit))?;
        return Ok(store.close()?);
    }
    let mut table = Table::new([
        Column::text("time").rank(8),
        Column::text("user").least(4).rank(7),
        Column::text("execution").least(8).rank(6),
        Column::text("action").least(5).rank(9),
        Column::text("object").least(16).rank(9),
    ]);
    for row in &audit.rows {
        let (execution, object) = (row.execution.to_string(), row.object.to_string());
        table
            .row(vec![moment_cell(row.time), row.user.clone(), execution, row.action.clone(), object], out)?;
    }
    table.finish(out)?;
    if !audit.derived.is_empty() && out.width().is_some() {
        out.line(format!(
            "\nderived from {}:",
            options.file.as_ref().map(ToString::to_string).unwrap_or_default()
        ))?;
    }
    for name in &audit.derived {
        match out.width() {
            Some(_) => out.line(format!("  {name}"))?,
            None => out.text(format!("derived\t{}\n", printable(&name.to_string())))?,
        }
    }
    if audit.truncated {
        out.note("cut off at the limit: there is more");
    }
    Ok(store.close()?)
}
