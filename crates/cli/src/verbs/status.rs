//! `fieldstone status`: who writes, what is undecided, what is wrong.

use clap::Args;
use fieldstone::json::values::time_in_seconds;
use fieldstone::prelude::*;
use fieldstone::{Code, Env, Request, StatsBy, Status, Store, WriterStatus, json};

use crate::arguments::Reading;
use crate::metrics;
use crate::output::{Done, EarlyEnd, Out, count, size};
use crate::table::cut;
use crate::time;

const EXAMPLES: &str = "\
Examples:
  fieldstone status store
  fieldstone status store --writers
  fieldstone status store --job 1177
  fieldstone status store --json | jq .problems
  fieldstone status store --prometheus > fieldstone.prom

Ends with the exit code of the worst problem, so that a monitor needs nothing else: 5 for damaged or missing data, 7 for
a full disk, 6 for logs that this user may not read. Notes do not change the exit code.

It lists writers that are open, that ended without closing, that are silent (on another host and without a flush for an
hour, so this host cannot know whether they live), or that have a problem: the latest first, and at most 20. It counts
all others. --job lists all writers of a job of the batch system, or of an attempt.

--prometheus prints metrics, among them fieldstone_status_code, _problems, _writers, _undecided_transactions, _free_bytes,
_stored_bytes and _dead_bytes, and ends with 0 also if there is a problem. It counts all fields, which the others do not.

With --json: url, id, schema, format, format_pinned (user, time), version (null beyond 1 KB: fieldstone version prints it),
owners, free_bytes, free_inodes, bytes_by_user, states (writers by state), transactions and problems (each with code, file
and why), accepted, advice (command, gain, estimate), code. It has the first 100 owners, transactions and problems, and their numbers under totals. With
--writers or --job also writers.";
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
    /// Print metrics for Prometheus in place of lines, such as for node_exporter's folder of text files
    #[arg(long, conflicts_with_all = ["writers", "job"])]
    prometheus: bool,
    /// List the writers of this job, or of this attempt
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
}

/// Prints facts about the store, then a line per writer, transaction and problem; ends with the worst problem's code.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    let mut status = store.status()?;
    if arguments.prometheus {
        return metrics(&store, &status, out);
    }
    if let Some(job) = &arguments.job {
        // A job's steps are `1177.0`, `1177.1` and so on.
        let of = |name: &str| {
            name == job || name.strip_prefix(job.as_str()).is_some_and(|rest| rest.starts_with('.'))
        };
        status.writers.retain(|w| of(&w.origin.job) || of(&w.origin.attempt));
    }
    let code = status.code();
    let every = arguments.writers || arguments.job.is_some();
    match out.json() {
        true => out.document(&json::reports::status(&status, every))?,
        false => lines(&status, every, out)?,
    }
    match code {
        0 => Ok(()),
        code => Err(EarlyEnd::Exit(code)),
    }
}

/// Prints metrics. Their file is to be replaced also where something is wrong, so that the exit code stays 0.
fn metrics(store: &Store, status: &Status, out: &mut Out) -> Done {
    if out.json() {
        return Err(Code::CommandLine
            .error("--prometheus and --json are two forms of one answer")
            .with_hint("leave one of them out")
            .into());
    }
    let all = Request::new();
    let counts = store.stats(&all).and_then(|stats| Ok((stats, store.stats_by(&all, &StatsBy::Owner)?)));
    // A store that cannot be counted has a problem of that code among the metrics.
    metrics::print(status, counts.ok().as_ref(), Env::real().clock.now(), out)
}

fn lines(status: &Status, every: bool, out: &mut Out) -> Done {
    out.line(format_args!("store    {}", status.url))?;
    match &status.id {
        Some(id) => out.line(format_args!("id       {id}"))?,
        None => out.line("id       none: nothing is there yet")?,
    }
    out.line(format_args!("schema   {}", status.schema))?;
    let pinned = status.format_pin.as_ref();
    let pinned = pinned.map(|pin| format!(", pinned by {} {}", pin.user, time_in_seconds(pin.time)));
    out.line(format_args!("format   {}{}", status.format, pinned.unwrap_or_default()))?;
    // It names every log: what a program needs whole, `fieldstone version` prints.
    out.line(format_args!("version  {}", cut(&status.version, VERSION)))?;
    out.line(format_args!("owner    {}", status.owners.join(", ")))?;
    let inodes = status.free_inodes.map(|n| format!(", {}", count(n, "file"))).unwrap_or_default();
    out.line(format_args!("free     {}{inodes}", size(status.free_bytes)))?;
    let used = status.bytes_by_user.iter().map(|(user, bytes)| format!("{} of {user}", size(*bytes)));
    out.line(format_args!("used     {}", used.collect::<Vec<_>>().join(", ")))?;
    writers(status, every, out)?;
    for t in &status.transactions {
        let (since, fields) = (time_in_seconds(t.since), count(t.fields, "field"));
        out.line(format_args!("undecided {} since {since}, {fields} by {}", t.id, t.owners.join(", ")))?;
    }
    status.accepted.iter().try_for_each(|loss| out.line(format_args!("accepted {loss}")))?;
    status.problems.iter().try_for_each(|problem| {
        let word = if problem.code.is_some() { "problem " } else { "note    " };
        out.line(format_args!("{word} {problem}"))
    })?;
    status.advice.iter().try_for_each(|advice| out.line(format_args!("advice   {advice}")))
}

fn named(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty())
}

/// How many writers there are of each state, then lines for those that are worth one.
fn writers(status: &Status, every: bool, out: &mut Out) -> Done {
    let all = &status.writers;
    let states = status.states();
    let order = ["open", "closed", "ended", "gone", "silent"].into_iter();
    let counts = order.filter_map(|state| states.get(state).map(|n| format!("{n} {state}")));
    let counts = counts.collect::<Vec<_>>().join(", ");
    out.line(format_args!("writers  {}", if counts.is_empty() { "none" } else { &counts }))?;
    let matters = |w: &&WriterStatus| {
        every || !matches!(w.state, "closed" | "ended") || w.tail > 0 || w.clock_offset.is_some()
    };
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
    let (commits, last) = (count(w.commits, "commit"), time_in_seconds(w.last_flush));
    let word = if state == "silent" { "since" } else { "last" };
    let mut line = format!("writer   {id} {state} {user}@{host}:{process}, {commits}, {word} {last}");
    if w.tail > 0 {
        line.push_str(&format!(", {} behind the last commit", size(w.tail)));
    }
    if let Some(off) = w.clock_offset {
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
