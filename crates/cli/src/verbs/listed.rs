//! `fieldstone runs`, `steps`, `variables` and `tags`: list those that exist, or those that matching attributes touch.
//!
//! The four verbs differ in the table they ask and in their columns; they share their arguments, and the note that they
//! print if they find nothing.

use clap::Args;
use fieldstone::Result;
use fieldstone::catalog::query::Query;
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{CatalogAccess, step_number};
use fieldstone::json::{self, values::time_in_seconds};

use crate::arguments::Reading;
use crate::catalog::{
    Asking, float_cell, moment_cell, note_why_nothing, or_dash, run_cell, value_cell, variable_name_cell,
};
use crate::output::{Done, Out};
use crate::table::{self, Column};

/// How runs are listed.
pub const RUNS: &str = "\
Examples:
  fieldstone runs store
  fieldstone runs store 'run=astro3d-* and param.nx>=256'
  fieldstone runs store 'created>2026-01-01'
  fieldstone runs store 'tag=maximum and value>9000' --json

A term about a tag, a value or a box lists the runs that such attributes touch; without one, those that
exist. When the output is not a terminal, each line has run, created, job and parameters, separated by tabs.

With --json: {\"runs\": [...]} of project, name, job, created, params, grid, notes and declared: whether the
run was created, or only fields name it.";

/// How steps are listed.
pub const STEPS: &str = "\
Examples:
  fieldstone steps store run=astro3d-42
  fieldstone steps store 'tag=maximum and value>9000'
  fieldstone steps store 'tag=vortex and box=z:50:100 first'

A term about a tag, a value or a box lists the steps that such attributes touch; without one, those that
exist. When the output is not a terminal, each line has run, step and time, separated by tabs.

With --json: {\"steps\": [...]} of project, run, step and time.";

/// How variables are listed.
pub const VARIABLES: &str = "\
Examples:
  fieldstone variables store run=astro3d-42
  fieldstone variables store 'variable contains temp'
  fieldstone variables store 'tag=maximum and value>9000' --json

A term about a tag, a value or a box lists the variables that such attributes touch; without one, those
that exist. When the output is not a terminal, each line has run, variable, type, shape, dimensions and attributes,
separated by tabs.

With --json: {\"variables\": [...]} of project, run, name, version, dtype, shape, dims, attrs, decomposition
and declared: whether the variable was created, or only fields name it.";

/// How tags are listed.
pub const TAGS: &str = "\
Examples:
  fieldstone tags store
  fieldstone tags store tag=max*
  fieldstone tags store 'run=astro3d-42 and box=z:50:100'

A term about a value, a box, a run, a step or a variable lists the tags of such attributes. When the output
is not a terminal, each line has tag, version, type and unit, separated by tabs.

With --json: {\"tags\": [...]} of name, version, type and unit.";

/// A store, and a query of its catalog.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    asking: Asking,
}

impl Arguments {
    /// The rows that `ask` finds; a note says why there are none.
    fn found<T>(&self, ask: fn(&dyn CatalogAccess, &Query) -> Result<Vec<T>>, out: &Out) -> Done<Vec<T>> {
        let query = self.asking.parse()?;
        let store = self.store.open()?;
        let catalog = store.catalog();
        let found = ask(catalog, &query)?;
        if found.is_empty() {
            note_why_nothing(catalog, &query, out);
        }
        Ok(found)
    }
}

/// Lists runs.
pub fn runs(arguments: &Arguments, out: &mut Out) -> Done {
    let runs = arguments.found(|catalog, query| catalog.runs(query), out)?;
    let columns = [
        Column::text("run").least(12).rank(9),
        Column::text("created").rank(6),
        Column::text("job").least(6).rank(4),
        Column::text("parameters").least(12).rank(5),
    ];
    // A person reads six digits; a program has them all.
    let person = out.width().is_some();
    let shown = |value: &Value| match value {
        Value::Float(number) if person => six_digits(*number),
        value => value_cell(value),
    };
    table::list(out, "runs", runs.iter().map(Ok), json::catalog::run, columns, |run| {
        let created = match run.decl.created {
            created if person && created != 0 => time_in_seconds(created),
            created => moment_cell(created),
        };
        let params = run.decl.params.iter().map(|(name, value)| format!("{name}={}", shown(value)));
        vec![run_cell(&run.decl.run), created, or_dash(run.decl.job.as_deref()), joined(params, " ")]
    })
}

/// Lists steps.
pub fn steps(arguments: &Arguments, out: &mut Out) -> Done {
    let steps = arguments.found(|catalog, query| catalog.steps(query), out)?;
    let columns = [
        Column::text("run").least(12).rank(8),
        Column::number("step").rank(9),
        Column::number("time").rank(7),
    ];
    table::list(out, "steps", steps.iter().map(Ok), json::catalog::run_step, columns, |step| {
        vec![run_cell(&step.run), step_number::text(step.step), float_cell(step.time)]
    })
}

/// Lists variables.
pub fn variables(arguments: &Arguments, out: &mut Out) -> Done {
    let variables = arguments.found(|catalog, query| catalog.variables(query), out)?;
    let columns = [
        Column::text("run").least(12).rank(7),
        Column::text("variable").least(12).rank(9),
        Column::text("type").rank(6),
        Column::text("shape").rank(8),
        Column::text("dimensions").least(6).rank(4),
        Column::text("attributes").least(12).rank(3),
    ];
    table::list(out, "variables", variables.iter().map(Ok), json::catalog::variable, columns, |found| {
        let decl = &found.decl;
        let attrs = decl.attrs.iter().map(|(name, value)| format!("{name}={}", value_cell(value)));
        vec![
            run_cell(&found.run),
            variable_name_cell(&decl.variable),
            or_dash(decl.dtype),
            table::shape_cell(decl.shape.as_deref()),
            joined(decl.dims.iter().cloned(), ","),
            joined(attrs, " "),
        ]
    })
}

/// Lists tags.
pub fn tags(arguments: &Arguments, out: &mut Out) -> Done {
    let tags = arguments.found(|catalog, query| catalog.tags(query), out)?;
    let columns = [
        Column::text("tag").least(12).rank(9),
        Column::number("version").rank(6),
        Column::text("type").rank(8),
        Column::text("unit").least(6).rank(7),
    ];
    table::list(out, "tags", tags.iter().map(Ok), json::catalog::tag, columns, |tag| {
        let unit = or_dash(Some(&tag.decl.unit).filter(|unit| !unit.is_empty()));
        vec![tag.decl.name.clone(), tag.version.to_string(), tag.decl.kind.to_string(), unit]
    })
}

/// Words in one cell; `-` for none.
fn joined(words: impl Iterator<Item = String>, sign: &str) -> String {
    or_dash(Some(words.collect::<Vec<_>>().join(sign)).filter(|text| !text.is_empty()))
}

/// A number with at most six significant digits, as short as it goes.
fn six_digits(number: f64) -> String {
    let short: f64 = format!("{number:.5e}").parse().unwrap_or(number);
    Value::Float(short).to_string()
}
