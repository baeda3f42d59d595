//! `fieldstone status`: who writes, what is undecided, what is wrong.

use clap::Args;
use fieldstone::{Status, WriterStatus};
use serde_json::{Value, json};

use crate::arguments::Reading;
use crate::output::{Done, Out, count, size};
use crate::table::cut;
use crate::time;

const EXAMPLES: &str = "\
Examples:
  fieldstone status store
  fieldstone status store --writers
  fieldstone status store --job 1177
  fieldstone status store --json | jq .problems

Of the writers those are listed that are open, that ended without closing, or that something is wrong with, the latest
first and at most 20; the others are counted. --job lists those of a job of the batch system, or of an attempt: all of it.";
/// Writers that are listed unless all are asked for.
const LISTED: usize = 20;
/// Characters of a version that are shown.
const VERSION: usize = 64;

/// Show writers, undecided transactions and problems
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    /// List every writer there ever was
    #[arg(long)]
    writers: bool,
    /// List the writers of this job, or of this attempt
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
}

/// Prints facts about the store, then a line per writer, transaction and problem.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let mut status = arguments.store.open()?.status()?;
    if let Some(job) = &arguments.job {
        // A job's steps are `1177.0`, `1177.1` and so on.
        let of = |name: &str| {
            name == job || name.strip_prefix(job.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        status.writers.retain(|w| of(&w.origin.job) || of(&w.origin.attempt));
    }
    if out.json() {
        return out.document(&document(&status));
    }
    out.line(format_args!("store    {}", status.url))?;
    match &status.id {
        Some(id) => out.line(format_args!("id       {id}"))?,
        None => out.line("id       none: nothing is there yet")?,
    }
    out.line(format_args!("schema   {}", status.schema))?;
    out.line(format_args!("format   {}", status.format))?;
    // It names every log: what a program needs whole, `fieldstone version` prints.
    out.line(format_args!("version  {}", cut(&status.version, VERSION)))?;
    out.line(format_args!("owner    {}", status.owners.join(", ")))?;
    out.line(format_args!("free     {}", size(status.free_bytes)))?;
    writers(&status.writers, arguments.writers || arguments.job.is_some(), out)?;
    for t in &status.transactions {
        let (since, fields) = (time::utc(t.since, true), count(t.fields, "field"));
        out.line(format_args!("undecided {} since {since}, {fields} by {}", t.id, t.owners.join(", ")))?;
    }
    status.problems.iter().try_for_each(|problem| out.line(format_args!("problem  {problem}")))
}

fn named(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

/// How many writers there are of each state, then lines for those that are worth one.
fn writers(all: &[WriterStatus], every: bool, out: &mut Out) -> Done {
    let states = ["open", "closed", "gone"];
    let counts = states.map(|state| (state, all.iter().filter(|w| w.state == state).count()));
    let counts = counts.iter().filter(|(_, n)| *n > 0).map(|(state, n)| format!("{n} {state}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    out.line(format_args!("writers  {}", if counts.is_empty() { "none" } else { &counts }))?;
    let matters = |w: &&WriterStatus| every || w.state != "closed" || w.tail > 0 || w.clock_off.is_some();
    let mut listed: Vec<&WriterStatus> = all.iter().filter(matters).collect();
    listed.sort_by_key(|w| (w.state != "open", std::cmp::Reverse(w.last_flush)));
    let shown = if every { listed.len() } else { LISTED.min(listed.len()) };
    listed[..shown].iter().try_for_each(|w| out.line(writer_line(w)))?;
    match listed.len() - shown {
        0 => Ok(()),
        more => out.line(format_args!("         and {more} more like these: --writers lists them")),
    }
}

fn writer_line(w: &WriterStatus) -> String {
    let (id, state, user, host, process) = (&w.writer, w.state, &w.user, &w.host, w.process);
    let (commits, last) = (count(w.commits, "commit"), time::utc(w.last_flush, true));
    let mut line = format!("writer   {id} {state} {user}@{host}:{process}, {commits}, last {last}");
    if w.tail > 0 {
        line.push_str(&format!(", {} behind the last commit", size(w.tail)));
    }
    if let Some(off) = w.clock_off {
        // A file that was copied is younger than what it says of itself.
        let or = if off < 0 { ", or its file was copied" } else { "" };
        line.push_str(&format!(", clock off by {}{or}", time::span(off)));
    }
    let (attempt, job) = (named(&w.origin.attempt), named(&w.origin.job));
    line.push_str(&attempt.map(|attempt| format!(", attempt {attempt}")).unwrap_or_default());
    line.push_str(&job.map(|job| format!(", job {job}")).unwrap_or_default());
    line.push_str(&w.origin.rank.map(|rank| format!(", rank {rank}")).unwrap_or_default());
    line
}

fn document(status: &Status) -> Value {
    let writer = |w: &WriterStatus| {
        json!({
            "writer": w.writer.to_string(),
            "host": w.host,
            "process": w.process,
            "user": w.user,
            "state": w.state,
            "commits": w.commits,
            "segments": w.segments,
            "last_flush": time::utc(w.last_flush, false),
            "clock_off_seconds": w.clock_off.map(|ns| ns as f64 / 1e9),
            "tail": w.tail,
            "attempt": named(&w.origin.attempt),
            "job": named(&w.origin.job),
            "rank": w.origin.rank,
        })
    };
    let transaction = |t: &fieldstone::TransactionStatus| {
        json!({
            "id": t.id.to_string(),
            "owners": t.owners,
            "fields": t.fields,
            "since": time::utc(t.since, false),
        })
    };
    json!({
        "url": status.url,
        "id": status.id.as_ref().map(ToString::to_string),
        "schema": status.schema,
        "format": status.format,
        "version": status.version,
        "owners": status.owners,
        "free_bytes": status.free_bytes,
        "writers": status.writers.iter().map(writer).collect::<Vec<_>>(),
        "transactions": status.transactions.iter().map(transaction).collect::<Vec<_>>(),
        "problems": status.problems,
    })
}
