//! `fieldstone container header`: what a header says of the whole file.

use std::path::PathBuf;

use clap::Args;
use fieldstone::container::{Metadata, look, stats};
use fieldstone::{Result, json};

use crate::output::{Done, Out};

/// Dimensions asked for at once.
const BATCH: usize = 256;

const EXAMPLES: &str = "\
Examples:
  fieldstone container header simulation.nc
  fieldstone container header simulation.nc --json | jq .format

With --json: format, the numbers of dims, attrs, vars and var_attrs, numrecs, record_dim (its name, or null),
header_bytes, data_bytes, file_bytes, paths (their number at the first level) and types (name, vars, bytes).";

/// Show format, counts and sizes of a container
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The container
    file: PathBuf,
}

/// Prints a line per fact.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let file = look::open(&arguments.file, look::Names::Paths)?;
    let metadata = file.metadata();
    let stats = stats::stats(metadata, 1)?;
    let record = record_dimension(metadata)?;
    let totals = &stats.totals;
    let counts = totals.counts;
    let paths = totals.paths.iter().filter(|place| !place.path.is_empty()).count();
    if out.json() {
        return out.document(&json::container::summary(&file, &stats, record.as_deref()));
    }
    let records = record.map_or_else(|| "none".to_owned(), |name| format!("{} along {name}", totals.numrecs));
    let lines = [
        ("format", json::container::format(metadata.format()).to_owned()),
        ("dimensions", counts.dims.to_string()),
        ("variables", counts.vars.to_string()),
        ("attributes", format!("{} global, {} of variables", counts.attrs, stats.var_attrs)),
        ("records", records),
        ("paths", paths.to_string()),
        ("header", format!("{} bytes", file.header_bytes())),
        ("data", format!("{} bytes", totals.bytes)),
        ("file", format!("{} bytes", file.bytes())),
    ];
    for (name, value) in lines {
        out.line(format_args!("{name:<12}{value}"))?;
    }
    for (ty, vars, bytes) in &stats.types {
        out.line(format_args!("  {:<10}{vars} variables, {bytes} bytes", ty.name()))?;
    }
    Ok(())
}

/// The name of the record dimension.
fn record_dimension(metadata: &dyn Metadata) -> Result<Option<String>> {
    let mut from = 0;
    loop {
        let dims = metadata.dims(from, BATCH)?;
        if dims.is_empty() {
            return Ok(None);
        }
        from += dims.len() as u64;
        if let Some(dim) = dims.into_iter().find(|dim| dim.is_record) {
            return Ok(Some(dim.name));
        }
    }
}
