//! `fieldstone export`: GRIB and netCDF files out of a store.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use fieldstone::export::{ExportOptions, ExportReport, export};
use fieldstone::{Error, json};

use crate::arguments::{Reading, read_requests};
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone export store run=ocean ocean.nc
  fieldstone export store run=ocean,variable=sst,step=0/to/11 first-year.nc
  fieldstone export store run=ocean old.nc --format netcdf3
  fieldstone export forecasts param=130,levelist=500 t500.grib
  fieldstone export store copies/

The last argument is the path; the arguments before it are the request, by default all fields. The program writes
GRIB messages, byte for byte and in the order of the request, to a path that ends in .grib, .grib2, .grb or .bin,
and netCDF to .nc. An ingested file comes back as it was: dimensions, attributes and their types, packing, chunks,
compression, and its own format unless --format names another. In a folder, each run gets a file. netCDF files
also keep tags, attributes, parameters and steps; ingest reads them back. No reader ever sees a partial file: it
gets its name once it is complete.

To write netCDF, the program runs a Python that has the packages fieldstone and netCDF4 (FIELDSTONE_PYTHON names one).";

/// Write GRIB and netCDF files
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    /// A request, by default all fields, and then the file or folder to write
    #[arg(value_name = "[REQUEST] PATH", required = true)]
    words: Vec<String>,
    /// grib, netcdf4, netcdf4-classic, netcdf3, cdf1, cdf2 or cdf5
    #[arg(long)]
    format: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
}

/// Exports, and prints a line for each file and for each part left out.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let (path, words) = match arguments.words.split_last() {
        Some((path, words)) => (PathBuf::from(path), words),
        None => return Err(fieldstone::Code::CommandLine.error("export needs a path").into()),
    };
    let requests = read_requests(words)?;
    let store = arguments.store.open()?;
    let options = ExportOptions {
        format: arguments.format.clone(),
        overwrite: arguments.overwrite,
        ..ExportOptions::default()
    };
    let report = export(&store, &requests, &path, &options)?;
    let failed = report.skipped.iter().filter(|skipped| skipped.is_whole()).count();
    print(&report, out)?;
    match failed {
        0 => Ok(()),
        n => Err(Error::invalid(format!("{} could not be written", count(n as u64, "file")))
            .with_hint("the report on stdout has the reasons")
            .into()),
    }
}

fn print(report: &ExportReport, out: &mut Out) -> Done {
    if out.json() {
        return out.document(&json::moved::exported(report));
    }
    for file in &report.files {
        writeln!(out, "written  {}", file.display())?;
    }
    for skipped in &report.skipped {
        writeln!(out, "skipped  {skipped}")?;
    }
    writeln!(out, "{}, {} bytes, {}", count(report.fields, "field"), report.bytes, report.format)?;
    Ok(())
}
