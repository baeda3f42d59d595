//! `fieldstone runs`: runs that exist, or that matching attributes touch.

use clap::Args;
use fieldstone::catalog::value::Value;
use fieldstone::json;
use fieldstone::json::values::time_in_seconds;

use crate::arguments::Reading;
use crate::catalog::{Asking, moment_cell, note_why_nothing, or_dash, reading, run_cell, value_cell};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone runs store
  fieldstone runs store 'run=astro3d-* and param.nx>=256'
  fieldstone runs store 'created>2026-01-01'
  fieldstone runs store 'tag=maximum and value>9000' --json

A term about a tag, a value or a box lists the runs that such attributes touch; without one, those that
exist. Where a program reads, a line has run, created, job and parameters, with tabs between.

With --json: {\"runs\": [...]} of project, name, job, created, params, grid, notes and declared: whether the
run was created, or only fields name it.";

/// List runs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    asking: Asking,
}

/// Lists.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let query = arguments.asking.parse()?;
    let catalog = reading(&arguments.store)?;
    let runs = catalog.runs(&query)?;
    if runs.is_empty() {
        note_why_nothing(&catalog, &query, out);
    }
    if out.json() {
        return out.items("runs", runs.iter().map(|run| Ok(json::catalog::run(run))));
    }
    let mut table = Table::new([
        Column::text("run").least(12).rank(9),
        Column::text("created").rank(6),
        Column::text("job").least(6).rank(4),
        Column::text("parameters").least(12).rank(5),
    ]);
    for run in &runs {
        // A person reads six digits; a program has them all.
        let shown = |value: &Value| match (value, out.width()) {
            (Value::Float(number), Some(_)) => six_digits(*number),
            (value, _) => value_cell(value),
        };
        let created = match (run.decl.created, out.width()) {
            (created, Some(_)) if created != 0 => time_in_seconds(created),
            (created, _) => moment_cell(created),
        };
        let params = run.decl.params.iter().map(|(name, value)| format!("{name}={}", shown(value)));
        let params = params.collect::<Vec<_>>().join(" ");
        table.row(
            vec![
                run_cell(&run.decl.run),
                created,
                or_dash(run.decl.job.as_deref()),
                or_dash(Some(params).filter(|params| !params.is_empty())),
            ],
            out,
        )?;
    }
    table.finish(out)
}

/// A number with at most six significant digits, as short as it goes.
fn six_digits(number: f64) -> String {
    let short: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    Value::Float(short).to_string()
}
