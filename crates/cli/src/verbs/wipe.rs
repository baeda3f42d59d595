//! `fieldstone wipe`: hides whole datasets and indexes.

use std::time::{Duration, SystemTime};

use clap::Args;
use fieldstone::{WipeOptions, WipeReport, json};

use crate::arguments::{Selecting, Writing};
use crate::output::{Done, Out, count, size};
use crate::time::parse_before;

const EXAMPLES: &str = "\
Examples:
  fieldstone wipe store run=a
  fieldstone wipe store run=a --doit
  fieldstone wipe store run=a variable=t/u --doit
  fieldstone wipe store project=tests --older-than 5d --doit
  fieldstone wipe store --all --doit

Without --doit it only prints what it would hide. It takes whole datasets, or whole indexes of them: keywords of the
first two levels of keys (fieldstone schema show STORE); `remove` takes single fields. Nobody sees the fields from then
on, and nothing brings them back. Runs, attributes and lineage stay, and so does what others flush meanwhile or later.
Older versions of the store still show the fields (--at), and their bytes keep their space until a `purge`.

With --json: fields, nbytes, foreign, done. foreign lists files in the folder of the store that are not the store's.";

/// Hide whole datasets and indexes for good
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
    /// Only fields archived longer ago than this, such as 12h or 5d, or before a date
    #[arg(long, value_name = "AGE", value_parser = parse_before)]
    older_than: Option<i64>,
    /// Do it; without this option it only prints what it would hide
    #[arg(long)]
    doit: bool,
    /// Take the whole store where the request names no values
    #[arg(long)]
    all: bool,
}

/// A moment, given in nanoseconds since 1970.
fn moment(nanoseconds: i64) -> SystemTime {
    let span = Duration::from_nanos(nanoseconds.unsigned_abs());
    match nanoseconds < 0 {
        true => SystemTime::UNIX_EPOCH - span,
        false => SystemTime::UNIX_EPOCH + span,
    }
}

/// Wipes, or prints what it would wipe.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open_existing()?;
    let older_than = arguments.older_than.map(moment);
    let options = WipeOptions { older_than, doit: false, all: arguments.all };
    // All of them are checked before one is made.
    let looked = requests.iter().map(|request| store.wipe(request, &options));
    let mut reports = looked.collect::<fieldstone::Result<Vec<_>>>()?;
    if arguments.doit {
        let options = WipeOptions { doit: true, ..options };
        let made = requests.iter().map(|request| store.wipe(request, &options));
        reports = made.collect::<fieldstone::Result<Vec<_>>>()?;
    }
    store.close()?;
    let mut sum = WipeReport { done: arguments.doit, ..WipeReport::default() };
    for report in reports {
        sum.fields += report.fields;
        sum.nbytes = sum.nbytes.saturating_add(report.nbytes);
        sum.foreign = report.foreign;
    }
    if out.json() {
        return out.document(&json::reports::wiped(&sum));
    }
    let what = match sum.fields {
        0 => "nothing".to_owned(),
        _ => format!("{}, {}", count(sum.fields, "field"), size(sum.nbytes)),
    };
    out.line(format_args!("{} {what}", if arguments.doit { "wiped" } else { "would wipe" }))?;
    for file in &sum.foreign {
        out.note(format!("{file} is not the store's: it stays"));
    }
    if sum.fields > 0 && !arguments.doit {
        out.note("nothing was wiped: give --doit to do it");
    }
    Ok(())
}
