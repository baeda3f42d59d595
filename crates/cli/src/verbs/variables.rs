//! `fieldstone variables`: variables that exist, or that matching attributes touch.

use clap::Args;
use fieldstone::json;

use crate::arguments::Reading;
use crate::catalog::{Asking, note_why_nothing, or_dash, reading, run_cell, value_cell, variable_name_cell};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone variables store run=astro3d-42
  fieldstone variables store 'variable contains temp'
  fieldstone variables store 'tag=maximum and value>9000' --json

A term about a tag, a value or a box lists the variables that such attributes touch; without one, those
that exist. Where a program reads, a line has run, variable, type, shape, dimensions and attributes, with
tabs between.

With --json: {\"variables\": [...]} of project, run, name, version, dtype, shape, dims, attrs, decomposition
and declared: whether the variable was created, or only fields name it.";

/// List variables
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
    let variables = catalog.variables(&query)?;
    if variables.is_empty() {
        note_why_nothing(&catalog, &query, out);
    }
    if out.json() {
        return out.items("variables", variables.iter().map(|found| Ok(json::catalog::variable(found))));
    }
    let mut table = Table::new([
        Column::text("run").least(12).rank(7),
        Column::text("variable").least(12).rank(9),
        Column::text("type").rank(6),
        Column::text("shape").rank(8),
        Column::text("dimensions").least(6).rank(4),
        Column::text("attributes").least(12).rank(3),
    ]);
    for found in &variables {
        let decl = &found.decl;
        let joined =
            |words: Vec<String>, sign: &str| or_dash(Some(words.join(sign)).filter(|t| !t.is_empty()));
        let attrs = decl.attrs.iter().map(|(name, value)| format!("{name}={}", value_cell(value)));
        table.row(
            vec![
                run_cell(&found.run),
                variable_name_cell(&decl.variable),
                or_dash(decl.dtype),
                shape(decl.shape.as_deref()),
                joined(decl.dims.clone(), ","),
                joined(attrs.collect(), " "),
            ],
            out,
        )?;
    }
    table.finish(out)
}

fn shape(shape: Option<&[u64]>) -> String {
    match shape {
        None => "-".to_owned(),
        Some([]) => "scalar".to_owned(),
        Some(extents) => extents.iter().map(u64::to_string).collect::<Vec<_>>().join("x"),
    }
}
