//! `fieldstone purge`: drops hidden versions, and gives back their room.

use std::time::Duration;

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{PurgeOptions, PurgeReport, json};

use crate::arguments::{Selecting, Writing, bytes};
use crate::output::{Done, Out, count, size};
use crate::progress::Ticker;
use crate::time::parse_span;

const EXAMPLES: &str = "\
Examples:
  fieldstone purge store run=a
  fieldstone purge store run=a --doit
  fieldstone purge store --all --doit --max-bytes 10G --quiet
  fieldstone purge store --all --doit --grace 0

Drops versions of your fields that newer ones hide, removed fields, and what aborted transactions left, and gives their
room back to the disk. Nothing that anybody sees changes, but older versions of the store (--at) no longer have what was
dropped. Without --doit it only prints what would go. A request names datasets or indexes; --all means every one.

A version goes once it was hidden for --grace and its writer has closed; files go --grace after that, by a later call.
Open transactions, and logs that lost commits, keep what they may concern. Give --grace 0 only if no other process has
the store open.

With --json: done; fields, versions, nbytes and the number of condemned files; waiting, the number of files that go
later; files before and after; kept, the reason if nothing may go; left, with file, why and accepted; more.";

/// Drop hidden versions and give back their room
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
    /// Purge all datasets
    #[arg(long)]
    all: bool,
    /// Do it; without this option it only prints what would go
    #[arg(long)]
    doit: bool,
    /// Copy at most this much, such as 500M or 10G; the next call goes on
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_bytes: Option<u64>,
    /// Copy at most this much in a second, such as 32M, so that others who write wait less
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    rate: Option<u64>,
    /// How long hidden versions and unused files stay, such as 90s, 30m, 1h or 2d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    grace: Duration,
}

/// Purges, or prints what would go.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open_existing()?;
    let ticker = Ticker::start(format!("purging {}", store.url()), out);
    let Arguments { all, doit, max_bytes, rate, grace, .. } = *arguments;
    let report =
        store.purge(&PurgeOptions { requests, all, doit, max_bytes, rate, grace, progress: None })?;
    drop(ticker);
    store.close()?;
    match out.json() {
        true => out.document(&json::reports::purged(&report, doit)),
        false => print(&report, doit, out),
    }
}

fn print(report: &PurgeReport, doit: bool, out: &mut Out) -> Done {
    for log in &report.left {
        out.line(format_args!("left: {log}"))?;
    }
    if let Some(why) = &report.kept {
        out.line(format_args!("nothing can go: {why}"))?;
    }
    let waiting = match report.waiting {
        0 => String::new(),
        n => format!("; {} to be removed after the grace", count(n, "file")),
    };
    let what = match report.versions + report.condemned {
        0 => "nothing".to_owned(),
        _ => format!(
            "{} of {}, {} in {}",
            count(report.versions, "version"),
            count(report.fields, "field"),
            size(report.nbytes),
            count(report.condemned, "file")
        ),
    };
    out.line(format_args!("{} {what}{waiting}", if doit { "purged" } else { "would purge" }))?;
    if report.more {
        out.note("more is left: call it again");
    }
    if report.versions + report.condemned > 0 && !doit {
        out.note("nothing was purged: give --doit to do it");
    }
    Ok(())
}
