//! `fieldstone container header`: what a header says of the whole file.

use std::path::PathBuf;

use clap::Args;
use fieldstone::container::{look, stats};
use serde_json::json;

use super::object;
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone container header simulation.nc
  fieldstone container header simulation.nc --json | jq .format

With --json: format, dims, attrs, vars and var_attrs (how many there are), numrecs, record_dim (its name, or
null), header_bytes, data_bytes, file_bytes, paths (how many there are at the first level) and types (name,
vars, bytes).";

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
    let mut record = None;
    object::each_dim(metadata, |dim| {
        if dim.is_record {
            record = Some(dim.name);
        }
        Ok::<(), fieldstone::Error>(())
    })?;
    let totals = &stats.totals;
    let counts = totals.counts;
    let paths = totals.paths.iter().filter(|place| !place.path.is_empty()).count();
    if out.json() {
        let types = stats.types.iter();
        let types = types.map(|(ty, vars, bytes)| json!({"name": ty.name(), "vars": vars, "bytes": bytes}));
        return out.document(&json!({
            "format": object::format(metadata.format()),
            "dims": counts.dims,
            "attrs": counts.attrs,
            "vars": counts.vars,
            "var_attrs": stats.var_attrs,
            "numrecs": totals.numrecs,
            "record_dim": record,
            "header_bytes": file.header_bytes(),
            "data_bytes": totals.bytes,
            "file_bytes": file.bytes(),
            "paths": paths,
            "types": types.collect::<Vec<_>>(),
        }));
    }
    let records = record.map_or_else(|| "none".to_owned(), |name| format!("{} along {name}", totals.numrecs));
    let lines = [
        ("format", object::format(metadata.format()).to_owned()),
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
