//! `fieldstone maintain`: applies rules of retention, and does what pays.

use std::time::Duration;

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{MaintainAction, MaintainOptions, MaintainReport, MaintainStep, json};

use crate::arguments::{Writing, bytes};
use crate::output::{Done, Out, count, size};
use crate::progress::Ticker;
use crate::time::parse_span;

const EXAMPLES: &str = "\
Examples:
  fieldstone maintain store --dry-run
  fieldstone maintain store
  fieldstone maintain store --max-bytes 20G --quiet

Looks after your data in the store: moves fields as rules say, removes files that nothing names any more, wipes fields that rules call too old
(`fieldstone retain`), purges versions that rules let go, and merges ended logs. It does only what pays, and says why
it left a step. Readers and writers may go on meanwhile; if it is killed, the next call goes on. Call it daily, such as
by cron: what a rule wipes today gives its room back by the next call, and files go --grace after that.

Without a rule nothing goes but files that nothing names. Give --grace 0 only if no other process has the store open.

With --json: steps, each with action (move, sweep, wipe, purge, compact), request of its rule, done, fields, versions, nbytes
(what it gives back), files, rewritten (bytes), seconds, why, code; waiting, the number of files that go later; more.";

/// Apply the rules of retention, and give room back where that pays
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// Only print what it would do
    #[arg(long)]
    dry_run: bool,
    /// Write at most this much again, such as 500M or 10G; the next call goes on
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_bytes: Option<u64>,
    /// Copy at most this much in a second, such as 32M, so that others who write wait less
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    rate: Option<u64>,
    /// How long hidden versions and unused files stay, such as 90s, 30m, 1h or 2d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    grace: Duration,
}

/// Maintains; after the report the error of the first step that failed.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open_existing()?;
    let ticker = Ticker::start(format!("maintaining {}", store.url()), out);
    let Arguments { dry_run, max_bytes, rate, grace, .. } = *arguments;
    let report = store.maintain(&MaintainOptions { grace, max_bytes, rate, dry_run, progress: None })?;
    drop(ticker);
    store.close()?;
    match out.json() {
        true => out.document(&json::reports::maintained(&report))?,
        false => print(&report, out)?,
    }
    let Some((step, code)) = report.failed().and_then(|step| Some((step, step.code?))) else { return Ok(()) };
    let what = step.why.as_deref().unwrap_or("it failed");
    Err(code.error(format!("{}: {what}", step.action.as_str())).into())
}

fn print(report: &MaintainReport, out: &mut Out) -> Done {
    for step in &report.steps {
        out.line(line(step))?;
    }
    if report.waiting > 0 {
        out.line(format_args!("{} to be removed after the grace", count(report.waiting, "file")))?;
    }
    if report.more {
        out.note("more is left: call it again");
    }
    Ok(())
}

/// The reason of a step that only a dry run left.
const DRY_RUN: &str = "a dry run";

fn line(step: &MaintainStep) -> String {
    let why = step.why.as_deref();
    let is_dry = !step.done && why == Some(DRY_RUN);
    let request = if step.request.is_empty() { String::new() } else { format!(" {}", step.request) };
    let (fields, versions) = (count(step.fields, "field"), count(step.versions, "version"));
    let what = match step.action {
        _ if !step.done && !is_dry => "left".to_owned(),
        MaintainAction::Sweep => count(step.files, "file"),
        MaintainAction::Move | MaintainAction::Wipe => format!("{fields}, {}", size(step.nbytes)),
        MaintainAction::Purge => {
            format!("{versions}, {} in {}", size(step.nbytes), count(step.files, "file"))
        }
        MaintainAction::Compact if is_dry => count(step.files, "log"),
        MaintainAction::Compact => {
            format!("{}, {} rewritten", count(step.files, "log"), size(step.rewritten))
        }
    };
    let would = if is_dry { "would " } else { "" };
    let why = why.filter(|_| !is_dry).map(|why| format!(": {why}"));
    format!("{would}{}{request} {what}{}", step.action.as_str(), why.unwrap_or_default())
}
