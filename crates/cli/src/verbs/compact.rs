//! `fieldstone compact`: takes over ended logs, so that past writers cost nothing.

use std::time::Duration;

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{CompactOptions, CompactReport, Error, json};

use crate::arguments::{Selecting, Writing, bytes};
use crate::output::{Done, Out, count, size};
use crate::progress::Ticker;
use crate::time::parse_span;

const EXAMPLES: &str = "\
Examples:
  fieldstone compact store
  fieldstone compact store run=a
  fieldstone compact store --max-bytes 10G --quiet
  fieldstone compact store --grace 0

Each process that writes leaves a log, and every look at the store goes through all logs. This puts one file, a
takeover, in the place of your logs whose processes have closed them. No answer changes, also at older versions (--at),
and others may read and write meanwhile. With a request it takes only logs that hold something that the request
selects. The files that a takeover replaced stay for --grace, for processes that still read them; a later call removes
them. Give --grace 0 only if no other process has the store open.

Ends with 5 if it left a log because of damage, after it has taken over all others.

With --json: logs, segments and files, each before and after; nbytes rewritten; waiting, the number of files that go
later; left, with file, why and accepted.";

/// Put one file in the place of many closed logs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
    /// Read at most this much of logs, such as 500M or 10G; the next call goes on
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_bytes: Option<u64>,
    /// Copy at most this much in a second, such as 32M, so that others who write wait less
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    rate: Option<u64>,
    /// How long replaced files stay, such as 90s, 30m, 1h or 2d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    grace: Duration,
}

/// Compacts; an error of kind Corrupt after the report where damaged logs were left.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open_existing()?;
    let ticker = Ticker::start(format!("compacting {}", store.url()), out);
    let (max_bytes, rate, grace) = (arguments.max_bytes, arguments.rate, arguments.grace);
    let report = store.compact(&CompactOptions { requests, max_bytes, rate, grace, progress: None })?;
    drop(ticker);
    store.close()?;
    match out.json() {
        true => out.document(&json::reports::compacted(&report))?,
        false => print(&report, out)?,
    }
    match report.damaged().count() {
        0 => Ok(()),
        n => Err(Error::corrupt(format!("{} of {} left because of damage", count(n as u64, "log"), store.url()))
            .with_hint(
                "restore the named files from a copy; to give up what is lost for good: fieldstone accept STORE FILE",
            )
            .into()),
    }
}

fn print(report: &CompactReport, out: &mut Out) -> Done {
    for log in &report.left {
        out.line(format_args!("left: {log}"))?;
    }
    let pairs = [("log", report.logs), ("segment", report.segments), ("file", report.files)];
    let became = pairs.map(|(what, (before, after))| format!("{}, now {after}", count(before, what)));
    let waiting = match report.waiting {
        0 => String::new(),
        n => format!("; {} to be removed after the grace", count(n, "file")),
    };
    out.line(format_args!("{}; {} rewritten{waiting}", became.join("; "), size(report.nbytes)))
}
