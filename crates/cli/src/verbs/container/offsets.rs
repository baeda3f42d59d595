//! `fieldstone container offsets`: where each variable lies.

use std::path::PathBuf;

use clap::Args;
use fieldstone::container::{look, offsets};
use fieldstone::json;

use crate::output::{Done, EarlyEnd, Out};
use crate::table::{Column, Table};

const EXAMPLES: &str = "\
Examples:
  fieldstone container offsets simulation.nc
  fieldstone container offsets simulation.nc --json | jq '.vars[] | select(.gap > 0)'

Variables come in the order of their bytes, those without records first. For a record variable, the numbers describe
its first record. A gap is the padding or reserved space between a variable and the one before it, or the header. When
the output is not a terminal, each line has begin, end, bytes, gap, type and name, separated by tabs.

With --json: {\"vars\": [...]} of name, type, dims, record, begin, end, bytes and gap.";

/// Show begin, end and gap of each variable's bytes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The container
    file: PathBuf,
}

/// Prints a line per variable.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let file = look::open(&arguments.file, look::Names::AsInFile)?;
    if out.json() {
        let mut vars = Vec::new();
        offsets::offsets::<EarlyEnd>(file.metadata(), file.header_bytes(), &mut |place| {
            vars.push(json::container::extent(&place));
            Ok(())
        })?;
        return out.items("vars", vars.into_iter().map(Ok));
    }
    let mut table = Table::new([
        Column::number("begin").rank(8),
        Column::number("end"),
        Column::number("bytes").rank(6),
        Column::number("gap").rank(7),
        Column::text("type"),
        Column::text("variable").least(12).rank(9),
    ]);
    offsets::offsets::<EarlyEnd>(file.metadata(), file.header_bytes(), &mut |place| {
        let dims = place.var.dims.iter().map(|dim| dim.name.as_str()).collect::<Vec<_>>().join(", ");
        let name = match dims.is_empty() {
            true => place.var.name.clone(),
            false => format!("{}({dims})", place.var.name),
        };
        let numbers = [place.begin, place.end(), place.bytes].map(|n| n.to_string());
        let rest = [place.gap.to_string(), place.var.ty.name().to_owned(), name];
        table.row(numbers.into_iter().chain(rest).collect(), out)
    })?;
    table.finish(out)
}
