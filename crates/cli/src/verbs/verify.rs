//! `fieldstone verify`: every stored byte against its checksum.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{Error, json};

use crate::arguments::{Reading, Selecting, version};
use crate::output::{Done, Out, count, size};
use crate::progress::Ticker;

const EXAMPLES: &str = "\
Examples:
  fieldstone verify store
  fieldstone verify store run=a && echo intact
  fieldstone verify store --since @yesterday

Ends with 5 if it finds damage; everything else is readable. It lists accepted losses (see fieldstone accept), which do
not count as damage.";

/// Read and check everything that a request selects, and the store's own structures
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
    /// Check only what flushes after this version brought, or with @FILE after that in a file
    #[arg(long, value_name = "VERSION")]
    since: Option<String>,
}

/// Verifies; an error of kind Corrupt after the report where something is damaged.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open()?;
    let ticker = Ticker::start(format!("verifying {}", store.url()), out);
    let report = match &arguments.since {
        Some(since) => store.all_of(requests).verify_since(&version(since)?)?,
        None => store.all_of(requests).verify()?,
    };
    drop(ticker);
    let damaged = report.damaged.len();
    if out.json() {
        out.document(&json::reports::verified(&report))?;
    } else {
        for d in &report.damaged {
            let key = d.key.as_deref().unwrap_or("-");
            out.line(format_args!("damaged: {key} in {}: {}", d.file, d.why))?;
        }
        for note in &report.notes {
            out.line(format_args!("note: {note}"))?;
        }
        for loss in &report.accepted {
            out.line(format_args!("accepted: {loss}"))?;
        }
        let (fields, bytes, files) =
            (count(report.fields, "field"), size(report.bytes), count(report.files, "file"));
        let found = if damaged == 0 { "all intact".to_owned() } else { format!("{damaged} damaged") };
        out.line(format_args!("{fields}, {bytes}, {files}: {found}"))?;
    }
    match damaged {
        0 => Ok(()),
        n => Err(Error::corrupt(format!("{} damaged in {}", count(n as u64, "part"), store.url()))
            .with_hint(
                "mend it from a backup: fieldstone repair STORE --from BACKUP; or archive the named fields again; to give up \
                 what is lost for good: fieldstone accept STORE FILE",
            )
            .into()),
    }
}
