//! `fieldstone status`: who writes, what is undecided, what is wrong.

use clap::Args;
use fieldstone::Status;
use serde_json::{Value, json};

use crate::arguments::Reading;
use crate::output::{Done, Out, count};
use crate::time;

const EXAMPLES: &str = "\
Examples:
  fieldstone status store
  fieldstone status store --json | jq .problems";

/// Show writers, undecided transactions and problems
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
}

/// Prints facts about the store, then a line per writer, transaction and problem.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let status = arguments.store.open()?.status()?;
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
    out.line(format_args!("version  {}", status.version))?;
    out.line(format_args!("owner    {}", status.owners.join(", ")))?;
    out.line(format_args!("free     {} bytes", status.free_bytes))?;
    for w in &status.writers {
        let (id, state, user, host, process) = (&w.writer, w.state, &w.user, &w.host, w.process);
        let last = time::utc(w.last_flush, true);
        let commits = count(w.commits, "commit");
        let mut line = format!("writer   {id} {state} {user}@{host}:{process}, {commits}, last {last}");
        if w.tail > 0 {
            line.push_str(&format!(", {} bytes behind the last commit", w.tail));
        }
        if let Some(off) = w.clock_off {
            line.push_str(&format!(", clock off by {}", time::span(off)));
        }
        out.line(line)?;
    }
    for t in &status.transactions {
        let (since, fields) = (time::utc(t.since, true), count(t.fields, "field"));
        out.line(format_args!("undecided {} since {since}, {fields} by {}", t.id, t.owners.join(", ")))?;
    }
    status.problems.iter().try_for_each(|problem| out.line(format_args!("problem  {problem}")))
}

fn named(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

fn document(status: &Status) -> Value {
    let writer = |w: &fieldstone::WriterStatus| {
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
