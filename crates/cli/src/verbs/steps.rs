//! `fieldstone steps`: steps that exist, or that matching attributes touch.

use clap::Args;
use fieldstone::catalog::step_number;
use fieldstone::json;

use crate::arguments::Reading;
use crate::catalog::{Asking, float_cell, note_why_nothing, reading, run_cell};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone steps store run=astro3d-42
  fieldstone steps store 'tag=maximum and value>9000'
  fieldstone steps store 'tag=vortex and box=z:50:100 first'

A term about a tag, a value or a box lists the steps that such attributes touch; without one, those that
exist. Where a program reads, a line has run, step and time, with tabs between.

With --json: {\"steps\": [...]} of project, run, step and time.";

/// List steps
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
    let steps = catalog.steps(&query)?;
    if steps.is_empty() {
        note_why_nothing(&catalog, &query, out);
    }
    if out.json() {
        return out.items("steps", steps.iter().map(|step| Ok(json::catalog::run_step(step))));
    }
    let mut table = Table::new([
        Column::text("run").least(12).rank(8),
        Column::number("step").rank(9),
        Column::number("time").rank(7),
    ]);
    for step in &steps {
        table.row(vec![run_cell(&step.run), step_number::text(step.step), float_cell(step.time)], out)?;
    }
    table.finish(out)
}
