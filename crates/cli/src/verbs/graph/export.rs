//! `fieldstone graph export`: where a result came from, in a form that others read.

use std::path::PathBuf;

use clap::Args;
use fieldstone::Session;
use fieldstone::graph::TraceOptions;
use fieldstone::json;
use fieldstone::lineage::{LineageFormat, export, write_text};

use crate::graph::{Graphed, note_archived, note_left, stamp, subject};
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph export store plot.png --format svg --output lineage.svg
  fieldstone graph export store plot.png --format ro-crate --output ro-crate-metadata.json
  fieldstone graph export store run=a,variable=t,step=6 --format svg --output lineage.svg
  fieldstone graph export store job:17 --format openlineage | gzip > events.json.gz

Exports the upstream lineage, with the users who ran its executions. prov-json is W3C PROV-JSON; openlineage is a list
of run events, which `fieldstone ingest` reads back as the same relations; ro-crate is the metadata of a Process Run
Crate; dot is for Graphviz; svg is a picture.

With --json and --output: path, format and bytes.";

/// Write where a result came from, for others
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
    /// A request, the path of a file, or TYPE:ID
    #[arg(required = true)]
    what: Vec<String>,
    /// prov-json, openlineage, ro-crate, dot or svg
    #[arg(long, value_name = "FORMAT", default_value = "prov-json")]
    format: LineageFormat,
    /// The file to write, in place of one that is there; stdout where it is not given
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Hops, at most
    #[arg(long, value_name = "HOPS")]
    depth: Option<u32>,
    /// As it was at this moment: a date, seconds since 1970, or a stamp
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Do not go on in other stores
    #[arg(long)]
    one_store: bool,
    /// Vertices, at most
    #[arg(long, value_name = "VERTICES", default_value_t = 1_000_000)]
    limit: usize,
}

/// Exports.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let what = subject(&arguments.what)?;
    let options = TraceOptions {
        depth: arguments.depth,
        at: arguments.at.as_deref().map(stamp).transpose()?,
        limit: arguments.limit,
        ..TraceOptions::default()
    };
    let store = arguments.store.open()?;
    let session = Session::default();
    let tracer = store.tracer(&session);
    let (dossier, stores) = match arguments.one_store {
        true => (tracer.dossier(&what, &options)?, Vec::new()),
        false => tracer.dossier_across(&what, &options)?,
    };
    note_left(&stores, out);
    note_archived(&dossier.lineage, out);
    let text = export(&dossier, arguments.format);
    match &arguments.output {
        None => out.text(text)?,
        Some(path) => {
            write_text(path, &text)?;
            if out.json() {
                out.document(&json::graph::exported(path, arguments.format, text.len()))?;
            }
        }
    }
    Ok(store.close()?)
}
