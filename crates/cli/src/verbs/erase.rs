//! `fieldstone erase`: what was recorded by mistake becomes unreadable.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{EraseOptions, ErasureReport, json};

use crate::arguments::{Selecting, Writing};
use crate::output::{Done, Out, count};
use crate::progress::Ticker;

const EXAMPLES: &str = "\
Examples:
  fieldstone erase store run=a
  fieldstone erase store run=a --doit
  fieldstone erase store run=a,variable=t,step=6 --doit

Makes unreadable, in every file of the store, what the request selects and nothing shows any more: removed, wiped and
replaced fields, deleted and replaced attributes. Remove or delete first what was recorded by mistake. Without --doit it
only prints what would go. Fields and attributes that are visible stay. Older versions of the store (--at) no longer
have what was erased.

It prints what may still hold it: logs that other processes write, transactions that can be switched off, other users'
logs and caches. Call it again once these are gone. Copies and backups outside of the store stay as they are.

With --json: fields, versions, attributes, visible, nbytes, files, left (each with file and why), done.";

/// Make unreadable what was recorded by mistake and is deleted by now
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    #[command(flatten)]
    selecting: Selecting,
    /// Do it; without this option it only prints what would go
    #[arg(long)]
    doit: bool,
}

/// Erases, or prints what would go.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open_existing()?;
    let ticker = Ticker::start(format!("erasing in {}", store.url()), out);
    let report = store.erase(requests, &EraseOptions { doit: arguments.doit })?;
    drop(ticker);
    store.close()?;
    match out.json() {
        true => out.document(&json::reports::erased(&report)),
        false => print(&report, out),
    }
}

fn print(report: &ErasureReport, out: &mut Out) -> Done {
    let mut what = Vec::new();
    if report.versions > 0 {
        let fields = count(report.fields, "field");
        what.push(format!("{} of {fields}", count(report.versions, "version")));
    }
    if report.attributes > 0 {
        what.push(count(report.attributes, "attribute"));
    }
    if what.is_empty() {
        what.push("nothing".to_owned());
    }
    let files = match report.files {
        0 => String::new(),
        n => format!("; {} rewritten or removed", count(n, "file")),
    };
    let verb = if report.done { "erased" } else { "would erase" };
    out.line(format_args!("{verb} {}{files}", what.join(", ")))?;
    for left in &report.left {
        out.line(format_args!("left: {left}"))?;
    }
    if report.visible > 0 {
        let visible = count(report.visible, "selected field or attribute");
        out.note(format!("visible content stays ({visible}): remove or delete it first"));
    }
    if !report.done && report.versions + report.attributes > 0 {
        out.note("nothing was erased: give --doit to do it");
    }
    Ok(())
}
