//! `fieldstone container dump`: a container as CDL, the text that ncdump prints.

use std::io::Write;

use clap::{ArgAction, Args};
use fieldstone::container::{cdl, look};
use fieldstone::json;

use crate::output::{Done, EarlyEnd, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone container dump simulation.nc --header
  fieldstone container dump simulation.nc -v time,temperature
  fieldstone container dump simulation.nc | ncgen -o copy.nc
  fieldstone container dump simulation.nc --json | jq '.vars[].name'

The text equals that of ncdump, byte for byte. Names are printed as the file has them: paths in a netCDF file with
their escapes.

With --json: the header alone: name, format, numrecs, dims (name, len, record), attrs, and vars (name, type,
dims, shape, attrs). An attribute is a string, a number or a list; numbers that JSON cannot express are strings.";

/// Print a container as CDL, as ncdump does
#[derive(Debug, Args)]
// ncdump's -h asks for the header.
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub struct Arguments {
    /// The container
    file: std::path::PathBuf,
    /// Print the header alone
    #[arg(short = 'h', long)]
    header: bool,
    /// Print data of these variables alone: names with commas between
    #[arg(short = 'v', long = "vars", value_name = "VARS", value_delimiter = ',')]
    vars: Vec<String>,
    /// The name to print; without it the file's, without folder and extension
    #[arg(short = 'n', long)]
    name: Option<String>,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Prints as it reads.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let file = look::open(&arguments.file, look::Names::AsInFile)?;
    let name = arguments.name.clone().unwrap_or_else(|| file.name());
    if out.json() {
        return out.document(&json::container::header(file.metadata(), Some(&name))?);
    }
    let vars = (!arguments.vars.is_empty()).then(|| arguments.vars.clone());
    let options = cdl::Options { name, header_only: arguments.header, vars };
    let read = |buffer: &mut [u8], offset: u64| file.read(buffer, offset);
    cdl::write::<EarlyEnd>(file.metadata(), &read, &options, &mut |text| Ok(out.write_all(text)?))
}
