//! `fieldstone container validate`: whether files keep their format, netCDF classic or partitioned.

use std::path::PathBuf;

use clap::Args;
use fieldstone::container::look;
use fieldstone::container::validate::Report;
use fieldstone::{Error, json};

use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone container validate simulation.nc
  fieldstone container validate *.nc --json | jq '.files[] | select(.ok | not)'

Each line is a finding: file, error or warning, offset, object, what the file has, and the rule. After a finding the
check goes on as long as the rest can be interpreted. It does not read data. If a writer was stopped, the line says
how far it came. Ends with 5 if a file breaks a rule, and with 0 if there are only warnings.

With --json: {\"files\": [...]} of file, ok, format, dims, attrs, vars, numrecs, header_bytes, paths (whether
names spell paths), index (whether there is a name index), findings (severity, offset, object, message, rule)
and omitted (the number of findings not listed).";

/// Check that containers keep their format
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Prints the findings of each file; an error of kind Corrupt after the last where a rule is broken.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let mut broken = 0;
    let mut objects = Vec::new();
    for path in &arguments.files {
        let report = look::check(path)?;
        broken += u64::from(!report.ok);
        let file = path.display().to_string();
        match out.json() {
            true => objects.push(json::container::checked(&file, &report)),
            false => lines(&file, &report, out)?,
        }
    }
    if out.json() {
        out.items("files", objects.into_iter().map(Ok))?;
    }
    match broken {
        0 => Ok(()),
        n => Err(Error::corrupt(format!("{} that breaks the format's rules", count(n, "file")))
            .with_hint("write the file again, or take a copy that is sound")
            .into()),
    }
}

fn lines(file: &str, report: &Report, out: &mut Out) -> Done {
    for finding in &report.findings {
        out.text(format!("{file}: {}: {finding}\n", finding.severity.name()))?;
    }
    if report.omitted > 0 {
        out.text(format!("{file}: {} more\n", count(report.omitted, "finding")))?;
    }
    let format = report.format.map_or("unknown format", json::container::format);
    let [dims, attrs, vars] = report.counts;
    let verdict = if report.ok { "sound" } else { "not sound" };
    let counts = [count(dims, "dimension"), count(attrs, "attribute"), count(vars, "variable")].join(", ");
    out.text(format!("{file}: {format}, {verdict}: {counts}\n"))
}
