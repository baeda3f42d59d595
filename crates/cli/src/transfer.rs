//! `copy` and `move`: what they take, how far they are, and what they did.

use std::io::Write;

use clap::Args;
use fieldstone::catalog::query::text::parse;
use fieldstone::transfer::{LeftBehind, TransferOptions, TransferReport, Unreadable, What, open_target};
use fieldstone::{Error, Request, Result, Store};
use serde_json::Value;

use crate::arguments::Selecting;
use crate::output::{Done, Out, count, size};
use crate::progress::Bar;
use crate::time::parse_before;

/// The fields to transfer, and the target.
#[derive(Debug, Args)]
pub struct Transfer {
    #[command(flatten)]
    selecting: Selecting,
    /// The other store: a folder; made where it is absent
    #[arg(long, value_name = "OTHER")]
    to: String,
    /// Take the attributes that this query finds, and the fields under them, in place of a request
    #[arg(long, value_name = "QUERY")]
    find: Option<String>,
    /// Take fields flushed longer ago than this, such as 12h or 5d, or before a date, and what stands on them
    #[arg(long, value_name = "AGE", value_parser = parse_before, conflicts_with = "find")]
    older_than: Option<i64>,
    /// Take older values of the fields along, too
    #[arg(long)]
    versions: bool,
    /// Take fields alone, and say what stays behind
    #[arg(long)]
    fields_only: bool,
    /// Take what exists, where a listed value has no field
    #[arg(long)]
    lenient: bool,
}

/// [`fieldstone::transfer::copy`] or [`fieldstone::transfer::move_to`].
type How = fn(&Store, What, &Store, &TransferOptions<'_>) -> Result<TransferReport>;

impl Transfer {
    /// Transfers, with a bar on a terminal. If it `removes` the originals, it takes names literally.
    pub fn run(&self, from: &Store, how: How, removes: bool, out: &Out) -> Done<TransferReport> {
        let what = match self.what()? {
            What::Query(query) if removes => What::Query(query.exact()),
            what => what,
        };
        let to = open_target(&self.to, from)?;
        let bar = Bar::new(out);
        let progress = |done: u64, of: u64| {
            bar.show(0, done, of, || format!("{done} of {of} fields"));
            Ok(())
        };
        let options = TransferOptions {
            strict: !self.lenient,
            fields_only: self.fields_only,
            before: self.older_than,
            versions: self.versions,
            progress: Some(&progress),
            ..TransferOptions::default()
        };
        let report = how(from, what, &to, &options)?;
        drop(bar);
        to.close()?;
        Ok(report)
    }

    /// A request, or a query that finds attributes.
    fn what(&self) -> Done<What> {
        let requests = self.selecting.requests()?;
        match self.find.as_deref() {
            None => Ok(What::Requests(requests.to_vec())),
            Some(query) if requests.iter().all(Request::is_empty) => Ok(What::Query(parse(query)?)),
            Some(_) => Err(Error::invalid("a request and --find").with_hint("give one of them").into()),
        }
    }
}

/// Prints a report: its JSON document, or a line with `did` as its verb. An error of kind Corrupt after it where fields
/// could not be read.
pub fn print(
    report: &TransferReport,
    did: &str,
    document: fn(&TransferReport) -> Value,
    out: &mut Out,
) -> Done {
    if out.json() {
        out.document(&document(report))?;
    } else {
        writeln!(out, "{did} {}", arrived(report))?;
        note_left(&report.left, out);
        for Unreadable { key, why } in &report.damaged {
            out.note(format_args!("damaged, and left where it is: {key}: {why}"));
        }
    }
    match report.damaged.len() {
        0 => Ok(()),
        n => {
            Err(Error::corrupt(format!("{} could not be read; the rest is there", count(n as u64, "field")))
                .with_hint(
                    "archive these fields again, or restore the files that verify names, and do it again",
                )
                .into())
        }
    }
}

/// The part that arrived.
fn arrived(report: &TransferReport) -> String {
    let mut text = format!("{}, {}", count(report.fields, "field"), size(report.bytes));
    if report.unchanged > 0 {
        text.push_str(&format!(", {} there already", report.unchanged));
    }
    if report.versions > 0 {
        text.push_str(&format!(", {}", count(report.versions, "older value")));
    }
    if report.attributes > 0 {
        text.push_str(&format!(", {}", count(report.attributes, "attribute")));
    }
    text
}

/// The part that was left behind: one line for each kind, on stderr.
fn note_left(left: &[LeftBehind], out: &Out) {
    for LeftBehind { kind, count: n, names, why } in left {
        // An attribute is named by its tag, which many may share.
        let more = if *kind != "attribute" && *n > names.len() as u64 { ", …" } else { "" };
        out.note(format_args!("{} stayed behind ({}{more}): {why}", count(*n, kind), names.join(", ")));
    }
}
