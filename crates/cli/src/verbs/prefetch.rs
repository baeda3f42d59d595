//! `fieldstone prefetch`: reads fields ahead.

use clap::Args;
use fieldstone::catalog::query::text::parse;
use fieldstone::transfer::What;
use fieldstone::{Error, Request, json};

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Out, count, size};

const EXAMPLES: &str = "\
Examples:
  fieldstone prefetch store run=a,step=0/to/24
  fieldstone prefetch store --find 'tag=maximum and value>9000'

Reads the fields where the store is, so that a later read finds their bytes in the memory of that machine, as long as
it keeps them there. It compares each byte with its checksum, names fields that cannot be read, and then ends with 5.

With --json: fields, nbytes, damaged.";

/// Read fields ahead, so that the next reads find them in memory
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
    /// Read the fields under the attributes that this query finds, in place of a request
    #[arg(long, value_name = "QUERY")]
    find: Option<String>,
}

/// Reads, and prints how much.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let what = match arguments.find.as_deref() {
        None => What::Requests(requests.to_vec()),
        Some(query) if requests.iter().all(Request::is_empty) => What::Query(parse(query)?),
        Some(_) => return Err(Error::invalid("a request and --find").with_hint("give one of them").into()),
    };
    let report = arguments.store.open()?.prefetch(what)?;
    if out.json() {
        out.document(&json::reports::prefetched(&report))?;
    } else {
        let read = format!("{}, {}", count(report.fields, "field"), size(report.nbytes));
        out.line(format_args!("read {read}"))?;
        for field in &report.damaged {
            out.note(format_args!("damaged: {}: {}", field.key, field.why));
        }
    }
    match report.damaged.len() {
        0 => Ok(()),
        n => Err(Error::corrupt(format!("{} could not be read", count(n as u64, "field")))
            .with_hint("archive these fields again, or restore the files that verify names")
            .into()),
    }
}
