//! `fieldstone tags`: tags that exist, or that matching attributes have.

use clap::Args;
use fieldstone::json;

use crate::arguments::Reading;
use crate::catalog::{Asking, note_why_nothing, or_dash, reading};
use crate::output::{Done, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone tags store
  fieldstone tags store tag=max*
  fieldstone tags store 'run=astro3d-42 and box=z:50:100'

A term about a value, a box, a run, a step or a variable lists the tags of such attributes. Where a program
reads, a line has tag, version, type and unit, with tabs between.

With --json: {\"tags\": [...]} of name, version, type and unit.";

/// List tags
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
    let tags = catalog.tags(&query)?;
    if tags.is_empty() {
        note_why_nothing(&catalog, &query, out);
    }
    if out.json() {
        return out.items("tags", tags.iter().map(|tag| Ok(json::catalog::tag(tag))));
    }
    let mut table = Table::new([
        Column::text("tag").least(12).rank(9),
        Column::number("version").rank(6),
        Column::text("type").rank(8),
        Column::text("unit").least(6).rank(7),
    ]);
    for tag in &tags {
        let row = vec![
            tag.decl.name.clone(),
            tag.version.to_string(),
            tag.decl.kind.to_string(),
            or_dash(Some(&tag.decl.unit).filter(|unit| !unit.is_empty())),
        ];
        table.row(row, out)?;
    }
    table.finish(out)
}
